"""What the page itself says, in the language that is spoken: to the reader and to its script."""

from qkvsearch.lessons.messages import mark, say

# The matrices of a workbench, given or computed, and how each follows from those before it.
STEP_NAMES = {
    "inputs": mark("inputs X"),
    "w_query": "W_Q",
    "w_key": "W_K",
    "w_value": "W_V",
    "queries": mark("queries Q"),
    "keys": mark("keys K"),
    "values": mark("values V"),
    "scores": mark("scores"),
    "scaled": mark("scaled scores"),
    "masked": mark("masked scores"),
    "weights": mark("weights"),
    "outputs": mark("outputs"),
}
STEP_NOTES = {
    "queries": "X·W_Q",
    "keys": "X·W_K",
    "values": "X·W_V",
    "scores": "Q·Kᵀ",
    "scaled": mark("scores × scale ÷ temperature"),
    "masked": mark("−∞ where a key is hidden"),
    "weights": mark("each row of scores, normalized"),
    "outputs": mark("weights · V"),
}
MASK_NAMES = {
    "none": mark("no mask"),
    "padding": mark("padding"),
    "look-ahead": mark("look-ahead"),
    "both": mark("both: padding and look-ahead"),
}
NORMALIZER_NAMES = {
    "softmax": "softmax",
    "relu": mark("ReLU, over its sum"),
    "none": mark("none: the scores themselves"),
}


def script_words() -> dict[str, str]:
    """Sentences of the script, by the names it knows them by; it fills in their {names} itself."""
    return {
        "cell": say("{matrix}, row {row}, column {column}"),
        "hidden": say("hidden"),
        "none": say("none"),
        "notNumber": say("“{entry}” is not a number. {last} still counts."),
        "notPositive": say("“{entry}” is not a number above 0. {last} still counts."),
        "recomputed": say("Computed again. {step}, first row: {row}"),
        "right": say("Right."),
        "wrong": say("Not yet. This is the way to it:"),
        "scrolls": say("{name}, scrolls sideways"),
    }
