"""Contrastive training: exact gradients, synonyms that only columns tell, sums of parts, edges."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.attention.layers.state_dict import state
from qkvsearch.attention.training import Adam
from qkvsearch.errors import DataError
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.learned import contrastive
from qkvsearch.text.learned.contrastive import (
    ItemShares,
    Pooling,
    Training,
    batch_gradients,
    info_nce,
    mean_reciprocal_rank,
)
from qkvsearch.text.learned.corpus_encoders import ContrastiveEncoder
from qkvsearch.text.text_encoder import item_keys
from qkvsearch.text.token_encoder import TokenEncoder
from qkvsearch.text.vocabulary import Vocabulary
from tests.attention.numbers import numeric, random

# Two texts and their partners, in six terms.
SHARES = csr_matrix(
    np.array(
        [[1, 0, 2, 1, 0, 0], [0, 1, 0, 0, 1.5, 0], [0, 0, 0, 0, 0, 1], [1, 1, 0, 0, 0, 0]],
        np.float64,
    )
)

# Few items make few steps an epoch.
QUICK = {"learning_rate": 0.02, "batch_size": 32}


def pooling():
    return Pooling(random(6, 4), random(6, seed=1) / 4)


def item_texts(*columns):
    """Column after column, one row an item."""
    return ItemShares(csr_matrix(np.concatenate(columns).astype(np.float64)), len(columns))


def training(items, dropout=0.0):
    return Training(pooling(), items, 0.1, dropout, 8, Adam(), np.random.default_rng(0))


def ones(*spans, n_terms=20):
    """A row a span, with a 1 for each term in it."""
    return [[float(a <= term < b) for term in range(n_terms)] for a, b in spans]


def synonyms(n_items=240, seed=0):
    """Titles and tags of items, item i on subject i % 4, which titles name by four words and tags
    by four others. Three words more are of one of three styles, which says nothing of the item.
    """
    rng = np.random.default_rng(seed)

    def text(column, subject):
        styled = rng.choice(8, 3, replace=False) + 8 * rng.integers(3)
        words = [f"{column}{subject}w{rng.integers(4)}", *(f"{column}style{i}" for i in styled)]
        return " ".join(words)

    titles, tags = ([text(column, i % 4) for i in range(n_items)] for column in ("title", "tag"))
    return titles, tags


def share_right(model):
    """How many new titles are nearest to new tags of their subject, which are a quarter."""
    titles, tags = (model.transform(texts) for texts in synonyms(100, seed=1))
    return float(np.mean((titles @ tags.T).argmax(axis=1) % 4 == np.arange(100) % 4))


# --- gradients ---


def test_a_batchs_gradients_are_those_of_central_differences():
    model = pooling()
    gradients = batch_gradients(model, SHARES, temperature=0.5)[1]
    weights = state(model)
    assert set(gradients) == set(weights)
    for name, array in weights.items():
        found = numeric(lambda: batch_gradients(model, SHARES, 0.5)[0], array)
        np.testing.assert_allclose(gradients[name], found, atol=1e-6, err_msg=name)


def test_the_loss_gives_gradients_to_both_sides():
    queries, keys = random(3, 4), random(3, 4, seed=1)
    _, by_queries, by_keys = info_nce(queries, keys, temperature=0.3)
    for array, gradient in (queries, by_queries), (keys, by_keys):
        found = numeric(lambda: info_nce(queries, keys, 0.3)[0], array)
        np.testing.assert_allclose(gradient, found, atol=1e-6)


# --- what is learned ---


@pytest.mark.parametrize("init", ["lsa", "ppmi"])
def test_synonyms_that_meet_in_items_alone_are_learned(init):
    start = ContrastiveEncoder(8, init=init, epochs=0).fit(synonyms())
    model = ContrastiveEncoder(8, init=init, **QUICK).fit(synonyms())
    assert model.n_epochs_ > 0
    assert share_right(model) > 0.9
    assert share_right(model) > share_right(start) + 0.1


def test_the_search_for_the_best_epoch_ends_and_keeps_it():
    model = ContrastiveEncoder(8, **QUICK).fit(synonyms())
    ranks = model.reciprocal_ranks_
    assert model.n_epochs_ == ranks.argmax() > 0
    assert len(ranks) <= model.epochs + 1
    assert ((ranks > 0) & (ranks <= 1)).all()


def test_as_many_epochs_as_asked_where_nothing_is_held_out():
    """The same bits as after a search that found that many."""
    found = ContrastiveEncoder(8, **QUICK).fit(synonyms())
    again = ContrastiveEncoder(8, **QUICK | {"epochs": found.n_epochs_}, held_out=0)
    again.fit(synonyms())
    assert again.n_epochs_ == found.n_epochs_
    assert np.array_equal(again.embeddings_, found.embeddings_)
    assert not len(again.reciprocal_ranks_)


def test_nothing_of_the_held_out_items_is_learned_while_they_are_held_out(monkeypatch):
    """Whatever they say, the start and every epoch are the same bits."""
    passed = []

    def rank(model, asked):
        passed[-1].append(b"".join(array.tobytes() for array in state(model).values()))
        return float(len(passed[-1]))  # each epoch better than the last

    monkeypatch.setattr(contrastive, "mean_reciprocal_rank", rank)
    titles, tags = synonyms(60)
    held_out = np.random.default_rng(0).permutation(60)[: int(0.2 * 60)]
    others = [list(titles), list(tags)]
    for i in held_out:
        others[0][i], others[1][i] = tags[(i + 1) % 60], f"other{i} {titles[i]}"
    for fields in ([titles, tags], others):
        passed.append([])
        ContrastiveEncoder(8, epochs=2, **QUICK).fit(fields)
    assert len(passed[0]) == 3
    assert len(set(passed[0])) == 3
    assert passed[0] == passed[1]


@pytest.mark.parametrize(("n_items", "is_held_out"), [(49, False), (50, True)])
def test_ten_items_are_the_fewest_that_tell_how_long_to_train(n_items, is_held_out):
    model = ContrastiveEncoder(4, epochs=1, **QUICK).fit(synonyms(n_items))
    assert (len(model.reciprocal_ranks_) > 0) == is_held_out


def test_a_sample_of_a_large_catalog_is_trained_on_and_no_word_of_the_others():
    titles, tags = synonyms(80)
    sample = np.sort(np.random.default_rng(0).choice(80, 60, replace=False))
    others = np.setdiff1d(np.arange(80), sample)
    for i in others:
        titles[i] += f" only{i}"
    options = {"epochs": 2, "held_out": 0, **QUICK}
    start = ContrastiveEncoder(8, **options | {"epochs": 0}).fit([titles, tags]).encoder_
    model = ContrastiveEncoder(8, max_items=60, **options).fit([titles, tags]).encoder_
    only = model.vocabulary.rows(f"only{i}" for i in others)
    assert (only >= 0).all()
    scale = np.linalg.norm(model.vectors[only]) / np.linalg.norm(start.vectors[only])
    np.testing.assert_allclose(model.vectors[only], scale * start.vectors[only], rtol=1e-4)
    assert np.array_equal(model.weights[only], start.weights[only])


def test_what_does_not_help_leaves_the_encoder_as_it_was():
    """Every title is the tag itself: the start finds all, and nothing finds more."""
    words = [f"word{i}" for i in range(60)]
    model = ContrastiveEncoder(60, epochs=5).fit([words, words])
    start = ContrastiveEncoder(60, epochs=0).fit([words, words])
    assert len(model.reciprocal_ranks_) == 4
    assert model.n_epochs_ == 0
    for name in ("vectors", "weights"):
        assert np.array_equal(getattr(model.encoder_, name), getattr(start.encoder_, name))


def test_too_few_items_are_not_learned_from():
    model = ContrastiveEncoder(2).fit([["deep sea", "red car"], ["water", "road"]])
    assert model.n_epochs_ == len(model.reciprocal_ranks_) == 0
    assert isinstance(model.encoder_, TokenEncoder)


def test_held_out_items_are_found_by_their_other_columns():
    """Two items, a term each in both columns: one is found first, one beside its twin last."""
    model, first, second, none = Pooling(np.eye(3), np.zeros(3)), [1, 0, 0], [0, 1, 0], [0, 0, 0]

    def rank(*items):
        return mean_reciprocal_rank(model, item_texts(*(list(c) for c in zip(*items, strict=True))))

    assert rank([first, first], [second, second]) == 1
    assert rank([first, first], [first, first]) == 0.5
    assert rank([first, second], [second, first]) == 0.5
    assert rank([first, none], [none, second]) == 0
    # An item of one column is not asked for. Each of the others is nearer to the other's key than
    # to its own: found as the second of two.
    assert rank([first, second], [second, first], [first, none]) == 0.5


@pytest.mark.parametrize("rounding", [-1e-6, 0, 1e-6])
def test_how_a_machine_rounds_does_not_tell_equal_items_apart(rounding):
    """Two words of one direction: each item is beside a twin, and last of the two."""
    vectors = np.array([[1, 0], [1, rounding], [0, 1]], np.float32) * np.float32(1 + rounding)
    model, twins = Pooling(vectors, np.zeros(3)), [[1, 0, 0], [0, 1, 0]]
    assert mean_reciprocal_rank(model, item_texts(twins, twins)) == 0.5


# --- sums of parts ---


def test_the_words_add_up_to_what_was_trained_and_texts_to_keys():
    fields = synonyms(120)
    model = ContrastiveEncoder(6, epochs=2, **QUICK).fit(fields)
    encoder = model.encoder_
    assert np.array_equal(item_keys(encoder.encode_many, fields), model.embeddings_)
    texts = [*fields[0][:20], "", "unknown words", "title1w1, title1w1 TAG1w1 unknown"]
    many = encoder.encode_many(texts)
    assert many.dtype == np.float32
    pooled = Pooling(encoder.vectors, np.log(encoder.weights))
    items = ItemShares.of(encoder.vocabulary, [AnalyzedTexts.of(texts, encoder.analyzer)])
    np.testing.assert_allclose(pooled(items.shares), many, atol=1e-5)
    for text, row in zip(texts, many, strict=True):
        np.testing.assert_allclose(encoder.encode(text).total, row, atol=1e-6)
    assert encoder.encode(texts[-1]).labels == ["title1w1", "tag1w1"]
    assert encoder.unread(texts[-1]) == ["unknown"]
    assert encoder.sequence(texts[-1]).labels == ["title1w1", "title1w1", "tag1w1"]


def test_words_that_cancel_out_leave_nothing():
    terms, vectors = Vocabulary.of(["boat", "road"]), np.array([[1.0, 0], [-1, 0]])
    encoder = TokenEncoder(terms, vectors, np.ones(2))
    assert len(encoder.encode("boat road")) == 0
    assert len(encoder.encode("boat")) == 1


# --- pairs ---


def test_a_pair_is_of_two_columns_or_of_two_halves():
    items = item_texts(
        ones((0, 4), (0, 0), (0, 1)), ones((10, 14), (10, 14), (0, 0)), ones(*[(0, 0)] * 3)
    )
    step = training(items)
    for _ in range(20):
        sides = np.split(step.pairs(np.array([0, 1, 2])).toarray(), 2)
        both = {tuple(np.flatnonzero(side[0])) for side in sides}
        assert both == {(0, 1, 2, 3), (10, 11, 12, 13)}
        left, right = (set(np.flatnonzero(side[1])) for side in sides)
        assert left | right == {10, 11, 12, 13}
        assert len(left) == len(right) == 2
        # Halves of a single word are it and nothing.
        assert sorted(side[2].sum() for side in sides) == [0, 1]


def test_pairs_are_of_any_two_columns():
    step = training(item_texts(*(ones((c, c + 1)) for c in range(3))))
    found = {tuple(step.pairs(np.zeros(1, int)).indices) for _ in range(99)}
    assert found == {(a, b) for a in range(3) for b in range(3) if a != b}


def test_dropping_leaves_a_word_and_no_more_than_a_step_can_hold():
    texts = item_texts(ones((5, 6), (6, 9)))
    found = training(texts, dropout=0.999).dropped(texts.shares)
    assert np.diff(found.indptr).tolist() == [1, 1]
    assert found.indices[0] == 5
    assert found.indices[1] in (6, 7, 8)
    long = csr_matrix(np.full((1, 500), 2.0))
    found = training(texts).dropped(long)
    assert len(set(found.indices)) == 32
    assert (found.data == 2).all()
    many = csr_matrix(np.ones((200, 20)))
    assert 0.72 < training(texts, dropout=0.25).dropped(many).nnz / 4000 < 0.78


def test_items_of_one_word_are_not_trained_on(monkeypatch):
    step, seen = training(item_texts(ones((0, 1), (3, 6)), ones((0, 0), (0, 0)))), []
    monkeypatch.setattr(step, "step", seen.append)
    step.epoch()
    assert [texts.shape[0] for texts in seen] == [2]
    assert sorted(seen[0].indices) == [3, 4, 5]


# --- edges ---


def test_one_column_is_learned_from_by_halves():
    """Each text has 4 of its subject's words; as a list of texts or as a list of one column."""
    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"s{i % 5}w{word}" for word in rng.choice(12, 4, replace=False))
        for i in range(200)
    ]
    model = ContrastiveEncoder(5).fit(texts)
    assert len(model.reciprocal_ranks_) > 1
    assert np.array_equal(ContrastiveEncoder(5).fit([texts]).embeddings_, model.embeddings_)
    cosines = model.embeddings_ @ model.embeddings_.T - 2 * np.eye(200)
    assert np.mean(cosines.argmax(axis=1) % 5 == np.arange(200) % 5) > 0.95


@pytest.mark.parametrize(
    "fields",
    [
        [[""] * 100, ["the of"] * 100],
        [["sea"] * 100, [""] * 100],
        [["sea"] * 100, ["water"] * 100],
        [["sea"], ["water"]],
        [["", "deep sea"] * 60, ["road", ""] * 60],
        [""],
    ],
    ids=["no vocabulary", "one word", "two words", "one item", "empty texts", "nothing"],
)
def test_texts_that_say_little(fields):
    model = ContrastiveEncoder(4, epochs=3).fit(fields)
    assert len(model.embeddings_) == len(fields if isinstance(fields[0], str) else fields[0])
    assert np.isfinite(model.embeddings_).all()
    assert np.isfinite(model.transform(["sea water", "", "nobody"])).all()
    assert not model.transform(["", "nobody"]).any()


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(DataError, match=r"one text an item, got lengths \[2, 1\]"):
        ContrastiveEncoder().fit([["a", "b"], ["c"]])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 0),
        ("init", "bert"),
        ("temperature", 0),
        ("epochs", -1),
        ("batch_size", 0),
        ("learning_rate", -1.0),
        ("dropout", 1.0),
        ("held_out", -0.1),
    ],
)
def test_a_parameter_that_cannot_work_is_named(name, value):
    with pytest.raises(DataError, match=name):
        ContrastiveEncoder(**{name: value}).fit([["sea"]])
