"""Semantic mutants of `protocols.po.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.po.machine")
