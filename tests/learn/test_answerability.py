"""What a build learns of queries that it cannot answer: evidence, texts that tell, a curve."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.heads.answerability import (
    FACT,
    WORDS,
    Answerability,
    Evidence,
    WordStatistics,
    letters_of,
)
from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.learn import calibration
from qkvsearch.learn.calibration import (
    best_scores,
    calibrate,
    foreign,
    half_shuffled,
    logistic_curve,
    shuffled,
    unrelated_texts,
)
from qkvsearch.learn.head_weights import learn_weights
from qkvsearch.learn.training_queries import lexical_scores
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.encoders import fitted_encoder
from qkvsearch.text.text_encoder import item_keys
from tests.terms import count_terms

TITLES = [f"{a} {b} boat" for a in ("red", "blue", "grey") for b in ("sea", "lake", "river")]
WEIGHTS = {"lexical": 0.5, "lsa": 0.5}
FOREIGN = unrelated_texts().sentences


def keys_of(texts):
    return LexicalKeys.from_counts(*count_terms(texts, Analyzer().key_terms))


def evidence(text, texts=TITLES, **best):
    return WordStatistics.of(keys_of(texts), Analyzer().query_tokens(text)).evidence(best)


@pytest.fixture(scope="module")
def known():
    return calibrated(TITLES * 3)


def calibrated(titles, **given):
    encoders = {"lsa": fitted_encoder("lsa", [titles])}
    vectors = {"lsa": item_keys(encoders["lsa"].encode_many, [titles])}
    keys = keys_of(titles)
    return calibrate(
        keys, best_scores(keys, encoders, vectors, Analyzer()), WEIGHTS, titles, **given
    )


# --- evidence ---


def test_words_are_as_familiar_as_the_catalog_has_them():
    assert evidence("boat").values[WORDS] == 1
    assert evidence("zzqx").values[WORDS] == 0
    assert evidence("boat zzqx").values[WORDS] == 0.5
    assert evidence("red").values[WORDS] == pytest.approx(np.log(4) / np.log(10))
    assert evidence("").values[WORDS] == 0


def test_the_lexical_head_counts_the_words_of_the_best_item():
    """The weightiest word is 1, be it alone or not."""
    keys = keys_of(TITLES)
    scores = {
        text: float(lexical_scores(keys, [text], Analyzer()).max()) for text in ("red", "red sea")
    }
    assert evidence("red", lexical=scores["red"]).values["lexical"] == pytest.approx(1)
    assert evidence("red sea", lexical=scores["red sea"]).values["lexical"] == pytest.approx(2)
    assert evidence("zzqx", lexical=0.0).values["lexical"] == 0
    assert evidence("sku-5", lexical=7.0).values["lexical"] == 1  # a code


def test_an_encoder_of_the_catalog_counts_by_the_share_of_words_that_it_read():
    found = evidence("red zzqx", lsa=0.8, static=0.8).values
    assert found["lsa"] == pytest.approx(0.4)
    assert found["static"] == 0.8


def test_letters_are_those_of_most_words():
    tokens = Analyzer().query_tokens
    assert letters_of(tokens("Crème brûlée 陶瓷")) == "latin"
    assert letters_of(tokens("Где купить sofa")) == "other"
    assert letters_of([]) == "latin"


def test_strength_is_the_mean_over_words_the_lexical_head_and_dense_heads_together():
    noise = {"latin": {WORDS: (0.0, 0.1), "lexical": (0.0, 1.0), "a": (0.2, 0.1), "b": (0, 0.5)}}
    known = Answerability(noise, 1.0, 0.0, 0.5, "")
    weights = {"lexical": 0.5, "a": 0.3, "b": 0.1}
    found = {WORDS: 0.2, "lexical": 3.0, "a": 0.6, "b": 0.0}
    dense = (0.3 * 4 + 0.1 * 0) / 0.4
    assert known.strength(Evidence("latin", found), weights) == pytest.approx((2 + 3 + dense) / 3)
    del found["lexical"], found["b"]
    assert known.strength(Evidence("latin", found), weights) == pytest.approx((2 + 4) / 2)
    assert known.strength(Evidence("latin", {WORDS: 99.0}), weights) == 8


# --- texts that cannot be answered ---


def test_the_catalogs_own_language_is_not_foreign():
    english = foreign(keys_of(TITLES), Analyzer())
    assert english == [sentence for of in FOREIGN.values() for sentence in of]
    german = foreign(keys_of([*FOREIGN["German"], *TITLES]), Analyzer())
    assert set(english) - set(german) == set(FOREIGN["German"])
    chinese = foreign(
        keys_of(["昨天我们在城里", "附近的孩子在河边下雨", "哪里可以修理"]), Analyzer()
    )
    assert not set(FOREIGN["Chinese"]) & set(chinese)
    assert set(FOREIGN["Greek"]) < set(chinese)


def test_letters_are_shuffled_within_words():
    rng = np.random.default_rng(0)
    text = "some ordinary words here"
    mixed, half = shuffled(text, rng), half_shuffled(text, rng)
    assert mixed != text
    assert [*map(sorted, mixed.split())] == [*map(sorted, text.split())]
    assert half.split()[::2] == ["some", "words"]
    assert half != text
    assert half_shuffled("one", rng) == "one"


# --- the curve ---


def test_the_curve_is_even_in_its_middle():
    assert Answerability({}, 2.0, -3.0, 0.5, "").probability(1.5) == 0.5
    assert Answerability({}, 2.0, -3.0, 0.5, "").probability(2.5) == pytest.approx(0.880797)


def test_what_the_catalog_has_is_likelier_than_what_it_cannot_have(known):
    keys = keys_of(TITLES * 3)

    def value(text, lsa):
        tokens = Analyzer().query_tokens(text)
        best = {"lexical": float(lexical_scores(keys, [text], Analyzer()).max()), "lsa": lsa}
        return known.probability(
            known.strength(WordStatistics.of(keys, tokens).evidence(best), WEIGHTS)
        )

    nothing, some, all_ = value("zzqx vbnm", 0), value("red zzqx", 0.7), value("red sea boat", 1)
    assert nothing <= known.level < some < all_


def test_most_texts_that_cannot_be_answered_stay_below_the_level(known):
    keys = keys_of(TITLES * 3)
    sentences = [sentence for of in FOREIGN.values() for sentence in of]
    values = []
    for text in sentences:
        best = {"lexical": float(lexical_scores(keys, [text], Analyzer()).max()), "lsa": 0.0}
        tokens = Analyzer().query_tokens(text)
        values.append(
            known.probability(
                known.strength(WordStatistics.of(keys, tokens).evidence(best), WEIGHTS)
            )
        )
    assert np.mean(np.array(values) <= known.level) > 0.9


def test_it_is_stored_among_the_facts_and_is_the_same_again(known):
    assert Answerability.of({FACT: known.to_fact()}) == known
    assert calibrated(TITLES * 3) == known


@pytest.mark.parametrize("titles", [["boat"], ["!!!", "???"]], ids=["one item", "no words"])
def test_catalogs_of_next_to_nothing_have_one_too(titles):
    found = calibrated(titles)
    assert 0 <= found.level <= 1
    assert np.isfinite([found.slope, found.intercept]).all()


def test_a_catalog_without_titles_has_one_too():
    keys = keys_of(TITLES)
    best = best_scores(keys, {}, {}, Analyzer())
    found = calibrate(keys, best, {"lexical": 1.0}, [])
    assert found.learned_from == "0 titles"
    assert 0 <= found.level <= 1


def test_made_queries_are_used_where_heads_were_weighed_by_them():
    rng = np.random.default_rng(0)
    topics = [["sea", "fish", "boat"], ["car", "road", "wheel"], ["bread", "oven", "yeast"]]
    fields = [
        [" ".join([*rng.permutation(topics[i % 3])[:2], f"{name}{i}"] * 6) for i in range(600)]
        for name in ("title", "tag")
    ]
    encoders = {"lsa": fitted_encoder("lsa", fields)}
    made = learn_weights(fields, encoders, WEIGHTS)[1]
    assert [len(one.texts) for one in made] == [120, 120]
    assert all(one.keys.n_items == 120 for one in made)
    assert all(set(one.best) == set(WEIGHTS) for one in made)
    # As they are, neither standardized nor of the wrong axis.
    scores = lexical_scores(made[0].keys, made[0].texts, Analyzer())
    found = made[0].best["lexical"]
    np.testing.assert_array_equal(found.score, scores.max(axis=1))
    above = (scores.max(axis=1) - scores.mean(axis=1)) / scores.std(axis=1)
    np.testing.assert_allclose(found.deviations, above, rtol=1e-4)
    keys = keys_of(["\n".join(texts) for texts in zip(*fields, strict=True)])
    vectors = {"lsa": item_keys(encoders["lsa"].encode_many, fields)}
    best = best_scores(keys, encoders, vectors, Analyzer())
    assert calibrate(keys, best, WEIGHTS, fields[0], made).learned_from == "240 made queries"


def test_the_curve_rises_and_parts_the_sides():
    rng = np.random.default_rng(0)
    low, high = rng.normal(size=500), rng.normal(3, 1, size=2000)
    slope, intercept = logistic_curve(low, high)
    # Two normal distributions of one variance, as likely as each other: the slope is the distance
    # of their means, and the middle is between them.
    assert slope == pytest.approx(3, abs=0.4)
    assert -intercept / slope == pytest.approx(1.5, abs=0.15)
    assert logistic_curve(high, low)[0] == calibration.MIN_SLOPE


def test_scores_are_the_same_in_blocks(monkeypatch):
    keys = keys_of(TITLES)
    encoders = {"lsa": fitted_encoder("lsa", [TITLES])}
    vectors = {"lsa": item_keys(encoders["lsa"].encode_many, [TITLES])}
    texts = ["red sea", "lake", "zzqx", "blue boat"]
    whole = best_scores(keys, encoders, vectors, Analyzer())(texts)
    monkeypatch.setattr(calibration, "MAX_SCORES", 1)
    blocks = best_scores(keys, encoders, vectors, Analyzer())(texts)
    for head, best in whole.items():
        np.testing.assert_allclose(blocks[head].score, best.score, atol=1e-6)
        np.testing.assert_allclose(blocks[head].deviations, best.deviations, rtol=1e-3, atol=1e-4)
    assert whole["lexical"].score[2] == 0


def test_ids_that_stand_in_for_titles_are_no_queries(tmp_path):
    items = pd.DataFrame({"id": [f"{i}-0" for i in range(len(TITLES))], "body": TITLES})
    columns = qkv.Columns(id="id", text=["body"])
    with qkv.build(tmp_path / "ws", items=items, columns=columns, encoder="corpus") as engine:
        assert engine.models.answerability.slope > 2 * calibration.MIN_SLOPE
