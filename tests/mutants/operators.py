"""Generate deliberate faults: each changes one place of a module's source."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
OPPOSITES = [
    ("min", "max"),
    ("argmin", "argmax"),
    ("any", "all"),
    ("zeros", "ones"),
    ("maximum", "minimum"),
]
OPPOSITE = {**dict(OPPOSITES), **{b: a for a, b in OPPOSITES}}
# calls that fail at once with swapped arguments
ORDERED = {"full", "zeros", "ones", "empty", "isinstance", "getattr", "setattr", "hasattr"}
# texts and ranges of widgets, which change no number
COSMETIC = {
    "title",
    "symbol",
    "help",
    "unit",
    "typical",
    "usual",
    "basic",
    "dtype",
    "cache",
    "stacklevel",
}


class Mutant(NamedTuple):
    """One fault: its line, what it changes, and the whole source with it."""

    line: int
    change: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Generate every fault of a module, in the order of its lines."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    raw = source.encode()
    for node in sorted(_places(ast.parse(source)), key=lambda node: (node.lineno, node.col_offset)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        old = " ".join(raw[start:end].decode().split())
        for new in _changes(node):
            yield Mutant(
                node.lineno, f"{old} => {new}", (raw[:start] + new.encode() + raw[end:]).decode()
            )


def _places(node: ast.AST) -> Iterator[Any]:
    """Yield the nodes that can be changed: no annotation, decorator, text, message or import for
    types.
    """
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    # positions inside an f-string are wrong before Python 3.12
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.keyword) and node.arg in COSMETIC:
        return
    if hasattr(node, "lineno"):
        yield node
    if isinstance(node, ast.keyword) and node.arg == "axis":
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _places(child)


def _changes(node: Any) -> Iterator[str]:
    """Generate the texts that can stand in the place of a node."""
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                yield _with(node, ops=[*node.ops[:i], COMPARE[type(op)](), *node.ops[i + 1 :]])
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _is_text(node):
            yield _with(node, op=ARITHMETIC[type(op)]())
        case ast.BoolOp(op=op):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield f"({ast.unparse(node.operand)})"
        case ast.IfExp():
            yield _with(node, body=node.orelse, orelse=node.body)
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() | float() as value):
            yield repr(value + 1 if isinstance(value, int) else 2 * value or 1.0)
        case ast.keyword(arg="axis", value=ast.Constant(value=int() as axis)):
            yield f"axis={1 if axis == 0 else 0}"
        case ast.Slice():
            for name, bound in (("lower", node.lower), ("upper", node.upper)):
                # bounds that are numbers are changed as constants
                if bound is not None and not isinstance(bound, ast.Constant):
                    yield _with(
                        node, **{name: ast.BinOp(bound, ast.Add(), ast.Constant(1))}, bare=True
                    )
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in OPPOSITE and isinstance(
            node.ctx, ast.Load
        ):
            yield _with(
                node, **{"id" if isinstance(node, ast.Name) else "attr": OPPOSITE[name]}, bare=True
            )
        case ast.Call(args=[first, second, *rest]) if not any(
            isinstance(a, ast.Starred) for a in (first, second)
        ):
            if (
                ast.dump(first) != ast.dump(second)
                and ast.unparse(node.func).split(".")[-1] not in ORDERED
            ):
                yield _with(node, args=[second, first, *rest], bare=True)
        case ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.AugAssign(op=op):
            yield "pass"
            if type(op) in ARITHMETIC:
                yield _with(node, op=ARITHMETIC[type(op)](), bare=True)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"
        case ast.Break():
            yield "continue"
        case ast.Continue():
            yield "break"


def _with(node: Any, *, bare: bool = False, **changed: Any) -> str:
    """Return the text of a copy of a node with other fields, in parentheses unless ``bare``."""
    new = copy.copy(node)
    for name, value in changed.items():
        setattr(new, name, value)
    return ast.unparse(new) if bare else f"({ast.unparse(new)})"


def _is_text(node: ast.BinOp) -> bool:
    """Whether an operand is a literal text or list, which has no other arithmetic."""
    literal = (
        ast.JoinedStr,
        ast.List,
        ast.ListComp,
        ast.Tuple,
        ast.Dict,
        ast.DictComp,
        ast.Set,
        ast.SetComp,
    )
    return any(
        isinstance(side, literal)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
