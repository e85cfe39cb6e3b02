"""`python -m ordercast.cli`."""

from ordercast.cli.app import main

main()
