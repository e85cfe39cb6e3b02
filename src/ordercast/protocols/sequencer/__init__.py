"""The sequencer's broadcast (Amoeba): total order to everybody, two packets a message, views."""
