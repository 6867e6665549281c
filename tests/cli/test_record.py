"""`qkvsearch record` and `history`: say what they did, refuse what they cannot."""

from pathlib import Path

import pytest

from qkvsearch.engine import Engine
from qkvsearch.learn.recording import NewRow, Recording


@pytest.fixture
def films(films_path):
    return ("-w", films_path)


def history(qkv, films, user):
    return qkv(*films, "history", user, "--format", "json").json()


def test_the_next_recommend_knows_it(qkv, films):
    said = qkv(*films, "record", "newcomer", "Alien", 5)
    assert (said.code, said.stdout) == (0, "")
    assert said.stderr == "Recorded batch 1: user newcomer, Alien (m056), rated 5.\n"
    answer = qkv(*films, "recommend", "--user", "newcomer", "--explain", "--format", "json")
    assert [reason["title"] for reason in answer.json()[0]["because"]] == ["Alien"]


def test_a_rating_may_be_below_zero(qkv, movies_path):
    answer = qkv("-w", movies_path, "record", "u001", "Alien", "-3")
    assert answer.code == 1
    assert "a rating here is from 1 to 5, not -3" in answer.stderr


@pytest.mark.parametrize(
    "words",
    [("-q", "Alien", 5), ("--user", "Alien"), ("u001", "--item", "Alien"), ("u001", "Alien", "-x")],
)
def test_what_looks_like_an_option_is_no_user(qkv, films, words):
    answer = qkv(*films, "record", *words)
    assert (answer.code, answer.stdout) == (2, "")
    assert "No such option" in answer.stderr
    assert qkv(*films, "info", "--format", "json").json()[0]["recorded"] == 0


def test_an_address_is_no_file_and_its_password_is_not_shown(qkv, films):
    answer = qkv(*films, "record", "postgresql://me:hunter2@host/log")
    assert answer.code != 0
    assert "not a file" in answer.stderr
    assert "hunter2" not in answer.stderr


def test_after_two_dashes_a_user_may_begin_with_one(qkv, films):
    assert qkv(*films, "record", "--", "-q", "Alien").code == 0
    assert qkv(*films, "record", "--undo").stderr == "Took back batch 1: user -q, Alien (m056).\n"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("a", "b", 3, 4),
        ("a", "b", "great"),
        ("--undo", "a"),
        ("--undo", 1, "a"),
        ("--undo", "--again"),
        ("a", "b", "--again"),
        ("nowhere.csv",),
    ],
)
def test_what_names_nothing_to_record_is_wrong_usage(qkv, films, words):
    assert qkv(*films, "record", *words).code == 2


def test_an_event_has_one_weight(qkv, films):
    answer = qkv(*films, "record", "log.csv", "--event-weights", "view=1,view=2")
    assert answer.code == 2
    assert "write each NAME=NUMBER once" in answer.stderr


def test_undo_says_what_it_took_back_and_the_history_is_as_before(qkv, films):
    before = history(qkv, films, "u001")
    assert qkv(*films, "record", "u001", "Alien", 4).code == 0
    assert len(history(qkv, films, "u001")) == len(before) + 1
    answer = qkv(*films, "record", "--undo")
    assert answer.stderr == "Took back batch 1: user u001, Alien (m056), rated 4.\n"
    assert history(qkv, films, "u001") == before
    answer = qkv(*films, "record", "--undo")
    assert (answer.code, answer.stdout) == (1, "")
    assert "nothing is recorded here" in answer.stderr


def test_a_file_is_told_from_a_user_by_standing_alone(qkv, films):
    Path("today.csv").write_text("user,item,rating\nu001,m056,4\nnew,m001,5\nu001,zzz,3\n")
    answer = qkv(*films, "record", "today.csv")
    assert "3 rows read: 2 kept" in answer.stderr
    assert answer.stderr.endswith("Recorded batch 1: 2 interactions of 2 users.\n")
    assert qkv(*films, "record", "today.csv", "Alien").code == 0
    assert [row["title"] for row in history(qkv, films, "today.csv")] == ["Alien"]
    refused = qkv(*films, "record", "today.csv")
    assert (refused.code, "as batch 1" in refused.stderr) == (1, True)
    assert refused.stderr.endswith("(UTC); to record it once more: --again\n")
    undone = qkv(*films, "record", "--undo", 1).stderr
    assert undone == "Took back batch 1: 2 interactions of 2 users.\n"
    assert "no batch 1 was recorded, or it is undone" in qkv(*films, "record", "--undo", 1).stderr
    assert qkv(*films, "record", "today.csv").code == 0
    assert qkv(*films, "record", "today.csv", "--again").code == 0
    with Engine(films[1]) as engine:
        histories = engine.current_build.histories
        Recording(engine.workspace, histories, over_http=True).record([NewRow("x", "Alien", 4)])
    undone = [qkv(*films, "record", "--undo").stderr.split(":")[0] for _ in range(4)]
    assert undone == [f"Took back batch {n}" for n in (6, 4, 3)] + ["Error"]
    assert "number of a batch" in qkv(*films, "record", "--undo", 2**70).stderr
    assert "the last batch is 8, recorded by http" in qkv(*films, "record", "--undo").stderr


def test_the_columns_of_a_file_can_be_told(qkv, films):
    Path("today.csv").write_text("who,what\nu001,m056\n")
    told = ("--user-column", "who", "--item-column", "what")
    assert qkv(*films, "record", "today.csv", *told).code == 0
    assert qkv(*films, "record", "u001", "Alien", *told).code == 2


def test_a_history_marks_what_was_recorded(qkv, films):
    qkv(*films, "record", "u001", "Alien", 4)
    lines = qkv(*films, "history", "u001", "-k", 2).stdout.splitlines()
    assert lines[0].split() == ["id", "title", "confidence", "recorded", "rating", "time"]
    assert lines[1].split()[-4:-2] == ["yes", "4"]
    assert lines[-1].startswith("1 to 2 of ")


def test_records_are_listed_and_marked(qkv, films):
    assert qkv(*films, "records").stderr == "No records.\n"
    qkv(*films, "record", "u001", "Alien", 4)
    qkv(*films, "record", "new", "Heat")
    found = qkv(*films, "records", "--format", "json").json()
    assert list(found[0]) == [
        "number", "user", "item", "title", "rating", "weight", "time", "batch", "recorded",
        "client", "learned",
    ]  # fmt: skip
    assert [(row["number"], row["user"], row["title"]) for row in found] == [
        (2, "new", "Heat"), (1, "u001", "Alien")
    ]  # fmt: skip
    assert [row["learned"] for row in found] == [False, False]
    lines = qkv(*films, "records", "--user", "u001", "-k", 1).stdout.splitlines()
    assert lines[1].split()[:4] == ["1", "u001", "m056", "Alien"]
    assert lines[-1] == "1 record"


def test_a_log_is_added_after_the_items_that_it_is_about(qkv, films):
    Path("new.csv").write_text(
        "id,title,year,director,genres,plot\nm999,Late film,2026,A,Drama,War\n"
    )
    Path("may.csv").write_text("who,item,rating\nu001,m999,4\nu002,m999,5\nu001,zzz,3\n")
    told = ("--user-column", "who")
    answer = qkv(*films, "add", "new.csv", "--interactions", "may.csv", *told)
    assert (answer.code, answer.stdout) == (0, ""), answer.stderr
    assert "1 added" in answer.stderr
    assert "3 rows read: 2 kept" in answer.stderr
    assert answer.stderr.endswith("Recorded batch 1: 2 interactions of 2 users.\n")
    assert "m999" in [row["id"] for row in history(qkv, films, "u002")]
    assert "--again" in qkv(*films, "add", "--interactions", "may.csv", *told).stderr
    again = qkv(*films, "add", "--interactions", "may.csv", "--again", *told)
    assert again.code == 0, again.stderr
    assert len(qkv(*films, "records", "--format", "json").json()) == 4


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("x.csv", "--user-column", "who"),
        ("--interactions", "x.csv", "--title-column", "t"),
        ("--interactions", "x.csv", "--update"),
    ],
)
def test_columns_of_what_is_not_added_are_wrong_usage(qkv, films, words):
    assert qkv(*films, "add", *words).code == 2
