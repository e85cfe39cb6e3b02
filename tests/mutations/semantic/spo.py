"""Semantic mutants of `protocols.spo.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.spo.machine")
