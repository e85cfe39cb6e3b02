"""Semantic mutants: a few rules of each part of the code, each broken by replacing what keeps it."""
