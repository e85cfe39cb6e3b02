"""Semantic mutants of `pipeline.kernel` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("pipeline.kernel")
