"""Semantic mutants of `protocols.sequencer.machine` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("protocols.sequencer.machine")
