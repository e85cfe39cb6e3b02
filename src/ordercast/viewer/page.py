"""The page: one HTML document with its style and its scripts inside, and a policy that lets nothing else run."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from ordercast.viewer.glossary import words_for_page

SCRIPTS = (
    *("arrow.js", "data.js", "clock.js", "spans.js", "marks.js", "draw.js", "svg.js", "perfetto.js", "view.js"),
    *("words.js", "ask.js", "story.js", "charts.js", "compare.js", "app.js"),
)
"""In the order in which they are run."""


def page(data: Mapping[str, Any], *, served: bool) -> bytes:
    """The document. `data` is for its scripts; text from a trace is in it as JSON only, and never as markup.

    `served`: it may ask the server that it came from, and nobody else; otherwise it reaches nobody.
    """
    script, style = _joined(SCRIPTS), _joined(("style.css",))
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data: blob:",
            f"connect-src {_SELF if served else _NOBODY}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    filled = _asset("page.html")
    for mark, text in (
        ("POLICY", policy),
        ("STYLE", style),
        ("DATA", embedded({**data, "words": words_for_page()})),
        ("SCRIPT", script),
    ):
        filled = filled.replace(f"<!--{mark}-->", text, 1)
    return filled.encode()


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that may stand within a script element: no end of the element, and no comment, can be in it."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_SELF, _NOBODY = "'self'", "'none'"


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _joined(names: tuple[str, ...]) -> str:
    return "\n" + "\n".join(_asset(name) for name in names)


@cache
def _asset(name: str) -> str:
    return (files("ordercast.viewer") / "static" / name).read_text(encoding="utf-8")
