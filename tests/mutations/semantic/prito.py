"""Semantic mutants of `protocols.prito.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.prito.machine")
