"""The sequencer's broadcast as printed, with its flaws."""
