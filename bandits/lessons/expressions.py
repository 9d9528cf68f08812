"""Evaluate the small expressions of lessons: numbers of runs, arithmetic and comparisons, and
nothing else.
"""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from bandits.base.errors import UserError
from bandits.base.formatting import number, short
from bandits.results.metrics import Estimate

MAX_LENGTH = 400  # characters
_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"abs": abs, "min": min, "max": max}
_ENDS = ("mean", "low", "high")


class Source(Protocol):
    """Something that gives numbers: a run or a worked example."""

    def check(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Check that the quantity exists; raises `UserError`."""

    def given(self, name: str) -> bool:
        """Tell whether the quantity is known before anything is computed."""

    def quantity(self, name: str, arguments: tuple[Any, ...]) -> float | Estimate:
        """Return the quantity."""


class Quantity(NamedTuple):
    """A place in an expression that names a number of a source: ``off.ctr("LinUCB").low``."""

    source: str
    name: str
    arguments: tuple[Any, ...]


def parse(text: str) -> ast.expr:
    """Parse an expression.

    Raises
    ------
    UserError
        It is no expression, or holds something that expressions of lessons may not.
    """
    if len(text) > MAX_LENGTH:
        raise UserError(
            f"the expression '{short(text)}' has {len(text)} characters; at most {MAX_LENGTH} are "
            "allowed"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UserError(f"'{short(text)}' is not an expression") from None
    _check(tree, text)
    return tree


def quantities(tree: ast.expr) -> list[Quantity]:
    """Return the quantities that an expression names."""
    return list(_quantities(tree))


def evaluate(tree: ast.expr, sources: Mapping[str, Source]) -> Any:
    """Compute an expression: a float, an `Estimate`, or a bool.

    Raises
    ------
    UserError
        A division by zero.
    """
    if isinstance(tree, ast.Constant):
        assert isinstance(tree.value, (int, float))  # see `_check`
        return float(tree.value)
    if isinstance(tree, ast.UnaryOp):
        return -mean(evaluate(tree.operand, sources))
    if isinstance(tree, ast.BinOp):
        left, right = (mean(evaluate(side, sources)) for side in (tree.left, tree.right))
        try:
            return _BINARY[type(tree.op)](left, right)
        except ZeroDivisionError:
            raise UserError(f"'{ast.unparse(tree)}' divides by zero") from None
    if isinstance(tree, ast.BoolOp):
        return all([bool(evaluate(value, sources)) for value in tree.values])
    if isinstance(tree, ast.Compare):
        values = [mean(evaluate(side, sources)) for side in (tree.left, *tree.comparators)]
        pairs = itertools.pairwise(values)
        return all(_COMPARISONS[type(op)](a, b) for op, (a, b) in zip(tree.ops, pairs, strict=True))
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        return _FUNCTIONS[tree.func.id](*(mean(evaluate(value, sources)) for value in tree.args))
    if isinstance(tree, ast.Attribute) and (inner := _inner_quantity(tree.value)) is not None:
        found = _value(inner, sources)
        return float(getattr(found, tree.attr)) if isinstance(found, Estimate) else float(found)
    asked = _inner_quantity(tree)
    # `parse` refuses everything else
    assert asked is not None, ast.dump(tree)
    return _value(asked, sources)


def mean(value: Any) -> float:
    """Return a number, or the mean of an estimate."""
    return float(value.mean if isinstance(value, Estimate) else value)


def describe(tree: ast.expr, sources: Mapping[str, Source]) -> str:
    """State the numbers on the sides of a comparison: "0.295, 0.492"."""
    sides = [tree.left, *tree.comparators] if isinstance(tree, ast.Compare) else [tree]
    return ", ".join(number(mean(evaluate(side, sources))) for side in sides)


def describe_first(tree: ast.expr, sources: Mapping[str, Source]) -> str:
    """State the number on the left side of a comparison."""
    return number(mean(evaluate(tree.left if isinstance(tree, ast.Compare) else tree, sources)))


def _value(asked: Quantity, sources: Mapping[str, Source]) -> float | Estimate:
    return sources[asked.source].quantity(asked.name, asked.arguments)


def _inner_quantity(tree: ast.expr) -> Quantity | None:
    """Return the quantity that a node names, without an end of an interval."""
    arguments: tuple[Any, ...] = ()
    if isinstance(tree, ast.Call):
        if tree.keywords or not all(isinstance(a, ast.Constant) for a in tree.args):
            return None
        arguments, tree = (
            tuple(a.value for a in tree.args if isinstance(a, ast.Constant)),
            tree.func,
        )
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
        return Quantity(tree.value.id, tree.attr, arguments)
    return None


def _quantities(tree: ast.expr) -> Iterator[Quantity]:
    if (found := _inner_quantity(tree)) is not None:
        yield found
        return
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.expr):
            yield from _quantities(child)


def _check(tree: ast.expr, text: str) -> None:
    """Refuse what is neither a number, a quantity, arithmetic nor a comparison."""
    children = [child for child in ast.iter_child_nodes(tree) if isinstance(child, ast.expr)]
    if _inner_quantity(tree) is not None:
        return
    if isinstance(tree, ast.Attribute):
        allowed = tree.attr in _ENDS and _inner_quantity(tree.value) is not None
        children = []
    elif isinstance(tree, ast.Constant):
        allowed = type(tree.value) in (int, float) and abs(float(str(tree.value))) < 1e15
    elif isinstance(tree, ast.Call):
        name = tree.func.id if isinstance(tree.func, ast.Name) else ""
        enough = len(tree.args) == 1 if name == "abs" else len(tree.args) > 1
        allowed, children = name in _FUNCTIONS and not tree.keywords and enough, tree.args
    elif isinstance(tree, ast.Compare):
        allowed = all(type(op) in _COMPARISONS for op in tree.ops)
    elif isinstance(tree, ast.BinOp):
        allowed = type(tree.op) in _BINARY
    elif isinstance(tree, ast.UnaryOp):
        allowed = isinstance(tree.op, ast.USub)
    else:
        allowed = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
    if not allowed:
        raise UserError(
            f"'{short(ast.unparse(tree))}' in '{short(text)}' is not allowed; an expression holds "
            "numbers of runs, +, -, *, /, abs, min, max, comparisons and 'and'"
        )
    for child in children:
        _check(child, text)
