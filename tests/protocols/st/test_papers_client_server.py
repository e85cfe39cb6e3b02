"""The example of section 1: clients write data that servers hold in part; those that hold the same agree on an order.

Clients C1 and C2 are E1 and E2, servers S1 to S3 are E3 to E5. x is on S1 and S2, y on S2 and S3. C1 writes both, C2
only x.
"""

from dataclasses import replace

from ordercast.explorer.explore import explore
from ordercast.explorer.scenarios import promise_of, scenario
from ordercast.model.config import GroupConfig
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, RunConfig, ScriptedSend, Workload
from ordercast.simulator.simulate import simulate
from ordercast.swarm.run_audit import failures_of

WRITES = ["op1{3,4,5}", "op2{3,4}", "", "", ""]


def test_servers_of_one_object_may_disagree_under_spo() -> None:
    promised = replace(promise_of("spo", GroupConfig(nodes=5)), one_order=True, liveness_goal=None)
    report = explore(scenario("spo", WRITES, promise=promised), 20_000, reduced=True)
    assert report.counterexample is not None
    assert "the orders of delivery have a cycle" in report.counterexample.sentence


def test_they_never_do_under_st() -> None:
    assert explore(scenario("st", WRITES), 10_000, reduced=True).counterexample is None
    for seed in range(10):
        run = RunConfig(
            protocol="st",
            group=GroupConfig(nodes=5),
            network=Network(channel=Channel.ONE),
            workload=Workload(
                messages=1,
                script=tuple(
                    ScriptedSend(node=client, to=to, at=place * 100_000)
                    for place in range(20)
                    for client, to in ((0, (2, 3, 4)), (1, (2, 3)))
                ),
            ),
            faults=(Loss(rate=0.1),),
            seed=seed,
        ).with_default_timeouts()
        assert simulate(run).complete
        assert not failures_of(run)
