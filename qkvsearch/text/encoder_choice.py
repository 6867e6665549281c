"""Which encoder a build takes where none is named: the best that is installed and quick enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from qkvsearch.text.pretrained.fetch import MINILM, find

AUTO = "auto"
# What reads the files of both pretrained encoders.
LIBRARIES = ("safetensors", "tokenizers")
# The most seconds that a build encodes for unless it is asked to take longer.
PATIENCE = 60
# Of minilm on two cores, by `benchmarks/defaults/encoder_speed.py`. Estimated, not timed: the same
# catalog gets the same encoder on a busy day.
TOKENS_PER_SECOND, BYTES_PER_TOKEN = 7000, 3.6
# Special ones, and the most that are read, of a text.
ADDED_TOKENS, MOST_TOKENS = 2, 256

GET_STATIC = "pip install 'qkvsearch[encoders]'"
GET_MINILM = "`qkvsearch model fetch minilm`"


class Choice(NamedTuple):
    """An encoder's name, and in words why it was taken and what would change that."""

    encoder: str
    why: str


def choose(fields: Iterable[Sequence[str]]) -> Choice:
    """minilm where it is installed and encodes these columns of texts in about a minute; otherwise
    static where that is installed; otherwise corpus. The same for the same texts and installation.

    >>> choose([["Red kettle", "Blue kettle"]]).encoder in ("minilm", "static", "corpus")
    True
    """
    seconds = encoding_seconds(fields)
    there = installed()
    best = "static" if "static" in there else "corpus"
    to_static = "" if "static" in there else f"; {GET_STATIC} gets static, which is quicker"
    if MINILM in there and seconds <= PATIENCE:
        return Choice(MINILM, f"it is installed and encodes this in {duration(seconds)}")
    if MINILM in there:
        slow = f"minilm would encode for {duration(seconds)}; --encoder minilm takes it anyway"
        return Choice(best, slow + to_static)
    if best == "corpus":
        return Choice(best, f"no other is installed; {GET_STATIC} gets static, then {GET_MINILM}")
    if seconds > PATIENCE:
        return Choice(best, f"minilm is not installed, and would encode for {duration(seconds)}")
    return Choice(best, f"minilm is not installed; {GET_MINILM} gets it")


def installed() -> tuple[str, ...]:
    """The pretrained encoders that are here and can be read."""
    if any(find_spec(library) is None for library in LIBRARIES):
        return ()
    return tuple(name for name in ("static", MINILM) if find(name) is not None)


def encoding_seconds(fields: Iterable[Sequence[str]]) -> float:
    """About how long minilm takes for columns of texts, each read alone and, for the second pass of
    a search, all of an item as one: by their bytes, as a character of another script than Latin is
    a token or more.

    >>> round(encoding_seconds([["Why river banks collapse"] * 20_000]))
    50
    """
    tokens = 0.0
    for texts in zip(*fields, strict=True):
        sizes = [len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN for text in texts]
        read = [*sizes, sum(sizes)]
        tokens += sum(min(size + ADDED_TOKENS, MOST_TOKENS) for size in read)
    return tokens / TOKENS_PER_SECOND


def duration(seconds: float) -> str:
    """A time in a person's words.

    >>> duration(0.2), duration(45.4), duration(400), duration(9000)
    ('about 1 s', 'about 45 s', 'about 7 min', 'about 2.5 h')
    """
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
