"""The papers' tables and figures, each as an experiment."""
