"""Head weights from given judgements: who answers gets the weight, the more queries the more."""

import numpy as np
import pytest

from qkvsearch.data.ids import Ids
from qkvsearch.data.judgements import among
from qkvsearch.errors import DataError
from qkvsearch.retrieval import head_weights, training_queries
from qkvsearch.retrieval.bm25 import LexicalKeys
from qkvsearch.retrieval.head_weights import (
    Alternatives,
    conditional_logit,
    learn_from_judgements,
    standardized,
)
from qkvsearch.retrieval.training_queries import JudgedQueries, judged_queries
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.token_encoder import TokenEncoder
from qkvsearch.text.vocabulary import Vocabulary
from tests.terms import count_terms

PRIOR = {"lexical": 0.5, "right": 0.25, "noise": 0.25}
RNG = np.random.default_rng(0)
N_WORDS, N_ITEMS = 40, 600
WORDS = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(N_WORDS)]


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def heads():
    """Items of one subject a word, which only one head knows; the others know them by chance."""
    texts = RNG.choice(WORDS, N_ITEMS).tolist()
    lexical = LexicalKeys.from_counts(*count_terms(texts, Analyzer().key_terms))
    terms, subjects = Vocabulary.of(WORDS), np.arange(N_ITEMS) % N_WORDS
    vectors = unit(RNG.normal(size=(N_WORDS, 16)))
    encoder = TokenEncoder(terms, vectors, np.ones(N_WORDS, np.float32))
    rows = terms.rows(WORDS)
    near = unit(vectors[rows[subjects]] + 0.2 * RNG.normal(size=(N_ITEMS, 16)))
    far = unit(RNG.normal(size=(N_ITEMS, 16)))
    encoders = {"right": encoder, "noise": encoder}
    return lexical, encoders, {"right": near, "noise": far}


def judged(n):
    answers = [np.flatnonzero(np.arange(N_ITEMS) % N_WORDS == i % N_WORDS) for i in range(n)]
    return JudgedQueries([WORDS[i % N_WORDS] for i in range(n)], answers, [])


def test_the_head_that_answers_gets_the_weight_the_more_the_more_are_judged(heads):
    few = learn_from_judgements(judged(5), *heads, PRIOR)
    many = learn_from_judgements(judged(400), *heads, PRIOR)
    for learned in (few, many):
        assert list(learned) == list(PRIOR)
        assert sum(learned.values()) == pytest.approx(1)
    assert 0.25 < few["right"] < 0.3  # 5 queries count 5 / 105
    assert many["right"] > 0.7
    assert many == learn_from_judgements(judged(400), *heads, PRIOR)


def test_a_hundred_queries_are_halfway(heads):
    found = learn_from_judgements(judged(100), *heads, PRIOR)
    # Words that fit by chance are worth nothing: half of what was given is left.
    assert found["lexical"] == pytest.approx(0.25, abs=0.02)


def test_a_sample_of_the_items_tells_nearly_what_all_of_them_tell(heads, monkeypatch):
    whole = learn_from_judgements(judged(400), *heads, PRIOR)
    monkeypatch.setattr(head_weights, "N_ALTERNATIVES", 120)
    monkeypatch.setattr(head_weights, "MAX_SCORES", 3 * N_ITEMS * 7)
    sampled = learn_from_judgements(judged(400), *heads, PRIOR)
    for name in PRIOR:
        assert sampled[name] == pytest.approx(whole[name], abs=0.03)


def test_more_queries_than_are_needed_are_sampled(heads, monkeypatch):
    asked = []
    scored = head_weights._scored
    monkeypatch.setattr(training_queries, "MAX_JUDGED", 50)
    monkeypatch.setattr(
        head_weights,
        "_scored",
        lambda t, chosen, *rest: asked.extend(chosen) or scored(t, chosen, *rest),
    )
    learn_from_judgements(judged(400), *heads, PRIOR)
    assert len(set(asked)) == 50


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_every_chosen_query_is_scored_once_however_many_at_a_time(monkeypatch, at_once):
    texts, chosen = [*"abcdefgh"], np.array([0, 2, 3, 6, 7])
    matrix = np.random.default_rng(3).normal(size=(len(texts), 4))
    scorers = [
        lambda asked, sign=sign: sign * matrix[[*map(texts.index, asked)]] for sign in (1, -1)
    ]
    monkeypatch.setattr(head_weights, "MAX_SCORES", at_once * len(scorers) * 4)
    found = list(head_weights._scored(texts, chosen, scorers, 4))
    assert [query for query, _ in found] == chosen.tolist()
    expected = standardized(matrix[chosen])
    for (_, scores), row in zip(found, expected, strict=True):
        np.testing.assert_allclose(scores, [row, -row], atol=1e-12)


def test_several_answers_share_one_querys_weight():
    rng = np.random.default_rng(1)
    scores = np.stack([standardized(rng.normal(size=(30, 8))) for _ in range(2)])
    answers = np.zeros((30, 8))
    answers[:, :2] = 0.5
    both = conditional_logit([Alternatives(scores, answers)])
    # The same as each query asked twice, once for each answer.
    one, other = np.zeros((30, 8)), np.zeros((30, 8))
    one[:, 0] = other[:, 1] = 1
    apart = conditional_logit([Alternatives(scores, one), Alternatives(scores, other)])
    np.testing.assert_allclose(both, apart, atol=1e-4)


def test_items_that_stand_for_others_count_like_them():
    rng = np.random.default_rng(2)
    scores = np.stack([standardized(3 * np.eye(6) + rng.normal(size=(6, 6))) for _ in range(2)])
    thrice = np.concatenate([scores, scores[..., 5:], scores[..., 5:]], axis=2)
    answers = np.zeros((6, 6))
    answers[:, :5] = np.eye(6)[:, :5]
    answers[5, 0] = 1
    repeated = Alternatives(thrice, np.pad(answers, ((0, 0), (0, 2))))
    standing = Alternatives(scores, answers, np.log([1, 1, 1, 1, 1, 3]) * np.ones((6, 1)))
    np.testing.assert_allclose(
        conditional_logit([repeated]), conditional_logit([standing]), atol=1e-4
    )


# --- what was judged ---

QUERIES = {"q1": "deep sea", "q2": "red kettle", "q3": "nothing"}
IDS = Ids(["1", "2", "7"])


def test_answers_are_rows_with_the_best_first_and_the_rest_is_left_out():
    judgements = {"q1": {"2": 1, "7": 2, "1": 0, "99": 3}, "q2": {"88": 1}}
    found = judged_queries(QUERIES, judgements, IDS)
    assert found.texts == ["deep sea"]
    assert [rows.tolist() for rows in found.answers] == [[2, 1]]
    assert found.unknown == ["88", "99"]
    assert found.summary() == "1 judged query; 2 judged items are not in the catalog: 88, 99"


@pytest.mark.parametrize(
    ("judgements", "message"),
    [
        ({"q11": {"1": 1}}, "judgements name query 'q11', which has no text; did you mean q1"),
        ({"q1": {"88": 1}}, r"no judgement names a relevant item .* \(unknown: 88\)"),
        ({"q1": {"1": 0}}, "no judgement names a relevant item of the catalog"),
    ],
)
def test_judgements_of_no_use_are_refused(judgements, message):
    with pytest.raises(DataError, match=message):
        judged_queries(QUERIES, judgements, IDS)


def test_those_that_were_left_out_of_the_sample_are_not_among_those_learned_from(monkeypatch):
    monkeypatch.setattr(training_queries, "MAX_JUDGED", 7)
    many = JudgedQueries([f"query {i}" for i in range(40)], [np.array([0])] * 40, [])
    assert among(many.texts, many.fingerprints()) == 7
    chosen = many.chosen(np.random.default_rng(0))
    assert among([many.texts[i] for i in chosen], many.fingerprints()) == 7
    assert list(chosen) == sorted(chosen)
