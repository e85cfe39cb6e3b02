"""Semantic mutants of `live.session` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("live.session")
