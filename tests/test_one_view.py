"""An answer counts the people of one moment, whatever is recorded or undone while it is read."""

import threading
from contextlib import suppress

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engine import Engine, build
from qkvsearch.errors import DamagedError, QkvError, UnknownIdError
from qkvsearch.rank.item_users import ItemUsers

ITEMS = pd.DataFrame(
    {
        "id": [f"v{n}" for n in range(1, 9)],
        "title": [f"{colour} {thing}" for thing in ("kettle", "anchor")
                  for colour in ("red", "blue", "green", "grey")],
        "kind": ["kitchen"] * 4 + ["boats"] * 4,
    }
)  # fmt: skip
LOG = pd.DataFrame(
    [(user, f"v{n}") for user in ("ann", "bob", "cid", "dan") for n in range(1, 6)],
    columns=["user", "item"],
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A workspace with a log."""
    path = tmp_path_factory.mktemp("view") / "ws"
    build(path, items=ITEMS, interactions=LOG, encoder="corpus").close()
    return path


@pytest.fixture
def engine(path):
    with Engine(path) as engine:
        yield engine
        while True:
            try:
                engine.undo_record()
            except QkvError:
                break


def all_reasons(ranking):
    return [[tuple(reason) for reason in ranking.reasons(i)] for i in range(len(ranking))]


def test_reasons_count_the_people_of_the_moment_of_the_answer(engine):
    before = all_reasons(engine.similar("v1"))
    ranking = engine.similar("v1")
    first = ranking.reasons(0)
    for hit in ranking:
        engine.record("zoe", hit.id)
    engine.record("zoe", "v1")
    assert [tuple(reason) for reason in first] == before[0]
    assert all_reasons(ranking) == before
    assert all_reasons(engine.similar("v1")) != before


def test_reasons_stay_when_a_record_is_undone_while_they_are_read(engine):
    engine.record("zoe", "v1")
    engine.record("zoe", "v2")
    before = all_reasons(engine.similar("v1"))
    ranking = engine.similar("v1")
    ranking.reasons(0)  # reads what is recorded of all hits
    engine.undo_record()
    engine.undo_record()
    assert all_reasons(ranking) == before


def test_reasons_stay_when_another_process_records(engine, path):
    before = all_reasons(engine.similar(["v1", "v5"]))
    ranking = engine.similar(["v1", "v5"])
    with Engine(path) as other:
        other.record("yan", "v1")
        other.record("yan", "v2")
        assert all_reasons(ranking) == before
        other.undo_record()
        other.undo_record()


def test_a_history_is_read_once(engine, monkeypatch):
    """Whoever is undone while a question is answered is there for all of the answer, or not."""
    engine.record("zoe", "v1")
    build_ = engine.current_build
    view = type(build_.snapshot.records.view())
    read = view._read
    n_reads = []

    def counted(self, *queries):
        n_reads.append(queries)
        found = read(self, *queries)
        if len(n_reads) == 1:
            engine.undo_record()
        return found

    for ask in (
        lambda: engine.search("kettle", user="zoe"),
        lambda: engine.recommend(user="zoe"),
        lambda: engine.history("zoe"),
        lambda: engine.users["zoe"],
    ):
        n_reads.clear()
        with monkeypatch.context() as patch:
            patch.setattr(view, "_read", counted)
            answer = ask()
        assert len(n_reads) == 1
        assert "No user" not in str(getattr(answer, "notes", ""))
        assert len(answer) > 0
        engine.record("zoe", "v1")


def test_what_is_recorded_while_it_learns_is_learned_the_next_time(tmp_path, monkeypatch):
    path = tmp_path / "ws"
    log = LOG.assign(quantity=2)
    engine = build(path, items=ITEMS, interactions=log, encoder="corpus")
    engine.record("zoe", "v1", weight=3)
    view = type(engine.current_build.snapshot.records.view())
    read = view._read

    def interrupted(self, *queries):
        found = read(self, *queries)
        with monkeypatch.context() as patch:
            patch.setattr(view, "_read", read)
            engine.record("zoe", "v1", weight=4)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(view, "_read", interrupted)
        assert engine.learn().recorded == 1
    (row,) = engine.history("zoe")
    assert row["weight"] == 7
    assert row["recorded"]


def test_a_held_mapping_of_users_has_all_that_it_lists(engine):
    engine.record("zoe", "v1")
    users = engine.users
    names = list(users)
    engine.record("yan", "v1")
    engine.undo_record()
    engine.undo_record()
    assert [users[name]["id"] for name in names] == names
    assert "zoe" not in engine.users


@pytest.mark.slow
def test_every_answer_is_whole_while_new_people_are_recorded(tmp_path):
    """In one thread new users are recorded and undone, in the other all questions are asked."""
    path = tmp_path / "ws"
    engine = build(path, items=ITEMS, interactions=LOG, encoder="corpus")
    ends = threading.Event()
    failures = []

    def record():
        with Engine(path) as other:
            number = 0
            while not ends.is_set():
                number += 1
                try:
                    other.record(f"new{number}", f"v{1 + number % 5}")
                    other.record("zoe", f"v{1 + number % 8}")
                    if number % 3 == 0:
                        other.undo_record()
                except Exception as error:
                    failures.append(error)
                    return

    def assert_whole(ranking):
        for i, hit in enumerate(ranking):
            reasons = ranking.reasons(i)
            assert sum(reason.value for reason in reasons) == pytest.approx(hit.score, abs=1e-4)

    thread = threading.Thread(target=record)
    thread.start()
    try:
        for n in range(2):
            assert_whole(engine.similar("v1"))
            assert_whole(engine.similar(["v1", "v6"], fields="kind"))
            assert_whole(engine.search("kettle", user="ann", facets="kind"))
            assert_whole(engine.search("kettle", user="zoe"))
            assert_whole(engine.recommend(user="zoe", explain=True))
            assert_whole(engine.recommend(likes=["v1"], user="ann"))
            assert engine.recommend(user="nobody at all").notes
            for name in list(engine.users.list())[:5]:
                assert name["interactions"] >= name["recorded"]
            frame = engine.users.to_frame()
            assert len(frame) >= 4
            listing = engine.records("zoe", k=2)
            assert listing.total >= len(listing)
            assert engine.show("v1")["users"] >= 4
            assert engine.items.list(sort="users")[0]["id"]
            out = tmp_path / f"all{n}.jsonl"
            written = engine.recommend_all(out, k=3)
            users = {line.split('"user":')[1].split(",")[0] for line in out.read_text().split("\n")
                     if line}  # fmt: skip
            assert len(users) <= written.users
            engine.export_embeddings(tmp_path / f"users{n}.npz", of="users")
            engine.evaluate_recommend(users=4)
            engine.map("collaborative", user="ann")
            assert engine.info()["recorded"] >= 0
            with suppress(UnknownIdError):
                assert engine.history("zoe").total >= 1
    finally:
        ends.set()
        thread.join()
    assert not failures


def test_similar_answers_without_the_records_that_only_its_reasons_need(tmp_path):
    path = tmp_path / "ws"
    with build(path, items=ITEMS, interactions=LOG, encoder="corpus") as engine:
        engine.record("zoe", "v1")
    file = path / "records.db"
    file.write_bytes(bytes(byte ^ 7 for byte in file.read_bytes()))
    with qkv.open(path) as engine:
        ranking = engine.similar("v1")
        assert [hit.id for hit in ranking]
        with pytest.raises(DamagedError):
            all_reasons(ranking)


def test_spellings_of_one_new_user_are_one_person(tmp_path):
    columns = qkv.Columns(fold_ids=True)
    with build(
        tmp_path, items=ITEMS, interactions=LOG, columns=columns, encoder="corpus"
    ) as engine:
        engine.record("Zoe", "v1")
        engine.record("zOE", "v2")
        engine.record("ANN", "v6")
        histories = engine.current_build.histories
        of_items = ItemUsers.of(histories, [0, 1, 5])
        assert of_items.liking(0).number_shared(of_items.liking(1)) == 5
        assert of_items.liking(0).number_shared(of_items.liking(5)) == 1
        assert engine.show("V6")["users"] == 1
