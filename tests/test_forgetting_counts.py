"""After `forget` nothing that is counted tells who was there: it is as if built without them."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engine import build
from qkvsearch.heads.registry import components_of

N_ITEMS, N_USERS = 40, 60
SECRET = "secretperson"
# Items that nobody else has, and some that others have.
OWN, SHARED = ["i30", "i31", "i32"], ["i01", "i02", "i03"]
NOBODYS = "i39"
ITEMS = pd.DataFrame(
    {
        "id": [f"i{n:02}" for n in range(N_ITEMS)],
        "title": [f"{'red blue green grey'.split()[n % 4]} thing {n}" for n in range(N_ITEMS)],
    }
)
COUNTED = {
    "interactions": None,  # all arrays
    "implicit": ("item_counts", "n_liking"),
}
# Where an item without interactions has zeros.
LEARNED_ROWS = {
    "implicit": ("item_embeddings", "unit_rows"),
    "ratings": ("item_embeddings", "item_biases"),
}


def made_log(*, ratings=False, weights=False, times=False):
    """Return a log with the secret person, whose ratings, weights and times nobody else has."""
    chance = np.random.default_rng(3)
    rows = []
    for user in range(N_USERS):
        for item in chance.choice(30, 8, replace=False):
            row = (f"u{user:02}", f"i{item:02}", chance.integers(1, 6), chance.integers(1, 9))
            rows.append((*row, 1_700_000_000 + len(rows)))
    for number, item in enumerate(OWN + SHARED):
        rows.append((SECRET, item, 7, 5000 + number, 1_750_000_000 + number))
    columns = ["user", "item", "rating", "quantity", "time"]
    log = pd.DataFrame(rows, columns=columns)
    log = log.sample(frac=1, random_state=1).astype({"rating": float})
    left_out = [
        name
        for name, is_kept in (("rating", ratings), ("quantity", weights), ("time", times))
        if not is_kept
    ]
    return log.drop(columns=left_out)


KINDS = {
    "plain": {},
    "ratings": {"ratings": True},
    "weights": {"weights": True, "times": True},
    "all": {"ratings": True, "weights": True, "times": True},
}


def forgotten_and_never_known(folder, change=lambda engine: None, **kind):
    """Return two engines: one forgot the secret person, the other was built without them. Both were
    changed in the same way before."""
    log = made_log(**kind)
    engines = []
    for name, rows in (("with", log), ("without", log[log["user"] != SECRET])):
        engine = build(folder / name, items=ITEMS, interactions=rows, encoder="corpus")
        change(engine)
        engines.append(engine)
    engines[0].forget(SECRET)
    engines[1].compact()
    return engines


def arrays(engine):
    """Return all arrays of what is learned from interactions, by their full names."""
    found = {}
    for component in components_of(engine.snapshot):
        for name in component.names_in(engine.snapshot):
            found[component.name_of(name)] = np.asarray(
                engine.snapshot.array(component.name_of(name))
            )
    return found


def assert_as_never_known(forgotten, without):
    """Compare every array and fact that is counted, and which items have learned rows."""
    ours, theirs = arrays(forgotten), arrays(without)
    assert ours.keys() == theirs.keys()
    for name in ours:
        group, _, array = name.partition(".")
        counted = COUNTED.get(group, ())
        if counted is None or array in counted:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
        if array in LEARNED_ROWS.get(group, ()):
            ours_known, theirs_known = (
                each[name].reshape(len(each[name]), -1).any(axis=1) for each in (ours, theirs)
            )
            np.testing.assert_array_equal(ours_known, theirs_known, err_msg=name)
    facts, other = forgotten.snapshot.facts, without.snapshot.facts
    for name in ("n_users", "n_interactions", "rating_scale", "usual_weight", "n_items"):
        assert facts.get(name) == other.get(name), name
    for group, names in {"implicit": ["n_items"], "ratings": ["mean", "lowest", "highest"]}.items():
        for name in names if group in other else ():
            assert facts[group][name] == other[group][name], name
    assert list(forgotten.users) == list(without.users)
    rows = zip(forgotten.info()["interaction_columns"], other["interaction_columns"], strict=True)
    for ours_column, theirs_column in rows:
        for name in ("name", "role", "type", "empty"):
            assert ours_column[name] == theirs_column[name]


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    return forgotten_and_never_known(tmp_path_factory.mktemp("forget"), **KINDS[request.param])


def test_what_is_counted_is_as_if_the_person_had_never_been_there(both):
    assert_as_never_known(*both)


def test_answers_count_nobody_who_is_not_there(both):
    forgotten, without = both
    for item in OWN + SHARED + ["i05"]:
        assert forgotten.show(item)["users"] == without.show(item)["users"]
    assert (
        forgotten.items.list(sort="users", k=9).to_records()
        == without.items.list(sort="users", k=9).to_records()
    )
    hits = [forgotten.recommend(likes=OWN[:1])[:], without.recommend(likes=OWN[:1])[:]]
    assert [hit.id for hit in hits[0]] == [hit.id for hit in hits[1]] == []


def test_neighbours_are_those_of_a_log_without_the_person(both):
    """Each weight solves an equation of who has both items: with the person in it, one could
    compute from the remaining log what they had.
    """
    forgotten, without = (engine.models.preferences for engine in both)
    assert forgotten.neighbours.matrix().nnz > 100
    assert abs(forgotten.neighbours.matrix() - without.neighbours.matrix()).max() < 1e-6
    for name in ("alpha0", "reg", "n_items"):
        assert getattr(forgotten.factors, name) == getattr(without.factors, name)


def test_no_file_has_a_number_of_the_person(tmp_path):
    forgotten, _ = forgotten_and_never_known(tmp_path, **KINDS["all"])
    for file in (tmp_path / "with").rglob("*"):
        if file.is_file() and file.suffix in (".json", ".db"):
            text = file.read_bytes()
            assert not any(f"{5000 + n}".encode() in text for n in range(6)), file
            assert b"1750000000" not in text
    log = forgotten.models.log()
    assert log.ratings.max() < 7
    assert log.times.max() < 1_750_000_000
    assert forgotten.info()["rating_scale"] == [1, 5]


def record_others(engine):
    engine.record("u01", "i33")
    engine.record("newcomer", "i01")


def record_secret(engine):
    record_others(engine)
    if SECRET in engine.users:
        engine.record(SECRET, "i34")


def learn(engine):
    record_others(engine)
    engine.learn()


def add_and_remove(engine):
    engine.remove(["i02", "i07", NOBODYS])
    engine.add(pd.DataFrame({"id": ["a1", "i03"], "title": ["new thing", "other thing"]}))


def compact(engine):
    add_and_remove(engine)
    engine.compact()


@pytest.mark.parametrize("change", [record_others, record_secret, learn, add_and_remove, compact])
@pytest.mark.slow
def test_so_it_is_after_other_changes(tmp_path, monkeypatch, change):
    monkeypatch.setattr("time.time", lambda: 1_760_000_000)  # what is recorded has the same time
    forgotten, without = forgotten_and_never_known(tmp_path, change, **KINDS["weights"])
    if change in (add_and_remove, compact):
        without.learn()  # counts what is left without the removed items, as `forget` does
    assert_as_never_known(forgotten, without)
    assert forgotten.records().to_records() == [] or len(forgotten.records()) == len(
        without.records()
    )
    lines = [line for line in forgotten.info()["rows"] if not line.startswith("Columns")]
    (line,) = (line for line in lines if "interactions" in line)
    assert f"{forgotten.info()['interactions']} interactions" in line


def test_a_declared_scale_stays(tmp_path):
    log = made_log(ratings=True)
    columns = qkv.Columns(rating_scale=(0, 10))
    engine = build(tmp_path, items=ITEMS, interactions=log, columns=columns, encoder="corpus")
    engine.forget(SECRET)
    assert engine.info()["rating_scale"] == [0, 10]


def test_where_nobody_is_left_nothing_learned_is_left(tmp_path):
    log = made_log(ratings=True)
    log = log[log["user"] == SECRET]
    engine = build(tmp_path, items=ITEMS, interactions=log, encoder="corpus")
    engine.forget(SECRET)
    never = build(tmp_path / "never", items=ITEMS, encoder="corpus")
    assert arrays(engine).keys() == arrays(never).keys()
    assert len(engine.users) == 0
    assert engine.info()["interactions"] == 0
    engine.record("ann", "i01")
    assert engine.recommend(user="ann")
    assert engine.similar("i01")
    assert engine.learn().n_users == 1


def test_no_build_brings_the_person_back(tmp_path):
    engine = build(tmp_path, items=ITEMS, interactions=made_log(), encoder="corpus")
    engine.add(pd.DataFrame({"id": ["a1"], "title": ["new thing"]}))
    engine.forget(SECRET)
    assert len(engine.builds()) == 1
    with pytest.raises(qkv.QkvError):
        engine.rollback()
    engine.remove(["a1"])
    engine.rollback()
    assert SECRET not in engine.users
    assert engine.show(OWN[0])["users"] == 0
