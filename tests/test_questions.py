"""The options of a question are the same in Python, on the command line and over HTTP."""

import gc
import inspect
import json
import threading
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.cli.rankings import recommend, search, similar
from qkvsearch.engine import Engine
from qkvsearch.errors import DataError, QkvError
from qkvsearch.rank import search as answering
from qkvsearch.rank.questions import (
    RecommendQuestion,
    SearchQuestion,
    SimilarQuestion,
    options_of,
)

QUESTIONS = {
    "search": SearchQuestion,
    "recommend": RecommendQuestion,
    "similar": SimilarQuestion,
}
COMMANDS = {"search": search, "recommend": recommend, "similar": similar}
# Options that one of them does not have, and why.
NOT_A_COMMANDS = {"because": "`--explain full` lists all"}
NOT_OVER_HTTP = {
    "query": "is `q`",
    "only": "a list of ids is long: `where` is for a request",
    "ratings": "is `rate` in an address",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_method_has_the_options_of_its_question_and_their_defaults(name):
    parameters = dict(inspect.signature(getattr(Engine, name)).parameters)
    del parameters["self"]
    options = options_of(QUESTIONS[name])
    assert set(parameters) == set(options)
    for option, parameter in parameters.items():
        is_required = parameter.default is parameter.empty
        default = inspect.Parameter.empty if is_required else options[option].default
        assert parameter.default == default, option


def test_recommending_to_all_has_the_defaults_of_recommending_to_one():
    options = options_of(RecommendQuestion)
    parameters = inspect.signature(Engine.recommend_all).parameters
    shared = options.keys() & parameters.keys()
    assert len(shared) == 9
    for name in shared:
        assert parameters[name].default == options[name].default, name


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_command_has_the_options_of_its_question_and_their_defaults(name):
    command = COMMANDS[name]
    values = command.make_context(name, ["Heat"] if name != "recommend" else []).params
    help_of = {parameter.name: getattr(parameter, "help", "") for parameter in command.params}
    for option, described in options_of(QUESTIONS[name]).items():
        if option in NOT_A_COMMANDS:
            continue
        if option not in ("query", "items"):
            # Nothing chosen is (), {}, "" or None.
            assert (values[option] or None) == (described.default or None), option
        # These say more there, or take a file.
        if option not in ("query", "items", "explain", "user", "only"):
            assert described.help.rstrip(".") in help_of[option]


def test_a_request_has_the_options_of_its_question_and_their_defaults():
    pytest.importorskip("fastapi", reason="needs qkvsearch[web]")
    from qkvsearch.web.api import ranking_routes as routes

    models = {
        "search": [routes.SearchParameters],
        "recommend": [routes.RecommendParameters, routes.RecommendBody],
        "similar": [routes.SimilarParameters],
    }
    for name, question in QUESTIONS.items():
        for model in models[name]:
            options = options_of(question)
            missing = options.keys() - model.model_fields.keys()
            assert missing <= NOT_OVER_HTTP.keys()
            for option in options.keys() - missing - {"items", "because"}:
                default = model.model_fields[option].get_default(call_default_factory=True)
                default = default or None
                assert default == (options[option].default or None), option


# What each option is asked with. `None` stands for no way to say it on the command line.
ASKED = {
    "k": (3, ["-k", "3"]),
    "offset": (2, ["--offset", "2"]),
    "where": ("year >= 2000", ["--where", "year >= 2000"]),
    "fields": (["year"], ["--fields", "year"]),
    "distinct": ("year", ["--distinct", "year"]),
    "temperature": (0.25, ["--temperature", "0.25"]),
}
ONLY_OF = {
    "search": {
        "heads": ("lexical", ["--heads", "lexical"]),
        "user": ("u001", ["--user", "u001"]),
        "facets": (["year"], ["--facets", "year"]),
        "snippet": (True, ["--snippet"]),
        "prefix": (True, ["--prefix"]),
        "anyway": (True, ["--anyway"]),
        "weak": (False, ["--no-weak"]),
        "sort": ("-year", ["--sort", "-year"]),
    },
    "recommend": {
        "likes": ("Heat", ["--like", "Heat"]),
        "ratings": ({"Heat": 4.5}, ["--rate", "Heat=4.5"]),
        "without": ("The Goonies", ["--without", "The Goonies"]),
        "exclude": ("The Matrix", ["--exclude", "The Matrix"]),
        "seen": (True, ["--seen"]),
        "heads": ("neighbours", ["--heads", "neighbours"]),
        "damping": (0.5, ["--damping", "0.5"]),
        "diversity": (0.5, ["--diversity", "0.5"]),
    },
    "similar": {"exclude": ("The Matrix", ["--exclude", "The Matrix"])},
}
FIRST = {
    "search": (["space war"], {"query": "space war"}),
    "recommend": (["--user", "u001"], {"user": "u001"}),
    "similar": (["Heat"], {"items": "Heat"}),
}


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, option) for name in QUESTIONS for option in [*ASKED, *ONLY_OF[name]]],
)
def test_an_option_means_the_same_on_the_command_line(movies, movies_path, qkv, name, option):
    value, words = {**ASKED, **ONLY_OF[name]}[option]
    arguments, keywords = FIRST[name]
    done = qkv("-w", movies_path, name, *arguments, *words, "--format", "json")
    found = json.loads(done.stdout)
    expected = getattr(movies, name)(**keywords | {option: value}).to_records()
    assert [row["id"] for row in found] == [row["id"] for row in expected]
    assert [row["score"] for row in found] == pytest.approx([row["score"] for row in expected])


# --- a question is checked when it is made ---


def test_a_question_names_the_option_that_is_wrong():
    with pytest.raises(DataError, match="`k` must be a whole number, at least 0, not -1"):
        SearchQuestion(query="war", k=-1)
    with pytest.raises(QkvError, match="`model`"):
        RecommendQuestion(user="u001", model="nxt-item")
    with pytest.raises(QkvError, match="`recent`"):
        RecommendQuestion(user="u001", model="next-item", recent=3)


def test_a_question_does_not_change():
    question = SearchQuestion(query="war")
    for field in fields(question):
        with pytest.raises(AttributeError):
            setattr(question, field.name, None)


# --- a build lives as long as somebody needs it ---

ITEMS = pd.DataFrame({"id": [1, 2, 3], "title": ["red kite", "blue kite", "steel kettle"]})
MORE = pd.DataFrame({"id": [4], "title": ["green kite"]})


@pytest.fixture
def engine(tmp_path):
    with qkvsearch.build(tmp_path / "ws", items=ITEMS, encoder="corpus") as engine:
        engine.search("kite", snippet=True)
        engine.similar(1)
        # What is closed here is closed without the garbage collector.
        gc.collect()
        gc.disable()
        yield engine
        gc.enable()


def is_closed(catalog):
    return all(segment._is_closed for segment in catalog.segments)


def test_an_old_build_is_closed_when_nobody_asks_it(engine):
    catalog = engine.catalog
    engine.add(MORE)
    assert is_closed(catalog)
    assert not is_closed(engine.catalog)


def test_an_old_build_is_closed_when_the_last_question_that_uses_it_ends(engine, monkeypatch):
    begun, may_end, found = threading.Event(), threading.Event(), []
    without_pause = answering.rank

    def slowly(*args, **options):
        begun.set()
        assert may_end.wait(60)
        return without_pause(*args, **options)

    monkeypatch.setattr(answering, "rank", slowly)
    catalog = engine.catalog
    asking = threading.Thread(
        target=lambda: found.extend(hit.id for hit in engine.search("kite", snippet=True))
    )
    asking.start()
    assert begun.wait(60)
    engine.add(MORE)
    assert not is_closed(catalog)
    may_end.set()
    asking.join()
    assert sorted(found) == [1, 2]
    assert is_closed(catalog)


def test_an_answer_can_be_explained_after_its_build_was_replaced(engine):
    catalog = engine.catalog
    ranking, items = engine.similar(1), engine.items
    expected = ranking.explained_records()
    ranking = engine.similar(1)
    engine.add(MORE)
    engine.remove(2)
    assert ranking.explained_records() == expected
    assert (items[2]["title"], len(items)) == ("blue kite", 3)
    del ranking
    assert not is_closed(catalog)
    del items
    assert is_closed(catalog)


def test_the_parts_of_a_head_can_be_asked_after_its_build_was_replaced(engine):
    scores = engine.head("lsa", "red tent")
    expected = scores.parts(0).sums.tolist()
    engine.remove([next(iter(engine.items.ids))])
    gc.collect()
    assert scores.parts(0).sums.tolist() == expected


def test_an_engine_that_is_closed_closes_what_others_still_hold(engine):
    items, catalog = engine.items, engine.catalog
    engine.close()
    assert is_closed(catalog)
    with pytest.raises(QkvError, match="closed"):
        items[1]


def test_numbers_of_numpy_are_numbers():
    assert SearchQuestion(query="war", k=np.int64(3), temperature=np.float32(2)).n_ranked == 3
