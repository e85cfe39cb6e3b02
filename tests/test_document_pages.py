"""Every page can be trusted: links resolve, Python compiles and names what exists, commands have the options they show.

Python blocks of the README and of the tutorial are run as programs (`test_documents`, `test_tutorial`), those of
guides, reference and explanation are executed here. All other blocks are excerpts: they are compiled, their imports are
resolved, and every name and keyword of `ordercast` that they use must exist.
"""

import ast
import contextlib
import importlib
import importlib.util
import inspect
import io
import logging
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import ordercast
import ordercast.replicated
from ordercast.cli.app import COMMANDS, load_command

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = (DOCS / "project", DOCS / "reference/api")  # by `make docs`
PAGES = [
    path
    for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    if not any(path.is_relative_to(folder) for folder in GENERATED)
]
BY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))

# Words of an earlier vocabulary, or of none: the glossary has those of the field.
BANNED = (
    r"\btrains?\b",
    r"\bparcels?\b",
    r"\bdockets?\b",
    r"\bmishaps?\b",
    r"\bheeds?\b",
    r"\bhearken\w*",
    r"\bacquit\w*",
    r"\blingering\b",
    r"\babsurd\w*",
    r"\bnonsense\b",
    r"\bstrays?\b",
    r"\blosers?\b",
    r"\bgravest\b",
    r"\bfor ever\b",
    r"\bif not said\b",
    r"\bcame to nothing\b",
    r"\bearlier days\b",
    r"\bsign of life\b",
    r"\bthe rooms?\b",
    r"\bordercast channel\b",
    r"--silence\b",
    r"--datagram\b",
    r"--recorded\b",
    r"\bsilences?`",
    r"\bpreacknowledged\(\)",
    r"\bgroup\.(rotate|largest|waiting)\b",
)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        count = sum(1 for each in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each))
        found.add(f"{slug}-{count}" if count else slug)
    return found


@BY_PAGE
def test_links_and_anchors_resolve(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), f"{target}#{anchor}"


@BY_PAGE
def test_nothing_is_fetched_from_elsewhere(page: Path) -> None:
    hosts = set(re.findall(r"https?://([\w.-]+)", page.read_text()))
    assert hosts <= {"localhost"}


def names_used(tree: ast.AST) -> list[tuple[str, str]]:
    """Each (module, name) of ordercast that a block imports, or reaches as `ordercast.name`."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "ordercast":
            found += [(str(node.module), alias.name) for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ordercast":
            found.append(("ordercast", node.attr))
    return found


@BY_PAGE
def test_python_blocks_compile_and_use_what_exists(page: Path) -> None:
    for block in blocks(page.read_text(), "python"):
        tree = compile(block, str(page), "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for module, name in names_used(tree):
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                _require_keywords(node)


def _require_keywords(call: ast.Call) -> None:
    """Calls of `ordercast.name(keyword=…)` use keywords that exist."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return
    if function.value.id == "ordercast":
        parameters = inspect.signature(getattr(ordercast, function.attr)).parameters
    elif function.value.id == "group":
        kind = ordercast.Group if hasattr(ordercast.Group, function.attr) else ordercast.replicated.Member
        parameters = inspect.signature(getattr(kind, function.attr)).parameters
    else:
        return
    assert {str(keyword.arg) for keyword in call.keywords} <= set(parameters), ast.unparse(call)


WHOLE = [page for page in PAGES if page.parent.name in {"howto", "reference", "explanation"}]


@pytest.fixture
def same_logging() -> Iterator[None]:
    """Whatever a page does to logging is undone."""
    root, ours = logging.getLogger(), logging.getLogger("ordercast")
    handlers, level = root.handlers[:], ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)


@pytest.mark.usefixtures("same_logging")
@pytest.mark.parametrize("page", WHOLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_of_guides_run(page: Path) -> None:
    """They define what a program would call; what they do at once needs no group."""
    for block in blocks(page.read_text(), "python"):
        assert "asyncio.run(" not in block
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, str(page), "exec"), {})  # noqa: S102


@pytest.mark.parametrize(
    ("page", "orders"), [("howto/deploy.md", ["sequenced", "total"]), ("reference/settings.md", ["sequenced"])]
)
def test_settings_files_of_guides_are_read(page: str, orders: list[str], tmp_path: Path) -> None:
    for block, order in zip(blocks((DOCS / page).read_text(), "toml"), orders, strict=True):
        (tmp_path / "settings.toml").write_text(block)
        settings = ordercast.Settings.from_toml(tmp_path / "settings.toml")
        assert settings.order == order
        (tmp_path / "again.toml").write_text(settings.to_toml())
        assert ordercast.Settings.from_toml(tmp_path / "again.toml") == settings


def commands(text: str) -> list[str]:
    """The ordercast commands of a page: whole lines of its shell blocks, and those in running text."""
    shell = "".join(blocks(text, "sh") + blocks(text, "console")).replace("\\\n", " ")
    lines = [part for line in shell.splitlines() for part in re.split(r"&&|\|", line)]
    outside = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    inline = re.findall(r"`([^`]+)`", outside.replace("\n", " "))
    stripped = [line.strip().removeprefix("$ ").removeprefix("sudo ") for line in [*lines, *inline]]
    return [line for line in stripped if line.startswith("ordercast ")]


@BY_PAGE
def test_commands_have_the_options_that_are_shown(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return  # it tells of names that are no longer there
    for line in commands(page.read_text()):
        try:
            words = shlex.split(line.replace("…", " "), comments=True)[1:]
        except ValueError:
            words = line.split()[1:]
        if not re.fullmatch(r"[a-z]+", words[0]):  # --version, or what is no command
            continue
        assert words[0] in COMMANDS, line
        known = {"--help"}
        for parameter in load_command(words[0]).params:
            known |= {*parameter.opts, *parameter.secondary_opts}
        used = {word.partition("=")[0] for word in words[1:] if re.match(r"--[a-z]", word)}
        assert used <= known, f"{line}: {used - known}"


@BY_PAGE
def test_programs_that_are_named_exist(page: Path) -> None:
    for name in re.findall(r"python ((?:benchmarks|examples|docs)/[\w/]+\.py)", page.read_text()):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"python -m (tests\.[\w.]+)", page.read_text()):
        assert importlib.util.find_spec(name), name
    for target in re.findall(r"`make (\w+)`|^make (\w+)", page.read_text(), flags=re.MULTILINE):
        assert re.search(rf"^{''.join(target)}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), target


@BY_PAGE
def test_pages_use_the_words_of_the_field(page: Path) -> None:
    if page.name in {"CHANGELOG.md", "cli.md"}:
        return  # the one tells of names that are no longer there, the other says what the commands say
    text = page.read_text()
    found = [match.group() for banned in BANNED for match in re.finditer(banned, text, flags=re.IGNORECASE)]
    assert not found


FIELD = """
atomic broadcast, back-pressure, batching, busy polling, congestion control, counterexample, discovery, FIFO order,
failure detector, failure timeout, fragmentation, go-back-n, group parameters, handshake, heartbeat, incarnation,
known stable, membership, mutant, primary partition, relay, reorder buffer, replay protection, resilience,
retransmission, selective retransmission, sequencer, shrinking, stable, total order, trace, uniform, view, window,
witness
"""


def test_the_glossary_has_the_terms_of_the_field_and_no_dead_ones() -> None:
    glossary = DOCS / "reference/glossary.md"
    rows = re.findall(r"^\| ([^|]+) \|", glossary.read_text(), flags=re.MULTILINE)
    terms = {term for row in rows if row != "term here" for term in re.sub(r" \(.*\)", "", row).split(", ")}
    assert {term.strip() for term in " ".join(FIELD.split()).split(", ")} <= terms
    elsewhere = " ".join(page.read_text() for page in PAGES if page != glossary).lower()
    elsewhere += " ".join(path.read_text() for path in (ROOT / "src").rglob("*.py")).lower()
    elsewhere = " ".join(elsewhere.split())
    assert {term for term in terms if term.strip("`").lower() not in elsewhere} == set()


def site() -> Any:
    spec = importlib.util.spec_from_file_location("site_configuration", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_index_lists_every_page_once() -> None:
    """The site's tree of contents is made of these lists."""
    index = DOCS / "index.md"
    listed = [link for section in site().pages_by_section(index.read_text()).values() for link in section]
    found = [(DOCS / link).resolve() for link in listed]
    assert len(set(found)) == len(found)
    changes = {ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"}
    assert set(found) == {page for page in PAGES if page.is_relative_to(DOCS)} - {index} | changes


def test_names_of_types_have_words_of_their_own() -> None:
    """Python would show the docstring of `dict` or `tuple`, which is none of ours, and not even well-formed."""
    modules = [
        import_module(name)
        for name in (
            "ordercast",
            "ordercast.simulation",
            "ordercast.log",
            "ordercast.replicated",
            "ordercast.gateway",
            "ordercast.pipeline",
        )
    ]
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    aliases = {name: value for name, value in public.items() if hasattr(value, "__origin__")}
    assert "RunRow" in aliases
    words_of_alias = site().words_of_alias
    assert [name for name, value in aliases.items() if not words_of_alias(name, value)] == []


def test_links_out_of_the_site_become_text() -> None:
    rewritten = site().rewritten
    here = DOCS / "live.md"
    assert rewritten("[a](trace.md#events)", here) == "[a](/trace.md#events)"
    assert rewritten("[a](../CHANGELOG.md)", here) == "[a](/project/changes.md)"
    assert rewritten("[a](docs/live.md)", ROOT / "CONTRIBUTING.md") == "[a](/live.md)"
    assert rewritten("[`a.py`](../src/ordercast/cli/app.py)", here) == "`a.py`"
    assert rewritten("[all of them](../examples)", here) == "all of them (`examples`)"
