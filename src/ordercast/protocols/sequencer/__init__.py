"""Fixed-sequencer atomic broadcast (Kaashoek, Tanenbaum, Flynn Hummel and Bal, 1989)."""
