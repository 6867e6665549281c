"""Which encoder is taken where none is named: by what is installed and how long it would take."""

import pytest

from qkvsearch.text import encoders
from qkvsearch.text.encoders import choose, encoding_seconds, installed
from qkvsearch.text.pretrained import fetch

FEW = [["deep sea", "red kettle"], ["sea", ""]]
# Two minutes of minilm.
MANY = [["a title of about twenty-five characters"] * 38_000]


@pytest.mark.parametrize(
    ("available", "columns", "encoder", "why"),
    [
        (("static", "minilm"), FEW, "minilm", "encodes this in about 1 s"),
        (("minilm",), FEW, "minilm", "is installed"),
        (("static", "minilm"), MANY, "static", "about 2 min; --encoder minilm takes it anyway"),
        (("minilm",), MANY, "corpus", "anyway; pip install -e '.[encoders]' gets static"),
        (("static",), FEW, "static", "`qkvsearch model fetch minilm` gets it"),
        (("static",), MANY, "static", "not installed, and would encode for about 2 min"),
        ((), FEW, "corpus", "'.[encoders]' gets static, then `qkvsearch model fetch"),
        ((), MANY, "corpus", "no other is installed"),
    ],
)
def test_the_best_that_is_installed_and_quick_enough(monkeypatch, available, columns, encoder, why):
    monkeypatch.setattr(encoders, "installed", lambda: available)
    choice = choose(columns)
    assert choice.encoder == encoder
    assert why in choice.why
    is_worth_it = encoder != "minilm" and "static" not in available
    assert ("gets static" in choice.why) == is_worth_it


def test_time_grows_with_bytes_but_not_beyond_the_limit_of_a_text():
    latin, chinese = (
        encoding_seconds([["kettle"] * 100]),
        encoding_seconds([["红水壶水壶红"] * 100]),
    )
    assert latin < chinese
    assert encoding_seconds([["a" * 1000]]) == encoding_seconds([["a" * 100_000]])
    assert encoding_seconds([]) == 0
    assert encoding_seconds([["\ud800"]]) > 0


def test_all_of_an_item_is_read_once_more_for_the_second_pass():
    alone = [["deep sea"], ["red kettle"]]
    apart = sum(encoding_seconds([column]) / 2 for column in alone)
    whole = encoding_seconds([["deep sea" + "red kettle"]]) / 2
    assert encoding_seconds(alone) == pytest.approx(apart + whole)


def test_without_what_reads_them_nothing_is_installed(monkeypatch):
    monkeypatch.setattr(fetch, "find", lambda name: "somewhere")
    monkeypatch.setattr(encoders, "find_spec", lambda name: object())
    assert installed() == ("static", "minilm", "e5")
    monkeypatch.setattr(fetch, "find", lambda name: None if name == "minilm" else "somewhere")
    assert installed() == ("static", "e5")
    monkeypatch.setattr(
        encoders, "find_spec", lambda name: None if name == "tokenizers" else "there"
    )
    assert installed() == ()
