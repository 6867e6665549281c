"""The encoder that a build takes by default: the best one that is installed and fast enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import NamedTuple

from qkvsearch.text.pretrained.fetch import MINILM, find

AUTO = "auto"
# Libraries that read the files of both pretrained encoders.
LIBRARIES = ("safetensors", "tokenizers")
# The longest time, in seconds, that a build encodes unless a slower encoder is requested.
MAX_SECONDS = 60
# Of minilm on two cores, by `benchmarks/defaults/encoder_speed.py`. The time is estimated, not
# measured, so that the same catalog gets the same encoder on a busy day.
TOKENS_PER_SECOND, BYTES_PER_TOKEN = 7000, 3.6
# Special tokens that are added to each text, and the model's limit.
SPECIAL_TOKENS, MAX_TOKENS = 2, 256

GET_STATIC = "pip install 'qkvsearch[encoders]'"
GET_MINILM = "`qkvsearch model fetch minilm`"


class Choice(NamedTuple):
    """An encoder's name, the reason for choosing it, and what would change the choice."""

    encoder: str
    why: str


def choose(columns: Iterable[Sequence[str]]) -> Choice:
    """Choose minilm if it is installed and encodes these text columns in about a minute, otherwise
    static if that is installed, otherwise corpus. Texts and installation alone decide.

    >>> choose([["Red kettle", "Blue kettle"]]).encoder in ("minilm", "static", "corpus")
    True
    """
    seconds = encoding_seconds(columns)
    available = installed()
    has_static = "static" in available
    fallback = "static" if has_static else "corpus"
    if MINILM in available and seconds <= MAX_SECONDS:
        return Choice(MINILM, f"it is installed and encodes this in {duration(seconds)}")
    if MINILM in available:
        slow = f"minilm would encode for {duration(seconds)}; --encoder minilm takes it anyway"
        return Choice(
            fallback, slow if has_static else f"{slow}; {GET_STATIC} gets static, which is quicker"
        )
    if not has_static:
        return Choice(
            fallback, f"no other is installed; {GET_STATIC} gets static, then {GET_MINILM}"
        )
    if seconds > MAX_SECONDS:
        return Choice(
            fallback, f"minilm is not installed, and would encode for {duration(seconds)}"
        )
    return Choice(fallback, f"minilm is not installed; {GET_MINILM} gets it")


def installed() -> tuple[str, ...]:
    """Return the pretrained encoders that are installed, with the libraries that read them."""
    if any(find_spec(library) is None for library in LIBRARIES):
        return ()
    return tuple(name for name in ("static", MINILM) if find(name) is not None)


def encoding_seconds(columns: Iterable[Sequence[str]]) -> float:
    """Estimate how long minilm encodes text columns: each text, and the whole item for the second
    pass of a search. Bytes count, since a character of a non-Latin script is a token or more.

    >>> round(encoding_seconds([["Why river banks collapse"] * 20_000]))
    50
    """
    tokens = 0.0
    for texts in zip(*columns, strict=True):
        sizes = [len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN for text in texts]
        for size in [*sizes, sum(sizes)]:
            tokens += min(size + SPECIAL_TOKENS, MAX_TOKENS)
    return tokens / TOKENS_PER_SECOND


def duration(seconds: float) -> str:
    """Format a duration for people.

    >>> duration(0.2), duration(45.4), duration(400), duration(9000)
    ('about 1 s', 'about 45 s', 'about 7 min', 'about 2.5 h')
    """
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
