"""Semantic mutants of `audit.judge` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("audit.judge")
