"""PriTO as printed, for the paper's examples, evaluation and counterexamples."""
