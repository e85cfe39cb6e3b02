"""Live groups: the protocols in real time, over UDP. The public names are in `ordercast`."""

import logging

logging.getLogger("ordercast").addHandler(logging.NullHandler())  # silent, unless the application configures logging
