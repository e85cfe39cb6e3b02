"""What several commands share: options, printing, progress. None of it is a command."""
