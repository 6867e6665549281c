"""A workbench as the page holds it: tables that the script makes editable, and their controls.

The tables are the data: the script reads each cell's `data-value`, and nothing is written twice.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np

from qkvsearch.attention.symbols import numbered
from qkvsearch.lessons.exports.document import MASK_NAMES, compared_weights
from qkvsearch.lessons.exports.page.figures import matrix, side_by_side
from qkvsearch.lessons.markup import Html, element
from qkvsearch.lessons.messages import mark, say, shown
from qkvsearch.lessons.parts import ROLES, Matrix
from qkvsearch.lessons.workbench import Workbench, mask_of

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
NORMALIZER_NAMES = {
    "softmax": "softmax",
    "relu": mark("ReLU, over its sum"),
    "none": mark("none: the scores themselves"),
}


def workbench(bench: Workbench, lesson: str) -> Html:
    """Return the section of a workbench, with its steps before anything is changed."""
    place = f"bench-{lesson}-{bench.name}"
    steps = bench.steps()
    given = [
        matrix(_matrix(bench, name, array), data_given=name)
        for name, array in bench.matrices.items()
    ]
    computed = [
        matrix(_matrix(bench, name, array), note=say(STEP_NOTES[name]), data_step=name)
        for name, array in steps.items()
        if name not in bench.matrices
    ]
    compared = [
        matrix(part, data_step="weights", data_mask=mask)
        for mask, part in zip(bench.compared, compared_weights(bench), strict=True)
    ]
    # Without values there are no weights, so nothing to hide, to scale or to normalize.
    controls = []
    if "weights" in steps:
        controls = _controls(bench, place)
    reset = element("button", say("Reset"), type="button", class_="reset")
    return element(
        "section",
        element("h4", say("Try it yourself"), id=place),
        element("p", bench.caption),
        element("div", *controls, reset, class_="controls", hidden=True),
        element(
            "p",
            say(
                "Change a number, then press Enter or leave the cell. Arrow keys move from cell to "
                "cell; Escape takes back what was typed."
            ),
            class_="hint",
            hidden=True,
        ),
        *_shown_of(given, compared, computed),
        element("p", class_="status", role="status"),
        class_="bench",
        aria_labelledby=place,
        data_bench=f"{lesson}.{bench.name}",
        data_settings=json.dumps(settings(bench)),
    )


def _shown_of(
    given: Sequence[Html], compared: Sequence[Html], computed: Sequence[Html]
) -> list[Html]:
    """Return the matrices that are given, and what follows from them.

    compared: the weights under several masks, shown between them.
    """
    shown = [side_by_side(given)]
    if compared:
        shown += [element("h5", say("The weights under each mask")), side_by_side(compared)]
    follows = element("summary", say("What follows from them"))
    # Where there is no room for it, as on a slide, it folds.
    return [
        *shown,
        element("details", follows, side_by_side(computed), class_="follows", open=True),
    ]


def settings(bench: Workbench) -> dict[str, str | float]:
    """Return its first settings by the script's names; the scale is a number."""
    return {
        "mask": bench.mask,
        "padded": bench.padded,
        "scale": bench.scale_or_default,
        "temperature": bench.temperature,
        "normalize": bench.normalize,
    }


# --- matrices ---


def _matrix(bench: Workbench, name: str, array: np.ndarray) -> Matrix:
    keys = bench.rows if bench.is_projected else bench.columns
    by_key = name in ("scores", "scaled", "masked", "weights")
    widths = bench.widths or {}
    labels = widths.get(name)
    if name == "outputs" and not labels:
        # Outputs are mixed from values, and have their columns.
        labels = widths.get("values") or widths.get("w_value")
    if name.startswith("w_"):
        rows: Sequence[str] = numbered(len(array))
    elif name in ("keys", "values"):
        rows = keys
    else:
        rows = bench.rows
    columns = keys if by_key else labels or numbered(array.shape[1])
    visible = None
    if name in ("masked", "weights"):
        visible = mask_of(bench.mask, len(bench.rows), len(keys), bench.padded)
    return Matrix(
        say(STEP_NAMES[name]), array, list(rows), list(columns), ROLES[name], visible=visible
    )


# --- controls ---


def _controls(bench: Workbench, place: str) -> list[Html]:
    first = settings(bench)
    width = bench.steps()["queries"].shape[1]
    fields = [
        _number("scale", say("scale (1/√{d} is usual)", d=width), first["scale"], place),
        _number("temperature", say("temperature"), first["temperature"], place),
        choice("normalize", say("normalizer"), _said(NORMALIZER_NAMES), bench.normalize, place),
    ]
    return [*mask_choice(bench, place), *fields]


def mask_choice(bench: Workbench, place: str) -> list[Html]:
    """Return the list of masks to choose from; none where there is only one."""
    if len(bench.masks) < 2:
        return []
    names = _said({mask: MASK_NAMES[mask] for mask in bench.masks})
    return [choice("mask", say("mask"), names, bench.mask, place)]


def _said(names: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(value, say(text)) for value, text in names.items()]


def choice(
    name: str, label: str, options: Sequence[tuple[str, str]], chosen: str, place: str
) -> Html:
    """Return a list to choose from. options: a value and a label for each."""
    written = [
        element("option", words, value=value, selected=value == chosen) for value, words in options
    ]
    return field("select", name, [label], place, *written)


def _number(name: str, label: str, number: str | float, place: str) -> Html:
    typed = {"type": "text", "inputmode": "decimal", "autocomplete": "off"}
    return field("input", name, [label], place, **typed, value=shown(number))


def field(
    kind: str, name: str, label: Sequence[str], place: str, *inner: Html, **attributes: str | float
) -> Html:
    """Return a control of this kind after its label."""
    ident = f"{place}-{name}"
    control = element(kind, *inner, **attributes, id=ident, data_control=name)
    return element("div", element("label", *label, for_=ident), control, class_="field")
