"""Whatever stands in the place of an argument: it works, or the error names the argument."""

from __future__ import annotations

import datetime
import decimal
import inspect
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import qkvsearch
from qkvsearch._utils.checked import KINDS, OF_QUESTIONS, id_of, shown, text_of
from qkvsearch._utils.limits import QUERY
from qkvsearch.engine import Engine, build, repair
from qkvsearch.engine.rows import ItemRows, UserRows
from qkvsearch.errors import QkvError

METHODS = {
    f"{cls.__name__}.{name}": method
    for cls in (Engine, ItemRows, UserRows)
    for name, method in inspect.getmembers(cls, inspect.isfunction)
    if not name.startswith("_")
} | {"build": build, "repair": repair}
ARGUMENTS = [
    pytest.param(function, parameter, id=f"{name}-{parameter.name}")
    for name, function in METHODS.items()
    for parameter in inspect.signature(function).parameters.values()
    if parameter.name not in ("self", *OF_QUESTIONS)  # those in tests/test_arguments.py
]


class Unshown:
    """It cannot even say what it is."""

    def __repr__(self):
        raise RuntimeError("no repr")


# What no parameter takes.
NOTHING = [1j, Unshown(), pd.NA, float("nan"), b"\xff"]
# What questions are asked with beside the argument that is drawn.
QUESTIONS = {
    "search": {"query": "apple"},
    "head": {"name": "lexical", "query": "apple"},
    "recommend": {"user": 101},
    "similar": {"items": 1},
    "similar_users": {"user": 101},
    "show": {"item": 1},
    "history": {"user": 101},
    "attend": {"text": "red apple hammer"},
    "encode": {"texts": "red apple"},
    "info": {},
    "remove": {"items": 1, "dry_run": True},
    "evaluate_search": {"queries": {"q": "apple"}, "qrels": {"q": {"1": 1}}},
}
numbers = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.integers(3, 5000).map(lambda n: (-10) ** n)
)
texts = st.one_of(
    st.text(st.characters(), max_size=8),  # surrogates as well
    st.sampled_from(["", "x\0y", "\ud800", "a" * 300_000, "id:1", "made > 1", "apple", "1e5"]),
)
numpys = st.sampled_from(
    [np.int64(1), np.float32(2.5), np.bool_(True), np.array([1, 2]), np.array(["1"]), np.str_("1")]
)
others = st.sampled_from(
    [None, pd.NA, 1j, b"1", bytearray(b"1"), object(), type, datetime.date(2020, 1, 1),
     decimal.Decimal("1.5"), Path("nowhere"), pd.Series([1, 2]), pd.DataFrame({"id": [1]})]
)  # fmt: skip
anything = st.recursive(
    st.one_of(numbers, texts, numpys, others, st.builds(Unshown)),
    lambda one: st.one_of(
        st.lists(one, max_size=3),
        st.tuples(one, one),
        st.dictionaries(st.text(max_size=3), one, max_size=2),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def engine(shop_path):
    with Engine(shop_path) as engine:
        yield engine


@pytest.mark.parametrize(("function", "parameter"), ARGUMENTS)
def test_every_argument_is_refused_by_its_name_before_anything_is_done(function, parameter):
    """Nor is there an engine: nothing but the arguments is looked at."""
    needed = {
        other.name: "1"
        for other in inspect.signature(function).parameters.values()
        if other.default is other.empty
    }
    for wrong in NOTHING:
        with pytest.raises(QkvError, match=f"`{parameter.name}` is ") as caught:
            function(**{**needed, parameter.name: wrong})
        assert "\n" not in str(caught.value)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_question_asked_with_anything_is_answered_or_refused(engine, data):
    question = data.draw(st.sampled_from(sorted(QUESTIONS)))
    method = getattr(engine, question)
    names = [name for name in inspect.signature(method).parameters if name != "progress"]
    name = data.draw(st.sampled_from(names)) if names else None
    given_ = QUESTIONS[question] | ({name: data.draw(anything)} if name else {})
    answered_or_refused(lambda: method(**given_))


@settings(max_examples=40, deadline=None)
@given(value=anything)
def test_rows_are_looked_up_by_anything(engine, value):
    for rows in (engine.items, engine.users):
        assert (value in rows) in (True, False)
        answered_or_refused(lambda rows=rows: rows[value])
        answered_or_refused(lambda rows=rows: rows.list(where=value, k=3))
    answered_or_refused(lambda: engine.items.list(fields=value, k=3))


def answered_or_refused(ask):
    said = "answered"
    try:
        ask()
    except QkvError as error:
        said = str(error)
    assert said.encode()  # can be shown
    assert "\n" not in said


@settings(max_examples=40, deadline=None)
@given(user=anything, item=st.one_of(st.just(1), anything), rating=anything)
def test_what_is_recorded_can_be_read_again(tmp_path_factory, shop_copy, user, item, rating):
    answered_or_refused(lambda: shop_copy.record(user, item, rating))
    assert all(math.isfinite(row["rating"] or 0) for row in shop_copy.history(101))
    assert len(shop_copy.users) == len(list(shop_copy.users))


@pytest.fixture(scope="module")
def shop_copy(shop_items, shop_log, tmp_path_factory):
    path = tmp_path_factory.mktemp("copy") / "ws"
    with qkvsearch.build(path, items=shop_items, interactions=shop_log, encoder="corpus") as engine:
        yield engine


@settings(max_examples=20, deadline=None)
@given(
    frame=st.builds(
        lambda ids, cells: pd.DataFrame(
            {"id": pd.Series(ids, dtype=object), "title": pd.Series(cells, dtype=object)}
        ),
        st.lists(anything, max_size=4),
        st.lists(anything, max_size=4),
    )
)
def test_a_frame_of_anything_is_built_or_refused(tmp_path_factory, frame):
    path = tmp_path_factory.mktemp("frame") / "ws"
    answered_or_refused(lambda: build(path, items=frame, encoder="corpus").close())


def test_numbers_of_numpy_and_names_of_all_kinds_work(engine):
    assert engine.search("apple", k=np.int64(2))[1].rank == 2
    assert engine.show(np.int64(1)) == engine.show("1") == engine.show(1.0)
    one = engine.recommend(likes=(i for i in [1]), only=np.array([2, 3]), explain=np.bool_(True))
    assert {hit.id for hit in one} == {2, 3}


def test_a_text_has_a_limit():
    assert text_of("query", "a" * QUERY.most)
    with pytest.raises(QkvError, match="`query`: more than 200,000 characters"):
        text_of("query", "a" * (QUERY.most + 1))
    with pytest.raises(QkvError, match="`user` is text that can be stored"):
        id_of("user", "\ud800")


def test_a_value_is_shown_whatever_it_is():
    assert shown(Unshown()) == "a value of type Unshown"
    assert shown(10**5000) == "a value of type int"
    assert len(shown("a" * 1000)) == 60


def test_every_annotation_has_its_check():
    assert all(callable(kind) for kind in KINDS.values())
