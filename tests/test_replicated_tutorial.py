"""The page "A replicated service in ten minutes", followed literally from an empty folder."""

import re
import subprocess
import sys
from pathlib import Path

from tests.documented_programs import new_names

PAGE = Path(__file__).parent.parent / "docs/replicated-service.md"


def programs() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)


def test_the_service_of_the_page_survives_a_kill(tmp_path: Path) -> None:
    assert "Save this as `scores.py`" in PAGE.read_text()
    (tmp_path / "scores.py").write_text(new_names()(programs()[0]))
    running: dict[str, subprocess.Popen[str]] = {}

    def start(name: str) -> None:
        running[name] = subprocess.Popen(  # noqa: S603
            [sys.executable, "scores.py", name], cwd=tmp_path, stdin=-1, stdout=-1, text=True
        )

    def say(name: str, line: str) -> None:
        pipe = running[name].stdin
        assert pipe is not None
        pipe.write(line)
        pipe.flush()

    def hear(name: str) -> str:
        pipe = running[name].stdout
        assert pipe is not None
        return pipe.readline().rstrip("\n")

    try:
        for name in "ABC":
            start(name)
        assert [hear(name) for name in "ABC"] == [f"{name} begins with {{}}" for name in "ABC"]
        say("A", "ann 3\n")
        assert (hear("A"), hear("A")) == ("3", "['ann'] ('A', 'B', 'C')")
        say("B", "bob 5\nann -1\n")
        assert [hear("B") for _ in range(4)][:3] == [
            "5",
            "['bob', 'ann'] ('A', 'B', 'C')",
            "points must be positive, not -1",
        ]
        say("A", "\nann\n")  # the expected number is that of its own unpacking
        assert [hear("A") for _ in range(4)][::2] == [
            f"not enough values to unpack (expected 2, got {n})" for n in "01"
        ]
        running["C"].kill()
        running.pop("C").communicate(timeout=30)
        start("C")
        assert hear("C") == "C begins with {'ann': 3, 'bob': 5}"
        say("C", "ann 9\n")
        assert (hear("C"), hear("C").partition("]")[0]) == ("12", "['ann', 'bob'")
        for process in running.values():
            process.communicate(timeout=30)
            assert process.returncode == 0
    finally:
        for process in running.values():
            process.kill()
            process.communicate()


def test_the_other_program_of_the_page_runs() -> None:
    names: dict[str, object] = {}
    exec(compile(programs()[1], str(PAGE), "exec"), names)  # noqa: S102
    assert "Raffle" in names
