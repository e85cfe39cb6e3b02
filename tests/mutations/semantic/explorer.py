"""Semantic mutants of `explorer.world` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("explorer.world")
