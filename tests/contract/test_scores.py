"""The contract of docs/scores.md, whatever an index is made of: float32, int8 or Milvus keys, one
segment or several, where it was built or a copy.
"""

import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qkvsearch as qkv
from qkvsearch.heads import dense
from qkvsearch.heads.quantized import QuantizedKeys, QuantizedQuery
from qkvsearch.heads.remote_keys import RemoteKeys, RemoteQuery

pytestmark = pytest.mark.xdist_group("milvus")

WORDS = "rain jacket warm blue tent lantern rope lamp".split()
SYNONYMS = {"jacket": ["parka"], "lantern": ["torch"]}
COLUMNS = qkv.Columns(title="title", text=["title"], types={"tags": "list"})
FACETS = ["family", "tags", "price"]


def catalog(n=120):
    """Random items in families, some in none; many have the same score, all have a - in the id."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": [f"{rng.choice(WORDS)}-{row}" for row in range(n)],
            "title": [" ".join(rng.choice([*WORDS, "parka", "torch"], 3)) for _ in range(n)],
            "family": [f"f{x // 2}{' ' * (x % 2)}" if x else None for x in rng.integers(0, 9, n)],
            "tags": [",".join(rng.choice(["a", "b", "c"], 2, replace=False)) for _ in range(n)],
            "price": rng.integers(1, 5, n),
        }
    )


ITEMS, RNG = catalog(), np.random.default_rng(1)
LOG = pd.DataFrame({"user": RNG.integers(0, 20, 300), "item": RNG.choice(ITEMS["id"], 300)})
CELLS = ITEMS.astype(object).where(ITEMS.notna(), None)
ROWS = {row["id"]: row for row in CELLS.to_dict("records")}


def built(path, items=ITEMS, **options):
    given = {"interactions": LOG, "columns": COLUMNS, "synonyms": SYNONYMS, "encoder": "corpus"}
    return qkv.build(path, items=items, **given, **options)


def copied(path, other):
    return qkv.open(shutil.copytree(other.workspace.path, path))


def in_segments(path):
    spare = ITEMS[:4].assign(id=["x-1", "x-2", "x-3", "x-4"])
    engine = built(path, pd.concat([ITEMS[:110], spare]))
    engine.add(ITEMS[100:])
    engine.remove(list(spare["id"]))
    return engine


def merged(path, other):
    engine = copied(path, other)
    engine.compact()
    return engine


def with_int8(path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "MIN_QUANTIZED", 1)
        engine = in_segments(path)
    assert isinstance(engine.models.dense_keys("lsa"), QuantizedKeys)
    return engine


def with_milvus(path):
    pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
    engine = built(path, keys=f"milvus:{path}.db")
    assert isinstance(engine.models.dense_keys("lsa"), RemoteKeys)
    return engine


# Each index, the one that it answers as, and how near its scores are.
PATHS = {
    "whole": (lambda path, _: built(path), None, 0),
    "copied": (copied, "whole", 0),
    "milvus": (lambda path, _: with_milvus(path), "whole", 1e-3),
    "segments": (lambda path, _: in_segments(path), None, 0),
    "merged": (merged, "segments", 0),
    "int8": (lambda path, _: with_int8(path), "segments", 5e-3),
}


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    """Makes each index when it is first asked for; of estimates, few items are candidates."""
    folder, made = tmp_path_factory.mktemp("paths"), {}

    def engine(name):
        if name not in made:
            make, like, _ = PATHS[name]
            made[name] = make(folder / name, like and engine(like))
        return made[name]

    with pytest.MonkeyPatch.context() as patch:
        for query in (RemoteQuery, QuantizedQuery):
            patch.setattr(query, "min_candidates", 20)
        yield engine


QUERIES = [
    "rain",
    "rain tent",
    "wram jaket",
    "lamp -rope",
    "rain^2 title:lantern ja*",
    '"blue tent" rope',
]
ASK = {
    **{
        f"search {query}": lambda e, query=query, **o: e.search(query, anyway=True, **o)
        for query in QUERIES
    },
    "lexical": lambda e, **o: e.search("warm jacket", heads="lexical", **o),
    "semantic": lambda e, **o: e.search("blue jacket", heads="semantic", anyway=True, **o),
    "search for a user": lambda e, **o: e.search("jacket", user=3, anyway=True, **o),
    "recommend": lambda e, **o: e.recommend(user=3, **o),
    "damped": lambda e, **o: e.recommend(likes=list(ITEMS["id"][1:3]), damping=1, seen=True, **o),
    "similar": lambda e, **o: e.similar(list(ITEMS["id"][5:7]), **o),
}
# Pairs of words are looked up among the items that pass, which moves all scores a little.
ONE_WORD = [
    "search rain",
    "search lamp -rope",
    "search for a user",
    "recommend",
    "damped",
    "similar",
]
CONDITIONS = {
    None: lambda row: True,
    "price < 3": lambda row: row["price"] < 3,
    "family IS NULL OR price = 4": lambda row: row["family"] is None or row["price"] == 4,
    "has(tags, 'a')": lambda row: "a" in row["tags"],
    "price > 9": lambda row: False,
}


def value(row, column):
    return row[column] if row[column] is None else str(row[column]).strip()


def first_of_each(hits, column):
    """The hits whose value of the column was not there before; all without a column."""
    seen, kept = set(), []
    for hit in hits:
        cell = value(ROWS[hit.id], column) if column else None
        if cell is None or cell not in seen:
            kept.append(hit)
        seen.add(cell)
    return kept


def same(hits, expected, near=0):
    """Where scores are near alone, hits with as good as the same score may change places."""
    of = (lambda hit: hit.score) if near else (lambda hit: (hit.id, hit.score, hit.match))
    found, expected = list(map(of, hits)), list(map(of, expected))
    assert found == (pytest.approx(expected, rel=near, abs=near) if near else expected)


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=15)
@given(
    name=st.sampled_from([*ASK]),
    where=st.sampled_from([*CONDITIONS]),
    column=st.sampled_from([None, "family", "tags", "price", "title", "id"]),
    page=st.sampled_from([(999, 0), (3, 0), (4, 2), (0, 0)]),
)
def test_every_answer_keeps_the_contract(engines, assert_adds_up, path, name, where, column, page):
    engine, ask, (k, offset) = engines(path), ASK[name], page
    whole, passing = ask(engine, k=999), ask(engine, k=999, where=where)
    assert {hit.id for hit in passing} == {
        hit.id for hit in whole if CONDITIONS[where](ROWS[hit.id])
    }
    _, like, near = PATHS[path]
    if name in ONE_WORD and not near:
        same(passing, [hit for hit in whole if CONDITIONS[where](ROWS[hit.id])])
    shown = ask(engine, k=k, offset=offset, where=where, distinct=column)
    same(shown, first_of_each(passing, column)[offset : offset + k], near)
    assert [hit.rank for hit in shown] == list(range(offset + 1, offset + 1 + len(shown)))
    powers = np.exp([hit.score / passing.temperature for hit in passing])
    assert [hit.weight for hit in passing] == pytest.approx(powers / powers.sum(), rel=1e-3)
    for i, hit in enumerate(shown):
        assert_adds_up([part.value for part in shown.explain(i)], hit.score)
        assert_adds_up([reason.value for reason in shown.reasons(i)], hit.score)
        assert_adds_up(hit.heads.values(), hit.score)
    if like is not None:
        other = ask(engines(like), k=k, offset=offset, where=where, distinct=column)
        same(shown, other, near)


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=6)
@given(
    query=st.sampled_from([*QUERIES, ITEMS["id"][3], f"{ITEMS['id'][5]} rain"]),
    where=st.sampled_from([*CONDITIONS]),
    k=st.sampled_from([0, 3, 999]),
    distinct=st.sampled_from([None, "family"]),
)
def test_facets_count_all_items_that_match(engines, path, query, where, k, distinct):
    engine = engines(path)
    passing = engine.search(query, k=999, where=where)
    rows = [ROWS[hit.id] for hit in passing if hit.match != "weak"]
    facets = engine.search(query, k=k, where=where, facets=FACETS, distinct=distinct).facets
    assert facets["price"] == Counter(str(row["price"]) for row in rows)
    assert facets["family"] == Counter(row["family"].strip() for row in rows if row["family"])
    assert facets["tags"] == Counter(tag for row in rows for tag in row["tags"].split(","))


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=6)
@given(
    query=st.sampled_from([*QUERIES, "rain xylophone", "warm blue rope lantern", ""]),
    where=st.sampled_from([*CONDITIONS]),
    k=st.sampled_from([17, 40]),
    sort=st.sampled_from([None, "price", "-price"]),
    distinct=st.sampled_from([None, "family"]),
)
def test_pages_end_where_the_total_says_and_what_a_facet_counts_is_there(
    engines, assert_adds_up, path, query, where, k, sort, distinct
):
    engine = engines(path)

    def pages(weak):
        asked = {"where": where, "sort": sort, "distinct": distinct, "weak": weak, "k": k}
        found = [engine.search(query, **asked)]
        while found[-1]:
            found.append(engine.search(query, **asked, offset=k * len(found)))
        assert len({(ranking.total, ranking.total_weak) for ranking in found}) == 1
        for ranking in found:
            for index, hit in enumerate(ranking.hits[:2]):
                assert_adds_up([part.value for part in ranking.explain(index)], hit.score)
        return found[0], [hit for ranking in found for hit in ranking]

    first, hits = pages(False)
    assert len({hit.id for hit in hits}) == len(hits) == first.total
    assert "weak" not in {hit.match for hit in hits}
    again, with_weak = pages(True)
    assert len(with_weak) == again.total + again.total_weak
    assert [hit.id for hit in with_weak[: len(hits)]] == [hit.id for hit in hits]
    assert {hit.match for hit in with_weak[len(hits) :]} <= {"weak"}
    if sort:
        prices = [ROWS[hit.id]["price"] for hit in hits]
        assert prices == sorted(prices, reverse=sort == "-price")
    if distinct is None:
        counted = engine.search(query, where=where, facets="price").facets["price"]
        assert sum(counted.values()) == first.total
        for price, n in counted.items():
            both = f"price = {price}" if where is None else f"({where}) AND price = {price}"
            assert engine.search(query, where=both).total == n


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=6)
@given(item=st.sampled_from([*ITEMS["id"]]), word=st.sampled_from(WORDS))
def test_a_hyphen_in_an_id_is_no_operator(engines, path, item, word):
    assert engines(path).search(item)[0].id == item
    for query in (f"{word} {item}", f"{item} {word}"):
        found = engines(path).search(query, k=999)
        assert item in {hit.id for hit in found}
        assert any(word in hit.title for hit in found)


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=6)
@given(word=st.sampled_from([*SYNONYMS]), position=st.integers(1, 4))
def test_a_corrected_word_finds_its_synonyms(engines, path, word, position):
    engine, typo = engines(path), word[:position] + word[position + 1 :]
    scores = engine.head("lexical", word).scores
    assert engine.head("lexical", typo).scores == pytest.approx(0.8 * scores)
    titles = {hit.title for hit in engine.search(typo, k=99)}
    assert any(SYNONYMS[word][0] in title and word not in title for title in titles)
