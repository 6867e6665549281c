"""A head to which the build gave no weight takes no part, and ranks by itself if asked for."""

import pytest

from qkvsearch.heads.dense_head import DenseTextHead
from qkvsearch.heads.lexical_head import LexicalHead
from qkvsearch.heads.stored_models import StoredModels

WITHOUT = ("lsa", "contrastive")
QUERIES = ["bread", "how to bake bread at home", "bread AND oven", "zzqx wvvk", "brea", "v018"]


@pytest.fixture(params=WITHOUT)
def without(request, monkeypatch):
    """One of the two dense heads has no weight."""
    weights = {"lexical": 0.3, "lsa": 0.7, "contrastive": 0.7} | {request.param: 0.0}
    monkeypatch.setattr(StoredModels, "head_weights", property(lambda self: dict(weights)))
    return request.param


@pytest.mark.parametrize("query", QUERIES)
def test_it_takes_no_part_in_a_search(things, without, query):
    others = [name for name in ("lexical", "lsa", "contrastive") if name != without]
    ranking, expected = things.search(query), things.search(query, heads=others)
    assert [(hit.id, hit.score) for hit in ranking] == [(hit.id, hit.score) for hit in expected]
    assert all(without not in hit.heads for hit in ranking)


def test_beside_others_it_adds_nothing_though_it_is_asked_for(things, without):
    both, one = (
        things.search("bread", heads=heads) for heads in (["lexical", without], ["lexical"])
    )
    assert [(hit.id, hit.score) for hit in both] == [(hit.id, hit.score) for hit in one]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("is_typing", [False, True])
def test_asked_for_alone_it_ranks_by_itself(things, monkeypatch, without, query, is_typing):
    options = {"heads": [without], "anyway": True, "prefix": is_typing, "explain": True}
    ranking = things.search(query, **options)
    monkeypatch.undo()
    expected = things.search(query, **options)
    assert [hit.id for hit in ranking] == [hit.id for hit in expected]
    assert [hit.score for hit in ranking] == pytest.approx([hit.score for hit in expected])


def test_a_query_that_only_it_knows_has_no_hits(things, monkeypatch, without):
    """The others are mute, as words of another script make the heads that read the catalog."""
    scores = DenseTextHead.scores

    def only_without(self, asked):
        return scores(self, asked) if self.name == without else None

    monkeypatch.setattr(DenseTextHead, "scores", only_without)
    monkeypatch.setattr(LexicalHead, "scores", lambda self, asked: None)
    ranking = things.search("bread")
    assert not len(ranking)
    assert ranking.notes
    assert len(things.search("bread", heads=[without], anyway=True))
    assert len(things.search("bread", heads=["lexical", without], anyway=True))


def test_both_without_a_weight_count_the_same(things, monkeypatch):
    weights = {"lexical": 1.0, "lsa": 0.0, "contrastive": 0.0}
    monkeypatch.setattr(StoredModels, "head_weights", property(lambda self: dict(weights)))
    ranking = things.search("bread", heads=["semantic"], anyway=True)
    heads = [things.texts.head(name, "bread") for name in WITHOUT]
    position = int(ranking.positions[0])
    expected = sum(
        (head.scores[position] - head.moments[0]) / head.moments[1] / 2 for head in heads
    )
    assert ranking[0].score == pytest.approx(expected, rel=1e-4)
