"""The colours and shapes of the map: people tell any two of them apart, whatever their eyes."""

import itertools
import re

import numpy as np
import pytest

from qkvsearch._utils.style import tokens
from qkvsearch.web.api.map_routes import MAX_COLOURS, MAX_RANGES
from qkvsearch.web.pages import FILES

SCRIPT = (FILES / "map" / "colours.js").read_text(encoding="utf-8")
STYLE = tokens()
THEMES = ("light", "dark")
# What people see who lack one kind of cones, in linear sRGB (Machado et al. 2009, severity 1).
WITHOUT = {
    "all cones": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# The least distance of two colours in Oklab: of black and white it is 1.
LEAST = {"all cones": 0.12, "protan": 0.08, "deutan": 0.08, "tritan": 0.07}


def colours(name, theme):
    """The colours of a list of the script, linear sRGB (n, 3)."""
    listed = re.search(rf"const {name} = {{(.*?)}};", SCRIPT, re.DOTALL)[1]
    of_theme = re.search(rf"{theme}: \[(.*?)\]", listed, re.DOTALL)[1]
    return linear(re.findall(r"#(\w{6})", of_theme))


def linear(codes):
    rgb = np.array([[int(code[i : i + 2], 16) for i in (0, 2, 4)] for code in codes]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    """Oklab (Ottosson 2020) of linear sRGB."""
    to_cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    to_lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.cbrt(np.clip(rgb, 0, 1) @ to_cones.T) @ to_lab.T


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eyes", WITHOUT)
def test_any_two_colours_differ(theme, eyes):
    seen = oklab(colours("VALUES", theme) @ WITHOUT[eyes].T)
    assert len(seen) == MAX_COLOURS
    apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(apart) >= LEAST[eyes]


@pytest.mark.parametrize("place", range(2))
@pytest.mark.parametrize("eyes", WITHOUT)
def test_any_two_categories_of_a_drawing_of_the_course_differ(place, eyes):
    # The first of each name is that of the light scheme, the second that of the dark one.
    found = [re.findall(rf"--kind-{k}: #(\w{{6}});", STYLE)[place] for k in range(6)]
    seen = oklab(linear(found) @ WITHOUT[eyes].T)
    apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    assert min(apart) >= LEAST[eyes]


def test_each_colour_has_a_shape_of_its_own():
    listed = re.search(r"const SHAPES = \[(.*?)\]", SCRIPT, re.DOTALL)[1]
    shapes = re.findall(r'"(\w+)"', listed)
    assert len(set(shapes)) == len(shapes) == MAX_COLOURS


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["VALUES", "SHADES"])
def test_colours_stand_out_from_the_paper(theme, name):
    # The first is that of the light scheme, the second that of the dark one.
    papers = re.findall(r"--paper: #(\w{6});", STYLE)
    weights = np.array([0.2126, 0.7152, 0.0722])
    paper = float((linear([papers[THEMES.index(theme)]]) @ weights)[0])
    marks = colours(name, theme) @ weights
    # WCAG 2.2, 1.4.11: marks have a contrast of 3 : 1.
    contrast = (np.maximum(marks, paper) + 0.05) / (np.minimum(marks, paper) + 0.05)
    assert contrast.min() >= 3


def test_shades_go_one_way():
    for theme in THEMES:
        lightness = oklab(colours("SHADES", theme))[:, 0]
        assert len(lightness) == MAX_RANGES
        assert (np.diff(lightness) > 0.02).all()
