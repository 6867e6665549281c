"""A drawing in the page: its pictures, what the script lets one do with it, its numbers."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from qkvsearch.lessons.drawings import Drawing, Flow
from qkvsearch.lessons.drawings.flow import STAGES
from qkvsearch.lessons.exports.page.bench import MASK_NAMES
from qkvsearch.lessons.exports.page.drawings import pictures
from qkvsearch.lessons.exports.page.markup import Html, element, grid
from qkvsearch.lessons.messages import plain, say, shown


def drawing(part: Drawing, lesson: str) -> Html:
    """The figure of a drawing. Everything but its controls is there without the script."""
    place = f"drawing-{lesson}-{part.name}"
    tables = [_table(part.caption, *table) for table in part.tables]
    return element(
        "figure",
        element("figcaption", element("span", part.caption, class_="name"), id=place),
        element("div", *CONTROLS[type(part)](part, place), class_="controls", hidden=True),
        element("div", *pictures(part, place), class_="pictures"),
        element("p", class_="told", role="status"),
        element(
            "details",
            element("summary", say("The numbers of the drawing")),
            element("p", part.told),
            *tables,
            class_="numbers",
        ),
        class_="drawing",
        aria_labelledby=place,
        data_drawing=type(part).__name__.lower(),
        data_place=f"{lesson}.{part.name}",
        data_numbers=json.dumps(plain(part.numbers()), ensure_ascii=False, separators=(",", ":")),
    )


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str | float]]) -> Html:
    body = []
    for first, *others in rows:
        cells = [
            element("td", entry)
            if isinstance(entry, str)
            else element("td", shown(entry), class_="number", data_value=entry)
            for entry in others
        ]
        body.append((first if isinstance(first, str) else shown(first), cells))
    numeric = {j for j, entry in enumerate(rows[0]) if not isinstance(entry, str)}
    inner = grid(
        element("caption", element("span", caption, class_="name")), headings, body, numeric
    )
    return element("div", element("div", inner, class_="scroll"), class_="table")


def drawing_words() -> dict[str, str]:
    """What the scripts of drawings say, by the names they know it by."""
    return {
        "staysAs": say("seen, stays {number}"),
        "becomesHidden": say("hidden: −∞"),
        "pointAt": say("Point at a cell or choose one to see how its number comes about."),
    }


# --- controls ---


def button(words: str, does: str, **attributes: str | None) -> Html:
    return element("button", words, type="button", data_does=does, **attributes)


def player() -> list[Html]:
    """To play, to go back and on by one, to begin again."""
    return [
        button(say("Play"), "play", data_pause=say("Pause"), data_play=say("Play")),
        button(say("Back"), "back"),
        button(say("Step"), "step"),
        button(say("Start again"), "restart"),
    ]


def choice(
    name: str, label: str, options: Sequence[tuple[str, str]], chosen: str, place: str
) -> Html:
    """A list to choose from. options: a value and what is read for each."""
    ident = f"{place}-{name}"
    written = [
        element("option", words, value=value, selected=value == chosen) for value, words in options
    ]
    control = element("select", *written, id=ident, data_control=name)
    return element("div", element("label", label, for_=ident), control, class_="field")


def slider(
    name: str, label: str, place: str, *, least: float, most: float, by: float, value: float
) -> Html:
    """A number to be moved, and beside its name what it is."""
    ident = f"{place}-{name}"
    told = element("output", shown(value), for_=ident, data_output=name)
    control = element(
        "input",
        type="range",
        min=least,
        max=most,
        step=by,
        value=value,
        id=ident,
        data_control=name,
    )
    return element("div", element("label", label, " ", told, for_=ident), control, class_="field")


def _flow(part: Flow, place: str) -> list[Html]:
    stages = [
        button(say(STAGES[stage]), "stage", data_stage=stage, aria_pressed="false")
        for stage in part.stages
    ]
    rows = [(str(i), str(row)) for i, row in enumerate(part.bench.rows)]
    columns = [(str(j), str(column)) for j, column in enumerate(part.columns)]
    found = [
        element("div", *stages, class_="stages", role="group", aria_label=say("stage")),
        element("div", *player(), class_="player"),
        choice("row", part.asks, rows, "0", place),
        choice("column", part.asked, columns, "0", place),
    ]
    if len(part.bench.masks) > 1:
        masks = [(mask, say(MASK_NAMES[mask])) for mask in part.bench.masks]
        found.append(choice("mask", say("mask"), masks, part.bench.mask, place))
    if part.has_values and part.bench.normalize == "softmax":
        range_: dict[str, Any] = {"least": 0.1, "most": 4, "by": 0.1}
        found.append(
            slider("temperature", say("temperature"), place, **range_, value=part.bench.temperature)
        )
    return found


CONTROLS: dict[type, Callable[[Any, str], list[Html]]] = {Flow: _flow}
