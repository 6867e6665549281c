"""Every question of an engine refuses what its arguments cannot be, and names the argument."""

import inspect
from functools import partial

import numpy as np
import pytest

import qkvsearch
from qkvsearch.engine import Engine
from qkvsearch.errors import DataError, QkvError
from qkvsearch.rank.questions import OPTIONS, check
from qkvsearch.tables.columns import Columns

NAN, INF = float("nan"), float("inf")
# The `users` of `recommend_many` are ids, and those of `evaluate_recommend` a number.
NOT_NUMBERS = {"recommend_many"}
NUMBERS = {name for name, option in OPTIONS.items() if option.minimum is not None}
# What each parameter cannot be; `None` stands for a default in some.
REFUSED = {
    "k": [-1, 2.5, NAN, INF, "3", True, None],
    "temperature": [0, -1, NAN, INF, -INF, "1", True],
    "damping": [-0.1, NAN, INF, -INF, "1", True, None],
    "diversity": [-0.1, 1.01, NAN, INF, "1", True, None],
    "offset": [-1, 0.5, NAN, "3", True, None],
    "passages": [-1, 0.5, NAN, "3", True, None],
    "recent": [0, 0.5, -3, NAN, INF, "1", True],
    "trials": [0, -1, 2.5, NAN, INF, "3", True],
    "because": [0, -1, 2.5, NAN, "3", True],
    "users": [-1, 2.5, NAN, INF, "3", True],
    "minutes": [0, -1, NAN, INF, "1", True],
    "random_state": [-1, 0.5, NAN, "0", True, None],
}
# What it can, at the ends of what is allowed; numbers of NumPy as well.
TAKEN = {
    "k": [0, 1, np.int32(3), 10**6],
    "temperature": [None, 1e-300, 1, np.float32(2)],
    "damping": [0, 0.0, np.float64(0.5), 1e6],
    "diversity": [0, 1, np.float32(0.5)],
    "offset": [0, 3, np.int64(4), 10**6],
    "passages": [0, 3, np.int64(4), 10**6],
    "recent": [None, 1, 2.5, np.int64(4)],
    "trials": [None, 1, np.int64(4)],
    "because": [None, 1, np.int64(4)],
    "users": [None, 0, 1, np.int64(4)],
    "minutes": [None, 1e-9, 60],
    "random_state": [0, np.int64(7)],
}
# What each question is asked with beside the argument that is tested.
QUESTIONS = {
    "search": ("war",),
    "recommend": (),
    "recommend_all": ("all.csv",),
    "similar": ("Heat",),
    "history": ("u001",),
    "records": (),
    "searches": (),
    "map": (),
    "evaluate_search": (),
    "evaluate_recommend": (),
    "compare": (),
    "tune": (),
    "tune_search": (),
}


# Each question with each of its arguments that is a number.
ASKED = [
    pytest.param(question, positional, name, id=f"{question}-{name}")
    for question, positional in QUESTIONS.items()
    for name in inspect.signature(getattr(Engine, question)).parameters
    if name in NUMBERS
]


def test_every_argument_is_here():
    assert set(REFUSED) == set(TAKEN) == set(NUMBERS)
    public = [name for name in {*dir(Engine)} - NOT_NUMBERS if not name.startswith("_")]
    with_numbers = {
        name
        for name in public
        if callable(getattr(Engine, name))
        and set(inspect.signature(getattr(Engine, name)).parameters) & set(NUMBERS)
    }
    assert with_numbers == set(QUESTIONS)


@pytest.mark.parametrize(("question", "positional", "name"), ASKED)
def test_what_cannot_be_is_refused_by_its_name(
    movies, tmp_path, monkeypatch, question, positional, name
):
    monkeypatch.chdir(tmp_path)
    ask = partial(getattr(movies, question), *positional)
    if question == "recommend":
        ask = partial(ask, user="u001")
    refused = REFUSED[name] + [0] * (name == "k" and question in ("evaluate_recommend", "tune"))
    if question in ("history", "records", "searches"):  # all that is known, where no number is told
        refused = [value for value in refused if value is not None]
    for value in refused:
        with pytest.raises(QkvError, match=f"`{name}` must be "):
            ask(**{name: value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_what_can_be_is_taken(name):
    for value in TAKEN[name]:
        check(**{name: value})


def test_a_refusal_says_what_was_given():
    with pytest.raises(
        QkvError, match=r"^`damping` must be a number from 0 to 1,000,000,000, not nan$"
    ):
        check(k=3, damping=NAN)


def test_defaults_of_methods_are_those_that_the_command_line_and_the_web_api_have():
    for question in set(QUESTIONS) - {"history", "records", "searches"}:
        for name, parameter in inspect.signature(getattr(Engine, question)).parameters.items():
            if name in NUMBERS and parameter.default is not parameter.empty:
                assert parameter.default == OPTIONS[name].default, (question, name)


# --- types ---

OBJECT = object()
# What an argument with this annotation cannot be.
WRONG = {
    "bool": [None, 5, "no", [], OBJECT],
    "str": [None, 5, b"x", [], {}, OBJECT],
    "str | None": [5, b"x", [], {}, OBJECT],
    "Hidden": [None, 5.5, b"x", [None], [0.5], {"a": 1}, OBJECT],
    "str | Path": [None, 5, b"x", [], "a\0b", "\ud800"],
    "str | Iterable[str]": [None, 5, b"x", [None], [5], {"x": 1.0}, OBJECT],
    "str | Iterable[str] | None": [5, b"x", [None], [5], {"lexical": -1.0}, OBJECT],
    "str | Path | Queries": [None, 5, [], "a\0b"],
    "str | Path | Queries | Sequence[str] | None": [5, [], [5], {}, {"q": 5}, "a\0b"],
    "str | Path | Judgements": [None, 5, [], {"a": 1}],
    "str | Path | Synonyms | None": [5, [], {"a": 1}, "a\0b"],
    "float | None": ["x", [], OBJECT],
    "int | None": ["x", [], OBJECT],
    "Columns | None": [5, "id", {"id": "a"}],
    "Progress | None": [5, "x"],
    "Callable[[str], None] | None": [5, "x"],
    "Callable[[list[Trial]], None] | None": [5, "x"],
}
# The functions that take arguments, and what they need.
QUERIES, QRELS = {"q": "war"}, {"q": {"m001": 1}}
FUNCTIONS = {
    "search": {"query": "war"},
    "head": {"name": "lexical", "query": "war"},
    "recommend": {"user": "u001"},
    "recommend_many": {"users": ["u001"]},
    "recommend_all": {"path": "all.csv"},
    "similar": {"items": "Heat"},
    "show": {"item": "Heat"},
    "history": {"user": "u001"},
    "records": {},
    "searches": {},
    "attend": {"text": "a war"},
    "encode": {"texts": "war"},
    "map": {},
    "export_embeddings": {"path": "all.npz"},
    "info": {},
    "record": {"user": "u001", "item": "Heat"},
    "record_many": {"source": "none.csv"},
    "undo_record": {},
    "add": {"items": "none.csv"},
    "sync": {"items": "none.csv"},
    "remove": {"items": "Heat"},
    "learn": {},
    "compact": {},
    "rollback": {},
    "add_rule": {"pin": "war", "items": ["Heat"]},
    "remove_rule": {"number": 1},
    "forget": {"user": "u001"},
    "evaluate_search": {"queries": QUERIES, "qrels": QRELS},
    "evaluate_recommend": {},
    "compare": {"queries": QUERIES, "heads": "lexical"},
    "tune": {},
    "tune_search": {},
    "reset_tuning": {},
    "build": {"path": "new", "items": "none.csv"},
    "open": {"path": "none"},
    "repair": {"path": "none"},
}
WITHOUT_ARGUMENTS = {"builds", "close", "rules"}


def function_of(engine, name):
    return getattr(qkvsearch if name in ("build", "open", "repair") else engine, name)


TYPED = [
    pytest.param(name, argument, annotation, id=f"{name}-{argument}")
    for name in FUNCTIONS
    for argument, parameter in inspect.signature(function_of(Engine, name)).parameters.items()
    if (annotation := parameter.annotation) in WRONG
]


def test_every_function_is_here():
    public = {name for name in dir(Engine) if not name.startswith("_")}
    methods = {name for name in public if callable(getattr(Engine, name))}
    assert methods | {"build", "open", "repair"} == set(FUNCTIONS) | WITHOUT_ARGUMENTS


@pytest.mark.parametrize(("name", "argument", "annotation"), TYPED)
def test_a_value_of_another_type_is_refused_by_the_name_of_the_argument(
    movies, tmp_path, monkeypatch, name, argument, annotation
):
    monkeypatch.chdir(tmp_path)
    for value in WRONG[annotation]:
        with pytest.raises(QkvError, match=f"`{argument}`") as caught:
            function_of(movies, name)(**FUNCTIONS[name] | {argument: value})
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_ratings_of_another_type_are_refused(movies):
    for value in ([], np.array([1, 2]), 5, "Heat"):
        with pytest.raises(QkvError, match="`ratings`"):
            movies.recommend(ratings=value)


@pytest.mark.parametrize("name", ["text", "ignore"])
def test_numbers_beside_the_names_of_columns_are_refused(name):
    with pytest.raises(DataError, match=f"`{name}.*` must be a text or a list of texts"):
        Columns(**{name: {"title": 0.5}})
