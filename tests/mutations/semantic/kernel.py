"""Semantic mutants of `pipeline.audit.kernel.checks` and its parts."""

from tests.mutations.mutation import Mutants

MUTANTS = Mutants("pipeline.audit.kernel.checks")
