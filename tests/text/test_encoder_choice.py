"""Which encoder is taken where none is named, by the languages of the texts and their tokens."""

import pytest

from qkvsearch.text import encoders
from qkvsearch.text.encoders import (
    CHOICES,
    LEARNED,
    SPEEDS,
    advice,
    choose,
    dense_heads,
    encoding_seconds,
    installed,
    names_of,
    prior_weights,
    requested,
)
from qkvsearch.text.pretrained import fetch

FEW = [["deep sea", "red kettle"], ["sea", ""]]
# Two minutes of minilm, and twice that of e5.
MANY = [["a title of about twenty-five characters"] * 90_000]
ALL = ("static", "minilm", "e5")


@pytest.fixture
def having(monkeypatch):
    """Makes these encoders the installed ones, in NumPy."""
    monkeypatch.setenv("QKVSEARCH_RUNTIME", "numpy")
    return lambda *names: monkeypatch.setattr(encoders, "installed", lambda: names)


@pytest.mark.parametrize(
    ("available", "languages", "columns", "encoder", "better"),
    [
        (ALL, ["en"], FEW, "minilm", ""),
        (ALL, ["zh"], FEW, "e5", ""),
        (ALL, ["en", "zh"], FEW, "e5", ""),
        (("static", "minilm"), ["de"], FEW, "static", "e5"),
        (("static", "e5"), ["en"], FEW, "e5", ""),
        # minilm reads most of it, and e5 all.
        (("static", "minilm"), ["en", "zh"], FEW, "minilm", "e5"),
        (("static", "minilm"), ["zh", "en"], FEW, "static", "e5"),
        (("static",), ["en"], FEW, "static", "minilm"),
        ((), ["zh"], FEW, "corpus", "e5"),
        # What takes longer than a minute is neither taken nor advised.
        (ALL, ["en"], MANY, "static", ""),
        (ALL, ["zh"], MANY, "static", ""),
        (("minilm",), ["en"], MANY, "corpus", ""),
        ((), ["zh"], MANY, "corpus", ""),
    ],
)
def test_the_best_for_the_languages_that_is_installed_and_quick_enough(
    having, available, languages, columns, encoder, better
):
    having(*available)
    choice = choose(columns, languages)
    assert (choice.encoder, choice.better) == (encoder, better)
    transformer = better or ("minilm" if languages == ["en"] and "e5" not in encoder else "e5")
    is_named = transformer in choice.why or encoder == transformer
    assert is_named
    if columns is FEW:
        assert names_of(languages) in choice.why


def test_an_encoder_that_takes_too_long_is_named_with_the_option_that_takes_it(having):
    having(*ALL)
    assert "--encoder minilm" in choose(MANY).why
    having("static")
    assert "--encoder" not in choose(MANY).why


def test_advice_is_one_command_and_only_where_it_helps(having, monkeypatch):
    having("static")
    assert advice("", ["zh"]) == ""
    assert "Chinese" in advice("e5", ["zh"])
    assert "`qkvsearch model fetch e5`" in advice("e5", ["zh"])
    having(*ALL)
    assert "fetch" not in advice("e5", ["zh"])
    having()
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    for languages, extra in ((["en"], "[encoders]"), (["zh"], "[languages]")):
        assert extra in advice("e5", languages).partition("model fetch")[0]


def test_an_encoder_of_english_alone_on_other_texts_gets_advice_too(having):
    having("static")
    assert requested("static", FEW, ["zh"]).better == "e5"
    assert requested("static", FEW, ["en"]).better == ""
    assert requested("corpus", FEW, ["zh"]).better == ""
    having(*ALL)
    assert requested("static", FEW, ["zh"]).better == ""


@pytest.mark.parametrize(
    ("available", "languages", "heads"),
    [
        (ALL, ["en"], ["static", "e5", "minilm"]),
        (("static", "e5"), ["en"], ["static", "e5"]),
        (("static", "minilm"), ["en"], dense_heads(CHOICES["minilm"])),
        (("static",), ["en"], dense_heads(CHOICES["static"])),
        ((), ["en"], dense_heads(CHOICES["corpus"])),
        # static and minilm have learned nothing of other languages.
        (ALL, ["zh"], dense_heads(CHOICES["e5"])),
        (("static", "minilm"), ["zh"], dense_heads(CHOICES["static"])),
        (("static", "minilm"), ["en", "zh"], dense_heads(CHOICES["minilm"])),
    ],
)
def test_best_is_all_that_is_installed_for_the_languages_however_long(
    having, monkeypatch, available, languages, heads
):
    having(*available)
    monkeypatch.setattr("qkvsearch.text.pretrained.static.find_package", lambda: "somewhere")
    weights = prior_weights("best", languages)
    assert dense_heads(weights) == heads
    assert sum(weights.values()) == pytest.approx(1)
    chosen = requested("best", MANY, languages)
    assert chosen.encoder == "best"
    assert all(name in chosen.why for name in heads if name not in LEARNED)


def test_long_texts_take_the_time_of_all_their_passages(having):
    having("static", "minilm")
    talk = "One walks along the river for ten minutes. " * 1000
    talks = [[talk] * 200]
    assert requested("auto", talks, ["en"]).encoder == "minilm"  # the first 256 tokens alone
    chosen = requested("auto", talks, ["en"], in_passages=True)
    assert chosen.encoder == "static"
    assert "min; --encoder minilm takes it anyway" in chosen.why
    # A text that is not long has no passages.
    short = [["a river and its bank " * 40]]
    assert encoding_seconds(short, in_passages=True) == encoding_seconds(short)


def test_time_grows_with_bytes_but_not_beyond_the_limit_of_a_text():
    latin, chinese = (
        encoding_seconds([["kettle"] * 100]),
        encoding_seconds([["红水壶水壶红"] * 100]),
    )
    assert latin < chinese
    assert encoding_seconds([["a" * 10_000]]) == encoding_seconds([["a" * 100_000]])
    assert encoding_seconds([]) == 0
    assert encoding_seconds([["\ud800"]]) > 0
    # e5 has twice the layers.
    assert encoding_seconds([["a kettle"]], "e5") > 1.5 * encoding_seconds([["a kettle"]], "minilm")


def test_each_text_is_read_once():
    one = encoding_seconds([["deep sea"]])
    assert encoding_seconds([["deep sea"], ["deep sea"]]) == pytest.approx(2 * one)


def test_without_what_reads_them_nothing_is_installed(monkeypatch):
    monkeypatch.setattr(fetch, "find", lambda name: "somewhere")
    monkeypatch.setattr(encoders, "find_spec", lambda name: object())
    assert installed() == ("static", *SPEEDS)
    monkeypatch.setattr(fetch, "find", lambda name: None if name == "minilm" else "somewhere")
    assert installed() == ("static", "e5")
    monkeypatch.setattr(
        encoders, "find_spec", lambda name: None if name == "tokenizers" else "there"
    )
    assert installed() == ()
