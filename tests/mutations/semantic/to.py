"""Semantic mutants of `protocols.to.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.to.machine")
