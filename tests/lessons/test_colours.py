"""Colours carry the same meaning in the terminal and on the page: the hue of each role."""

import colorsys
import re
from typing import get_args

import pytest

from qkvsearch._utils.style import tokens
from qkvsearch.cli.lesson.grids import COLOURS
from qkvsearch.lessons.parts import Role

# Degrees of the colour circle that people call by these names.
HUES = {
    "key": ("orange", 20, 42),
    "query": ("red", -15, 15),
    "value": ("purple", 260, 300),
    "input": ("green", 90, 150),
    "score": ("blue", 200, 240),
    "weighted": ("yellow", 44, 65),
    "output": ("dark green", 90, 160),
}


def on_the_page():
    """Every colour that the style gives to a role, for light, for dark and for printed paper."""
    return re.findall(r"--role-(\w+): #(\w{6});", tokens())


def measured(red, green, blue):
    """Hue in degrees, lightness and saturation from 0 to 1."""
    hue, lightness, saturation = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
    return 360 * hue, lightness, saturation


def in_terminal():
    for role, colour in COLOURS.items():
        if role != "weight":  # it has none of its own
            yield role, measured(*map(int, re.findall(r"\d+", colour)))


PLACES = {
    "terminal": list(in_terminal()),
    "page": [(role, measured(*bytes.fromhex(colour))) for role, colour in on_the_page()],
}


@pytest.mark.point(46)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("role", HUES)
def test_a_role_has_the_colour_that_the_course_gives_it(role, place):
    name, least, most = HUES[role]
    found = [colour for named, colour in PLACES[place] if named == role]
    assert found
    for hue, _, saturation in found:
        turned = hue - 360 if hue > most + 180 else hue
        assert least <= turned <= most, f"{role} is not {name} but at {hue:.0f}°"
        assert saturation > 0.3, f"{role} is grey"


@pytest.mark.point(46)
@pytest.mark.parametrize("place", PLACES)
def test_outputs_are_a_darker_green_than_inputs(place):
    lightness = {role: [c[1] for r, c in PLACES[place] if r == role] for role in HUES}
    assert max(lightness["output"]) < min(lightness["input"])


@pytest.mark.point(46)
def test_every_role_has_a_colour_in_both_places():
    assert set(COLOURS) == {role for role, _ in on_the_page()} == set(get_args(Role))
