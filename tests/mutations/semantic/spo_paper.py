"""Semantic mutants of `protocols.spo.paper` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.spo.paper")
