"""Lesson 12, the last test: what becomes of the outputs where a weight is taken away."""

from __future__ import annotations

from typing import Any

import numpy as np

from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Step, Table, Text, step, tell

# At most this many words are listed.
MOST = 7


def taken_away(found: dict[str, Any]) -> Step:
    """What the outputs do when a weight is made 0: a cause is what makes a difference."""
    cuts = found["removed"]
    single = [cut for cut in cuts if cut["head"] is not None]
    whole = [cut for cut in cuts if cut["head"] is None]
    target = next(cut for cut in whole if cut["key"] == found["target"])
    least = min((cut for cut in whole if cut["key"] != found["target"]), key=lambda c: c["moved"])
    heaviest = max(whole, key=lambda cut: cut["weight"])
    listed = sorted(whole, key=lambda cut: -cut["weight"])[:MOST]
    listed += [cut for cut in (target, least) if cut not in listed]
    rows: list[list[str | float]] = [
        [_where(cut), cut["key"], cut["weight"], cut["moved"], cut["near"]]
        for cut in [*single, *listed]
    ]
    return step(
        "Take a weight away",
        tell(
            "Does a weight matter? Make it 0, let the rest of its row add up to 1 again, and "
            "compute all layers anew. How far “{word}” then is from where it was: 1 − the cosine "
            "of its last vector before and after.",
            word=found["word"],
        ),
        Table(
            say(
                'A weight of "{word}" taken away (all heads: the sum of their {n} weights)',
                n=np.asarray(found["heads"]).size,
                word=found["word"],
            ),
            [
                say("where"),
                say("to"),
                say("weight, or sum"),
                say("how far it moves"),
                say("cosine with “{target}”", target=found["target"]),
            ],
            rows,
        ),
        *_two_heads(single),
        tell(
            "Now in all {n} heads at once. Their weights from “{word}” to “{target}”, each between "
            "0 and 1, add up to {weight}: without them “{word}” moves by {moved}. “{heaviest}” has "
            "the largest sum, {most}, and without it “{word}” moves by {by_most}; “{least}” "
            "moves it least, by {by_least}. What a word takes from another is weight *times "
            "value*, and later layers may use it or not. So a weight tells where a head looks; "
            "what it does, only such a test tells.",
            n=np.asarray(found["heads"]).size,
            target=found["target"],
            word=found["word"],
            weight=target["weight"],
            moved=target["moved"],
            heaviest=heaviest["key"],
            most=heaviest["weight"],
            by_most=heaviest["moved"],
            least=least["key"],
            by_least=least["moved"],
        ),
        points=(14,),
        found={"removed": cuts, "target": target, "least": least, "heaviest": heaviest},
    )


def _where(cut: dict[str, Any]) -> str:
    if cut["head"] is None:
        return say("all heads")
    return say("layer {layer}, head {head}", layer=cut["head"][0], head=cut["head"][1])


def _two_heads(single: list[dict[str, Any]]) -> list[Text]:
    """The strongest head beside the one that was singled out, where they are two."""
    if len(single) < 2:
        return []
    first, second = single
    return [
        tell(
            "The two heads of the steps before: their weights are {first} and {second}; "
            "taken away, they move it by {moved} and by {also}. How much a weight counts cannot "
            "be read off the weight: the values that it multiplies are others in each head, and "
            "so is what the later layers make of them.",
            first=first["weight"],
            second=second["weight"],
            moved=first["moved"],
            also=second["moved"],
        )
    ]
