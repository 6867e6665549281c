"""What every retrieval head promises: parts that add up, finite scores, silence on the unknown."""

from functools import partial

import numpy as np
import pytest

from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.search_head import TextHead, by_language
from qkvsearch.heads.search_heads import HEADS as SEARCH_HEADS
from qkvsearch.rank import text_search
from qkvsearch.rank.ranking import rank
from qkvsearch.rank.similar import WEIGHTS as SIMILAR_WEIGHTS
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores, fuse
from qkvsearch.text.encoders import prior_weights
from qkvsearch.text.labelled import LabelledVectors

UNKNOWN = "zzqx wvvk"


class ShortTitles(TextHead):
    """A head of a kind that no build stores a weight of."""

    name = "short"
    titles = by_language(en="short title")
    reason = "its title is short"
    is_of_item = True

    def is_in(self, models, has_user):
        return True

    def weight(self, models):
        return 0.2

    def scores(self, asked):
        if not asked.query.tokens:
            return None
        _, titles = asked.catalog.names(np.arange(asked.models.n_items))
        values = np.array([-float(len(title)) for title in titles], np.float32)

        def parts(position):
            return Components.of([ScoreComponent(self.name, None, None, values[position])])

        return Scores(self.name, values, parts)


QUERIES = ["war in space", "love", "the night the world ended", "toy"]
SEARCHED = ("lexical", "lsa", "contrastive")
HISTORIES = [[0], [3, 50, 90], list(range(0, 60, 2))]


def searching(name):
    return lambda engine, query: engine.head(name, query)


def semantic(engine, query):
    """As `similar` has it, under a name for whatever the encoder is."""
    main = engine.models.main_head
    query_vectors = engine.models.encoder(main).encode(query)
    pieces_of = partial(engine.texts.item_texts.pieces, main)
    return engine.models.dense_keys(main).head("semantic", query_vectors, pieces_of)


def collaborative(engine, history):
    factors = engine.models.implicit
    vectors = factors.history_vectors(np.array(history, dtype=np.int64))
    ids, _ = engine.catalog.names(history)
    keys = DenseKeys(factors.item_embeddings)
    return keys.head("collaborative", LabelledVectors(ids, vectors))


def fused(engine, query):
    return engine.texts.fused(query)


def personal(engine, query):
    """A search by someone whose history is known."""
    return engine.texts.fused(query, preferences=lambda: collaborative(engine, HISTORIES[1]))


def fused_with_taste(engine, query):
    """A text and a person at once: heads that measure in units of their own."""
    if (words := semantic(engine, query)) is None:
        return None
    return fuse([words, collaborative(engine, HISTORIES[1])], [0.4, 0.6])


# Each head with questions that it can answer and one that it cannot.
HEADS = {
    **{name: (searching(name), QUERIES, UNKNOWN) for name in SEARCHED},
    "semantic": (semantic, QUERIES, UNKNOWN),
    "collaborative": (collaborative, HISTORIES, []),
    "+".join(SEARCHED): (fused, QUERIES, UNKNOWN),
    "+".join([*SEARCHED, "collaborative"]): (personal, QUERIES, UNKNOWN),
    "semantic+collaborative": (fused_with_taste, QUERIES, UNKNOWN),
}
CASES = [(name, question) for name, (_, questions, _) in HEADS.items() for question in questions]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}: {str(case[1])[:20]}")
def head(request, movies, monkeypatch):
    name, question = request.param
    # All heads take part, as in a large catalog.
    weights = prior_weights("corpus")
    monkeypatch.setattr(type(movies.models), "head_weights", property(lambda self: dict(weights)))
    found = HEADS[name][0](movies, question)
    assert found is not None
    assert found.name == name
    return found


def test_every_head_of_the_engine_is_under_this_contract(movies):
    assert {*movies.models.head_weights, *SIMILAR_WEIGHTS} <= set(HEADS)


@pytest.mark.parametrize("name", HEADS)
def test_what_a_head_knows_nothing_of_is_none_and_ranks_nothing(movies, name):
    make, _, unknown = HEADS[name]
    assert make(movies, unknown) is None
    assert len(rank(None, movies.catalog.names, k=5)) == 0


def test_there_is_one_finite_score_for_each_item(head, movies):
    assert head.scores.shape == (movies.n_items,)
    assert head.scores.dtype == np.float32
    assert np.isfinite(head.scores).all()


def test_parts_add_up_to_the_score_of_every_seventh_item(head, assert_adds_up):
    for position in range(0, len(head.scores), 7):
        assert_adds_up([part.value for part in head.parts(position)], head.scores[position])


def test_parts_and_shares_bear_the_names_of_the_heads_that_made_them(head, assert_adds_up):
    names = head.name.split("+")
    best = int(head.scores.argmax())
    assert {part.head for part in head.parts(best)} <= set(names)
    shares = head.by_names([best])[0]
    assert list(shares) == names
    assert_adds_up(shares.values(), head.scores[best])


def test_answers_mask_what_has_no_part_in_the_answer(head):
    if head.covered is None:
        return
    assert head.covered.dtype == bool
    assert head.covered.shape == head.scores.shape
    assert head.covered.any()
    for position in np.flatnonzero(~head.covered)[:20]:
        assert [part for part in head.parts(position) if part.query is not None] == []


def test_only_answers_that_the_mask_leaves_are_ranked(head, movies):
    mask = np.arange(movies.n_items) % 3 > 0
    ranking = rank(head, movies.catalog.names, k=movies.n_items, mask=mask)
    allowed = mask if head.covered is None else mask & head.covered
    assert sorted(ranking.positions.tolist()) == np.flatnonzero(allowed).tolist()
    assert ranking.n_candidates == allowed.sum()


def test_ties_go_to_the_smaller_id(head, movies):
    """Scores rounded so coarsely that many are equal, or all; ids of the films sort as text."""
    for scores in (np.round(head.scores, 1), np.zeros_like(head.scores)):
        coarse = Scores(head.name, scores, head.parts, head.covered)
        hits = rank(coarse, movies.catalog.names, k=movies.n_items)
        order = [(-hit.score, hit.id) for hit in hits]
        assert order == sorted(order)


def test_the_same_question_gives_the_same_bits(movies):
    for make, questions, _ in HEADS.values():
        first, second = (make(movies, questions[0]).scores for _ in range(2))
        assert first.tobytes() == second.tobytes()


def test_a_head_is_a_class_and_an_entry_of_the_list(movies, monkeypatch):
    before = movies.search("war in space", k=5)
    monkeypatch.setattr(text_search, "HEADS", (*SEARCH_HEADS, ShortTitles()))
    found = movies.search("war in space", k=5)
    assert list(found[0].heads) == [*before[0].heads, "short"]
    assert [hit.match for hit in found] != [None] * 5
    for i, hit in enumerate(found):
        assert sum(hit.heads.values()) == pytest.approx(hit.score, abs=1e-4)
        assert sum(reason.value for reason in found.reasons(i)) == pytest.approx(
            hit.score, abs=1e-4
        )

    scores = movies.head("short", "war in space")
    assert (scores.name, len(scores.scores)) == ("short", movies.n_items)
    assert movies.head("short", "") is None

    alone = movies.search("war in space", k=5, heads="short", anyway=True)
    assert [list(hit.heads) for hit in alone] == [["short"]] * 5
    lengths = [len(hit.title) for hit in alone]
    assert lengths == sorted(lengths)
