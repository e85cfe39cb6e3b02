"""Semantic mutants of `protocols.prito.paper.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.prito.paper.machine")
