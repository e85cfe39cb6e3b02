"""The application's state for a member that joins: from a member that has it, over a connection of their own."""
