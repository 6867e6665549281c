"""What every stored part promises: what was stored answers as what was fitted; segments answer as
the base that they merge into, and as a fresh build where nothing is learned; no array is of two
parts, and none is read that does not go with the others.
"""

import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch._utils.callbacks import silent
from qkvsearch.errors import DamagedError
from qkvsearch.heads import collaborative_head, tokens
from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.heads.common_subjects import SubjectsComponent
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.passage_keys import PassageKeysComponent
from qkvsearch.heads.passage_tokens import PassageTokensComponent
from qkvsearch.heads.passages import PassagesComponent
from qkvsearch.heads.registry import components_of
from qkvsearch.heads.stored_log import LogComponent
from qkvsearch.heads.stored_next_item import NextItemComponent
from qkvsearch.heads.stored_preferences import PreferencesComponent, StoredPreferences
from qkvsearch.heads.stored_ratings import RatingsComponent
from qkvsearch.heads.tokens import TokensComponent
from qkvsearch.heads.word_index import WordIndex, WordSequences
from qkvsearch.heads.words import CodesComponent, LexicalComponent, WordsComponent
from qkvsearch.learn import merge as merging
from qkvsearch.learn.add import add_items, remove_items
from qkvsearch.learn.learn_again import learn_preferences
from qkvsearch.learn.merge import merge_segments, merged_contents
from qkvsearch.models.estimators import BiasedMF
from qkvsearch.models.next_item_model import NextItemModel
from qkvsearch.models.preferences import HeadShares, Preferences, learners
from qkvsearch.models.recommend_heads import COLLABORATIVE
from qkvsearch.models.strength import Strength, usual_level
from qkvsearch.store import Workspace
from qkvsearch.store.catalog.file import CATALOG
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.text.analysis import Analyzer, Token
from qkvsearch.text.labelled import unit_rows
from qkvsearch.text.pretrained.static import find_package
from qkvsearch.text.spelling import word_rarity
from qkvsearch.text.text_encoder import encode_items
from tests.builds import republished
from tests.terms import count_terms

pytestmark = pytest.mark.usefixtures("former_builds_stay")
QUERIES = ["deep sea", "red season", "colder", "zzqx"]
# As text "10" comes before "2" and "-1" before "-2": rows move when ids become numbers.
ITEMS = pd.DataFrame(
    [
        (
            str(i),
            f"{'deep sea' if i % 2 else 'red season'} {'cold' if i % 3 else 'colder'} {i % 7}",
            f"SKU-{i + 500}",
        )
        for i in range(-9, 51)
    ]
    + [("x1", "the red sea", None)],
    columns=["id", "title", "sku"],
)
COLUMNS = qkv.Columns(id="id", title="title", text=["title"])
LOG = pd.DataFrame(
    [
        (
            f"u{user}",
            str(item),
            [5.0, 4.0, 1.0, np.nan][min(item // 5 % 12, 3)],
            1000 * user + item,
            1.0 + (item + user) % 4,
        )
        for user in range(24)
        for item in range(-9, 50)
        if (item + user) % 2 == 0 and (3 * item + user) % 11
    ],
    columns=["user", "item", "rating", "time", "weight"],
)


def vectors_of_words(encoder, fields, *_):
    """In place of `item_tokens`, whose vectors a random transformer makes all alike."""
    vectors = []
    for text in fields[0]:
        rows = [np.frombuffer(f"{word:_<24}".encode(), np.int8) for word in text.split()]
        vectors.append(np.array(rows, dtype=np.int8).reshape(-1, 24))
    return vectors


@pytest.fixture(scope="module")
def whole_path(tmp_path_factory, tiny_bert):
    """A workspace with every part: by a transformer, with ratings, times and a next-item model."""
    path = tmp_path_factory.mktemp("whole") / "ws"
    qkv.build(path, items=ITEMS, interactions=LOG, columns=COLUMNS, encoder=str(tiny_bert)).close()

    def complete(contents):
        NextItemComponent().store(contents, NextItemModel.create(len(ITEMS), 8, 2, 2, 10, rng=0))
        found = vectors_of_words(None, [ITEMS.sort_values("id")["title"].tolist()])
        TokensComponent("transformer").store(contents, found)

    republished(path, complete)
    return path


@pytest.fixture
def path(whole_path, tmp_path):
    return Path(shutil.copytree(whole_path, tmp_path / "ws"))


@pytest.fixture
def whole(whole_path):
    with qkv.open(whole_path) as engine:
        yield engine.models


def parts_of(build):
    """All parts but those of long texts, which `tests/test_passages.py` has and no item here, and
    what an encoder of many languages needs, which `tests/learn/test_common_subjects.py` has.
    """
    others = (PassagesComponent, PassageKeysComponent, PassageTokensComponent, SubjectsComponent)
    return [part for part in components_of(build.snapshot) if not isinstance(part, others)]


def kinds(build):
    return {type(part) for part in parts_of(build)}


# --- whose the arrays are ---


@pytest.fixture(params=["whole", "movies", "videos", "static"])
def built(request, tmp_path_factory):
    if request.param == "static":
        if find_package() is None:
            pytest.skip("needs wordllama")
        with qkv.build(tmp_path_factory.mktemp("static"), items=ITEMS, encoder="static") as engine:
            yield engine.models
    else:
        with qkv.open(request.getfixturevalue(f"{request.param}_path")) as engine:
            yield engine.models


def test_every_array_of_a_build_belongs_to_one_part(built):
    parts = components_of(built.snapshot)
    for name in built.snapshot.array_names:
        assert [part.owns(name) for part in parts].count(True) == 1, name


def test_the_whole_build_has_every_part(whole):
    assert all(part.is_in(whole.snapshot) for part in parts_of(whole))
    assert "implicit.text_map" in whole.snapshot


def test_where_nobody_joins_or_leaves_every_file_is_shared(built):
    contents = merged_contents(built.snapshot, silent)
    names = {f"{name}.npy" for name in built.snapshot.array_names}
    assert contents.shared.keys() == names | {CATALOG}
    assert contents.arrays == {}


def test_an_array_of_no_part_is_an_error(path):
    republished(path, lambda contents: contents.arrays.update({"lsa.surprise": np.zeros(3)}))
    with (
        closing(Workspace(path).open()) as build,
        pytest.raises(LookupError, match=r"lsa\.surprise"),
    ):
        merged_contents(build, silent)


# --- stored and loaded ---


class Case:
    """A fitted model: what `store` is given, what `load` is to be like, and what to ask of both."""

    def __init__(self, given, like, ask):
        self.given, self.like, self.ask = given, like, ask


def lexical(whole):
    analyzer = Analyzer()
    counted = count_terms(ITEMS["title"], analyzer.key_terms)
    return Case(
        (*counted, word_rarity("english")),
        LexicalKeys.from_counts(*counted, word_rarity("english")),
        lambda keys: [
            None if head is None else head.scores
            for head in (keys.head(analyzer.tokens(query)) for query in QUERIES)
        ],
    )


def codes(whole):
    """Each id is found alone, and weighs 2.2 times the idf of a word that one item has."""
    catalog = read_dataset(ITEMS, None).catalog
    alone = np.float32(2.2 * np.log1p((len(catalog) - 0.5) / 1.5)) * np.eye(len(catalog))
    like = SimpleNamespace(head=lambda tokens: row_of(tokens[0].term))

    def row_of(term):
        rows = [row for row, id_ in enumerate(catalog.ids.texts) if id_ == term]
        return SimpleNamespace(scores=np.float32(alone[rows[0]])) if rows else None

    def ask(keys):
        found = [keys.head([Token(term, term)]) for term in ("x1", "-5", "17", "nowhere")]
        return [None if head is None else head.scores for head in found]

    return Case((catalog,), like, ask)


def words(whole):
    """Phrases and beginnings of words."""
    fields = [read_dataset(ITEMS, None, COLUMNS).catalog.fields()[0]]
    index = WordIndex([(WordSequences.of_fields(fields), np.arange(len(ITEMS)))], len(ITEMS))
    every = np.ones(len(ITEMS), dtype=bool)
    return Case(
        (fields, Analyzer()),
        index,
        lambda index: [
            index.with_phrase(["deep", "sea"], every),
            index.with_phrase(["sea", "deep"], every),
            np.array(index.words_with_prefix("cold")),
            index.spellings,
        ],
    )


def dense(head):
    def case(whole):
        encoder = whole.encoder(head)
        made = encode_items(head, encoder, [ITEMS["title"].tolist()], silent)
        return Case(
            (encoder, made.keys(), made.cut),
            SimpleNamespace(keys=DenseKeys(made.keys()), encoder=encoder),
            lambda stored: [
                stored.keys.vectors,
                *(stored.encoder.encode(query).total for query in QUERIES),
            ],
        )

    return case


def token_vectors(whole):
    keys, query = whole.token_keys, whole.encoder(whole.main_head).encode("deep sea").vectors
    return Case(
        ([keys.tokens(np.array([row])) for row in range(whole.n_items)],),
        keys,
        lambda keys: [*keys.similarities(query, np.array([0, 7, 60]))],
    )


def preferred(whole):
    log = whole.log()
    counts = np.bincount(log.items, minlength=len(ITEMS))
    learn = learners({"n_components": 4}, 0, silent)
    learned = {name: of_head(log.matrix()) for name, of_head in learn.items()}
    factors = learned[COLLABORATIVE]
    shares = HeadShares(dict.fromkeys(learned, 1 / len(learned)), dict.fromkeys(learned, 1.0))
    heads = Preferences(learned, shares)
    like = StoredPreferences(
        heads,
        DenseKeys(unit_rows(factors.item_embeddings)),
        counts,
        Strength(usual_level(heads.scores, counts), counts),
    )
    known = np.flatnonzero(counts)
    return Case(
        (heads, counts, counts),
        like,
        lambda found: [
            found.strength.level,
            found.strength.n_liking,
            found.heads.factors.fold_in(known[:3]),
            found.heads.factors.item_embeddings[known],
            found.heads.scores(log.matrix())[:, known],
            found.unit_rows.vectors,
            found.item_counts,
        ],
    )


def ratings(whole):
    factors = BiasedMF(random_state=0).fit(whole.log()).factors_
    bias, embedding = factors.fold_in([0, 3], [5.0, 1.0])
    return Case(
        (factors,),
        factors,
        lambda found: [
            *found.fold_in([0, 3], [5.0, 1.0]),
            found.predict(embedding, bias, np.arange(60)),
        ],
    )


def next_item(whole):
    model = NextItemModel.create(len(ITEMS), 8, 2, 2, 10, rng=1)
    history = np.array([3, 1, 4])
    return Case(
        (model,),
        model,
        lambda found: [found.states(history), found.history_vectors(history)],
    )


def log(whole):
    given = whole.log()

    def history(user):
        rows = given.users == user
        return SimpleNamespace(
            positions=given.items[rows], ratings=given.ratings[rows], times=given.times[rows]
        )

    like = SimpleNamespace(interactions=lambda: given, history=history)
    return Case(
        (given,),
        like,
        lambda found: [
            *(
                getattr(found.interactions(), name)
                for name in ("users", "items", "ratings", "times")
            ),
            *(getattr(found.history(5), name) for name in ("positions", "ratings", "times")),
        ],
    )


# The parts of `whole`, each with a function that fits its case.
CASES = {
    "lexical": (LexicalComponent(), lexical),
    "codes": (CodesComponent(), codes),
    "words": (WordsComponent(), words),
    "lsa": (DenseComponent("lsa"), dense("lsa")),
    "transformer": (DenseComponent("transformer"), dense("transformer")),
    "tokens": (TokensComponent("transformer"), token_vectors),
    "preferences": (PreferencesComponent(), preferred),
    "ratings": (RatingsComponent(), ratings),
    "next item": (NextItemComponent(), next_item),
    "log": (LogComponent(), log),
}


def test_there_is_a_case_of_every_part(whole):
    assert {type(part) for part, _ in CASES.values()} == kinds(whole)


@pytest.mark.parametrize("name", CASES)
def test_what_is_stored_answers_as_what_was_fitted(name, whole, path):
    part, fit_case = CASES[name]
    case = fit_case(whole)
    republished(path, lambda contents: part.store(contents, *case.given))
    with qkv.open(path) as engine:
        assert engine.snapshot.damaged() == []
        loaded = engine.models.load(part)
        for one, other in zip(case.ask(loaded), case.ask(case.like), strict=True):
            np.testing.assert_array_equal(one, other)


# --- base and segments ---


def changed(items, rng):
    """What one random update adds (some with an id that is there, some of these with its text), and
    what the next one removes.
    """
    words = np.array(["deep", "sea", "red", "season", "cold", "zanzibar", "squid", "7"])
    n = int(rng.integers(1, 5))
    ids = [*rng.choice(items["id"], n // 2, replace=False), *map(str, rng.integers(-99, 99, n))]
    added = pd.DataFrame({"id": list(dict.fromkeys(ids))})
    titles = [" ".join(rng.choice(words, rng.integers(0, 16))) for _ in added["id"]]
    before = dict(zip(items["id"], items["title"], strict=True))
    keeps = rng.random(len(added)) < 0.4
    added["title"] = [
        before.get(id_, title) if keep else title
        for id_, title, keep in zip(added["id"], titles, keeps, strict=True)
    ]
    added["sku"] = [f"NEW-{rng.integers(9999)}" for _ in added["id"]]
    leaving = rng.choice(np.union1d(items["id"], added["id"]), rng.integers(0, 4), replace=False)
    return added, leaving.tolist()


def after(items, added):
    """The catalog by text ids, titles as a build shows them."""
    there = pd.concat([items[~items["id"].isin(added["id"])], added])
    return there.sort_values("id").reset_index(drop=True)


def everything(models, terms):
    """What each part answers with, as arrays."""
    log, tokens, liked = (
        models.load(LogComponent()),
        models.token_keys,
        models.load(PreferencesComponent()),
    )
    every, interactions = np.arange(models.n_items), log.interactions()
    of_pairs = ("items", "users", "ratings", "times", "weights")
    histories = [log.history(user) for user in range(len(interactions.user_ids))]
    ratings, model = models.load(RatingsComponent()), models.load(NextItemComponent())
    heads = models.dense_heads
    return {
        "lexical": [found for term in terms for found in models.lexical_keys.postings(term)],
        "codes": [found for term in terms for found in models.code_keys.postings(term)],
        "keys": [models.dense_keys(head).vectors for head in heads],
        "encoders": [models.encoder(head).encode("deep season").total for head in heads],
        "tokens": [tokens.lengths(every), tokens.tokens(every)],
        "preferences": [
            *(liked.heads.factors.item_embeddings, liked.heads.factors.gram),
            *(liked.heads.factors.n_items, liked.heads.scores(interactions.matrix())),
            *(liked.unit_rows.vectors, liked.item_counts),
            *(liked.strength.level, liked.strength.n_liking),
        ],
        "ratings": [ratings.item_biases, ratings.item_embeddings],
        "next item": [model.items.weight, model.positions.weight, model.states(every[:9])],
        "log": [
            *(getattr(interactions, name) for name in of_pairs),
            *(getattr(h, name) for h in histories for name in ("positions", "ratings", "times")),
            *(h.confidences for h in histories),
            log.feedback.usual_weights,
        ],
    }


def answers(engine):
    some_item = engine.snapshot.catalog.ids("items").texts[5]
    rankings = [
        *(engine.search(query, k=99) for query in (*QUERIES, "sku-507", "squid zanzibar")),
        *(engine.recommend(user="u3", k=99, model=model) for model in ("preferences", "next-item")),
        engine.similar(f"id:{some_item}", k=99),
    ]
    return [([(hit.id, hit.score) for hit in found], found.notes) for found in rankings]


def assert_equal(one, other, where):
    assert one.keys() == other.keys()
    for name in one:
        for i, (array, like) in enumerate(zip(one[name], other[name], strict=True)):
            np.testing.assert_array_equal(array, like, err_msg=f"{where}: {name} {i}")


def assert_as_afresh(models, whole, items):
    """What is not learned is as in a build of these items."""
    snapshot, titles = models.snapshot, items["title"].tolist()
    assert [str(i) for i in snapshot.catalog.ids("items").texts] == items["id"].tolist()
    fresh = LexicalKeys.from_counts(*count_terms(titles, Analyzer().key_terms))
    for term in (*fresh.vocabulary.terms.tolist(), b"zzqx"):
        found = models.lexical_keys.postings(term.decode())
        for array, like in zip(found, fresh.postings(term.decode()), strict=True):
            np.testing.assert_array_equal(array, like, err_msg=term)
    idf = np.log1p((len(items) - 1 + 0.5) / 1.5)
    for row, (id_, sku) in enumerate(zip(items["id"], items["sku"], strict=True)):
        for code in (id_, sku):
            if code is not None and code == code:
                positions, weights = models.code_keys.postings(code.lower())
                assert positions.tolist() == [row]
                assert weights == np.float32(2.2 * idf)
    for head in models.dense_heads:
        made = encode_items(head, whole.encoder(head), [titles], silent)
        np.testing.assert_allclose(models.dense_keys(head).vectors, made.keys(), atol=1e-6)
        if made.cut is not None and head == models.main_head:
            n_cut = int(made.cut.sum())
            noted = snapshot.facts.get("texts_cut", "0 of")
            assert noted.startswith(f"{n_cut:,} of")
            assert n_cut == 0 or f" of {len(items):,} texts" in noted
    spans = np.split(models.token_keys.tokens(np.arange(len(items))),
                     np.cumsum(models.token_keys.lengths(np.arange(len(items))))[:-1])  # fmt: skip
    for span, like in zip(spans, vectors_of_words(None, [titles]), strict=True):
        np.testing.assert_array_equal(span, like)


def assert_what_was_learned_stays(models, whole, items, had):
    """Items that were always there, replaced or not, keep what was learned of them."""
    before = {str(i): row for row, i in enumerate(whole.snapshot.catalog.ids("items").texts)}
    rows = [before[i] if i in had else -1 for i in items["id"]]
    learned = [
        (PreferencesComponent(), "item_embeddings"), (PreferencesComponent(), "unit_rows"),
        (PreferencesComponent(), "item_counts"), (RatingsComponent(), "item_biases"),
        (RatingsComponent(), "item_embeddings"), (NextItemComponent(), "item_embeddings"),
        (LogComponent(), "usual_weights"),
    ]  # fmt: skip
    for part, name in learned:
        found, former = (part.read(m.snapshot, name)[name] for m in (models, whole))
        expected = np.array([former[row] if row >= 0 else 0 * former[0] for row in rows])
        np.testing.assert_array_equal(found, expected, err_msg=f"{part.group}.{name}")
    embeddings = PreferencesComponent().read(models.snapshot, "item_embeddings")["item_embeddings"]
    wide = embeddings.astype(np.float64)
    factors = models.load(PreferencesComponent()).heads.factors
    np.testing.assert_allclose(factors.gram, wide.T @ wide, atol=1e-4)
    assert factors.n_items == np.count_nonzero(wide.any(axis=1))
    names = ("user", "item", "rating", "time", "weight")
    log = models.log()
    found = {
        (log.user_ids[u], str(log.item_ids[i]), *map(float, rest))
        for u, i, *rest in zip(
            log.users, log.items, np.nan_to_num(log.ratings), log.times, log.weights, strict=True
        )
    }
    kept = LOG[LOG["item"].isin(had & set(items["id"]))].fillna(0)
    assert found == set(kept[list(names)].itertuples(index=False, name=None))
    assert models.snapshot.facts["n_interactions"] == len(kept) == len(log)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))]
)
def test_segments_answer_as_their_merged_base_and_as_a_fresh_build(
    seed, path, whole, tmp_path, monkeypatch
):
    """After every one of a random sequence of updates, to the last bit."""
    monkeypatch.setattr(tokens, "item_tokens", vectors_of_words)
    monkeypatch.setattr(merging, "MAX_CHANGED_SHARE", 99)
    rng, workspace = np.random.default_rng(seed), Workspace(path)
    items, had = after(ITEMS, ITEMS[:0]), set(ITEMS["id"])
    terms = ["deep", "sea", "7", "zanzibar", "squid", "", "x1", "5", "sku-507", *map(str, range(9))]
    for step in range(4):
        added, leaving = changed(items, rng)
        add_items(workspace, added)
        items = after(
            items, added.assign(title=added["title"].where(added["title"] != "", added["id"]))
        )
        if leaving:
            remove_items(workspace, [f"id:{i}" for i in leaving])
            items = items[~items["id"].isin(leaving)].reset_index(drop=True)
            had -= set(leaving)
        copy = Path(shutil.copytree(path, tmp_path / f"merged {step}"))
        assert merge_segments(Workspace(copy)).segments > 1
        with qkv.open(path) as segments, qkv.open(copy) as merged:
            assert merged.snapshot.rows.is_plain
            assert not segments.snapshot.rows.is_plain
            for part in parts_of(merged):
                assert part.is_in(merged.snapshot)
                assert set(part.names_in(merged.snapshot)) == set(part.names_in(whole.snapshot))
            found, like = (everything(e.models, terms) for e in (segments, merged))
            assert_equal(found, like, f"step {step}")
            assert answers(segments) == answers(merged)
            assert segments.snapshot.facts == merged.snapshot.facts
            assert_as_afresh(segments.models, whole, items)
            assert_what_was_learned_stays(segments.models, whole, items, had)
        if step == 1:  # the next ones stand on a merged base
            merge_segments(workspace)


def test_text_ids_among_whole_numbers_put_every_row_in_another_place(tmp_path):
    """As text "10" comes before "2" and "-1" before "-2"."""
    path, items = tmp_path / "ws", ITEMS[ITEMS["id"] != "x1"]
    qkv.build(path, items=items, interactions=LOG, columns=COLUMNS, encoder="corpus").close()
    added = pd.DataFrame({"id": ["y"], "title": ["the red sea"], "sku": ["SKU-4444"]})
    with qkv.open(path) as before:
        log, liked = before.models.log(), before.models.load(PreferencesComponent())
        ids = list(map(str, log.item_ids))
        pairs = [set(zip(log.users, [ids[i] for i in log.items], log.times, strict=True))]
        add_items(Workspace(path), added)
        with qkv.open(path) as merged:
            log, now = merged.models.log(), merged.models.load(PreferencesComponent())
            assert log.item_ids.texts == sorted([*ids, "y"])
            assert (np.diff(log.items)[np.diff(log.users) == 0] > 0).all()
            texts = log.item_ids.texts
            pairs.append(set(zip(log.users, [texts[i] for i in log.items], log.times, strict=True)))
            rows = [texts.index(i) for i in ids]
            np.testing.assert_array_equal(now.item_counts[rows], liked.item_counts)
            np.testing.assert_array_equal(now.unit_rows.vectors[rows], liked.unit_rows.vectors)
            history = merged.models.history(3)
            assert (np.diff(history.positions) > 0).all()
            items = after(items, added)
            fresh = LexicalKeys.from_counts(*count_terms(items["title"], Analyzer().key_terms))
            np.testing.assert_array_equal(merged.models.lexical_keys.weights, fresh.weights)
    assert pairs[0] == pairs[1]


def test_texts_that_were_read_are_not_read_again(path, whole, monkeypatch):
    monkeypatch.setattr(tokens, "item_tokens", None)
    monkeypatch.setattr("qkvsearch.heads.dense.encode_items", None)
    same = ITEMS[ITEMS["id"].isin(["4", "7"])].assign(sku=["SKU-7777", "SKU-8888"])
    add_items(Workspace(path), same)
    with qkv.open(path) as engine:
        for head in whole.dense_heads:
            found, like = (m.dense_keys(head).vectors for m in (engine.models, whole))
            np.testing.assert_array_equal(found, like)
        assert engine.models.code_keys.n_with("sku-504") == 0
        assert engine.models.code_keys.n_with("sku-7777") == 1


def test_texts_that_were_cut_are_counted_as_items_join_and_leave(path, monkeypatch):
    monkeypatch.setattr(tokens, "item_tokens", vectors_of_words)
    workspace, long = Workspace(path), "deep " * 20

    def told(*updates):
        for update in updates:
            update()
            with qkv.open(path) as engine:
                yield engine.snapshot.facts.get("texts_cut", "").partition(" texts")[0]

    def add(*titles):
        frame = pd.DataFrame({"id": ["4", "77"][: len(titles)], "title": titles, "sku": None})
        return lambda: add_items(workspace, frame)

    updates = add(long, long), add("deep"), lambda: remove_items(workspace, ["77"])
    assert [*told(*updates)] == ["2 of 62", "1 of 62", ""]


def test_the_scale_of_ratings_stays_the_one_that_was_learned_on(path, whole):
    remove_items(Workspace(path), list(LOG.loc[LOG["rating"] == 1, "item"].unique()))
    with qkv.open(path) as engine:
        assert np.nanmin(engine.models.log().ratings) == 4
        assert engine.models.rating_scale == whole.rating_scale == [1, 5]


# --- what does not go together ---


def spoiled(array, form):
    """Of another type, of another shape, of another length, and with numbers that lead nowhere."""
    yield np.zeros(array.shape, np.int8 if form.kinds == "S" else "S9")
    yield array[..., None]
    if form.shape[0] != "positions":  # there may be any number
        yield np.concatenate([array, array[-1:]])
    if form.lists:
        yield np.concatenate([array[:1] + 1, array[1:]])
        yield np.concatenate([array[:-1], array[-1:] + 1])
        yield np.concatenate([array[:1], array[-1:], array[2:]])
    if form.below:
        yield np.where(np.arange(len(array)) == len(array) // 2, -1, array)
        yield np.where(np.arange(len(array)) == len(array) // 2, 10**6, array).astype(array.dtype)


def use(part, models):
    """All that the part gives."""
    part.read(models.snapshot)
    loaded = models.load(part)
    if isinstance(part, DenseComponent):
        loaded.encoder.encode("sea")
        loaded.keys.vectors.sum()
    if isinstance(part, LexicalComponent):
        part.norms(models.snapshot)
        part.base_arrays(models.snapshot, *part.count_arrays)


@pytest.mark.parametrize("name_of_part", CASES)
def test_an_array_that_does_not_go_with_the_others_is_named(name_of_part, path, whole):
    part, _ = CASES[name_of_part]
    for name in part.names_in(whole.snapshot):
        sound = np.array(whole.snapshot.array(part.name_of(name)))
        for values in spoiled(sound, part.arrays[name]):
            put(part, path, name, values)
            with qkv.open(path) as engine:
                with pytest.raises(DamagedError) as caught:
                    use(part, engine.models)
                assert caught.value.file.name.startswith(part.group)
                assert caught.value.file.parent == engine.snapshot.base.folder
        put(part, path, name, sound)


def put(part, path, name, values):
    republished(path, lambda contents: part.put(contents, **{name: values}))


def test_a_segment_without_an_array_that_its_base_has_is_named(path, monkeypatch):
    monkeypatch.setattr(DenseComponent, "extend", lambda *given: None)
    add_items(Workspace(path), pd.DataFrame({"id": ["77"], "title": ["sea"], "sku": [None]}))
    with qkv.open(path) as engine, pytest.raises(DamagedError, match=r"lsa\.keys\.npy"):
        engine.models.dense_keys("lsa").vectors.sum()


# --- learned anew ---


def test_preferences_learned_anew_replace_their_own_arrays_alone(path, whole):
    learn_preferences(Workspace(path), {"settings": {"n_components": 4, "max_iter": 2}})
    with qkv.open(path) as engine:
        assert engine.snapshot.damaged() == []
        assert engine.models.implicit.item_embeddings.shape == (len(ITEMS), 4)
        for part in components_of(engine.snapshot):
            if not isinstance(part, PreferencesComponent):
                for name, array in part.read(engine.snapshot).items():
                    np.testing.assert_array_equal(array, part.read(whole.snapshot, name)[name])


def test_where_texts_no_longer_tell_of_preferences_no_map_stays(path, monkeypatch):
    monkeypatch.setattr(collaborative_head, "fit_text_map", lambda keys, embeddings: None)
    learn_preferences(Workspace(path), None)
    with qkv.open(path) as engine:
        assert "implicit.text_map" not in engine.snapshot
        assert engine.models.implicit is not None


@pytest.mark.parametrize("leaving", [[], ["x1"]])
def test_a_log_without_ratings_leaves_nothing_of_those_that_were_there(leaving, path):
    """Nor of times and weights: what is learned again is learned from this log alone."""
    if leaving:  # so that arrays are not shared
        remove_items(Workspace(path), leaving)
    with qkv.open(path) as engine:
        log = replace(engine.models.log(), ratings=None, times=None, weights=None, scale=None)

    def learn(contents):
        for part in (LogComponent(), PreferencesComponent(), RatingsComponent()):
            part.learn(contents, log, silent)

    republished(path, learn)
    with qkv.open(path) as engine:
        assert not RatingsComponent().is_in(engine.snapshot)
        assert set(LogComponent().names_in(engine.snapshot)) == {"indptr", "items"}
        gone = {"ratings", "rating_scale", "usual_weight", "times_comparable"}
        assert not gone & engine.snapshot.facts.keys()
        assert engine.models.feedback.scale is None
        assert len(engine.recommend(user="u3"))
