"""Ids, texts and cells that users get wrong: a question is answered, or one line says why not."""

import datetime
import decimal
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import qkvsearch
from qkvsearch._utils.limits import QUERY
from qkvsearch._utils.validation import check_id, check_text, displayed
from qkvsearch.engine import Engine, build
from qkvsearch.errors import QkvError


class Unshown:
    """Its `repr` fails."""

    def __repr__(self):
        raise RuntimeError("no repr")


# Values that no id can be.
NO_IDS = [1j, Unshown(), pd.NA, float("nan"), float("inf"), b"\xff", True, "\ud800"]
# Parameters that are ids or titles, by question, with its other arguments.
ID_PARAMETERS = {
    ("search", "user"): {"query": "apple"},
    ("recommend", "user"): {},
    ("recommend", "likes"): {},
    ("recommend", "without"): {"user": 101},
    ("recommend", "exclude"): {"user": 101},
    ("recommend", "only"): {"user": 101},
    ("similar", "items"): {},
    ("similar", "exclude"): {"items": 1},
    ("show", "item"): {},
    ("history", "user"): {},
    ("records", "user"): {},
    ("forget", "user"): {},
    ("remove", "items"): {},
    ("record", "user"): {"item": 1},
    ("record", "item"): {"user": 101},
}
# Questions with the parameters that take any text.
TEXT_PARAMETERS = {
    ("search", "query"): {},
    ("search", "heads"): {"query": "apple"},
    ("search", "where"): {"query": "apple"},
    ("search", "fields"): {"query": "apple"},
    ("search", "facets"): {"query": "apple"},
    ("recommend", "model"): {"user": 101},
    ("attend", "text"): {},
    ("attend", "mask"): {"text": "red apple hammer"},
    ("encode", "texts"): {},
    ("encode", "head"): {"texts": "red apple"},
}
texts = st.one_of(
    st.text(st.characters(), max_size=8),  # surrogates as well
    st.sampled_from(["", "x\0y", "\ud800", "a" * 300_000, "id:1", "made > 1", "apple", "1e5"]),
)
ids = st.one_of(
    st.integers(),
    st.floats(),
    st.integers(3, 5000).map(lambda n: (-10) ** n),
    texts,
    st.sampled_from([*NO_IDS, np.int64(1), np.float32(2.5), np.str_("1"), np.bool_(True)]),
)
cells = st.one_of(
    ids,
    st.sampled_from([None, bytearray(b"1"), object(), type, datetime.date(2020, 1, 1)]),
    st.just(decimal.Decimal("1.5")),
    st.lists(ids, max_size=2),
)


@pytest.fixture(scope="module")
def engine(shop_path):
    with Engine(shop_path) as engine:
        yield engine


@pytest.fixture(scope="module")
def shop_copy(shop_items, shop_log, tmp_path_factory):
    path = tmp_path_factory.mktemp("copy") / "ws"
    with qkvsearch.build(path, items=shop_items, interactions=shop_log, encoder="corpus") as engine:
        yield engine


def answered_or_refused(ask):
    message = "answered"
    try:
        ask()
    except QkvError as error:
        message = str(error)
    assert message.encode()  # can be shown
    assert "\n" not in message


@pytest.mark.parametrize(("question", "parameter"), ID_PARAMETERS)
def test_what_cannot_be_an_id_is_refused_by_the_name_of_the_parameter(engine, question, parameter):
    for value in NO_IDS:
        arguments = ID_PARAMETERS[question, parameter] | {parameter: value}
        with pytest.raises(QkvError, match=f"`{parameter}` must be ") as caught:
            getattr(engine, question)(**arguments)
        assert "\n" not in str(caught.value)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_question_about_any_id_or_text_is_answered_or_refused(engine, data):
    read_only = [key for key in ID_PARAMETERS if key[0] not in ("forget", "remove", "record")]
    question, parameter = data.draw(st.sampled_from([*read_only, *TEXT_PARAMETERS]))
    is_id = (question, parameter) in ID_PARAMETERS
    others = (ID_PARAMETERS if is_id else TEXT_PARAMETERS)[question, parameter]
    arguments = others | {parameter: data.draw(ids if is_id else texts)}
    answered_or_refused(lambda: getattr(engine, question)(**arguments))


@settings(max_examples=40, deadline=None)
@given(value=ids)
def test_rows_are_looked_up_by_any_id(engine, value):
    for rows in (engine.items, engine.users):
        assert (value in rows) in (True, False)
        answered_or_refused(lambda rows=rows: rows[value])


@settings(max_examples=40, deadline=None)
@given(user=ids, item=st.one_of(st.just(1), ids), rating=st.one_of(st.none(), ids))
def test_what_is_recorded_can_be_read_again(shop_copy, user, item, rating):
    answered_or_refused(lambda: shop_copy.record(user, item, rating))
    assert all(math.isfinite(row["rating"] or 0) for row in shop_copy.history(101))
    assert len(shop_copy.users) == len(list(shop_copy.users))


@settings(max_examples=10, deadline=None)  # each builds
@given(
    frame=st.builds(
        lambda ids, cells: pd.DataFrame(
            {"id": pd.Series(ids, dtype=object), "title": pd.Series(cells, dtype=object)}
        ),
        st.lists(cells, max_size=4),
        st.lists(cells, max_size=4),
    )
)
def test_a_frame_of_any_cells_is_built_or_refused(tmp_path_factory, frame):
    path = tmp_path_factory.mktemp("frame") / "ws"
    answered_or_refused(lambda: build(path, items=frame, encoder="corpus").close())


def test_what_is_neither_a_file_nor_a_frame_is_refused_by_its_name(tmp_path):
    with pytest.raises(
        QkvError, match="`items` must be a file, a pandas frame, or a list of them, not"
    ):
        build(tmp_path / "ws", items={"id": [1], "title": ["apple"]})
    assert not (tmp_path / "ws").exists()


def test_numbers_of_numpy_and_names_of_all_kinds_work(engine):
    assert engine.search("apple", k=np.int64(2))[1].rank == 2
    assert engine.show(np.int64(1)) == engine.show("1") == engine.show(1.0)
    one = engine.recommend(likes=(i for i in [1]), only=np.array([2, 3]), explain=np.bool_(True))
    assert {hit.id for hit in one} == {2, 3}


def test_a_text_has_a_limit():
    assert check_text("query", "a" * QUERY.value)
    with pytest.raises(QkvError, match="`query`: more than 200,000 characters"):
        check_text("query", "a" * (QUERY.value + 1))
    with pytest.raises(QkvError, match="`user` must be a text without lone surrogates"):
        check_id("user", "\ud800")


def test_a_value_is_displayed_whatever_it_is():
    assert displayed(Unshown()) == "a value of type Unshown"
    assert displayed(10**5000) == "a value of type int"
    assert len(displayed("a" * 1000)) == 60
