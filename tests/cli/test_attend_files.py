"""`attend -o`: what it shows, as a page or a picture."""

import json
import re
from html import unescape

import numpy as np
import pytest

from qkvsearch.errors import QkvError
from qkvsearch.lessons.exports import attended
from qkvsearch.text.encoded_text import EncodedText

SENTENCE = "red apple hammer"


@pytest.fixture
def reading():
    """Three words in two layers of two heads."""
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(3), size=(2, 2, 3))
    words = SENTENCE.split()
    hidden, mask = rng.normal(size=(3, 3, 4)), np.ones((3, 3), dtype=bool)
    return EncodedText(words, words, np.arange(3), hidden, weights, mask, [], "minilm", True)


def drawn(page):
    """The numbers of a page's drawings, by their names."""
    found = re.findall(r'data-place="attended\.(\w+)" data-numbers="(.*?)"', page)
    return {name: json.loads(unescape(numbers)) for name, numbers in found}


def test_a_page_has_the_mean_of_each_layer_and_all_heads(reading):
    page = attended.to_page(reading, SENTENCE, None, None)
    mean, heads = (drawn(page)[name] for name in ("mean", "heads"))
    np.testing.assert_allclose(heads["readings"][0]["weights"], reading.weights, atol=1e-4)
    np.testing.assert_allclose(
        mean["readings"][0]["weights"], reading.weights.mean(axis=1, keepdims=True), atol=1e-4
    )
    assert mean["layer"] == heads["layer"] == 1
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)


def test_a_page_begins_with_the_head_that_was_asked_for(reading):
    found = drawn(attended.to_page(reading, SENTENCE, 0, 1))
    assert list(found) == ["heads"]
    assert (found["heads"]["layer"], found["heads"]["head"]) == (0, 1)
    with pytest.raises(QkvError, match="no head 2"):
        attended.to_page(reading, SENTENCE, 0, 2)


def test_a_picture_has_every_word_twice_and_a_line_for_each_weight(reading):
    svg = attended.to_svg(reading.map(0, 1), "layer 0, head 1")
    for word in SENTENCE.split():
        assert len(re.findall(rf"<text[^>]*>{word}</text>", svg)) == 2
    assert svg.count("<path") == (reading.weights[0, 1] >= 0.01).sum()
    assert "faint" not in svg.partition("</style>")[2]


def test_a_png_is_darker_where_a_weight_is_larger(reading):
    image = pytest.importorskip("PIL.Image")
    import io

    def ink(weight):
        weights = np.zeros((3, 3))
        weights[0, 0] = weight
        shown = reading.map(0, 1)
        object.__setattr__(shown, "weights", weights)
        picture = image.open(io.BytesIO(attended.to_png(shown)))
        assert picture.size == (1080, 345)
        return 255 - np.asarray(picture.convert("L"), dtype=float)[80:140, 400:680].mean()

    assert ink(1.0) > ink(0.3) > ink(0.0) == 0


def test_characters_that_no_font_has_are_named(reading, monkeypatch):
    pytest.importorskip("PIL.Image")
    monkeypatch.setattr(attended, "FONTS", ())
    shown = reading.map(0, 1)
    object.__setattr__(shown, "tokens", ["红", "苹果", "锤子"])
    with pytest.raises(QkvError, match=r"no font on this machine has .*write a \.svg"):
        attended.to_png(shown)


@pytest.mark.parametrize("kind", ["html", "svg", "png"])
def test_the_command_writes_what_the_name_of_the_file_says(qkv, shop_path, kind, tmp_path):
    if kind == "png":
        pytest.importorskip("PIL.Image")
    answer = qkv("-w", shop_path, "attend", SENTENCE, "-o", f"words.{kind}")
    assert (answer.code, answer.stdout) == (0, "")
    begins = {"html": b"<!DOCTYPE html>", "svg": b"<svg ", "png": b"\x89PNG"}[kind]
    assert (tmp_path / f"words.{kind}").read_bytes().startswith(begins)


def test_a_png_is_not_printed(qkv, shop_path):
    answer = qkv("-w", shop_path, "attend", SENTENCE, "--format", "png")
    assert answer.code == 2
    assert "give -o FILE" in answer.stderr


def test_no_word_of_the_sentence_is_markup_in_a_file(reading):
    markup = '</script></style><img src=x onerror="alert(1)">${title}'
    object.__setattr__(reading, "words", [markup, "&amp;", "</svg>"])
    object.__setattr__(reading, "tokens", reading.words)
    page = attended.to_page(reading, markup, None, None)
    svg = attended.to_svg(reading.map(0, 1), markup)
    for written in (page, svg):
        assert "<img" not in written
        assert "&amp;amp;" in written
    assert page.count("</script>") == page.count("<script")
    assert svg.count("</svg>") == 1
    assert "${title}" in page
