"""A drawing in the page: its pictures, what the script lets one do with it, its numbers."""

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from qkvsearch._utils.style import tokens
from qkvsearch.lessons.drawings import Arrows, AttendedText, Drawing, Flow, Heads, Turning
from qkvsearch.lessons.exports.page.bench import choice, field, mask_choice
from qkvsearch.lessons.exports.page.figures import cells_of
from qkvsearch.lessons.markup import Html, element, grid, mathematics, prose
from qkvsearch.lessons.messages import plain, say, shown
from qkvsearch.lessons.parts import Formula, Text

# Drawings whose numbers stand beside them, and change as one looks.
BESIDE = (Arrows,)
FILES = Path(__file__).parent
# What a picture alone takes of the page's style.
STYLES = ("colours.css", "drawings.css")


def drawing(part: Drawing, lesson: str, said: Sequence[Text | Formula] = ()) -> Html:
    """Return the figure of a drawing. Everything but its controls is there without the script.

    said: of its stages; the script shows what is said of the one that is shown.
    """
    place = f"drawing-{lesson}-{part.name}"
    # On a wide page, all that is set and said stands beside the one picture.
    of_one_query = part if isinstance(part, Flow) and part.is_one else None
    tables = [_table(part.caption, *table) for table in part.tables]
    is_beside = isinstance(part, BESIDE)
    numbers = element(
        "details",
        element("summary", say("The numbers of the drawing")),
        *tables,
        class_="numbers",
        open=is_beside,
    )
    pictures = [element("div", picture, class_="picture") for picture in part.pictures(place)]
    if isinstance(part, Heads) and min(part.first.weights.shape[:2]) > 1:
        pictures.append(_overview(part))
    below = []
    if is_beside:
        pictures.append(numbers)
    else:
        below.append(numbers)
    shown = [
        element("figcaption", element("span", part.caption, class_="name"), id=place),
        element("div", *pictures, class_="pictures"),
    ]
    if type(part) in CONTROLS:
        controls = CONTROLS[type(part)](part, place)
        over = [element("div", *controls, class_="controls", hidden=True)]
        if of_one_query and (settings := _settings(of_one_query, place)):
            over.append(element("div", *settings, class_="controls beside", hidden=True))
        if isinstance(part, Flow) and said:
            over.append(_said(part, said))
        shown[1:1] = over
    if type(part) in CONTROLS and not isinstance(part, Turning):
        # Below, as it may take several lines, and the picture is to stay where it is.
        answer = [element("p", class_="told", role="status")]
        if isinstance(part, Flow) and (pair := _pair(part, place)):
            answer.insert(0, element("div", *pair, class_="controls pair", hidden=True))
        shown.append(element("div", *answer, class_="answer"))
    return element(
        "figure",
        *shown,
        *below,
        class_="drawing with-side" if of_one_query else "drawing",
        aria_labelledby=place,
        data_drawing=type(part).__name__.lower(),
        data_place=f"{lesson}.{part.name}",
        data_numbers=json.dumps(plain(part.numbers()), ensure_ascii=False, separators=(",", ":")),
    )


def _said(part: Flow, said: Sequence[Text | Formula]) -> Html:
    """Return what is said of each stage; of one without a formula, the script says its own."""
    keys = [one.key for one in said if isinstance(one, Formula)]
    remarks = []
    for stage in part.stages:
        of_stage = [one for one in said if one.stage == stage]
        inner = []
        for one in of_stage:
            if isinstance(one, Formula):
                inner.append(
                    element("p", mathematics(one.text), class_="in-numbers", data_key=str(one.key))
                )
            else:
                inner.append(element("p", prose(one.text)))
        if not of_stage:
            name = element("p", element("em", str(part.columns[keys[0]])), hidden=True)
            inner = [name, element("p", class_="in-numbers", data_key=str(keys[0]))]
        remarks.append(element("div", *inner, class_="remark", data_stage=stage))
    return element("div", *remarks, class_="remarks")


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str | float]]) -> Html:
    body = [(shown(first), cells_of(others)) for first, *others in rows]
    numeric = {j for j, entry in enumerate(rows[0]) if not isinstance(entry, str)}
    inner = grid(
        element("caption", element("span", caption, class_="name unseen")), headings, body, numeric
    )
    return element("div", element("div", inner, class_="scroll"), class_="table")


def drawing_words() -> dict[str, str]:
    """Return the sentences of the drawings' scripts by name."""
    return {
        "staysAs": say("not hidden, stays {number}"),
        "becomesHidden": say("hidden: −∞"),
        "tip": say("tip of {arrow}: {x} {first}, {y} {second}; arrow keys move it"),
        "productOf": say("{a}·{b} = {products} = {product} = {lengths}·cos({angle}°)"),
        "nearestIs": say("{total} points most nearly to {nearest}."),
        "layerAndHead": say("layer {layer}, head {head}"),
        "pointAt": say("Point at a cell or choose one to see how its number comes about."),
        "queryOf": say("number of the query: {word}"),
        "wasBefore": say("{row}, before: {numbers}"),
        "smaller": say("{name} (scale ÷ {n})"),
        "pointAtBar": say("Choose a bar to see how its number comes about."),
    }


# --- a picture alone ---


def alone(picture: Html) -> str:
    """Return an SVG file of the picture, with its own style for light and dark."""
    style = tokens() + "".join((FILES / name).read_text(encoding="utf-8") for name in STYLES)
    # A style sheet is no markup, and what ends one could stand in none of ours.
    inner = picture.replace(">", f">\n<style>{style}</style>", 1)
    return inner.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" class="drawing" ', 1)


def as_address(picture: Html) -> str:
    """Return the picture as a data URL."""
    coded = base64.b64encode(alone(picture).encode("utf-8")).decode("ascii")
    return f"data:image/svg+xml;base64,{coded}"


# --- controls ---


def button(words: str, does: str, **attributes: str | None) -> Html:
    return element("button", words, type="button", data_does=does, **attributes)


def player() -> list[Html]:
    """Return the buttons Play, Back, Step and Start again."""
    return [
        button(say("Play"), "play", data_pause=say("Pause"), data_play=say("Play")),
        button(say("Back"), "back"),
        button(say("Step"), "step"),
        button(say("Start again"), "restart"),
    ]


def slider(
    name: str, label: str, place: str, *, least: float, most: float, by: float, value: float
) -> Html:
    """Return a slider, with its number beside its name."""
    told = element("output", shown(value), for_=f"{place}-{name}", data_output=name)
    limits: dict[str, Any] = {"min": least, "max": most, "step": by, "value": value}
    return field("input", name, [label, " ", told], place, type="range", **limits)


def _arrows(part: Arrows, place: str) -> list[Html]:
    return [
        element("p", say("Drag the tip of an arrow, or move it by the arrow keys."), class_="hint"),
        button(say("Reset"), "restart"),
    ]


def _heads(part: Heads, place: str) -> list[Html]:
    n_layers, n_heads = part.first.weights.shape[:2]
    words = [(str(i), str(word)) for i, word in enumerate(part.first.words)]
    controls = [choice("word", say("word that attends"), words, str(part.word), place)]
    names = [str(name) for name in part.names or range(1, n_heads + 1)]
    if n_heads > 1:
        heads = [(str(i), name) for i, name in enumerate(names)]
        label = say("matrices") if part.names else say("head")
        controls.insert(0, choice("head", label, heads, str(part.head), place))
    if n_layers > 1:
        layers = [(str(i), str(i + 1)) for i in range(n_layers)]
        controls.insert(0, choice("layer", say("layer"), layers, str(part.layer), place))
    if len(part.readings) > 1:
        texts = [(str(i), text_of(one)) for i, one in enumerate(part.readings)]
        controls.insert(0, choice("reading", say("sentence"), texts, "0", place))
    if n_layers * n_heads > 1:
        controls.append(element("div", *player(), class_="player"))
    return controls


def _turning(part: Turning, place: str) -> list[Html]:
    return [
        button(say("Turn"), "turn", aria_pressed="false"),
        element("p", class_="told", role="status"),
    ]


def text_of(reading: AttendedText) -> str:
    """Return a reading's words as a line, without the signs at its ends."""
    return " ".join(word for word in reading.words if word not in ("[CLS]", "[SEP]"))


def _overview(part: Heads) -> Html:
    """Return all heads at a glance; the script paints them, and a click chooses one."""
    n_heads = part.first.weights.shape[1]
    told = say("All heads at a glance: a row a layer. The fields above choose one.")
    canvas = element("canvas", width=64 * n_heads, height=1, role="img", aria_label=told)
    words = element("p", told, class_="hint")
    return element("div", words, canvas, class_="picture overview")


def _flow(part: Flow, place: str) -> list[Html]:
    stages = [
        button(part.stage_name(stage), "stage", data_stage=stage, aria_pressed="false")
        for stage in part.stages
    ]
    controls = []
    known = part.computed[: part.computed.index(part.stages[0])]
    if known:
        names = " → ".join(map(part.stage_name, known))
        words = say("Known: {stages}", stages=names)
        controls.append(element("p", words, class_="known"))
    # One stage alone is no choice.
    if len(stages) > 1:
        controls.append(
            element("div", *stages, class_="stages", role="group", aria_label=say("stage"))
        )
    controls.append(element("div", *player(), class_="player"))
    return controls if part.is_one else controls + _settings(part, place)


def _settings(part: Flow, place: str) -> list[Html]:
    """Return what may be set of a flow, the sentence that is put together, and what to do first."""
    controls = []
    # Together, on a line of their own where they do not fit beside the buttons.
    settings = []
    if part.askers:
        askers = [(str(n), asker.label) for n, asker in enumerate(part.askers)]
        settings.append(choice("asker", say("who asks"), askers, "0", place))
    if part.replacements:
        others = [(str(n), one.label) for n, one in enumerate(part.replacements)]
        settings.append(choice("replacement", part.replaced, others, "0", place))
    settings += mask_choice(part.bench, place)
    if part.has_weights and part.bench.normalize == "softmax":
        range_: dict[str, Any] = {"least": 0.1, "most": 4, "by": 0.1}
        settings.append(
            slider("temperature", say("temperature"), place, **range_, value=part.bench.temperature)
        )
    if settings:
        controls.append(element("div", *settings, class_="settings"))
    if part.replacements:
        before, word, after = part.words_with_replaced
        controls.append(
            element("p", before, " ", element("strong", word), " ", after, class_="sentence")
        )
    if part.tries:
        controls.append(element("p", prose(part.tries), class_="tries"))
    return controls


def _pair(part: Flow, place: str) -> list[Html]:
    """Return what chooses a query and a key without pointing; at first none is chosen."""
    rows = [(str(i), str(row)) for i, row in enumerate(part.bench.rows)]
    columns = [(str(j), str(column)) for j, column in enumerate(part.columns)]
    unchosen = ("", say("choose"))
    return [
        choice(name, label, [unchosen, *words], "", place)
        for name, label, words in (("row", part.asks, rows), ("column", part.asked, columns))
        if len(words) > 1
    ]


# Of drawings that answer; a `Total` does not.
CONTROLS: dict[type, Callable[[Any, str], list[Html]]] = {
    Arrows: _arrows,
    Flow: _flow,
    Heads: _heads,
    Turning: _turning,
}
