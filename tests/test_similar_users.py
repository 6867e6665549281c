"""Users' vectors are kept by the build, and are what solving everybody anew would give, whatever
was done to the workspace since.
"""

import shutil

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.collaborative.user_vectors import ImplicitFactors
from qkvsearch.engine import repair
from qkvsearch.index.learned_models import USERS, PreferencesComponent
from qkvsearch.recommend.similar import _user_directions
from qkvsearch.text.labelled import unit_rows
from tests.builds import republished

ITEMS = pd.DataFrame({"id": range(1, 25), "title": [f"{'sea' if i % 2 else 'fox'} {i}"
                                                    for i in range(1, 25)]})  # fmt: skip
LOG = pd.DataFrame(
    [
        (f"u{user:02}", item, 5 if (item + user) % 3 else 1, 1_600_000_000 + 100 * user + item)
        for user in range(18)
        for item in range(1, 22)
        if (item * (user + 3)) % 7 < 3
    ],
    columns=["user", "item", "rating", "time"],
)
EVERYBODY = sorted(LOG["user"].unique())


@pytest.fixture(scope="module")
def built_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("users") / "ws"
    qkv.build(path, items=ITEMS, interactions=LOG, encoder="corpus").close()
    return path


@pytest.fixture
def engine(built_path, tmp_path):
    with qkv.open(shutil.copytree(built_path, tmp_path / "ws")) as found:
        yield found


@pytest.fixture
def solved(monkeypatch):
    """How many users were solved by each call, in order."""
    found = []
    original = ImplicitFactors.fold_in_many

    def spied(self, histories):
        found.append(histories.shape[0])
        return original(self, histories)

    monkeypatch.setattr(ImplicitFactors, "fold_in_many", spied)
    return found


def anew(engine):
    """The embeddings at length 1 of all users, each by their history of now, alone."""
    recommender = engine.current_build.recommender
    histories = [recommender.histories.at(row) for row in range(len(recommender.histories))]
    found = [recommender.factors.fold_in(h.positions, h.confidences) for h in histories]
    return unit_rows(np.array(found))


def assert_as_anew(engine):
    recommender, expected = engine.current_build.recommender, anew(engine)
    found = _user_directions(recommender, None)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-7)
    assert expected.any(axis=1).sum() > 10
    for user in (EVERYBODY[3], EVERYBODY[9]):
        row = recommender.histories.ids.find(user)
        cosines = dict(zip(recommender.histories.ids.texts, expected @ expected[row], strict=True))
        ranking = engine.similar_users(user, k=99)
        assert {str(hit.id): hit.score for hit in ranking} == pytest.approx(
            {str(hit.id): cosines[str(hit.id)] for hit in ranking}, abs=1e-6
        )
        assert [hit.score for hit in ranking] == sorted((h.score for h in ranking), reverse=True)


def stored(engine):
    return PreferencesComponent().read(engine.snapshot, USERS)[USERS]


def record(engine):
    engine.record(EVERYBODY[0], 22, 5)
    engine.record(EVERYBODY[5], 1, 5)
    engine.record("newcomer", 2, 5)


def replace_one(engine):
    engine.add(pd.DataFrame({"id": [3], "title": ["another fox"]}))


CHANGES = {
    "nothing": lambda engine: None,
    "record": record,
    "add": lambda engine: engine.add(pd.DataFrame({"id": [50, 51], "title": ["sea", "red fox"]})),
    "replace": replace_one,
    "remove what is known": lambda engine: engine.remove([2, 5]),
    "remove what is cold": lambda engine: engine.remove([24]),
    "forget": lambda engine: engine.forget(EVERYBODY[1]),
    "learn": lambda engine: engine.learn(),
    "compact": lambda engine: engine.compact(),
    "tune": lambda engine: engine.reset_tuning(),
}
names = pytest.mark.parametrize("name", CHANGES)


@names
def test_vectors_are_those_of_solving_everybody_after_a_change(engine, name):
    CHANGES[name](engine)
    assert_as_anew(engine)


@names
def test_and_after_a_change_of_a_segment_and_once_it_is_merged(engine, name):
    engine.remove([7])
    record(engine)
    CHANGES[name](engine)
    assert_as_anew(engine)
    engine.compact()
    assert_as_anew(engine)


@names
def test_and_after_a_rollback(engine, name):
    if name in ("nothing", "record", "compact", "forget"):
        pytest.skip("publishes nothing, or leaves nothing to go back to")
    CHANGES[name](engine)
    engine.rollback()
    assert_as_anew(engine)
    np.testing.assert_allclose(stored(engine), anew(engine), atol=2e-7)


def test_of_those_that_are_stored_nobody_is_solved(engine, solved):
    engine.similar_users(EVERYBODY[2])
    assert solved == []


def test_who_was_recorded_since_is_solved_and_nobody_else(engine, solved):
    record(engine)
    engine.similar_users(EVERYBODY[2])
    assert solved == [3]
    engine.learn()
    del solved[:]
    engine.similar_users(EVERYBODY[2])
    assert solved == []


def test_what_joins_and_what_nobody_knows_changes_no_vector(engine, solved):
    CHANGES["add"](engine)
    CHANGES["replace"](engine)
    CHANGES["remove what is cold"](engine)
    engine.similar_users(EVERYBODY[2])
    engine.compact()
    engine.similar_users(EVERYBODY[2])
    assert solved == []


def test_where_known_items_left_all_are_solved_once_and_stored_by_compact(engine, solved):
    engine.remove([2, 5])
    assert solved == []
    engine.similar_users(EVERYBODY[2])
    assert solved == [len(EVERYBODY)]
    engine.similar_users(EVERYBODY[4])
    assert len(solved) == 1
    found = engine.similar_users(EVERYBODY[2]).to_records()
    engine.compact()
    assert len(solved) == 2
    assert engine.similar_users(EVERYBODY[2]).to_records() == found
    assert len(solved) == 2


def test_a_build_without_vectors_solves_them_and_answers_as_one_with_them(engine, solved):
    like = engine.similar_users(EVERYBODY[2], explain=True).to_records()
    path = engine.workspace.path
    republished(path, lambda contents: PreferencesComponent().put(contents, **{USERS: None}))
    with qkv.open(path) as older:
        assert f"implicit.{USERS}" not in older.snapshot
        assert older.similar_users(EVERYBODY[2], explain=True).to_records() == like
        assert solved == [len(EVERYBODY)]
        older.add(pd.DataFrame({"id": [50], "title": ["sea"]}))
        older.compact()
        assert f"implicit.{USERS}" in older.snapshot
        assert_as_anew(older)


def test_who_is_forgotten_has_no_vector_in_any_file(engine):
    engine.remove([24])
    row = engine.current_build.histories.ids.find(EVERYBODY[1])
    before = np.array(stored(engine))
    vector = before[row].tobytes()
    path = engine.workspace.path
    assert [file for file in path.rglob("*.npy") if vector in file.read_bytes()]
    engine.forget(EVERYBODY[1])
    assert not [file for file in path.rglob("*") if file.is_file() and vector in file.read_bytes()]
    np.testing.assert_array_equal(stored(engine), np.delete(before, row, axis=0))


def test_progress_is_told_where_users_are_solved(engine):
    told = []
    engine.remove([7])
    engine.similar_users(EVERYBODY[2], progress=lambda *step: told.append(step))
    assert told[-1] == ("placing users", len(EVERYBODY), len(EVERYBODY))
    del told[:]
    record(engine)
    engine.similar_users(EVERYBODY[2], progress=lambda *step: told.append(step))
    assert told == [("comparing users", 3, 3)]


def test_users_are_solved_in_blocks(engine, monkeypatch):
    monkeypatch.setattr("qkvsearch.index.learned_models.BLOCK", 5)
    monkeypatch.setattr("qkvsearch.recommend.similar.BLOCK", 2)
    engine.remove([7])
    record(engine)
    assert_as_anew(engine)


def test_vectors_that_are_damaged_are_said_and_mended(engine):
    path = engine.snapshot.file(f"implicit.{USERS}").path
    like = engine.similar_users(EVERYBODY[2]).to_records()
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    with qkv.open(engine.workspace.path) as damaged:
        assert len(damaged.recommend(user=EVERYBODY[2]))
        with pytest.raises(qkv.QkvError, match="works: search, recommend, similar, items") as told:
            damaged.similar_users(EVERYBODY[2])
        assert path.name in str(told.value)
    repair(engine.workspace.path)
    with qkv.open(engine.workspace.path) as mended:
        assert mended.similar_users(EVERYBODY[2]).to_records() == like
