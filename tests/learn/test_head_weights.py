"""Head weights: the fixed ones, unless weights learned from made queries are better, and none for
encoders that a small catalog teaches nothing.
"""

import numpy as np
import pytest

from qkvsearch.learn.head_weights import (
    MIN_ITEMS,
    MIN_WORDS,
    TIE,
    conditional_logit,
    is_better,
    learn_weights,
    log_likelihoods,
    made_scores,
    mixed,
    standardized,
    too_small,
    without_learned,
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
from qkvsearch.text.analyzed import AnalyzedTexts
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


@pytest.fixture(scope="module")
def one_head_finds():
    """Scores of two heads for 400 queries: the first finds the answers, the second nothing."""
    rng = np.random.default_rng(0)
    right = 6 * np.eye(400) + rng.normal(size=(400, 400))
    noise = rng.normal(size=(400, 400))
    return [np.stack([standardized(right), standardized(noise)])]


EQUAL = np.array([0.5, 0.5])


def test_the_head_that_finds_what_is_asked_for_gets_the_weight(one_head_finds):
    weights = conditional_logit(one_head_finds, EQUAL)
    assert weights[0] / weights.sum() > 0.8
    assert is_better(one_head_finds, weights, EQUAL)


def test_few_queries_hardly_change_fixed_weights(one_head_finds):
    few = [scores[:, :4, :4] for scores in one_head_finds]
    shares = [
        weights[0] / weights.sum()
        for weights in (conditional_logit(few, EQUAL), conditional_logit(one_head_finds, EQUAL))
    ]
    assert 0.5 <= shares[0] < 0.6 < shares[1]


def test_weights_that_are_better_by_chance_alone_are_not_better(one_head_finds):
    right = 4 * np.eye(400)
    both = right + np.random.default_rng(1).normal(size=(2, 400, 400))
    assert not is_better([both], conditional_logit([both], EQUAL), EQUAL)
    assert not is_better(one_head_finds, 3 * EQUAL, EQUAL)  # only shares count


def test_log_likelihoods_are_those_of_a_softmax():
    scores = np.array([[[1.0, 0.0], [0.0, 0.0]]])
    expected = np.log([np.e**2 / (np.e**2 + 1), 0.5])
    np.testing.assert_allclose(log_likelihoods([scores], np.array([2.0])), expected)


def test_words_keep_their_weight_and_dense_heads_share_the_rest():
    learned = mixed({"lexical": 0.3, "a": 0.6, "b": 0.1}, {"lexical": 0.9, "a": 0.02, "b": 0.08})
    assert learned == pytest.approx({"lexical": 0.3, "a": 0.14, "b": 0.56})
    assert mixed({"lexical": 0.4, "a": 0.6, "b": 0.0}, {"lexical": 2.0, "a": 1.0})["b"] == 0


def test_weights_are_learned_where_the_static_table_is_the_main_head(lsa, monkeypatch):
    """Here `lsa` stands in for the table as well, which knows these words less."""
    from qkvsearch.learn import head_weights

    monkeypatch.setattr(head_weights, "is_better", lambda sets, learned, fixed: True)
    encoders = {"lsa": lsa["lsa"], "static": lsa["lsa"], "minilm": lsa["lsa"]}
    fixed = {"lexical": 0.2, "lsa": 0.1, "static": 0.7}
    learned, made = learn_weights(catalog(), encoders, fixed)
    assert len(made) == 1
    assert learned["lexical"] == pytest.approx(0.2)
    assert learned != fixed
    other = {"lexical": 0.2, "static": 0.1, "minilm": 0.7}
    assert learn_weights(catalog(), encoders, other)[0] == other
    monkeypatch.setattr(head_weights, "is_better", lambda sets, learned, fixed: False)
    assert learn_weights(catalog(), encoders, fixed)[0] == fixed


def columns(n_items, n_words):
    each = AnalyzedTexts.of_columns([[" ".join(["sea"] * n_words)] * n_items], Analyzer())
    return [*each]


def test_a_catalog_of_few_items_or_few_words_is_too_small():
    words = -(-MIN_WORDS // MIN_ITEMS)
    assert too_small(columns(MIN_ITEMS, words)) is None
    assert "items" in too_small(columns(MIN_ITEMS - 1, 10 * words))
    assert "words" in too_small(columns(MIN_ITEMS, words - 1))
    assert too_small([]) is not None


def test_words_take_over_the_weight_of_heads_that_a_catalog_teaches_nothing():
    assert without_learned(prior_weights("static"))["lsa"] == 0
    assert without_learned(prior_weights("e5")) == pytest.approx(prior_weights("e5"))


def test_where_words_are_alone_what_was_learned_orders_what_they_leave_equal():
    prior = prior_weights("corpus")
    weights = without_learned(prior)
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["lsa"] + weights["contrastive"] == pytest.approx(TIE)
    assert weights["lsa"] / weights["contrastive"] == pytest.approx(
        prior["lsa"] / prior["contrastive"]
    )


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


def test_a_passage_of_a_long_text_is_of_whole_words():
    letters = [chr(97 + i) for i in range(26)]
    text = " ".join(f"w{a}{b}{c}" for a in letters[:6] for b in letters for c in letters)
    for seed in range(20):
        asked, rest = passage(text, np.random.default_rng(seed), Analyzer())
        words = asked.split()
        assert len(words) == 25
        assert set(words) <= set(text.split())
        assert rest == text.replace(asked, "", 1)


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
