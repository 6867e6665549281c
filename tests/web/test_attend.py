"""`attend` and `encode` over HTTP give what the encoder gives, in answers of bounded size."""

import json
import re
import shutil

import numpy as np
import pytest

from qkvsearch.text.encoded_text import compare
from qkvsearch.text.encoders import pretrained
from qkvsearch.web.api import attend_routes

SENTENCE = "deep season didn't redder sea"


@pytest.fixture
def installed(tiny_bert, tmp_path, monkeypatch):
    """The random transformer as what is installed under the name of minilm."""
    shutil.copytree(tiny_bert, tmp_path / "minilm")
    monkeypatch.setenv("QKVSEARCH_MODELS", str(tmp_path))
    attend_routes._installed.cache_clear()
    yield pretrained("minilm")
    attend_routes._installed.cache_clear()


@pytest.fixture
def asked(client):
    def ask(path="/api/v1/attend", status=200, **parameters):
        answer = client.get(path, params=parameters)
        assert answer.status_code == status, answer.text
        return answer.json()

    return ask


def test_the_weights_are_those_of_the_builds_encoder(asked, videos):
    encoder = videos.models.encoder(videos.models.main_head)
    reading = encoder.attend("guitar lesson for beginners")
    found = asked(text="guitar lesson for beginners")
    assert found["encoder"] == videos.models.main_head
    assert (found["words"], found["layers"], found["heads"]) == (reading.words, 0, 0)
    (only,) = found["maps"]
    assert (only["layer"], only["head"]) == (None, None)
    np.testing.assert_allclose(only["weights"], reading.map().weights, atol=6e-5)
    assert found["notes"] == ["left out, for the encoder does not read it: for"]


def test_every_layer_and_head_of_a_transformer_word_by_word(asked, installed):
    reading = installed.attend(SENTENCE)
    found = asked(text=SENTENCE, encoder="minilm")
    assert (found["tokens"], found["owners"]) == (reading.tokens, reading.owners.tolist())
    assert (found["layers"], found["heads"]) == reading.weights.shape[:2]
    assert [(one["layer"], one["head"]) for one in found["maps"]] == reading.head_indices()
    weights = np.array([one["weights"] for one in found["maps"]])
    words = reading.word_weights()
    np.testing.assert_allclose(weights, words.reshape(weights.shape), atol=6e-5)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-3)


def test_one_layer_or_head_of_it(asked, installed):
    whole = {
        (one["layer"], one["head"]): one for one in asked(text="sea", encoder="minilm")["maps"]
    }
    for chosen in ({"layer": 1}, {"head": 2}, {"layer": 0, "head": 1}):
        maps = asked(text="sea", encoder="minilm", **chosen)["maps"]
        assert maps == [
            one
            for place, one in whole.items()
            if all(
                chosen.get(name, n) == n for name, n in zip(("layer", "head"), place, strict=True)
            )
        ]


@pytest.mark.parametrize("mask", ["padding", "causal"])
def test_what_a_mask_hides_is_null_and_nothing_else(asked, installed, mask):
    found = asked(text="deep sea <PAD>", encoder="minilm", mask=mask)
    assert found["words"] == ["[CLS]", "deep", "sea", "<PAD>", "[SEP]"]
    for one in found["maps"]:
        for i, row in enumerate(one["weights"]):
            hidden = [j for j, weight in enumerate(row) if weight is None]
            assert hidden == ([3] if mask == "padding" else list(range(i + 1, 5)))
            assert sum(weight or 0 for weight in row) == pytest.approx(1, abs=1e-3)


def test_hidden_words_by_their_places(asked, installed):
    found = asked(text="deep season sea", encoder="minilm", hide=[2, 3])
    reading = installed.attend("deep season sea", hide=[2, 3])
    weights = reading.word_weights().reshape(len(found["maps"]), 5, 5)
    for one, wanted in zip(found["maps"], weights, strict=True):
        for row, numbers in zip(one["weights"], wanted, strict=True):
            assert [j for j, weight in enumerate(row) if weight is None] == [2, 3]
            np.testing.assert_allclose([weight or 0 for weight in row], numbers, atol=6e-5)


def test_against_another_text(asked, installed):
    found = asked(text="deep sea", encoder="minilm", against="red sea")
    cosines = compare(installed.attend("deep sea"), installed.attend("red sea"))
    assert found["against"]["words"] == cosines.words == ["sea"]
    np.testing.assert_allclose(found["against"]["cosines"], cosines.cosines, atol=6e-5)
    other = asked(text="deep sea", encoder="minilm", against="red")
    assert (other["against"], other["notes"]) == (None, ["no word is in both texts"])


def test_of_no_words_there_are_no_weights(asked, installed):
    for encoder in ("minilm", None):
        given = {} if encoder is None else {"encoder": encoder}
        found = asked(text="", against="", **given)
        assert found["words"] == []
        assert all(one["weights"] == [] for one in found["maps"])
        assert "nothing to attend to" in found["notes"][0]


def test_an_answer_stays_under_a_megabyte_and_says_what_is_too_long(asked, client, monkeypatch):
    fits = client.get("/api/v1/attend", params={"text": "guitar " * 280})
    assert fits.status_code == 200
    monkeypatch.setattr(attend_routes, "MAX_WEIGHTS", 280 * 280 - 1)
    refused = asked(text="guitar " * 280, status=400)["detail"]
    assert refused == (
        "`text`: 280 words have 78,400 weights, and an answer 78,399 at most: shorten it"
    )
    # The largest answer that there can be, of seven characters a weight.
    assert 140_000 * len("0.1234,") < 1_000_000


def test_many_heads_are_fewer_words(asked, installed, monkeypatch):
    monkeypatch.setattr(attend_routes, "MAX_WEIGHTS", 16 * 5)
    refused = asked(text="deep sea", encoder="minilm", status=400)["detail"]
    assert refused.endswith("shorten it, or ask for one `layer`")
    assert "4 words in 6 heads have 96 weights" in refused
    assert len(asked(text="deep sea", encoder="minilm", layer=0)["maps"]) == 3


@pytest.mark.parametrize(
    ("asks", "status", "says"),
    [
        ({"text": "bread", "layer": 0}, 400, "has no layers and heads"),
        ({"text": "bread", "encoder": "/etc"}, 400, "no encoder '/etc'"),
        ({"text": "bread", "encoder": "minilm"}, 400, "minilm is not installed"),
        ({"text": "bread", "mask": "all"}, 422, "`mask`"),
        ({"text": "bread", "hide": 7}, 400, "`hide`: no word 7"),
        ({"text": "bread", "hide": "bread"}, 422, "`hide"),
        ({"text": "bread", "hide": [-1]}, 422, "`hide"),
        ({"text": "b" * 2001}, 422, "`text`"),
        ({}, 422, "`text`"),
    ],
)
def test_what_cannot_be_asked(asked, asks, status, says):
    attend_routes._installed.cache_clear()
    assert says in asked(status=status, **asks)["detail"]


def facts_of_the_page(client, language="en"):
    page = client.get(f"/attend?lang={language}").text
    return json.loads(re.search(r'id="facts"[^>]*>(.*?)</script>', page, re.DOTALL).group(1))


def test_the_page_names_the_encoders_a_transformer_first(client, installed):
    facts = facts_of_the_page(client)
    assert (facts["encoders"], facts["recorded"]) == (["minilm", "lsa"], None)
    assert facts["layered"] == ["minilm"]


def test_a_page_in_chinese_has_examples_in_chinese_which_minilm_does_not_read(
    client, installed, monkeypatch
):
    facts = facts_of_the_page(client, "zh")
    assert facts["encoders"][0] == "minilm"
    assert facts["recorded"]["model"] == "e5"
    assert all("一" <= one["word"][0] <= "鿿" for one in facts["examples"])
    # One that reads it is first.
    monkeypatch.setattr("qkvsearch.web.pages.installed", lambda: ("static", "minilm", "e5"))
    facts = facts_of_the_page(client, "zh")
    assert (facts["encoders"][0], facts["recorded"]) == ("e5", None)
    assert facts_of_the_page(client)["encoders"][0] == "minilm"


@pytest.mark.parametrize(("language", "model"), [("en", "minilm"), ("zh", "e5")])
def test_without_a_transformer_the_page_has_what_one_made_of_its_examples(client, language, model):
    facts = facts_of_the_page(client, language)
    assert facts["encoders"] == ["lsa"]
    assert facts["recorded"]["model"] == model
    recorded = client.get(facts["recorded"]["file"]).json()
    for example, control in zip(facts["examples"], recorded["controls"], strict=True):
        assert (control is None) == ("against" not in example)
        assert control is None or len(control["maps"]) == control["layers"] * control["heads"]
    for example, answer in zip(facts["examples"], recorded["answers"], strict=True):
        assert (answer["encoder"], answer["mask"]) == (model, "padding")
        assert (answer["against"] is None) == ("against" not in example)
        weights = np.array(
            [[[w or 0 for w in row] for row in one["weights"]] for one in answer["maps"]]
        )
        n = len(answer["words"])
        assert weights.shape == (answer["layers"] * answer["heads"], n, n)
        # Each weight was rounded.
        np.testing.assert_allclose(weights.sum(axis=-1), recorded["unit"], atol=n / 2)
        i, j = answer["words"].index(example["word"]), answer["words"].index(example["at"])
        row = weights[weights[:, i, j].argmax(), i]
        assert row.argmax() == j
        assert row[j] > recorded["unit"] / 2
        hidden = [word for word, weight in zip(answer["words"], weights[0, i], strict=True)
                  if not weight]  # fmt: skip
        assert hidden.count("<PAD>") == answer["words"].count("<PAD>")
