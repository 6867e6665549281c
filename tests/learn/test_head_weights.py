"""Head weights: learned from a catalog's own texts, or the prior ones where none can be."""

import numpy as np
import pytest

from qkvsearch.learn.head_weights import (
    MIN_LEXICAL,
    conditional_logit,
    learn_weights,
    made_scores,
    mixed,
    standardized,
)
from qkvsearch.learn.training_queries import (
    lexical_scores,
    made_lexical_keys,
    made_queries,
    of_column,
    overlap,
    passage,
)
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.encoders import fitted_encoder, learned_encoder, prior_weights

PRIOR = {"lexical": 0.5, "lsa": 0.5}
TOPICS = [
    "sea water fish boat",
    "car road wheel engine",
    "bread flour oven yeast",
    "star sky moon sun",
]


def catalog(n=600, seed=0):
    """Titles and texts of one topic an item, so that a passage tells of what is left."""
    rng = np.random.default_rng(seed)
    columns = [[], []]
    for i in range(n):
        words = TOPICS[i % 4].split()
        columns[0].append(" ".join([*rng.permutation(words)[:2], f"name{i}"]))
        columns[1].append(" ".join([*rng.choice(words, 16), *[f"tag{i}"] * 4]))
    return columns


@pytest.fixture(scope="module")
def lsa():
    return {"lsa": fitted_encoder("lsa", catalog())}


def test_the_head_that_finds_what_is_asked_for_gets_the_weight():
    rng = np.random.default_rng(0)
    right, noise = 4 * np.eye(30) + rng.normal(size=(30, 30)), rng.normal(size=(30, 30))
    scores = np.stack([standardized(right), standardized(noise)])
    weights = conditional_logit([scores])
    assert weights.sum() == pytest.approx(1)
    assert weights[0] > 0.9


def test_heads_that_find_nothing_share_the_weight():
    worse = -np.stack([np.eye(8), np.eye(8)])
    weights = conditional_logit([worse])
    np.testing.assert_allclose(weights, [0.5, 0.5])


def test_words_keep_their_weight_and_dense_heads_share_the_rest(lsa):
    for lexical in (0.1, 0.5):
        learned = learn_weights(catalog(), lsa, {"lexical": lexical, "lsa": 1 - lexical})[0]
        words = max(lexical, MIN_LEXICAL)
        assert learned == pytest.approx({"lexical": words, "lsa": 1 - words})
    learned = mixed({"lexical": 0.3, "a": 0.6, "b": 0.1}, {"lexical": 0.9, "a": 0.02, "b": 0.08})
    assert learned == pytest.approx({"lexical": 0.3, "a": 0.14, "b": 0.56})
    nothing = dict.fromkeys(("lexical", "a"), 0.0)
    assert mixed({"lexical": 0.3, "a": 0.7}, nothing) == pytest.approx({"lexical": 0.3, "a": 0.7})


@pytest.mark.parametrize(
    "fields",
    [
        [["only one short column here"] * 600],
        [["some few words"] * 400, ["many words " * 20] * 400],
        [["the same words in both " * 5] * 600, ["the same words in both " * 5] * 600],
        [[""] * 600, [""] * 600],
    ],
    ids=["short texts", "too few items", "columns that repeat each other", "no words"],
)
def test_a_catalog_that_cannot_be_asked_keeps_the_prior(fields):
    assert learn_weights(fields, {}, PRIOR) == (PRIOR, [])


def test_heads_are_counted_as_they_are_done(lsa):
    steps = []
    learn_weights(catalog(), lsa, PRIOR, progress=lambda *step: steps.append(step))
    assert steps == [(1, 2), (2, 2)]


def test_made_queries_are_answered_by_their_own_items(lsa):
    made = next(made_queries(catalog(), np.random.default_rng(0), Analyzer()))
    dense = made_scores(made, "lsa", lsa["lsa"], [0.5, 0.5])
    words = lexical_scores(made_lexical_keys(made, Analyzer()), made.texts, Analyzer())
    for scores in (words, dense):
        assert scores.shape == (120, 120)
        assert np.diagonal(standardized(scores)).mean() > 0.5


def test_encoders_are_learned_anew_without_the_items_asked_for(lsa, monkeypatch):
    from qkvsearch.learn import head_weights

    learned_from = []

    def spy(name, fields, language, epochs):
        learned_from.append((len(fields[0]), epochs))
        return learned_encoder(name, fields, language, epochs)

    monkeypatch.setattr(head_weights, "learned_encoder", spy)
    made = next(made_queries(catalog(), np.random.default_rng(0), Analyzer()))
    for epochs in (None, 2):
        made_scores(made, "lsa", lsa["lsa"], None, epochs)
    assert learned_from == [(480, None), (480, 2)]


def test_a_passage_is_words_in_a_row():
    text = " ".join(f"w{chr(97 + i // 10)}{chr(97 + i % 10)}" for i in range(100))
    for seed in range(20):
        asked, rest = passage(text, np.random.default_rng(seed), Analyzer())
        assert len(asked.split()) == 25
        assert asked in text
        assert sorted(f"{asked} {rest}".split()) == sorted(text.split())
    asked, rest = passage(" ".join(["word"] * 20), np.random.default_rng(0), Analyzer())
    assert (len(asked.split()), len(rest.split())) == (10, 10)


def test_a_text_without_spaces_has_words_too():
    text = "".join(map(chr, range(0x4E00, 0x4E80)))
    asked, rest = passage(text, np.random.default_rng(0), Analyzer())
    assert len(asked + rest) == len(text)
    assert len(asked) == 26  # 25 pairs
    assert asked in text
    topics = ["深海鱼类游泳", "汽车公路轮胎", "面包酵母烤箱", "星空月亮太阳"]
    texts = [topics[i % 4] * 3 + chr(0x5000 + i) for i in range(600)]
    assert of_column([texts, ["title"] * 600], 0, np.random.default_rng(0), Analyzer()) is not None
    assert of_column([texts, ["title"] * 600], 1, np.random.default_rng(0), Analyzer()) is None


def test_overlap_is_the_share_of_a_querys_terms_in_its_key():
    assert (
        overlap(["deep sea", "red car"], [["the sea", "a car"], ["blue", "red"]], Analyzer())
        == 0.75
    )
    assert overlap([""], [["anything"]], Analyzer()) == 0
    assert overlap(["deep sea"], [], Analyzer()) == 0


def test_weights_of_every_choice_add_up():
    for choice in ("corpus", "minilm"):
        assert sum(prior_weights(choice).values()) == pytest.approx(1)
