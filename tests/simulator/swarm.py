"""Random configurations and their judgement, as the tests of protocols know them."""

from ordercast.swarm.draw import draw_config
from ordercast.swarm.judging import failures, judge_rows, logs_from_rows, run_and_judge

__all__ = ["draw_config", "failures", "judge_rows", "logs_from_rows", "run_and_judge"]
