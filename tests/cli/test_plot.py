"""`attend --plot`: pages that can be read without colour and load nothing, pictures, the same bytes
for the same numbers.
"""

import re
import sys
from html.parser import HTMLParser
from unittest.mock import MagicMock

import numpy as np
import pytest

from qkvsearch.cli.attention_plot import _draw_maps, write_comparison, write_maps
from qkvsearch.text.encoded_text import AttentionMap, Comparison

TEXT = "guitar bass fishing"
TITLE = "costs $5 or $6 注意"
NASTY = ["<b>", "$x_1$", "注意", "a&\"'", "\x1b[31m"]
VOID = {"meta"}


def a_map(tokens, layer=None, head=None):
    rng = np.random.default_rng(len(tokens))
    mask = np.tri(len(tokens), dtype=bool)
    weights = rng.random(mask.shape) * mask
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return AttentionMap(list(tokens), weights, weights, mask, [], layer, head)


class Page(HTMLParser):
    """Tags with their attributes, and that every one is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.cells = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th", "caption", "title"):
            self.cells.append((self.open[-1], data))


def test_a_page_is_a_table_with_headings_numbers_and_a_caption(qkv, videos_path, tmp_path):
    run = ("-w", videos_path, "attend", TEXT)
    answer = qkv(*run, "--plot", "map.html")
    assert answer.stdout == qkv(*run).stdout
    assert answer.stderr == "Wrote map.html.\n"
    text = (tmp_path / "map.html").read_text("utf-8")
    page = Page(text)
    assert ("title", TEXT) in page.cells
    assert ("html", {"lang": "en"}) in page.tags
    assert [tag for tag, _ in page.tags].count("caption") == 1
    scopes = [attrs["scope"] for tag, attrs in page.tags if tag == "th"]
    assert scopes == ["col"] * 4 + ["row"] * 3
    numbers = [int(data) for tag, data in page.cells if tag == "td"]
    assert np.abs(np.reshape(numbers, (3, 3)).sum(axis=1) - 100).max() <= 2
    regions = [attrs for _, attrs in page.tags if attrs.get("role") == "region"]
    assert all(region["tabindex"] == "0" and region["aria-label"] for region in regions)
    assert not re.search(r"https?:|src=|@import|url\(|<script|<link", text)
    assert "default-src 'none'" in text


def test_a_page_escapes_what_words_hold_and_marks_hidden_pairs(tmp_path):
    write_maps(tmp_path / "a.html", [a_map(NASTY, 1, 0), a_map(NASTY, 1, None)], "a </title> <b>")
    text = (tmp_path / "a.html").read_text("utf-8")
    page = Page(text)
    assert "b" not in {tag for tag, _ in page.tags}
    assert "\x1b" not in text
    assert ("th", "注意") in page.cells
    captions = [data for tag, data in page.cells if tag == "caption"]
    assert captions == ["Layer 1, head 0", "Layer 1, mean over heads"]
    assert text.count('aria-label="hidden"') == 2 * 10


def luminance(colour):
    parts = [value / 255 for value in colour]
    linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(x * y for x, y in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def test_numbers_stand_out_from_every_colour(tmp_path):
    """WCAG 2.1 asks for 4.5; where the letters change from black to white both come near it."""
    cosines = np.linspace(-0.2, 1, 201)[:, None]
    write_comparison(tmp_path / "a.html", Comparison(["bank"], cosines), "bank")
    text = (tmp_path / "a.html").read_text("utf-8")
    pairs = re.findall(r"background:rgb\((\d+),(\d+),(\d+)\);color:#(fff|000)", text)
    assert len(pairs) == 201
    for *behind, letters in pairs:
        light, dark = luminance(map(int, behind)), 1.0 if letters == "fff" else 0.0
        assert (max(light, dark) + 0.05) / (min(light, dark) + 0.05) >= 4.4


def test_a_comparison_is_a_row_a_word(qkv, videos_path, tmp_path):
    run = ("-w", videos_path, "attend", "guitar bass", "--against", "bass fishing")
    assert qkv(*run, "--plot", "c.html").code == 0
    page = Page((tmp_path / "c.html").read_text("utf-8"))
    assert ("title", "guitar bass / bass fishing") in page.cells
    assert next(data for tag, data in page.cells if tag == "td") == "1.000"


def test_a_folder_that_is_not_there_is_said(qkv, videos_path):
    answer = qkv("-w", videos_path, "attend", TEXT, "--plot", "nowhere/a.html")
    assert (answer.code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("Error: nowhere/a.html: cannot write")


@pytest.mark.parametrize("name", ["a.png", "a.svg"])
def test_without_matplotlib_a_picture_says_what_to_install(
    qkv, videos_path, monkeypatch, tmp_path, name
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = qkv("-w", videos_path, "attend", TEXT, "--plot", name)
    assert (answer.code, answer.stdout) == (1, "")
    assert "pip install -e '.[plot]'" in answer.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("n_tokens", "n_layers", "n_heads", "inches"),
    [
        (0, 1, 1, (4, 4)),  # the least of a map alone
        (10, 1, 1, (1.8 + 10 * 0.42,) * 2),
        (300, 1, 1, (100, 100)),  # the most of any picture
        (2, 2, 3, (3 * 1.2 + 1, 2 * (1.2 + 0.3) + 1)),  # the least of a map beside others
        (20, 2, 3, (3 * 20 * 0.13 + 1, 2 * (20 * 0.13 + 0.3) + 1)),
        (2, 1, 14, (12 * 1.2 + 1, 2 * (1.2 + 0.3) + 1)),  # twelve to a row
    ],
)
def test_a_picture_grows_with_its_tokens_between_bounds(n_tokens, n_layers, n_heads, inches):
    figure = MagicMock()
    figure.subplots.return_value.flat = [MagicMock() for _ in range(24)]
    maps = [a_map(["x"] * n_tokens, i, j) for i in range(n_layers) for j in range(n_heads)]
    _draw_maps(figure, maps, TITLE)
    assert figure.set_size_inches.call_args.args == pytest.approx(inches)


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml")])
class TestPictures:
    @pytest.fixture(autouse=True)
    def _matplotlib(self):
        pytest.importorskip("matplotlib", reason="drawing needs the extra [plot]")

    @pytest.mark.parametrize("tokens", [[], ["one"], NASTY, ["x"] * 60], ids=len)
    def test_any_text_is_drawn(self, tmp_path, name, begins, tokens):
        for maps in ([a_map(tokens, 0, 1)], [a_map(tokens, i, j) for i in (0, 1) for j in (0, 1)]):
            write_maps(tmp_path / name, maps, TITLE)
            assert (tmp_path / name).read_bytes().startswith(begins)

    def test_a_picture_is_the_same_twice(self, tmp_path, name, begins):
        written = []
        for _ in range(2):
            write_maps(tmp_path / name, [a_map(NASTY, i, i) for i in (0, 1)], TITLE)
            written.append((tmp_path / name).read_bytes())
        assert written[0] == written[1]

    def test_settings_that_were_read_from_a_file_change_nothing(self, tmp_path, name, begins):
        import matplotlib

        written = []
        for settings in ({}, {"text.usetex": True, "savefig.facecolor": "red"}):
            with matplotlib.rc_context(settings):
                write_maps(tmp_path / name, [a_map(["one", "two"])], TITLE)
            written.append((tmp_path / name).read_bytes())
        assert written[0] == written[1]

    def test_a_comparison_is_drawn(self, tmp_path, name, begins):
        found = Comparison(["$bank_", "注"], np.array([[1, 1], [0.5, 0.9]]))
        write_comparison(tmp_path / name, found, "river $bank_")
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_an_svg_holds_its_words_as_text(tmp_path):
    pytest.importorskip("matplotlib", reason="drawing needs the extra [plot]")
    write_maps(tmp_path / "a.svg", [a_map(["guitar", "注意"], 5, 7)], "a title")
    text = (tmp_path / "a.svg").read_text("utf-8")
    for words in ("guitar", "注意", "layer 5, head 7", "a title"):
        assert f">{words}<" in text
