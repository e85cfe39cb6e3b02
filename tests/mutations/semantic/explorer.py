"""Semantic mutants of `explorer.state_space` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("explorer.state_space")
