"""Every part that a build can have. A new model is a file beside this one, and a line in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qkvsearch.stored.dense import DensePart
from qkvsearch.stored.lexical import LexicalPart
from qkvsearch.stored.log import LogPart
from qkvsearch.stored.next_item import NextItemPart
from qkvsearch.stored.part import Part, main_head
from qkvsearch.stored.preferences import PreferencesPart
from qkvsearch.stored.ratings import RatingsPart
from qkvsearch.stored.tokens import TokensPart


def parts_of(facts: Mapping[str, Any]) -> list[Part[Any]]:
    """The parts that a build with these facts may have, those first that others need."""
    return [
        LexicalPart(),
        *(DensePart(head) for head in list(facts["head_weights"])[1:]),
        TokensPart(main_head(facts)),
        PreferencesPart(),
        RatingsPart(),
        NextItemPart(),
        LogPart(),
    ]
