"""Semantic mutants of `protocols.st.paper.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.st.paper.machine")
