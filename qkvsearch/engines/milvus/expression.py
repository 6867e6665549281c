"""Translation of SQL conditions to filter expressions of Milvus, where both mean the same.

They differ for blank cells: in SQL a comparison with a blank is not true, and neither is its
opposite. So NOT is applied to the comparisons, and comparisons that are true of a blank in Milvus
also require a cell.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlglot import exp

# Each comparison in Milvus, its opposite, and the comparison with exchanged sides.
OPERATORS: dict[type[exp.Expression], tuple[str, type[exp.Expression], type[exp.Expression]]] = {
    exp.EQ: ("==", exp.NEQ, exp.EQ),
    exp.NEQ: ("!=", exp.EQ, exp.NEQ),
    exp.LT: ("<", exp.GTE, exp.GT),
    exp.GTE: (">=", exp.LT, exp.LTE),
    exp.GT: (">", exp.LTE, exp.LT),
    exp.LTE: ("<=", exp.GT, exp.GTE),
}
SAME = (exp.EQ, exp.NEQ)
LARGEST = 2**63 - 1


class Field(NamedTuple):
    """A column's field in Milvus and its type there: "INT64", "DOUBLE" or "VARCHAR"."""

    name: str
    kind: str


class Untranslatable(Exception):
    """An expression without an equivalent in Milvus."""


def expression(
    tree: exp.Expression, values: Mapping[str, Any], field: Callable[[str], Field | None]
) -> str | None:
    """Translate a condition; return None where Milvus has no equivalent.

    values: of the placeholders. field(name): the field of a column, None where Milvus has none.
    AND, OR, NOT, BETWEEN, IN, IS NULL and comparisons of a column with a value are translated; for
    texts only equality.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("NOT (year > 2000 OR name IS NULL)", dialect="sqlite")
    >>> expression(tree, {}, lambda name: Field(name, "INT64"))
    '(year <= 2000 and name is not null)'
    """
    try:
        return _Translation(values, field).of(tree, True)
    except Untranslatable:
        return None


class _Translation:
    def __init__(self, values: Mapping[str, Any], field: Callable[[str], Field | None]) -> None:
        self.values, self.field = values, field

    def of(self, node: exp.Expression, truth: bool) -> str:
        """Return the expression that is true where `node` has this truth value."""
        if isinstance(node, exp.Paren):
            return self.of(node.this, truth)
        if isinstance(node, exp.Not):
            return self.of(node.this, not truth)
        if isinstance(node, (exp.And, exp.Or)):
            word = " and " if isinstance(node, exp.And) is truth else " or "
            parts = [self.of(part, truth) for part in node.flatten()]  # type: ignore[arg-type]
            return f"({word.join(parts)})"
        if isinstance(node, exp.Between):
            return self._between(node, truth)
        if isinstance(node, exp.In):
            return self._in(node, truth)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return f"{self._column(node.this).name} is {'' if truth else 'not '}null"
        if type(node) in OPERATORS:
            return self._compared(node, truth)
        raise Untranslatable

    def _compared(self, node: exp.Expression, truth: bool) -> str:
        kind, (left, right) = type(node), (node.this, node.expression)
        if not isinstance(left, exp.Column):
            kind, left, right = OPERATORS[kind][2], right, left
        kind = kind if truth else OPERATORS[kind][1]
        field = self._column(left)
        if field.kind == "VARCHAR" and kind not in SAME:
            raise Untranslatable  # the catalog has its own order of texts and dates
        compared = f"{field.name} {OPERATORS[kind][0]} {self._value(right, field)}"
        return f"({field.name} is not null and {compared})" if kind is exp.NEQ else compared

    def _between(self, node: exp.Between, truth: bool) -> str:
        field = self._column(node.this)
        if field.kind == "VARCHAR":
            raise Untranslatable
        low, high = (self._value(node.args[name], field) for name in ("low", "high"))
        if truth:
            return f"({field.name} >= {low} and {field.name} <= {high})"
        return f"({field.name} < {low} or {field.name} > {high})"

    def _in(self, node: exp.In, truth: bool) -> str:
        field = self._column(node.this)
        entries = ", ".join(self._value(entry, field) for entry in node.expressions)
        if truth:
            return f"{field.name} in [{entries}]"
        return f"({field.name} is not null and {field.name} not in [{entries}])"

    def _column(self, node: exp.Expression) -> Field:
        field = self.field(node.name) if isinstance(node, exp.Column) else None
        if field is None:
            raise Untranslatable
        return field

    def _value(self, node: exp.Expression, field: Field) -> str:
        value = self._literal(node)
        if field.kind == "VARCHAR":
            if not isinstance(value, str):
                raise Untranslatable
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, str) or not abs(value) <= LARGEST:
            raise Untranslatable
        if field.kind == "INT64":
            if value != int(value):
                raise Untranslatable
            return str(int(value))
        return repr(float(value))

    def _literal(self, node: exp.Expression) -> str | float:
        if isinstance(node, exp.Paren):
            return self._literal(node.this)
        if isinstance(node, exp.Neg):
            value = self._literal(node.this)
            if isinstance(value, str):
                raise Untranslatable
            return -value
        if isinstance(node, exp.Placeholder):
            placeholder = self.values.get(str(node.this))
            if isinstance(placeholder, (bool, int, float, str)):
                return placeholder
        elif isinstance(node, exp.Boolean):
            return int(node.this)
        elif isinstance(node, exp.Literal):
            if node.is_string:
                return str(node.name)
            return int(node.name) if node.name.isdecimal() else float(node.name)
        raise Untranslatable
