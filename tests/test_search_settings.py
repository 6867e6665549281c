"""Settings that `tune search` found: searches rank by them, through all that a workspace lives
through, and answers after a reset are those from before.
"""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engine import Engine
from qkvsearch.errors import DamagedError, WorkspaceError
from qkvsearch.evaluation.search_parts import PARTS, Parts
from qkvsearch.evaluation.search_tuning import Asking, tune_by_queries
from qkvsearch.evaluation.tuning_queries import TuningQueries, TuningQuery
from qkvsearch.heads import dense
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.learn import tuned_search
from qkvsearch.learn.learn_again import reset_tuning
from qkvsearch.learn.merge import merge_segments
from qkvsearch.learn.tuned_search import MadeKeys, encoded_columns, use_in_search
from qkvsearch.store import Workspace
from qkvsearch.tables.samples import sample
from qkvsearch.text.pretrained.static import find_package
from tests.builds import republished

needs_static = pytest.mark.skipif(find_package() is None, reason="needs wordllama")
QUERIES = ["space war", "a boy and his dog", "gangstr", "comedy"]
FOUND = SearchSettings(
    heads={"lexical": 0.2, "lsa": 0.6, "contrastive": 0.2},
    columns={"title": 0.8, "genres": 0.2},
    families=0.5,
)
FOUND_HEADS = ("lsa", "contrastive")
ALL_PARTS = frozenset(PARTS)


def use(path, settings=FOUND):
    use_in_search(Workspace(path), settings, seed=3)


def answers(path):
    """What is found, similar and recommended, with scores."""
    with Engine(path) as engine:
        rankings = [engine.search(query, k=5) for query in QUERIES]
        rankings.append(engine.similar(engine.catalog.ids("items").texts[0], k=5))
        if engine.models.implicit is not None:
            rankings.append(engine.recommend(user=engine.models.log().user_ids[0], k=5))
        return [[(hit.id, hit.score) for hit in ranking] for ranking in rankings]


def searches(path):
    return answers(path)[: len(QUERIES)]


def settings_of(path):
    with Engine(path) as engine:
        return engine.models.search_settings


@pytest.fixture(scope="module")
def tuned_path(movies_path, tmp_path_factory):
    path = shutil.copytree(movies_path, tmp_path_factory.mktemp("tuned") / "ws")
    use(path)
    return path


@pytest.fixture
def tuned(tuned_path, tmp_path, former_builds_stay):
    """The tuned workspace of the test's own, a copy of a folder."""
    return shutil.copytree(tuned_path, tmp_path / "tuned")


def test_only_searches_change(movies_path, tuned_path):
    before, after = answers(movies_path), answers(tuned_path)
    assert all(x != y for x, y in zip(before[:2], after[:2], strict=True))
    assert after[len(QUERIES) :] == before[len(QUERIES) :]


def test_keys_are_made_of_weighted_columns(tuned_path):
    with Engine(tuned_path) as engine:
        models = engine.models
        for head, items in encoded_columns(models, lambda *_: None).items():
            assert np.array_equal(models.dense_keys(head).vectors, items.keys())
            assert np.array_equal(models.search_keys(head).vectors, items.keys([0.8, 0.2]))


def test_reasons_add_up_to_the_scores(tuned_path, assert_adds_up):
    with Engine(tuned_path) as engine:
        for query in QUERIES:
            ranking = engine.search(query, k=4, anyway=True)
            for i, hit in enumerate(ranking):
                assert_adds_up([part.value for part in ranking.explain(i)], hit.score)
                assert_adds_up(hit.heads.values(), hit.score)


def test_a_reset_gives_the_answers_from_before(movies_path, tuned):
    assert reset_tuning(Workspace(tuned)) == ["searches"]
    assert answers(tuned) == answers(movies_path)
    with Engine(tuned) as engine:
        assert "tuned_search" not in engine.snapshot.facts
        assert not any("tuned" in name for name in engine.snapshot.array_names)
        name = engine.snapshot.name
    assert reset_tuning(Workspace(tuned)) == []
    with Engine(tuned) as engine:
        assert engine.snapshot.name == name


def test_a_reset_after_items_came_and_went_is_as_without_settings(movies_path, tuned, tmp_path):
    never = shutil.copytree(movies_path, tmp_path / "never")
    for path in (never, tuned):
        with Engine(path) as engine:
            engine.add(pd.DataFrame({"id": ["x1"], "title": ["Space war"], "genres": ["War"]}))
            engine.remove([engine.catalog.ids("items").texts[5]])
    reset_tuning(Workspace(tuned))
    assert answers(tuned) == answers(never)


def test_settings_outlive_what_changes_items(tuned):
    before = searches(tuned)
    new = pd.DataFrame({"id": ["x1"], "title": ["Space war two"], "genres": ["War"]})
    with Engine(tuned) as engine:
        engine.add(new)
        added = engine.search("space war two", k=1)[0]
        assert added.id == "x1"
        encoder, row = engine.models.encoder("lsa"), engine.catalog.ids("items").find("x1")
        title, genres = encoder.encode_many(["Space war two", "War"])
        expected = 0.8 * title + 0.2 * genres
        key = engine.models.search_keys("lsa").vectors[row]
        assert np.allclose(key, expected / np.linalg.norm(expected), atol=1e-6)
        hits = searches(tuned)
        merge_segments(Workspace(tuned))
        assert searches(tuned) == hits
        engine.remove(["x1"])
    merge_segments(Workspace(tuned))
    assert searches(tuned) == before
    assert settings_of(tuned) == FOUND


def test_settings_outlive_learning(tuned):
    before = searches(tuned)
    with Engine(tuned) as engine:
        engine.learn()
    assert searches(tuned) == before


def test_a_rollback_gives_the_answers_from_before(movies_path, tuned):
    with Engine(tuned) as engine:
        engine.rollback()
    assert answers(tuned) == answers(movies_path)


@pytest.mark.parametrize("array", ["tuned_keys", "keys"])
def test_tuned_keys_are_repaired(tuned_path, tmp_path, array):
    tuned = shutil.copytree(tuned_path, tmp_path / "tuned")
    before = searches(tuned)
    with Engine(tuned) as engine:
        file = engine.snapshot.segments[-1].folder / f"lsa.{array}.npy"
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[:-8] + b"\7" * 8)
    done = qkv.repair(tuned)
    assert not done.lost
    assert searches(tuned) == before
    assert settings_of(tuned) == FOUND


@pytest.mark.slow
def test_a_new_build_takes_over_what_fits(tuned):
    before = searches(tuned)
    qkv.build(tuned, "sample:movies", encoder="corpus").close()
    assert searches(tuned) == before
    table = pd.DataFrame({"id": ["1", "2", "3"], "title": ["a dog", "a cat", "war"]})
    with qkv.build(tuned, items=table, encoder="corpus") as engine:
        assert engine.models.search_settings == SearchSettings(heads=FOUND.heads, families=0.5)
        assert any("weights of columns" in line for line in engine.info()["rows"])


def test_the_int8_keys_of_a_large_build_have_the_weights_too(movies_path, tuned, monkeypatch):
    before = searches(tuned)
    reset_tuning(Workspace(tuned))
    monkeypatch.setattr(dense, "MIN_QUANTIZED", 1)
    use(tuned)
    with Engine(tuned) as engine:
        names = {name for name in engine.snapshot.array_names if name.startswith("lsa.tuned")}
        assert names == {"lsa.tuned_keys", "lsa.tuned_codes", "lsa.tuned_scales"}
        engine.add(pd.DataFrame({"id": ["x1"], "title": ["Zebra"], "genres": ["War"]}))
        engine.remove(["x1"])
    merge_segments(Workspace(tuned))
    assert [[hit[0] for hit in of] for of in searches(tuned)] == [
        [hit[0] for hit in of] for of in before
    ]


@pytest.mark.parametrize("settings", [replace(FOUND, heads=None), replace(FOUND, families=0.0)])
def test_keys_stay_where_the_columns_keep_their_weights(tuned, settings, monkeypatch):
    with Engine(tuned) as engine:
        before = {head: engine.models.search_keys(head).vectors[:] for head in FOUND_HEADS}
    found = searches(tuned)
    monkeypatch.setattr(tuned_search, "encoded_columns", None)
    use(tuned, settings)
    assert settings_of(tuned) == settings
    assert searches(tuned) != found
    with Engine(tuned) as engine:
        for head, keys in before.items():
            assert np.array_equal(engine.models.search_keys(head).vectors, keys)


def test_keys_are_dropped_with_the_weights_of_columns(tuned):
    use(tuned, replace(FOUND, columns=None))
    searches(tuned)
    with Engine(tuned) as engine:
        assert not any("tuned" in name for name in engine.snapshot.array_names)


def test_a_search_that_cannot_try_columns_keeps_those_in_use(tuned, monkeypatch):
    """Weights of columns are in use, and the queries tell about families of words alone."""
    kept = {"columns": FOUND.columns, "heads": FOUND.heads, "families": 0.0}

    def figure(self, build, query):
        return 0.5 + 0.4 * (build.models.search_settings.to_dict() == kept)

    monkeypatch.setattr(Asking, "_figure", figure)
    monkeypatch.setattr(Parts, "why_not_columns", lambda self: "too little memory")
    queries = [TuningQuery("one", str(item), {item: 1}) for item in range(80)]
    with Engine(tuned) as engine:
        keys = engine.models.search_keys("lsa").vectors[:]
        result = tune_by_queries(engine.current_build, TuningQueries(queries, {"one": ALL_PARTS}))
    assert result.worthwhile
    assert result.settings == kept
    use_in_search(Workspace(tuned), result.found, 0, result.keys)
    searches(tuned)
    with Engine(tuned) as engine:
        assert np.array_equal(engine.models.search_keys("lsa").vectors, keys)


def test_made_keys_of_another_build_are_not_used(films_path):
    wrong = MadeKeys("another", {"lsa": np.zeros((1, 1), np.float32)})
    use_in_search(Workspace(films_path), FOUND, 0, wrong)
    with Engine(films_path) as engine:
        assert engine.models.search_keys("lsa").vectors.shape[0] == engine.n_items


@pytest.mark.parametrize(
    "settings",
    [
        SearchSettings(heads={"lexical": 0.5, "static": 0.5}),
        SearchSettings(columns={"title": 1.0}),
    ],
)
def test_settings_of_other_heads_or_columns_are_refused(films_path, settings):
    before = answers(films_path)
    with pytest.raises(WorkspaceError, match="tune search again"):
        use(films_path, settings)
    assert answers(films_path) == before
    fact = {"tuned_search": {"seed": 0, "settings": settings.to_dict()}}
    republished(films_path, lambda contents: contents.facts.update(fact))
    with pytest.raises(DamagedError):
        Engine(films_path)


def test_info_and_builds_tell_of_the_settings_by_the_owners_names(tmp_path):
    items = pd.DataFrame({"id": [1, 2, 3], "title": ["a dog", "a cat", "war"]})
    items["Kind of thing"] = ["animal", "animal", "event"]
    columns = qkv.Columns(text=("title", "Kind of thing"))
    with qkv.build(tmp_path / "ws", items=items, columns=columns, encoder="corpus") as engine:
        stored = engine.snapshot.facts["text_columns"]
    use(tmp_path / "ws", SearchSettings(columns=dict(zip(stored, [0.25, 0.75], strict=True))))
    with Engine(tmp_path / "ws") as engine:
        found = engine.info()["tuned_search"]
        assert found["settings"] == {"columns": {"title": 0.25, "Kind of thing": 0.75}}
        assert engine.builds()[0]["command"] == "tune search"
    reset_tuning(Workspace(tmp_path / "ws"))
    with Engine(tmp_path / "ws") as engine:
        assert "tuned_search" not in engine.info()
        assert engine.builds()[0]["command"] == "tune --reset"


@pytest.mark.slow
@needs_static
def test_a_second_pass_has_the_weight_that_was_found(tmp_path, assert_adds_up):
    path = tmp_path / "ws"
    qkv.build(path, items=sample("videos").path("videos.csv"), encoder="static").close()

    def hits():
        with Engine(path) as engine:
            ranking = engine.search("river fishing", k=30)
            for i, hit in enumerate(ranking):
                assert_adds_up([part.value for part in ranking.explain(i)], hit.score)
            return {hit.id: hit.heads for hit in ranking}

    before = hits()
    assert any(heads["token"] for heads in before.values())
    use(path, SearchSettings(second_pass=0.6))
    for id_, heads in hits().items():
        if id_ in before:
            assert heads["token"] == pytest.approx(2 * before[id_]["token"], rel=1e-4)
    use(path, SearchSettings(second_pass=0.0))
    assert all("token" not in heads for heads in hits().values())
