"""What every stored part promises: what was stored answers as what was fitted; items that join and
leave change it as a fresh build would, where nothing is learned; no array is two parts'.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from qkvsearch.revision.items import without_items

import qkvsearch as qkv
from qkvsearch.collaborative.als import ImplicitALS
from qkvsearch.collaborative.biased_mf import BiasedMF
from qkvsearch.data.readers import read_dataset
from qkvsearch.labelled import unit_rows
from qkvsearch.retrieval import DenseKeys, LexicalKeys
from qkvsearch.retrieval import late_interaction as late
from qkvsearch.revision import add_items, learn_preferences, remove_items, revised_contents
from qkvsearch.sequences.model import NextItemModel
from qkvsearch.stored import (
    BuildReader,
    CodesPart,
    DensePart,
    LexicalPart,
    LogPart,
    NextItemPart,
    PreferencesPart,
    RatingsPart,
    StoredModels,
    StoredPart,
    TokensPart,
    parts_of,
    preferences,
    tokens,
)
from qkvsearch.texts.analysis import Analyzer, Token
from qkvsearch.texts.pretrained.static import find_package
from qkvsearch.texts.text_encoder import encode_items
from qkvsearch.texts.vocabulary import count_terms
from qkvsearch.workspace import BuildContents, Workspace

pytestmark = pytest.mark.usefixtures("former_builds_stay")
QUERIES = ["deep sea", "red season", "colder", "zzqx"]
# As text "10" comes before "2" and "-1" before "-2": rows move when ids become numbers.
ITEMS = pd.DataFrame(
    [
        (str(i), f"{'deep sea' if i % 2 else 'red season'} {'cold' if i % 3 else 'colder'} {i % 7}")
        for i in range(-9, 51)
    ]
    + [("x1", "the red sea")],
    columns=["id", "title"],
)
LOG = pd.DataFrame(
    [
        (
            f"u{user}",
            str(item),
            [5.0, 4.0, 1.0, np.nan][min(item // 5 % 12, 3)],
            1000 * user + item,
        )
        for user in range(24)
        for item in range(-9, 50)
        if (item + user) % 2 == 0 and (3 * item + user) % 11
    ],
    columns=["user", "item", "rating", "time"],
)


def nothing(stage: str, done: int, total: int) -> None:
    """For whoever must be told how far it is."""


def republished(path: Path, change: Callable[[BuildContents], None]) -> None:
    """The current build once more, with what `change` does to it."""
    workspace = Workspace(path)

    def derive(build: Any) -> None:
        nobody = np.zeros(build.facts["n_items"], dtype=bool)
        contents = revised_contents(without_items(build, nobody), nothing)
        change(contents)
        workspace.publish(contents)

    workspace.revise(derive)


def vectors_of_words(encoder: Any, fields: Any, progress: Any = None, room: int = 0) -> list:
    """In place of `item_tokens`, whose vectors a random transformer makes all alike."""
    rows = [[np.frombuffer(f"{word:_<24}".encode(), np.int8) for word in text.split()]
            for text in fields[0]]  # fmt: skip
    return [np.array(row, dtype=np.int8).reshape(-1, 24) for row in rows]


@pytest.fixture(scope="module")
def whole_path(tmp_path_factory, tiny_bert) -> Path:
    """A workspace with every part: by a transformer, with ratings, times and a next-item model."""
    path = tmp_path_factory.mktemp("whole") / "ws"
    qkv.build(path, items=ITEMS, interactions=LOG, encoder=str(tiny_bert)).close()

    def complete(contents: BuildContents) -> None:
        NextItemPart().store(contents, NextItemModel.create(len(ITEMS), 8, 2, 2, 10, rng=0))
        found = vectors_of_words(None, contents.catalog.fields())
        TokensPart("transformer").store(contents, late.token_keys(found))

    republished(path, complete)
    return path


@pytest.fixture
def path(whole_path, tmp_path) -> Path:
    return Path(shutil.copytree(whole_path, tmp_path / "ws"))


@pytest.fixture
def whole(whole_path) -> Iterator[StoredModels]:
    with qkv.open(whole_path) as engine:
        yield engine.models


def kinds(build: BuildReader) -> set[type[StoredPart]]:
    return {type(part) for part in parts_of(build)}


# --- whose the arrays are ---


@pytest.fixture(params=["whole", "movies", "videos", "static"])
def built(request, tmp_path_factory) -> Iterator[BuildReader]:
    if request.param == "static":
        if find_package() is None:
            pytest.skip("needs wordllama")
        with qkv.build(tmp_path_factory.mktemp("static"), items=ITEMS, encoder="static") as engine:
            yield engine.models
    else:
        with qkv.open(request.getfixturevalue(f"{request.param}_path")) as engine:
            yield engine.models


def test_every_array_of_a_build_belongs_to_one_part(built):
    parts = parts_of(built)
    for name in built.snapshot.facts["files"]:
        assert [part.owns(name) for part in parts].count(True) == 1, name


def test_the_whole_build_has_every_part(whole):
    assert all(part.is_in(whole.snapshot) for part in parts_of(whole))
    assert "implicit.text_map" in whole.snapshot


def test_where_nobody_joins_or_leaves_every_array_is_shared(built):
    nobody = np.zeros(built.n_items, dtype=bool)
    contents = revised_contents(without_items(built.snapshot, nobody), nothing)
    assert contents.shared == set(built.snapshot.facts["files"])
    assert contents.arrays == {}


def test_an_array_of_no_part_is_an_error(path):
    republished(path, lambda contents: contents.arrays.update({"lsa.surprise": np.zeros(3)}))
    with pytest.raises(LookupError, match=r"lsa\.surprise"):
        remove_items(path, "x1")


# --- stored and loaded ---


class Case:
    """A fitted model: what `store` is given, what `load` is to be like, and what to ask of both."""

    def __init__(
        self, part: StoredPart, given: tuple, like: Any, ask: Callable[[Any], list]
    ) -> None:
        self.part, self.given, self.like, self.ask = part, given, like, ask


def lexical(whole: StoredModels) -> Case:
    analyzer = Analyzer()
    counted = count_terms(ITEMS["title"], analyzer.key_terms)
    return Case(
        LexicalPart(),
        counted,
        LexicalKeys.from_counts(*counted),
        lambda keys: [
            None if head is None else head.scores
            for head in (keys.head(analyzer.tokens(query)) for query in QUERIES)
        ],
    )


def codes(whole: StoredModels) -> Case:
    """Each id is found alone, and weighs 2.2 times the idf of a word that one item has."""
    catalog = read_dataset(ITEMS, None).catalog
    alone = np.float32(2.2 * np.log1p((len(catalog) - 0.5) / 1.5)) * np.eye(len(catalog))
    like = SimpleNamespace(head=lambda tokens: row_of(tokens[0].term))

    def row_of(term: str) -> SimpleNamespace | None:
        rows = [row for row, id_ in enumerate(catalog.ids.texts) if id_ == term]
        return SimpleNamespace(scores=np.float32(alone[rows[0]])) if rows else None

    def ask(keys: Any) -> list:
        found = [keys.head([Token(term, term)]) for term in ("x1", "-5", "17", "nowhere")]
        return [None if head is None else head.scores for head in found]

    return Case(CodesPart(), (catalog,), like, ask)


def dense(head: str) -> Callable[[StoredModels], Case]:
    def case(whole: StoredModels) -> Case:
        encoder = whole.encoder(head)
        made = encode_items(head, encoder, [ITEMS["title"].tolist()], nothing)
        return Case(
            DensePart(head),
            (encoder, made.keys, made.cut),
            SimpleNamespace(keys=DenseKeys(made.keys), encoder=encoder),
            lambda stored: [
                stored.keys.vectors,
                *(stored.encoder.encode(query).total for query in QUERIES),
            ],
        )

    return case


def token_vectors(whole: StoredModels) -> Case:
    keys, query = whole.token_keys, whole.encoder(whole.main_head).encode("deep sea").vectors
    return Case(
        TokensPart(whole.main_head),
        (keys,),
        keys,
        lambda keys: [*keys.similarities(query, np.array([0, 7, 60]))],
    )


def preferred(whole: StoredModels) -> Case:
    log = whole.log()
    factors = ImplicitALS(n_components=4, random_state=0).fit(log.matrix()).factors_
    counts = np.bincount(log.items, minlength=len(ITEMS))
    like = preferences.StoredPreferences(
        factors, DenseKeys(unit_rows(factors.item_embeddings)), counts
    )
    known = np.flatnonzero(counts)
    return Case(
        PreferencesPart(),
        (factors, log),
        like,
        lambda found: [
            found.factors.fold_in(known[:3]),
            found.factors.item_embeddings[known],
            found.unit_rows.vectors,
            found.item_counts,
        ],
    )


def ratings(whole: StoredModels) -> Case:
    factors = BiasedMF(random_state=0).fit(whole.log()).factors_
    bias, embedding = factors.fold_in([0, 3], [5.0, 1.0])
    return Case(
        RatingsPart(),
        (factors,),
        factors,
        lambda found: [
            *found.fold_in([0, 3], [5.0, 1.0]),
            found.predict(embedding, bias, np.arange(60)),
        ],
    )


def next_item(whole: StoredModels) -> Case:
    model = NextItemModel.create(len(ITEMS), 8, 2, 2, 10, rng=1)
    history = np.array([3, 1, 4])
    return Case(
        NextItemPart(),
        (model,),
        model,
        lambda found: [found.states(history), found.contributions(history, np.array([0, 7]))],
    )


def log(whole: StoredModels) -> Case:
    given = whole.log()

    def history(user: int) -> SimpleNamespace:
        rows = given.users == user
        return SimpleNamespace(positions=given.items[rows], ratings=given.ratings[rows],
                               times=given.times[rows])  # fmt: skip

    like = SimpleNamespace(interactions=lambda: given, history=history)
    return Case(
        LogPart(),
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


CASES = {
    "lexical": lexical,
    "codes": codes,
    "lsa": dense("lsa"),
    "transformer": dense("transformer"),
    "tokens": token_vectors,
    "preferences": preferred,
    "ratings": ratings,
    "next item": next_item,
    "log": log,
}


def test_there_is_a_case_of_every_part(whole):
    assert {type(case(whole).part) for case in CASES.values()} == kinds(whole)


@pytest.mark.parametrize("name", CASES)
def test_what_is_stored_answers_as_what_was_fitted(name, whole, path):
    case = CASES[name](whole)
    republished(path, lambda contents: case.part.store(contents, *case.given))
    with qkv.open(path) as engine:
        assert engine.snapshot.damaged_files() == []
        loaded = engine.models.load(case.part)
        for one, other in zip(case.ask(loaded), case.ask(case.like), strict=True):
            np.testing.assert_array_equal(one, other)


# --- revised ---

# One has the text of the last item, one more tokens than the encoder reads.
FRESH = pd.DataFrame({"id": ["77", "-50"], "title": ["the red sea", "deep " * 20]})
OTHER_TEXTS = pd.DataFrame({"id": ["4", "-3"], "title": ["the sea", "red a red"]})
LEAVING = ["-9", "2", "31"]
# What is done one after the other, and the items from then on.
STEPS: dict[str, tuple[Callable[[Path], Any], Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "items join": (
        lambda path: add_items(path, FRESH),
        lambda items: pd.concat([items, FRESH]),
    ),
    "texts change": (
        lambda path: add_items(path, OTHER_TEXTS),
        lambda items: pd.concat([items[~items["id"].isin(OTHER_TEXTS["id"])], OTHER_TEXTS]),
    ),
    "items leave": (
        lambda path: remove_items(path, LEAVING),
        lambda items: items[~items["id"].isin(LEAVING)],
    ),
    "ids become numbers": (
        lambda path: remove_items(path, ["x1", "-50"]),
        lambda items: items[~items["id"].isin(["x1", "-50"])],
    ),
}

# The encoder's last bit may differ with the texts beside one; gram is a sum in another order.
CLOSE = {"keys": 1e-6, "gram": 1e-4}


class Expected:
    """The arrays of every part after a change, by the build before it and one made afresh."""

    def __init__(self, whole: StoredModels, fresh: StoredModels) -> None:
        self.whole, self.fresh = whole, fresh
        before = whole.snapshot.tables.ids("items").texts
        self.origin = [
            before.index(text) if text in before else None
            for text in fresh.snapshot.tables.ids("items").texts
        ]
        titles = [title for _, title in fresh.snapshot.tables.cells()]
        self.fields = [titles]

    def of(self, part: StoredPart) -> dict[str, np.ndarray]:
        contents = BuildContents(None, facts=dict(self.fresh.snapshot.facts))
        how = {LexicalPart: self.afresh, CodesPart: self.afresh, LogPart: self.afresh,
               DensePart: self.encoded, TokensPart: self.read, PreferencesPart: self.taken,
               RatingsPart: self.taken, NextItemPart: self.taken}  # fmt: skip
        return how[type(part)](part, contents)

    def afresh(self, part: StoredPart, contents: BuildContents) -> dict[str, np.ndarray]:
        return part.read_all(self.fresh.snapshot)

    def encoded(self, part: StoredPart, contents: BuildContents) -> dict[str, np.ndarray]:
        """All items by the encoder that there was."""
        encoder = self.whole.encoder(part.group)
        made = encode_items(part.group, encoder, self.fields, nothing)
        part.store(contents, encoder, made.keys, made.cut)
        if part.group == self.whole.main_head:
            part.note_texts(contents)
            self.text_facts = contents.facts
        return self.own(part, contents)

    def read(self, part: StoredPart, contents: BuildContents) -> dict[str, np.ndarray]:
        part.store(contents, late.token_keys(vectors_of_words(None, self.fields)))
        return self.own(part, contents)

    def taken(self, part: StoredPart, contents: BuildContents) -> dict[str, np.ndarray]:
        """Nothing is learned anew: the rows that there were, zeros for who joined."""
        arrays = dict(part.read_all(self.whole.snapshot))
        for name in {"item_embeddings", "item_directions", "item_biases", "item_counts"} & set(
            arrays
        ):
            rows = [arrays[name][0] * 0 if i is None else arrays[name][i] for i in self.origin]
            arrays[name] = np.array(rows)
        if "gram" in arrays:
            embeddings = arrays["item_embeddings"].astype(np.float64)
            arrays["gram"] = embeddings.T @ embeddings
        return arrays

    def own(self, part: StoredPart, contents: BuildContents) -> dict[str, np.ndarray]:
        return {name: contents.arrays[f"{part.group}.{name}"] for name in part.arrays
                if f"{part.group}.{name}" in contents.arrays}  # fmt: skip


def test_after_every_change_each_part_is_as_afresh_or_as_it_was_learned(
    path, whole, tmp_path, monkeypatch
):
    monkeypatch.setattr(tokens, "item_tokens", vectors_of_words)
    items = ITEMS
    for step, (change, after) in STEPS.items():
        change(path)
        items = after(items)
        met = LOG[LOG["item"].isin(items["id"])]
        with (
            qkv.build(tmp_path / step, items=items, interactions=met, encoder="corpus") as fresh,
            qkv.open(path) as revised,
        ):
            build = revised.snapshot
            assert revised.tables.cells() == fresh.tables.cells()
            facts = ("n_items", "n_users", "n_interactions", "rating_scale", "times_comparable")
            assert {name: build.facts[name] for name in facts} == {
                name: fresh.snapshot.facts[name] for name in facts
            }
            expected = Expected(whole, fresh.models)
            for part in parts_of(revised.models):
                found, wanted = part.read_all(build), expected.of(part)
                assert set(found) == set(wanted), (step, part)
                for name, array in found.items():
                    where = f"{step}: {part.group}.{name}"
                    assert array.dtype == wanted[name].dtype, where
                    if name in CLOSE:
                        difference = array.astype(np.float64) - wanted[name]
                        assert np.abs(difference).max() <= CLOSE[name], where
                    else:
                        np.testing.assert_array_equal(array, wanted[name], err_msg=where)
            embeddings = expected.of(PreferencesPart())["item_embeddings"]
            n_known = int(embeddings.any(axis=1).sum())
            assert build.facts["implicit"] == whole.snapshot.facts["implicit"] | {
                "n_items": n_known
            }
            cut = "texts are longer than transformer's 12 tokens"
            assert (cut in build.facts.get("texts_cut", "")) == ("-50" in set(items["id"])), step
            assert build.facts.get("texts_cut") == expected.text_facts.get("texts_cut"), step
            assert build.facts["chance"] == pytest.approx(expected.text_facts["chance"]), step


def test_the_scale_of_ratings_stays_the_one_that_was_learned_on(path, whole):
    remove_items(path, list(LOG.loc[LOG["rating"] == 1, "item"].unique()))
    with qkv.open(path) as engine:
        assert np.nanmin(engine.models.log().ratings) == 4
        assert engine.models.rating_scale == whole.rating_scale == [1, 5]


def test_who_joins_after_all_others_leaves_the_log_and_what_was_learned_in_their_files(path):
    with qkv.open(path) as before:
        add_items(path, pd.DataFrame({"id": ["zzz"], "title": ["sea"]}))
        with qkv.open(path) as after:
            for part in parts_of(after.models):
                for name in part.arrays if isinstance(part, LogPart) else ():
                    name = f"{part.group}.{name}"
                    assert (name in before.snapshot) == (name in after.snapshot)
                    if name not in before.snapshot:
                        continue
                    one, other = (e.snapshot.file(name) for e in (before, after))
                    assert one.path.samefile(other.path), name


# --- learned anew ---


def test_preferences_learned_anew_replace_their_own_arrays_alone(path, whole):
    learn_preferences(path, {"settings": {"n_components": 4, "max_iter": 2}})
    with qkv.open(path) as engine:
        assert engine.snapshot.damaged_files() == []
        assert engine.models.implicit.item_embeddings.shape == (len(ITEMS), 4)
        for part in parts_of(engine.models):
            if isinstance(part, PreferencesPart):
                continue
            for name, array in part.read_all(engine.snapshot).items():
                np.testing.assert_array_equal(array, part.read(whole.snapshot, name))


def test_where_texts_no_longer_tell_of_preferences_no_map_stays(path, monkeypatch):
    monkeypatch.setattr(preferences, "fit_text_map", lambda keys, embeddings: None)
    learn_preferences(path, None)
    with qkv.open(path) as engine:
        assert "implicit.text_map" not in engine.snapshot
        assert engine.models.implicit is not None
