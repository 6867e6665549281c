"""Numbers that remember how they were made: the symbolic form of the steps in `trace`.

NumPy computes on arrays of them (dtype object) as on numbers, so the operations that compute
a step also write it down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qkvsearch.attention.arguments import AttentionOptions
from qkvsearch.attention.array_api import Array
from qkvsearch.attention.weights import EMPTY_ROWS

# Precedence of an operation, lowest first: an operand of lower precedence gets parentheses.
SUM, PRODUCT, ATOM, NUMBER = range(4)


@dataclass(frozen=True, eq=False)
class Expression:
    """A number or a vector, and how it is written; +, ·, /, exp and tanh carry both along.

    text; value, a number or a vector (d,); precedence, of the text's outermost operation. A product
    of two vectors is their dot product. Terms are simplified: −∞ + x = −∞ (a hidden key stays
    hidden), 0 + x = x, 0·x = 0, 1·x = x, x/x = 1.

    >>> a, b = Expression("a", 2.0), Expression("b", 3.0)
    >>> print((a + b) / b, ((a + b) / b).value * 3)
    (a + b)/b 5.0
    >>> print(-np.inf + a * b, (-np.inf + a).exp() * b)
    −∞ 0
    """

    text: str
    value: Any
    precedence: int = ATOM

    def __repr__(self) -> str:
        return self.text

    def __add__(self, other: Any) -> Expression:
        other = expression(other)
        if self.reads("−∞") or other.reads("−∞"):
            return expression(-math.inf)
        if self.reads("0") or other.reads("0"):
            return other if self.reads("0") else self
        negative = other.precedence == NUMBER and other.text.startswith("−")
        added = f"− {other.text[1:]}" if negative else f"+ {other.text}"
        return Expression(f"{self.text} {added}", self.value + other.value, SUM)

    def __mul__(self, other: Any) -> Expression:
        other = expression(other)
        if self.reads("0") or other.reads("0"):
            return expression(0)
        if self.reads("1") or other.reads("1"):
            return other if self.reads("1") else self
        text = f"{self._within(PRODUCT)}·{other._within(PRODUCT)}"
        return Expression(text, np.dot(self.value, other.value), PRODUCT)

    def __truediv__(self, other: Any) -> Expression:
        other = expression(other)
        if self.reads("0") or self is other:
            return expression(int(self is other))
        text = f"{self._within(ATOM)}/{other._within(ATOM)}"
        return Expression(text, self.value / other.value, PRODUCT)

    def __radd__(self, other: Any) -> Expression:
        return expression(other) + self

    def __rmul__(self, other: Any) -> Expression:
        return expression(other) * self

    def exp(self) -> Expression:
        """NumPy's exp calls this."""
        return expression(0) if self.reads("−∞") else self._passed_to("exp", np.exp)

    def tanh(self) -> Expression:
        """NumPy's tanh calls this."""
        return self._passed_to("tanh", np.tanh)

    def positive(self) -> Expression:
        """max(0, x)."""
        if self.reads("−∞"):
            return expression(0)
        return Expression(f"max(0, {self.text})", np.maximum(0, self.value))

    def reads(self, text: str) -> bool:
        """Whether it is a plain number, written so."""
        return self.precedence == NUMBER and self.text == text

    def _passed_to(self, name: str, function: Callable[[Any], Any]) -> Expression:
        return Expression(f"{name}({self.text})", function(self.value))

    def _within(self, precedence: int) -> str:
        return f"({self.text})" if self.precedence < precedence else self.text


def expression(x: Any) -> Expression:
    """A plain number as an expression, written as itself; an expression as it is.

    >>> expression(-0.5), expression(-np.inf)
    (−0.5, −∞)
    """
    if isinstance(x, Expression):
        return x
    text = "∞" if abs(x) == math.inf else f"{abs(x):g}"
    return Expression(f"−{text}" if x < 0 else text, float(x), NUMBER)


def symbols(names: Sequence[str], values: Array) -> Array:
    """One symbol for each name: for numbers, or for vectors, which it names as a whole.

    names (n,), values (n,) or (n, d) -> (n,).

    >>> a_Q, b_Q = symbols(["a_Q", "b_Q"], np.array([[3.0, 1.0], [0.0, 2.0]]))
    >>> print(a_Q * b_Q, (a_Q * b_Q).value)
    a_Q·b_Q 2.0
    """
    named = [Expression(name, value) for name, value in zip(names, values, strict=True)]
    return filled((len(names),), named)


def filled(shape: tuple[int, ...], items: Sequence[Any]) -> Array:
    """An array of dtype object with these items, plain numbers as expressions.

    >>> filled((1, 2), [0.25, -np.inf])
    array([[0.25, −∞]], dtype=object)
    """
    array = np.empty(len(items), dtype=object)
    array[:] = [expression(item) for item in items]
    return array.reshape(shape)


def matrix_symbols(rows: Sequence[str], values: Array) -> Array:
    """A symbol for each entry: its row's name and the number of its column, from 1.

    rows (n,), values (n, d) -> (n, d).

    >>> matrix_symbols(["a", "b"], np.eye(2))
    array([[a1, a2],
           [b1, b2]], dtype=object)
    """
    n_columns = values.shape[1]
    comma = "," if n_columns > 9 else ""  # a111 could be two entries
    names = [f"{row}{comma}{j}" for row in rows for j in numbered(n_columns)]
    return symbols(names, values.ravel()).reshape(values.shape)


def distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels made distinct: the second saw becomes saw′.

    >>> distinct(("I", "saw", "a", "saw"))
    ('I', 'saw', 'a', 'saw′')
    """
    seen: Counter[str] = Counter()
    names = []
    for label in labels:
        names.append(label + "′" * seen[label])
        seen[label] += 1
    return tuple(names)


def numbered(n: int, prefix: str = "") -> tuple[str, ...]:
    """n labels, numbered from 1.

    >>> numbered(2, "t")
    ('t1', 't2')
    """
    return tuple(f"{prefix}{i + 1}" for i in range(n))


# --- operations that NumPy cannot run on symbols, or whose text would be hard to read ---


def score_symbols(options: AttentionOptions, query: Array, key: Array) -> Array:
    """a_Q·b_K, a product of vectors; another score by its name, as cosine(a_Q, b_K).

    symbols of vectors (L,), (S,) -> (L, S).

    >>> a, b = symbols(["a"], np.eye(1)), symbols(["b", "c"], np.eye(2)[:, :1])
    >>> score_symbols(AttentionOptions(scale=1), a, b)
    array([[a·b, a·c]], dtype=object)
    >>> score_symbols(AttentionOptions(scale=1, score="cosine"), a, b)
    array([[cosine(a, b), cosine(a, c)]], dtype=object)
    """
    if options.score == "dot":
        return options.scores(query[:, None], key[:, None])
    name = score_name(options)
    scale = "" if options.scale in (None, 1) else f", scale={options.scale:g}"
    scores = []
    for q in query:
        for k in key:
            score = options.scores(q.value[None], k.value[None])[0, 0]
            scores.append(Expression(f"{name}({q}, {k}{scale})", score))
    return filled((len(query), len(key)), scores)


def formulas(options: AttentionOptions, d: int) -> Mapping[str, str]:
    """Each step in terms of the one before.

    >>> formulas(AttentionOptions(scale=0.5), d=3)["scaled"]
    '0.5·scores'
    """
    name = score_name(options)
    scores = "Q·Kᵀ" if options.score == "dot" else f"{name}(Q, K)"
    if callable(options.score):
        scaled = f"{name}(Q, K, scale={options.scale})"
    elif options.scale is not None:
        scaled = f"{options.scale:g}·scores"
    elif options.score == "dot":
        scaled = f"scores/√{d}"
    else:
        scaled = "1·scores"
    before_mask = "capped" if options.softcap else "scaled"
    normalized = {"softmax": "softmax(masked)", "relu": "max(0, masked)/Σ", "none": "masked"}
    return {
        "scores": scores,
        "scaled": scaled,
        "capped": f"{options.softcap:g}·tanh(scaled/{options.softcap:g})",
        "masked": f"{before_mask} + M",
        "weights": f"S = {normalized[options.normalize]}",
        "weighted": "Sᵢⱼ·Vⱼ",
        "outputs": "S·V",
    }


def score_name(options: AttentionOptions) -> str:
    """What to call a score, even a function of one's own.

    >>> score_name(AttentionOptions(score="cosine"))
    'cosine'
    """
    if isinstance(options.score, str):
        return options.score
    return getattr(options.score, "__name__", type(options.score).__name__)


def scaled_symbols(options: AttentionOptions, scores: Array, query: Array, key: Array) -> Array:
    """Scores times the scale, or over √d; a score that is a function does its own scaling.

    scores (L, S), symbols of vectors (L,), (S,) -> (L, S).

    >>> a = symbols(["a"], np.eye(2)[:1])
    >>> scaled_symbols(AttentionOptions(), score_symbols(AttentionOptions(scale=1), a, a), a, a)
    array([[(a·a)/√2]], dtype=object)
    """
    if callable(options.score):
        return score_symbols(options, query, key)
    if options.scale is not None:
        return float(options.scale) * scores
    if options.score != "dot" or not len(query):
        return scores
    d = len(query[0].value)
    return scores / Expression(f"√{d}", math.sqrt(max(d, 1)))


def weight_symbols(options: AttentionOptions, masked: Array, numbers: Array) -> Array:
    """Each score's part of the sum of its row; for a row with nothing to attend to, numbers.

    masked (L, S), numbers: their values, which say what row is empty -> (L, S).

    >>> masked = filled((1, 2), [Expression("s", 2.0), -np.inf])
    >>> weight_symbols(AttentionOptions(), masked, np.zeros((1, 2)))
    array([[1, 0]], dtype=object)
    """
    floor = 0 if options.normalize == "relu" else -math.inf
    is_empty = (numbers <= floor).all(axis=-1)
    entries: list[Any] = []
    for row, row_is_empty in zip(masked, is_empty, strict=True):
        if row_is_empty:
            weight = EMPTY_ROWS[options.empty_rows](len(row))
            entries += [weight] * len(row)
        elif options.normalize == "none":
            entries += [0 if score.reads("−∞") else score for score in row]
        else:
            is_softmax = options.normalize == "softmax"
            terms = [np.exp(score) if is_softmax else score.positive() for score in row]
            entries += [term / sum(terms) for term in terms]
    return filled(masked.shape, entries)


def renamed(names: Sequence[str], written: Array, values: Array) -> Array:
    """Symbols in place of what is written; a plain number, as a hidden key's 0, stays.

    names, as many as entries; written, values (L, S) -> (L, S).

    >>> renamed(["x", "y"], filled((2,), [Expression("a/b", 0.3), 0]), np.array([0.3, 0.0]))
    array([x, 0], dtype=object)
    """
    entries = []
    for name, entry, value in zip(names, written.flat, values.flat, strict=True):
        is_plain_number = entry.precedence == NUMBER
        entries.append(entry if is_plain_number else Expression(name, value))
    return filled(written.shape, entries)
