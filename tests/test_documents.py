"""The documents are true: their examples run, and their pictures are what is drawn.

`test_document_pages` checks every page by itself, `test_document_reference` the reference against the code.
"""

import contextlib
import importlib
import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import ordercast
from ordercast.cli.app import app
from ordercast.explorer.schedule_files import read_schedule
from ordercast.model.config import PaperRules, PriorityReadings, SequencerReadings
from tests.documented_programs import new_names
from tests.live.ports import free_group

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """The ordercast commands of a document."""
    lines = "".join(blocks(text, "sh") + blocks(text, "console")).replace("\\\n", " ").splitlines()
    stripped = [line.removeprefix("$ ") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in stripped if line.startswith("ordercast ")]


def section(title: str) -> str:
    """A section of the README."""
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def run(arguments: list[str], folder: Path) -> Result:
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, arguments)


def test_the_ten_lines_of_the_readme_print_what_they_say() -> None:
    (example,) = blocks(section("A simulation in ten lines"), "python")
    promised = re.findall(r"^print\(.*#\s*(.*)$", example, flags=re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})  # noqa: S102
    assert printed.getvalue().splitlines() == promised
    assert len([line for line in example.splitlines() if line]) <= 12


def test_the_ten_lines_of_a_live_group_run_in_three_terminals(tmp_path: Path) -> None:
    (example,) = blocks(section("A live group in ten lines"), "python")
    assert len([line for line in example.splitlines() if line]) <= 10
    (tmp_path / "hello.py").write_text(new_names()(example))
    terminals = [
        subprocess.Popen([sys.executable, "hello.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    printed = [terminal.communicate(timeout=60)[0].splitlines() for terminal in terminals]
    assert printed[0] == printed[1] == printed[2]
    assert sorted(printed[0]) == [f"{name} hello from {name}" for name in "ABC"]


def test_the_commands_of_a_live_group_run_in_three_terminals(tmp_path: Path) -> None:
    group = free_group("chat")
    node, audit, joining, members = (
        [group if argument == "chat" else argument for argument in command]
        for command in commands(section("A live group in ten lines"))
    )
    assert all(group in command for command in (node, joining, members))
    command = [sys.executable, "-m", "ordercast.cli"]
    pipe = subprocess.PIPE
    terminals = [
        subprocess.Popen([*command, *node], cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603
        for _ in range(3)
    ]
    for terminal in terminals:
        assert terminal.stderr is not None
        while b"is in the group" not in terminal.stderr.readline():
            pass
    fourth = subprocess.Popen([*command, *joining], cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603
    assert fourth.stderr is not None
    while b"view 1: A, B, C, D" not in fourth.stderr.readline():
        pass
    assert run(members, tmp_path).stdout.count("present") == 4
    for terminal in (*terminals, fourth):
        assert terminal.stdin is not None
        terminal.stdin.write(b"hello\n")
        terminal.stdin.close()
        terminal.stdin = None
    printed = [terminal.communicate(timeout=60)[0] for terminal in (*terminals, fourth)]
    assert printed[0] == printed[1] == printed[2] == printed[3]
    assert sorted(printed[0].splitlines()) == [b"A\thello", b"B\thello", b"C\thello", b"D\thello"]
    judged = run(audit, tmp_path)
    assert judged.exit_code == 0, judged.stderr
    assert "12 deliveries" in judged.stdout


def test_the_commands_of_the_readme_run_one_after_the_other(tmp_path: Path) -> None:
    found = commands(section("On the command line"))
    assert [arguments[0] for arguments in found] == ["simulate", "audit", "simulate"]
    for arguments in found:
        done = run(arguments, tmp_path)
        assert done.exit_code == 0, done.stderr
        assert done.stdout
        assert not done.stderr


def test_the_demo_is_what_the_readme_says_it_is() -> None:
    on_spark = commands(section("On Spark"))
    demo = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    recipe = re.findall(r"^\t\$\(BIN\)/ordercast (.*)$", demo, flags=re.MULTILINE)
    here = [line.replace("demo/trace", "sweep").replace(" demo/", " ").split() for line in recipe]
    assert on_spark == here


@pytest.mark.soak
def test_the_commands_on_spark_run_one_after_the_other(tmp_path: Path) -> None:
    """They take minutes; `make demo` runs them too."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for arguments in commands(section("On Spark")):
        done = run(arguments, tmp_path)
        assert done.exit_code == 0, done.stderr
        assert not done.stderr
    assert (tmp_path / "evaluation/report.html").stat().st_size > 100_000


def test_pictures_are_what_their_commands_draw(tmp_path: Path) -> None:
    _, _, of_readme = commands(section("On the command line"))
    of_st = next(line for line in commands((ROOT / "docs/protocols/st.md").read_text()) if "--svg" in line)
    drawn = {"spo.svg": of_readme, "st.svg": of_st[: of_st.index("--svg")]}
    assert {path.name for path in (ROOT / "docs/pictures").glob("*.svg")} == {*drawn, "starvation.svg"}
    for name, arguments in drawn.items():
        assert run([*arguments, "--svg", name], tmp_path).exit_code == 0
        assert (tmp_path / name).read_bytes() == (ROOT / "docs/pictures" / name).read_bytes(), name


def test_each_story_is_told_with_the_picture_of_its_schedule(tmp_path: Path) -> None:
    files = {path.stem: path for path in (ROOT / "examples/counterexamples").glob("*.toml")}
    pages = {page: page.read_text() for page in (ROOT / "docs/counterexamples").glob("*.md")}
    assert {path.stem for path in (ROOT / "docs/pictures/counterexamples").iterdir()} == set(files)
    for name, path in files.items():
        told = [text for page, text in pages.items() if page.stem == name.split("-")[0]]
        assert f"(../pictures/counterexamples/{name}.svg)" in "".join(told)
        assert ["replay", f"examples/counterexamples/{name}.toml"] in commands("".join(told))
        done = CliRunner().invoke(app, ["replay", str(path), "--svg", str(tmp_path / "it.svg")])
        assert done.exit_code == 1, done.output
        drawn = (ROOT / f"docs/pictures/counterexamples/{name}.svg").read_bytes()
        assert (tmp_path / "it.svg").read_bytes() == drawn, f"python examples/counterexamples.py {name}"


def test_the_pages_say_how_many_searches_were_given_first_steps() -> None:
    files = [path.read_text() for path in (ROOT / "examples/counterexamples").glob("*.toml")]
    given = sum(re.search(r"^begins = [1-9]", text, flags=re.MULTILINE) is not None for text in files)
    page = (ROOT / "docs/counterexamples.md").read_text()
    assert f"For {len(files) - given} the search starts from the initial state; for {given} it is" in page
    rows = page.partition("\n## What is given\n")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\| (?:SPO|ST|PriTO) ", rows, flags=re.MULTILINE)) == given
    evidence = (ROOT / "docs/explanation/evidence.md").read_text()
    assert f"{len(files)} counterexamples, {len(files) - given} from the initial state and {given} after" in evidence


def test_the_page_of_stories_shows_what_is_printed() -> None:
    page = (ROOT / "docs/counterexamples.md").read_text()
    check, search, sound, replay = commands(page)
    (shown,) = blocks(page, "console")
    about, *printed = (line.rstrip() for line in run(replay, ROOT).stdout.splitlines())
    *table, broken = shown.splitlines()[1:]
    assert about.endswith(".")
    assert printed[: len(table)] == table
    assert printed[len(table)].startswith(broken.removesuffix(" …"))
    assert [CliRunner().invoke(app, arguments).exit_code for arguments in (search, sound)] == [1, 0]
    assert CliRunner().invoke(app, [*check, "--jobs", "1", "--no-draw"]).exit_code == 1


def test_the_page_of_the_swarm_makes_small_what_it_shows(tmp_path: Path) -> None:
    """The soak, which needs Spark and minutes, has tests of its own."""
    page = (ROOT / "docs/swarm.md").read_text()
    soak, simulate, shrink, replay = commands(blocks(page, "sh")[0].join(("```sh\n", "```")))
    assert soak[0] == "soak"
    assert [run(arguments, tmp_path).exit_code for arguments in (simulate, shrink)] == [1, 1]
    (written,) = tmp_path.glob(replay[1])
    (shown,) = blocks(page, "toml")
    assert re.sub("(?<=-s4-)[0-9a-f]{16}", "…", written.read_text()) == shown
    done = run([replay[0], str(written), *replay[2:]], tmp_path)
    assert done.exit_code == 1
    assert "acknowledged_truthfully" in done.stdout


@pytest.mark.parametrize("page", sorted((ROOT / "docs/counterexamples").glob("*.md")), ids=lambda page: page.stem)
def test_a_story_is_found_by_the_command_beside_it(page: Path) -> None:
    """By the words of the promise that its file expects to be broken."""
    found = commands(page.read_text())
    for (_, path), arguments in zip(found[::2], found[1::2], strict=True):
        if arguments[0] == "check":
            done = CliRunner().invoke(app, [*arguments, "--jobs", "1", "--json"])
            assert done.exit_code == 1
            assert json.loads(done.output)["counterexample"]["sentence"] == read_schedule(ROOT / path).sentence
        else:
            assert arguments == ["replay", "--search", path], "what it finds is a test of its own"


def test_the_example_of_starvation_draws_its_picture(tmp_path: Path) -> None:
    """And in it low priorities wait for the end of the stream without run synchronisation, and not with it."""
    command = [sys.executable, str(ROOT / "examples/starvation.py"), "starvation.svg"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603
    most = {tuple(line.split()[:2]): float(line.split()[-1]) for line in done.stdout.splitlines()[1:7]}
    assert most["without", "1"] > 4 * most["with", "1"] > 4 * most["with", "3"]
    drawn = (tmp_path / "starvation.svg").read_bytes()
    assert drawn == (ROOT / "docs/pictures/starvation.svg").read_bytes()


def test_the_pages_on_the_protocols_tell_every_reading() -> None:
    """As the help of `--reading` says."""
    pages = "".join(page.read_text() for page in (ROOT / "docs/protocols").glob("*.md"))
    groups = (PaperRules(), PriorityReadings(), SequencerReadings())
    names = {name for group in groups for name in group.__struct_fields__} - {"priority", "sequencer"}
    assert {name for name in names if f"`{name}=" not in pages} == set()


def resolves(name: str) -> bool:
    """A module, or what can be reached from one by attributes."""
    found: object = ordercast
    parts = name.split(".")
    for count, part in enumerate(parts[1:], start=2):
        if hasattr(found, part):
            found = getattr(found, part)
        elif importlib.util.find_spec(".".join(parts[:count])) is not None:
            found = importlib.import_module(".".join(parts[:count]))
        else:
            return False
    return True


def test_dotted_names_in_the_text_resolve() -> None:
    """But of the changelog, which tells of names that are no longer there."""
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    loggers = set(re.findall(r'getLogger\("(ordercast[.\w]*)"\)', source))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named: dict[str, Path] = {}
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for code in re.findall(r"`([^`]+)`", text):
            named |= dict.fromkeys(re.findall(r"(?<![\w./])ordercast(?:\.\w+)+", code), page)
    assert len(named) > 10
    assert {name: str(page) for name, page in named.items() if name not in loggers and not resolves(name)} == {}


def test_the_public_surface_is_sorted_and_real() -> None:
    assert sorted(ordercast.__all__) == list(ordercast.__all__)
    for name in ordercast.__all__:
        assert getattr(ordercast, name) is not None


def test_versions_agree() -> None:
    assert f'version = "{ordercast.__version__}"' in (ROOT / "pyproject.toml").read_text()
