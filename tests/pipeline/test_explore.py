"""A search on Spark sees what one on processes sees, and finds what is broken."""

import pytest
from pyspark.sql import SparkSession

from ordercast.explorer.parallel import explore_on
from ordercast.model.machine import Level
from ordercast.pipeline.explore import explore_on_spark
from tests.explorer.groups import broadcasts, spo, spo_as_printed

SCENARIOS = {
    "spo": spo("a{2,3}", "b{1}", "", losses=1),
    "sequencer": broadcasts("", "a", "", losses=1, duplicates=1),
}


@pytest.mark.parametrize("name", ["spo", pytest.param("sequencer", marks=pytest.mark.soak)])
def test_it_sees_the_same(spark: SparkSession, name: str) -> None:
    """The last levels on Spark, so that some jobs are enough."""
    one = explore_on(1, SCENARIOS[name])
    widest = one.states // one.depth
    there = explore_on_spark(spark, SCENARIOS[name], from_states=2 * widest)
    assert there.exhausted
    assert (there.states, there.edges, there.depth) == (one.states, one.edges, one.depth)


def test_small_searches_need_no_job(spark: SparkSession) -> None:
    one, there = explore_on(1, SCENARIOS["spo"]), explore_on_spark(spark, SCENARIOS["spo"])
    assert (there.states, there.edges, there.exhausted) == (one.states, one.edges, True)


def test_it_finds_what_is_broken(spark: SparkSession) -> None:
    scenario = spo_as_printed("a{2,3}", "b{3}", "", liveness_goal=Level.ACCEPTED)
    one, there = explore_on(1, scenario), explore_on_spark(spark, scenario, from_states=4)
    assert one.counterexample is not None
    assert there.counterexample is not None
    assert there.counterexample.schedule == one.counterexample.schedule


def test_what_is_cut_is_said_to_be(spark: SparkSession) -> None:
    report = explore_on_spark(spark, SCENARIOS["spo"], max_states=20, from_states=6)
    assert (report.exhausted, report.counterexample) == (False, None)
    assert report.states > 20
