"""A recorded event counts as such events of the log that the build has learned from."""

import shutil

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engine import Engine
from qkvsearch.errors import QkvError

GOODS = pd.DataFrame({"id": range(1, 7), "title": [f"{n} lamp" for n in "abcdef"]})
LOG = pd.DataFrame(
    [(f"u{n}", n % 6 + 1, event) for n in range(18) for event in ("view", "purchase", "refund")],
    columns=["user", "item", "event"],
)
WEIGHTS = {"view": 1, "Purchase": 5, "refund": -5, "hover": 0}
OF_EVENTS = qkv.Columns(event="event", event_weights=WEIGHTS)


def built(path, **columns):
    qkv.build(path, items=GOODS, interactions=LOG, encoder="corpus", **columns).close()
    return path


@pytest.fixture(scope="module")
def stated_path(tmp_path_factory):
    return built(tmp_path_factory.mktemp("stated") / "ws", columns=OF_EVENTS)


@pytest.fixture
def stated_copy(stated_path, tmp_path):
    return shutil.copytree(stated_path, tmp_path / "ws")


@pytest.fixture
def stated(stated_copy):
    with Engine(stated_copy) as engine:
        yield engine


def test_an_event_has_the_weight_of_the_build(stated):
    assert stated.record("new", 1, event="PURCHASE")[0]["weight"] == 5
    assert stated.record("new", 2, event="view")[0]["weight"] == 1
    assert stated.record("new", 3, event="purchase", weight=3)[0]["weight"] == 15
    assert stated.record("new", 3, event="purchase", weight=-1)[0]["weight"] == -5
    assert stated.record("new", 3, event="refund")[0]["weight"] == -5
    # As the same events of a file.
    rows = [("other", 1, "purchase"), ("other", 2, "view"), ("other", 3, "purchase")]
    stated.record_many(pd.DataFrame(rows, columns=["user", "item", "event"]))
    weights = {row["id"]: row["weight"] for row in stated.history("other")}
    assert weights == {1: 5, 2: 1, 3: 5}


@pytest.mark.parametrize("event", ["teleport", "hover", ""])
def test_an_event_without_a_weight_is_refused_by_its_name(stated, event):
    with pytest.raises(QkvError, match=f"'{event}'"):
        stated.record("new", 1, event=event)
    assert stated.info()["recorded"] == 0


def test_without_stated_weights_common_events_have_the_usual_ones(tmp_path):
    with Engine(built(tmp_path / "ws")) as engine:
        (row,) = engine.record("new", 1, event="view")
        (more,) = engine.record("new", 2, event="purchase")
        assert 0 < row["weight"] < more["weight"]
        with pytest.raises(QkvError, match=r"'teleport'.*`event_weights`"):
            engine.record("new", 1, event="teleport")


def test_a_log_without_events_has_no_weight_for_one(films):
    with pytest.raises(QkvError, match=r"`event`: 'view' .*no column of events"):
        films.record("u001", "Alien", event="view")
