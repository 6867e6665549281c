"""A switch in the page: a button for each setting, and what the setting gives below."""

from qkvsearch.lessons.exports.page.figures import matrix
from qkvsearch.lessons.markup import Html, element, joined, mathematics, prose
from qkvsearch.lessons.parts import Setting, Switch


def switch(part: Switch, lesson: str) -> Html:
    """Return the figure of a switch. Without the script all settings are there, one below another.

    With it one is shown at a time, beginning with the first.
    """
    place = f"switch-{lesson}-{part.name}"
    buttons = [
        element(
            "button",
            mathematics(setting.name),
            type="button",
            aria_pressed="true" if n == 0 else "false",
            aria_controls=f"{place}-{n}",
        )
        for n, setting in enumerate(part.settings)
    ]
    panels = [_panel(setting, f"{place}-{n}") for n, setting in enumerate(part.settings)]
    return element(
        "figure",
        element("figcaption", element("span", prose(part.caption), class_="name"), id=place),
        element(
            "div", *buttons, class_="controls", role="group", aria_labelledby=place, hidden=True
        ),
        element("div", joined(panels, "\n"), aria_live="polite"),
        class_="switch",
        aria_labelledby=place,
        data_switch=True,
    )


def _panel(setting: Setting, place: str) -> Html:
    return element(
        "div",
        element("h5", mathematics(setting.name)),
        matrix(setting.matrix),
        element("p", prose(setting.note)),
        class_="setting",
        id=place,
    )
