"""Semantic mutants of `protocols.sequencer.paper.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.sequencer.paper.machine")
