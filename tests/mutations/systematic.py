"""Breakages that nobody thought of: every comparison, bound, condition and statement of a module, one at a time.

A breakage is named by the function it is in, the line, and what becomes of what. That name stays when other lines move,
so that `equivalent.toml` can say of one by name why it changes nothing that anybody could notice.
"""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.mutations.mutation import imported_from, source_of

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
EQUIVALENT = Path(__file__).parent / "equivalent.toml"


class Spot(NamedTuple):
    """A place in a module, and what is put there."""

    name: str
    module: str
    start: int
    stop: int
    new: str
    lines: range
    """Of the statement that it changes, without those inside: what runs none of them cannot notice it."""

    def text(self) -> str:
        """The whole module with the change."""
        text = source_of(self.module)
        return text[: self.start] + self.new + text[self.stop :]

    def unchanged(self) -> "Spot":
        """The module is loaded in the same way, and nothing is changed: what fails then, says nothing of the change."""
        return self._replace(new=source_of(self.module)[self.start : self.stop])

    def applied(self) -> AbstractContextManager[None]:
        """Within, the module is imported with the change."""
        return imported_from(self.module, self.text())


def spots_of(module: str) -> list[Spot]:
    """All breakages of a module, but those that are known to change nothing; in a fixed order that is no order."""
    found = [spot for spot in every_spot(module) if spot.name not in equivalent().get(module, {})]
    Random(module).shuffle(found)
    return found


@cache
def every_spot(module: str) -> tuple[Spot, ...]:
    """All breakages of a module, from the top down. One that is the same as another by name gets a number."""
    found = sorted(_Finder(module).found, key=lambda spot: (spot.start, spot.stop))
    seen: Counter[str] = Counter()
    named = []
    for spot in found:
        seen[spot.name] += 1
        number = f" ({seen[spot.name]})" if seen[spot.name] > 1 else ""
        named.append(spot._replace(name=spot.name + number))
    return tuple(named)


@cache
def equivalent() -> dict[str, dict[str, str]]:
    """By module: the breakages that change nothing, and why."""
    return tomllib.loads(EQUIVALENT.read_text())


class _Finder(ast.NodeVisitor):
    """Walks through the functions of a module."""

    def __init__(self, module: str) -> None:
        self._module, self._text = module, source_of(module)
        self._lines = [0]
        for line in self._text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line.encode()))
        self._function: list[str] = []
        self._statement: ast.stmt | None = None
        self.found: list[Spot] = []
        self.visit(ast.parse(self._text))

    def _place(self, line: int, column: int) -> int:
        """The place of a character, from where the parser says that it is in bytes."""
        return len(self._text.encode()[: self._lines[line - 1] + column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._place(node.lineno, node.col_offset), self._place(node.end_lineno, node.end_col_offset)

    def _add(self, start: int, stop: int, new: str) -> None:
        if self._function:
            line = self._text[self._text.rfind("\n", 0, start) + 1 :].partition("\n")[0].strip()
            old = " ".join(self._text[start:stop].split())
            name = f"{self._function[-1]}: {line} | {old if old != line else 'all of it'} -> {new}"
            self.found.append(Spot(name, self._module, start, stop, new, self._lines_of(start, stop)))

    def _lines_of(self, start: int, stop: int) -> range:
        first = self._text.count("\n", 0, start) + 1
        last = self._text.count("\n", 0, stop) + 1
        if (statement := self._statement) is not None:
            inside: list[ast.stmt] = getattr(statement, "body", [])
            ends = max(statement.lineno, inside[0].lineno - 1) if inside else statement.end_lineno
            first = min(first, statement.lineno)
            last = max(last, statement.lineno if isinstance(statement, ast.Match) else ends or 0)
        return range(first, last + 1)

    # --- where we are ---

    def visit(self, node: ast.AST) -> None:
        """Keeps the statement that we are in."""
        outer = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node
        super().visit(node)
        self._statement = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._function.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._function.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """An assertion is no behaviour."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Nor is the sentence of an error; whether it is raised is its condition."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Nor are other sentences."""

    # --- what is broken ---

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            old, new = _COMPARISONS[type(operator)]
            start, stop = self._span(left)[1], self._span(right)[0]
            at = self._text.index(old, start, stop)
            self._add(at, at + len(old), new)
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            start, stop = self._span(left)[1], self._span(right)[0]
            at = self._text.index(old, start, stop)
            self._add(at, at + len(old), new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add | ast.Sub) and isinstance(node.right, ast.Constant) and node.right.value == 1:
            start, stop = self._span(node)
            self._add(start, stop, self._text[slice(*self._span(node.left))])
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is | ast.In):
            return  # which is negated already
        start, stop = self._span(test)
        self._add(start, stop, f"not ({self._text[start:stop]})")

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            self._add(*self._span(node.value), str(not node.value.value))
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._add(*self._span(node), "pass")
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._add(*self._span(node), "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(*self._span(node), "pass")
        self.generic_visit(node)


def stale_names() -> Iterator[str]:
    """What `equivalent.toml` speaks of and is not there any more."""
    for module, names in equivalent().items():
        there = {spot.name for spot in every_spot(module)}
        yield from (f"{module}: {name}" for name in names if name not in there)
