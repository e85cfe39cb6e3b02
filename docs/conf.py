"""The site: `make docs` builds it into site/, and it opens from a file, without a network.

The pages are plain Markdown that reads well on a forge. What only a site needs is added here while a page is read: the
tree of contents, from the lists of links in index.md; pages for CHANGELOG.md and CONTRIBUTING.md; and links to files
that are not pages (source code, tests, examples) become plain text, since a site is read without the repository.
"""

import re
import sys
from pathlib import Path
from types import UnionType
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "src"))

project = "ordercast"
author = "the ordercast authors"
project_copyright = "the ordercast authors, Apache-2.0"
version = release = re.findall(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)[0]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode"]
exclude_patterns = ["_site"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
suppress_warnings = ["myst.header"]  # a page may begin its sections below the second level

smartquotes = False  # options (--name) and quoted arguments must stay as they are typed
default_role = "code"  # docstrings write `names` as Markdown does
autosummary_generate = True
autosummary_imported_members = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries = False
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"ordercast {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {"navigation_with_keys": True}

STORIES = ("examples/counterexamples", "examples/stories")
"""Schedules: each has a page on the site, on which one goes through it step by step."""
PROJECT_PAGES = {"CHANGELOG.md": "project/changes", "CONTRIBUTING.md": "project/contributing"}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def pages_by_section(index: str) -> dict[str, dict[str, str]]:
    """The pages that index.md lists under each heading, with the words that they are listed by."""
    found: dict[str, dict[str, str]] = {}
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        links = re.findall(r"^- \[([^\]]+)\]\(([^)#]+\.md)\)", body, flags=re.MULTILINE)
        found[title.strip()] = {link: words for words, link in links}
    return found


def _tree_of_contents(index: str) -> str:
    trees = []
    for title, links in pages_by_section(index).items():
        pages = {PROJECT_PAGES.get(Path(link).name, link.removesuffix(".md")): words for link, words in links.items()}
        entries = [f"{words} <{page}>" for page, words in pages.items()]
        trees.append("\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *entries, "```"]))
    return "\n\n".join(trees)


def rewritten(text: str, page: Path) -> str:
    """The text of a page with links that a site can follow; `page` is where the text is kept."""

    def replace(found: re.Match[str]) -> str:
        picture, words, target, anchor = found.groups()
        if "://" in target or target.startswith("mailto:"):
            return found.group()
        path = (page.parent / target).resolve()
        if path.name in PROJECT_PAGES and path.parent == ROOT:
            return f"[{words}](/{PROJECT_PAGES[path.name]}.md{anchor or ''})"
        if path == ROOT / "README.md":
            return f"[{words}](/index.md)"
        if path.is_relative_to(DOCS) and (picture or path.suffix == ".md"):
            return f"{picture}[{words}](/{path.relative_to(DOCS)}{anchor or ''})"
        if path.suffix == ".toml" and str(path.parent.relative_to(ROOT)) in STORIES:
            up = "../" * (len(page.relative_to(DOCS).parts) - 1)
            return f'<a href="{up}stories/{path.stem}.html">{words}</a>'
        return words if words.startswith("`") else f"{words} (`{path.relative_to(ROOT)}`)"

    return _LINK.sub(replace, text)


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(name))
    if path.suffix != ".md":
        return
    kept = {page: ROOT / file for file, page in PROJECT_PAGES.items()}
    text = source[0]
    source[0] = rewritten(text, kept.get(name, path))
    if name == "index":
        source[0] += "\n" + _tree_of_contents(text) + "\n"


def _copy_project_pages() -> None:
    for file, page in PROJECT_PAGES.items():
        copy = DOCS / f"{page}.md"
        copy.parent.mkdir(exist_ok=True)
        text = (ROOT / file).read_text()
        if not copy.exists() or copy.read_text() != text:
            copy.write_text(text)


def _write_stories(app: Sphinx, error: Exception | None) -> None:
    """The schedules as pages of the viewer: each opens without a server or a network."""
    from ordercast.cli.shared.stories import page_of_story  # noqa: PLC0415 (src is on the path from here on)

    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "stories"
        folder.mkdir(exist_ok=True)
        for path in sorted(file for kept in STORIES for file in (ROOT / kept).glob("*.toml")):
            (folder / f"{path.stem}.html").write_bytes(page_of_story(path))


MADE_BY_US = {"Group", "Joining", "Message", "Receipt"}  # classes that a user is handed, and does not make


def _signature(_app: Sphinx, kind: str, name: str, *rest: Any) -> tuple[str, str] | None:
    """As a user calls it; None: as it is."""
    *_, signature, returns = rest
    if kind == "class" and name.rpartition(".")[2] in MADE_BY_US:
        return "", ""
    if kind == "function" and signature:
        return re.sub(r", \*\*unknown: [\w.~]+", "", signature), returns
    return None


def words_of_alias(name: str, value: object) -> list[str]:
    """The string below the assignment that names a type: Python would show the docstring of `dict` or `tuple`."""
    for module in [each for each in sys.modules if each.startswith("ordercast.")]:
        if vars(sys.modules[module]).get(name) is value:
            written = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
            if written:
                return list(written)
    return []


def _docstring(_app: Sphinx, kind: str, name: str, value: object, _options: object, lines: list[str]) -> None:
    """Docstrings indent their examples, as people read them; reStructuredText wants a mark before."""
    if kind == "data" and (hasattr(value, "__origin__") or isinstance(value, UnionType)):
        lines[:] = words_of_alias(name.rpartition(".")[2], value)
    marked: list[str] = []
    for place, line in enumerate(lines):
        indented = line.startswith("    ") and line.strip()
        before = next((each for each in reversed(lines[:place]) if each.strip()), "")
        if indented and place and not lines[place - 1].strip() and not before.startswith((" ", "-", "..")):
            marked += ["::", ""]
        marked.append(line)
    lines[:] = marked


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    _copy_project_pages()
    app.connect("source-read", _read)
    app.connect("build-finished", _write_stories)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _docstring)
