"""Lesson 7 under a mask that the reader chose: what it hides, and the scores that are left."""

from __future__ import annotations

from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Matrix, Text, tell
from qkvsearch.lessons.workbench import Workbench

# Of `mask_of`, in a notebook.
CODE = {
    "padding": "keep = padding_mask([len(X) - 1], size=len(X))",
    "look-ahead": "keep = look_ahead_mask(len(X))",
    "both": "keep = padding_mask([len(X) - 1], size=len(X)) & look_ahead_mask(len(X))",
}


def hiding(bench: Workbench, steps: Trace) -> list[Text | Formula | Matrix]:
    """What to say and show of the mask before softmax; nothing where there is none."""
    if bench.visible is None:
        return []
    last = bench.rows[-1]
    hidden = {
        "padding": say("The mask that you chose hides input {last}, as padding.", last=last),
        "look-ahead": say("The mask that you chose hides from each query what comes later."),
        "both": say(
            "The mask that you chose hides input {last}, as padding, and from each query what "
            "comes later.",
            last=last,
        ),
    }
    return [
        Text(hidden[bench.mask]),
        tell(
            "It is a matrix M that is added to the scores: 0 where a key is seen, −∞ (minus "
            "infinity) where it is hidden. exp(−∞) is exactly 0, and so is the weight."
        ),
        Formula("Q·Kᵀ + M"),
        Matrix.of(steps["masked"], say("masked scores"), visible=bench.visible),
    ]


def hiding_code(bench: Workbench) -> str:
    """Lines that make `masked` of `scores`; none where there is no mask."""
    if bench.visible is None:
        return ""
    imported = "from qkvsearch.attention import look_ahead_mask, padding_mask"
    return f"{imported}\n{CODE[bench.mask]}\nmasked = np.where(keep, scores, -np.inf)\n"
