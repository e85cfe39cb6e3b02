"""Which mutations are held against which tests."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tests.mutations.battery import PATIENCE, Check, checks_of
from tests.mutations.measurement import Measured, digest_of_tests, measured
from tests.mutations.mutation import Mutant, Mutants, Mutation, read_imports
from tests.mutations.systematic import Spot
from tests.mutations.trials import Trial


class Battery:
    """The tests of some modules: made once, and then held against many mutations."""

    def __init__(self, modules: Sequence[str], contract: Sequence[str] = ()) -> None:
        """`contract`: protocols, such as "spo sound", whose cases of the contract suite belong to it."""
        self._modules, self._contract = modules, contract
        self._measured: dict[tuple[str, ...], list[Measured]] = {}

    def unordered(self) -> list[Check]:
        """As they stand in their files, without a look at how long they take."""
        return list(self._checks)

    def measured(self, code: Sequence[str], file: Path | None = None) -> list[Measured]:
        """The quickest first, with what they run of this code, where all of them must pass; kept in the file."""
        asked = tuple(code)
        if asked not in self._measured:
            self._measured[asked] = measured(self._checks, code, file)
        return self._measured[asked]

    @cached_property
    def digest(self) -> str:
        """Of the text of the tests, and of all that they import."""
        return sha256("".join(digest_of_tests(f"tests.{module}") for module in self._modules).encode()).hexdigest()

    @cached_property
    def _checks(self) -> list[Check]:
        checks = checks_of([f"tests.{module}" for module in self._modules])
        return [*checks, *filter(self._is_of_contract, checks_of(["tests.protocols.contract.test_contract"]))]

    def _is_of_contract(self, check: Check) -> bool:
        found = check.parameters()
        return f"{found['protocol']} {found['rules'].value}" in self._contract


class Suite(NamedTuple):
    """A part of the code, its semantic mutants, and the battery that must notice them and all systematic ones."""

    name: str
    mutants_of: str
    """The module of `tests.mutations.semantic` that has its mutants."""
    code: Sequence[str]
    """Modules of `ordercast` that it covers: these are broken systematically too."""
    battery: Battery

    def mutants(self) -> list[Mutant]:
        """Its semantic mutants."""
        mutants: Mutants = import_module(f"tests.mutations.semantic.{self.mutants_of}").MUTANTS
        return mutants.found

    def trials(self, mutations: Sequence[Mutation], file: Path | None = None) -> Iterator[Trial]:
        """Each held against the tests that can notice it, the quickest first. The file keeps what tests run."""
        if mutations:
            known = self.battery.measured(self.code, file)
            read_imports()
            for mutation in mutations:
                yield self._trial(mutation, known)

    def _trial(self, mutation: Mutation, known: Sequence[Measured]) -> Trial:
        if isinstance(mutation, Spot):
            known = [it for it in known if it.runs(mutation.module, mutation.lines)]
        seconds = 60 + PATIENCE * sum(it.seconds for it in known)
        return Trial(self.name, mutation, [it.check for it in known], seconds)


def _protocols(*names: str) -> list[str]:
    return [f"protocols.{name}" for name in names]


def _tests(folder: str, *names: str) -> list[str]:
    return [f"protocols.{folder}.test_{name}" for name in names]


_SPO = [
    *(
        "shared.gaps",
        "shared.jitter",
        "shared.numbering",
        "shared.backoff",
        "shared.destinations",
        "shared.pending_acknowledgments",
        "shared.sending_log",
    ),
    *("spo.state", "spo.loss_detection", "spo.retransmission", "spo.machine"),
]
_TO = Battery(
    [
        *_tests("to", "to_parts", "to_units"),
        *_tests("to", "to_rules_normal", "to_rules_speaking", "to_rules_back", "to_rules_carried", "to_machine"),
        *_tests("prito", "priority_order", "prito_rules"),
        *_tests("to", "to_searched"),
        *_tests("membership", "flush_parts"),
    ],
    contract=["to sound", "prito sound", "prio sound"],
)

SUITES = (
    Suite(
        "spo",
        "spo",
        _protocols(*_SPO),
        Battery(
            [
                *(
                    f"protocols.spo.test_spo_sound_{rule}"
                    for rule in ("receiving", "merge", "sending", "retransmission")
                ),
                *(f"protocols.spo.test_spo_sound_{rule}" for rule in ("status", "poll", "machine", "parts")),
                *_tests("spo", "spo_stable"),
                "protocols.test_pending_acknowledgments",
                "protocols.test_sending_log",
                "protocols.test_gaps",
                "protocols.test_jitter",
                "protocols.test_backoff",
                "protocols.test_destinations",
                *_tests("po", "po_rules"),  # PO is this machine with another repair policy
                *_tests("membership", "flush_settled", "flush_parts"),
            ],
            contract=["spo sound"],
        ),
    ),
    Suite(
        "po",
        "po",
        _protocols("po.go_back_n", "po.machine"),
        Battery(_tests("po", "po_rules", "po_explored"), contract=["po sound"]),
    ),
    Suite(
        "st",
        "st",
        _protocols(
            *("st.agreed_order", "st.channel_logs", "st.finished_epochs", "st.state", "st.loss_detection"),
            *("st.normal_operation", "st.recovery", "st.machine"),
        ),
        Battery(
            [
                *_tests("st", "st_rules_normal", "st_rules_recovery", "st_rules_help", "st_rules_epochs"),
                *_tests(
                    "st",
                    "st_stable",
                    "st_go_back",
                    "st_inferred_loss",
                    "st_parts",
                    "st_machine",
                    "st_order",
                    "st_searched",
                    "st_place_rules",  # both kinds of ST have the same logs
                ),
                *_tests("membership", "flush_parts"),
            ],
            contract=["st sound"],
        ),
    ),
    Suite(
        "st that places",
        "st_place",
        _protocols(
            *("st.place.acknowledgments", "st.place.copies", "st.place.flush", "st.place.generations"),
            *("st.place.machine", "st.place.positions", "st.place.requests", "st.place.transmission"),
        ),
        Battery(
            [
                *_tests("st", "st_place_rules", "st_place_parts", "st_place_searched"),
                *_tests("membership", "flush_questions", "flush_runs"),
            ]
        ),
    ),
    Suite(
        "to",
        "to",
        _protocols(
            *("to.unanimous_log", "to.transmission", "to.loss_detection", "to.reception", "to.delivery"),
            *("to.recovery", "to.machine", "to.units"),
        ),
        _TO,
    ),
    Suite("prito", "prito", _protocols("prito.delivery", "prito.units"), _TO),
    Suite(
        "sequencer",
        "sequencer",
        _protocols(
            *("sequencer.view", "sequencer.timers", "sequencer.window"),
            *(
                "sequencer.loss_detection",
                "sequencer.reception",
                "sequencer.sender",
                "sequencer.orderer",
                "sequencer.view_agreement",
                "sequencer.machine",
            ),
        ),
        Battery(
            [
                *_tests("sequencer", "sequencer_parts"),
                *_tests("sequencer", "sequencer_ordering", "sequencer_members", "sequencer_agreement"),
                *_tests("sequencer", "sequencer_views", "sequencer_scripts", "sequencer_machine", "sequencer_runs"),
                *_tests("membership", "flush_parts"),
            ],
            contract=["sequencer sound"],
        ),
    ),
    Suite(
        "membership",
        "membership",
        _protocols(
            *(f"membership.{part}" for part in ("view", "units", "choice", "current", "order", "acceptor")),
            *(
                f"membership.{part}"
                for part in ("coordinator", "applicants", "joiner", "installer", "submissions", "leaving")
            ),
            *(
                f"membership.{part}"
                for part in ("retirement", "blocking", "admission", "view_change", "control_reception", "machine")
            ),
            *(
                f"membership.{part}"
                for part in ("by_node", "node_outputs", "node_packets", "silence", "failure_detector")
            ),
        ),
        Battery(
            [
                *_tests("membership", "view_values", "membership_bounds", "membership_units"),
                *_tests("membership", "coordinator", "acceptor", "submissions"),
                *_tests("membership", "leaving", "installing", "blocking", "membership_scripts", "membership_joining"),
                *_tests("membership", "membership_details", "broken_links", "untrusted_units", "failure_detector"),
                *_tests("membership", "membership_upkeep", "membership_replays", "membership_attacked"),
                *_tests("membership", "fetching", "silence", "ballots_and_answers"),
                *_tests("membership", "by_node_outputs", "by_node", "membership_searched", "membership_runs"),
            ],
        ),
    ),
    Suite(
        "ends of views",
        "flush",
        _protocols(
            *("membership.epoch", "spo.settlement", "shared.alone"),
            *("spo.flush", "po.flush", "st.flush", "to.flush", "sequencer.flush"),
        ),
        Battery(
            _tests("membership", "flush_settled", "flush_parts", "flush_questions", "flush_runs", "flush_explored")
        ),
    ),
    Suite(
        "spo as printed",
        "spo_paper",
        _protocols("spo.paper"),
        Battery(
            [
                *_tests("spo_paper", "papers_rules", "papers_failures", "papers_machine", "papers_words", "figure_4"),
                *_tests("spo_paper", "papers_lemmas", "papers_service", "counterexamples"),
            ],
            contract=["spo paper"],
        ),
    ),
    Suite(
        "st as printed",
        "st_paper",
        _protocols("st.paper.state", "st.paper.recovery", "st.paper.machine"),
        Battery(
            [
                *_tests("st_paper", "papers_rules", "papers_examples", "papers_machine", "st_star"),
                *_tests("st_paper", "papers_propositions", "st_counterexamples"),
            ],
            contract=["st paper"],
        ),
    ),
    Suite(
        "prito as printed",
        "prito_paper",
        _protocols("prito.paper.state", "prito.paper.machine"),
        Battery(
            [
                *_tests("prito_paper", "papers_rules", "papers_failure", "papers_synchronisation", "papers_machine"),
                *_tests("prito_paper", "papers_examples", "prito_counterexamples"),
            ],
            contract=["prito paper"],
        ),
    ),
    Suite(
        "sequencer as printed",
        "sequencer_paper",
        _protocols("sequencer.paper.state", "sequencer.paper.election", "sequencer.paper.machine"),
        Battery(
            [
                *_tests("sequencer_paper", "papers_figures", "papers_election", "papers_machine", "papers_numbers"),
                *_tests("sequencer_paper", "counterexamples", "counterexamples_agreement"),
            ],
            contract=["sequencer paper"],
        ),
    ),
    Suite(
        "audit",
        "audit",
        [
            *(f"audit.{name}" for name in ("completeness", "order", "priorities", "levels", "views", "logs")),
            *(f"audit.{name}" for name in ("records", "run_rows", "verdict", "services", "violations", "reference")),
            *(f"audit.{name}" for name in ("view_epochs", "epoch_rows", "membership", "virtual_synchrony")),
            *(f"audit.{name}" for name in ("urgency", "durability", "disk_rows", "shrinking_views", "excused")),
        ],
        Battery(
            [
                *(f"audit.test_audit_{name}" for name in ("completeness", "order", "priorities", "levels", "views")),
                *("audit.test_audit_logs", "audit.test_audit_reference", "audit.test_priority_definitions"),
                *("audit.test_audit_records", "audit.test_verdict", "audit.test_audit_changing_groups"),
                "audit.test_epochs_of_views",
                *("audit.test_urgency", "audit.test_audit_durability", "audit.test_shrinking_views"),
                *("audit.test_profiles", "audit.test_verdict_forms"),
            ]
        ),
    ),
    Suite(
        "kernel",
        "kernel",
        [f"pipeline.audit.{name}" for name in ("kernel.checks", "kernel.levels", "kernel.columns", "run", "memory")],
        Battery(
            [
                *("pipeline.test_kernel_levels", "pipeline.test_kernel_rules", "pipeline.test_kernel_columns"),
                *("pipeline.test_memory", "pipeline.test_audit_kernel"),
                *("pipeline.test_profiles", "pipeline.test_audit_changing_groups", "audit.test_urgency"),
            ],
        ),
    ),
    Suite(
        "partitioned",
        "partitioned",
        [
            *(
                f"pipeline.audit.partitioned.{name}"
                for name in ("row_groups", "row_group_summary", "row_group_index", "partition_audit")
            ),
            *(
                f"pipeline.audit.partitioned.{name}"
                for name in ("partition_overlaps", "partition_results", "cut_points", "log_comparison")
            ),
            *(f"pipeline.audit.partitioned.{name}" for name in ("explain", "tasks", "long_run", "audit")),
        ],
        Battery(
            [
                *("pipeline.test_cut_points", "pipeline.test_partition_overlaps", "pipeline.test_partition_results"),
                *("pipeline.test_searched_partitions", "pipeline.test_across_partitions"),
                *("pipeline.test_levels_in_partitions", "pipeline.test_partitioned", "pipeline.test_profiles"),
                *("pipeline.test_partition_rules", "pipeline.test_audit_changing_groups"),
            ],
        ),
    ),
    Suite(
        "sessions",
        "session",
        [f"live.session.{name}" for name in ("handshake", "closing", "machine", "discovery", "parameter_comparison")],
        Battery(
            [
                f"live.test_{name}"
                for name in (
                    "session_rules",
                    "session_bounds",
                    "discovery",
                    "discovery_bounds",
                    "recordings",
                    "session_fuzz",
                    "session_runs",
                )
            ]
        ),
    ),
    Suite(
        "links",
        "links",
        [f"live.transport.{name}" for name in ("pieces", "path_model", "link_receiver", "link_sender", "links")],
        Battery(
            [
                "live.test_pieces",
                "live.test_path_model",
                "live.test_link_receiver",
                "live.test_link_sender",
                "live.test_links_by_hand",
                "live.test_links",
            ]
        ),
    ),
    Suite(
        "live machines",
        "live",
        [
            *(
                f"live.transport.{name}"
                for name in ("beside_relay", "fragmentation", "gathering", "packing", "reorder_buffer")
            ),
            *(f"live.host.{name}" for name in ("flow_control", "congestion", "round_trips")),
            *("live.host.message_fragments", "live.durability", "live.host.durable.tellings"),
        ],
        Battery(
            [
                *(f"live.test_{name}" for name in ("fragmentation", "gathering", "packing", "reorder_buffer")),
                *(f"live.test_{name}" for name in ("flow_control_by_hand", "congestion", "congestion_bounds")),
                *(
                    f"live.test_{name}"
                    for name in ("ordered_streams", "round_trips", "message_fragments", "echoes", "beside_relay")
                ),
                *("live.durable.test_durability", "live.durable.test_tellings"),
            ]
        ),
    ),
    Suite(
        "wire",
        "wire",
        [
            *(f"wire.{name}" for name in ("unit_validation", "codec", "control", "datagram", "keys")),
            *(f"wire.{name}" for name in ("lru_map", "replay_window", "authentication", "seal")),
        ],
        Battery(
            [
                f"wire.test_{name}"
                for name in (
                    "unit_validation",
                    "control",
                    "datagram",
                    "keys",
                    "lru_map",
                    "replay_window",
                    "seal",
                    "codec",
                )
            ]
        ),
    ),
    Suite(
        "log",
        "log",
        [
            *(f"log.{name}" for name in ("format", "segments", "recovery", "manifest", "published_end", "snapshots")),
            *("log.whole_files", "log.damage", "log.truncation", "log.disk", "log.direct"),
            *(f"log.{name}" for name in ("files", "retention", "writer", "reader", "check", "arrow", "agreement")),
        ],
        Battery(
            [
                *(f"log.test_{name}" for name in ("format", "recovery", "retention", "reader", "agreement")),
                *("log.test_writer", "log.test_histories", "log.test_damage", "log.test_truncation"),
                *("log.test_order_of_changes", "log.test_log_bounds", "log.test_log_calls"),
                *("log.test_disk", "log.test_direct"),
            ]
        ),
    ),
    Suite(
        "restart",
        "restart",
        [f"protocols.restart.{name}" for name in ("assessment", "standing", "machine", "node_log", "durable_node")],
        Battery(
            [
                *("protocols.test_restart_machine", "protocols.test_restart_plans", "protocols.test_durable_node"),
                "live.durable.test_assessment",
                *("simulator.test_restarts", "explorer.test_explore_logs"),
            ]
        ),
    ),
    Suite(
        "replicated",
        "replicated",
        [
            *("replicated.sessions", "replicated.checks", "replicated.pending_commands", "replicated.results"),
            *("replicated.dictionary", "replicated.collections", "replicated.queues", "replicated.locks"),
            "replicated.barriers",
        ],
        Battery(
            [
                *("replicated.test_blocks_alone", "replicated.test_blocks_waiting", "replicated.test_results"),
                *("replicated.test_checks", "replicated.test_sessions"),
                *("replicated.test_pending_commands", "audit.test_linearizability"),
            ]
        ),
    ),
    Suite(
        "explorer",
        "explorer",
        [
            f"explorer.{name}"
            for name in (
                *("state_space", "node_states", "promise_checker", "view_promises"),
                *("continuations", "links", "counterexample"),
            )
        ],
        Battery(
            [
                *("explorer.test_explore_toys", "explorer.test_state_space", "explorer.test_continuations"),
                *("explorer.test_bounds", "explorer.test_explore_broken", "explorer.test_reduction"),
                *("explorer.test_view_promises", "explorer.test_explore_membership"),
            ]
        ),
    ),
)
