"""What is imported when: packages and modules are counted, not seconds."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

_REPORT = "\nimport sys, json; print('\\n' + json.dumps(sorted(name for name, found in sys.modules.items() if found)))"
_NODE = """
import sys
from ordercast.cli import main
sys.argv = ["ordercast", *{arguments!r}]
try:
    main()
except SystemExit:
    pass
"""
_JOIN = """
import asyncio, secrets, ordercast
async def main():
    group = "light-" + secrets.token_hex(4)
    joins = [
        ordercast.join(group, name=name, members=["A", "B"], order={order!r}, record={record!r}, insecure=True)
        for name in "AB"
    ]
    groups = await asyncio.gather(*joins)
    for group in groups:
        await group.send(b"hello", until="stable")
    await asyncio.gather(*(group.close() for group in groups))
asyncio.run(main())
"""
HEAVY = {"cryptography", "matplotlib", "numpy", "pandas", "prometheus_client", "pyarrow", "pyspark", "rich", "scipy"}
ALONE = [
    "node",
    f"nobody else {uuid4().hex}",
    "--members",
    "A,B",
    "--timeout",
    "0.5",
    "--insecure",
]  # tests run at the same time


def modules_after(code: str) -> set[str]:
    done = subprocess.run(  # noqa: S603 (our own)
        [sys.executable, "-c", code + _REPORT], capture_output=True, text=True, check=True, timeout=60
    )
    names = done.stdout.strip().splitlines()[-1]
    return set(names.strip('[]"').split('", "'))


def packages(modules: set[str]) -> set[str]:
    ours = {name.split(".")[0] for name in modules}
    return {name for name in ours if name not in sys.stdlib_module_names and not name.startswith(("_", "cython"))}


def test_importing_ordercast_imports_its_errors_and_nothing_else() -> None:
    modules = modules_after("import ordercast")
    assert {name for name in modules if name.startswith("ordercast")} == {
        "ordercast",
        "ordercast.model",
        "ordercast.model.errors",
    }
    assert not packages(modules) - {"ordercast"}
    assert not modules & {"asyncio", "dataclasses", "inspect", "logging", "socket"}


def test_asking_for_join_does_not_load_what_a_member_runs_with() -> None:
    """It may be asked for in a running event loop; the rest is loaded in a thread, when a group is awaited."""
    modules = modules_after('import ordercast\nordercast.join("g", members=["A", "B"])')
    assert packages(modules) == {"ordercast", "msgspec", "typing_extensions"}
    rooms = {".".join(name.split(".")[:3]) for name in modules if name.startswith("ordercast.")}
    assert not {room for room in rooms if room.startswith(("ordercast.protocols", "ordercast.trace"))}
    assert not modules & {
        "ordercast.live.group",
        "ordercast.live.host.member",
        "ordercast.live.transport.endpoint",
        "ordercast.wire.codec",
    }


def test_joining_loads_one_protocol_and_no_package_besides() -> None:
    modules = modules_after(_JOIN.format(order="sequenced", record=None))
    assert packages(modules) == {"ordercast", "msgspec", "typing_extensions"}
    machines = {name for name in modules if name.startswith("ordercast.protocols") and name.endswith(".machine")}
    assert machines == {"ordercast.protocols.sequencer.machine", "ordercast.protocols.membership.machine"}


def test_a_member_is_loaded_in_a_thread() -> None:
    code = _JOIN.format(order="partial", record=None).replace(
        "import asyncio, secrets, ordercast",
        """
import asyncio, secrets, ordercast, sys, threading
ordercast.join
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("ordercast.") and threading.current_thread() is threading.main_thread():
            print("imported in the event loop:", name, flush=True)
sys.meta_path.insert(0, Watch())
""",
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("more", "needed"), [([], set()), (["--status"], set()), (["--metrics", "0"], {"prometheus_client"})]
)
def test_an_idle_node_loads_only_what_it_was_asked_for(more: list[str], needed: set[str]) -> None:
    assert packages(modules_after(_NODE.format(arguments=[*ALONE, *more]))) & HEAVY == needed


def test_a_node_that_records_loads_pyarrow_and_not_what_pyarrow_would_load(tmp_path: Path) -> None:
    arguments = [*ALONE, "--record", str(tmp_path)]
    assert packages(modules_after(_NODE.format(arguments=arguments))) & HEAVY == {"pyarrow"}


def test_an_application_that_records_loads_pyarrow_without_pandas_compute_functions_and_file_systems(
    tmp_path: Path,
) -> None:
    """pyarrow imports numpy where it is installed; nothing of that can be prevented in a process of others."""
    modules = modules_after(_JOIN.format(order="total", record=str(tmp_path)))
    assert "pyarrow.lib" in modules
    assert packages(modules) & HEAVY <= {"numpy", "pyarrow"}
    assert not modules & {"pyarrow.compute", "pyarrow._compute", "pyarrow.fs", "pyarrow._fs", "pyarrow.parquet"}
    read = pq.read_table(tmp_path / "events")
    assert read.num_rows > 0, "it did record"


def test_a_log_is_written_and_read_without_pyarrow_and_without_an_event_loop(tmp_path: Path) -> None:
    code = f"""
import ordercast.log
with ordercast.log.Log({str(tmp_path)!r}, "orders") as log:
    log.append(0, 0, [5], b"hello")
[message] = ordercast.log.read({str(tmp_path)!r})
assert ordercast.log.check({str(tmp_path)!r}).damage == ()
"""
    modules = modules_after(code)
    assert packages(modules) - {"zlib_ng"} == {
        "ordercast",
        "msgspec",
        "typing_extensions",
    }  # one extension, if it is there
    assert not modules & {"asyncio", "socket", "ordercast.live", "ordercast.protocols"}


def test_help_loads_no_command() -> None:
    modules = modules_after(_NODE.format(arguments=["--help"]))
    assert packages(modules) & HEAVY <= {"rich"}, "which writes the help"
    assert not {name for name in modules if name.startswith(("ordercast.live", "ordercast.protocols"))}
