"""Semantic mutants of `protocols.st.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.st.machine")
