"""What a person gets who sets nothing: every default in one table, chosen by the benchmarks and not
to be changed by the way. One that is changed on purpose is measured first and then written here.
"""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import qkvsearch
from qkvsearch.evaluation import systems
from qkvsearch.models import next_item

ROOT = Path(qkvsearch.__file__).parent

MODELS = {
    "ImplicitALS": {
        "n_components": 64, "max_iter": 10, "alpha0": "auto", "reg": "auto", "nu": 1.0,
        "cg_steps": 2, "init_scale": 0.1, "n_threads": None, "random_state": None, "callback": None,
    },
    "BiasedMF": {
        "n_components": 64, "max_iter": 20, "learning_rate": 0.045, "reg": 0.04, "damping": 50.0,
        "bias_reg": 3.0, "init_scale": 0.01, "n_threads": None, "random_state": None,
        "callback": None,
    },
    "NextItem": {
        "n_components": 64, "n_layers": 2, "n_heads": 2, "n_positions": 100, "dropout": 0.2,
        "learning_rate": 0.002, "max_iter": 20, "max_minutes": 10.0, "batch_size": 32,
        "random_state": None, "callback": None,
    },
    "CorpusEncoder": {"n_components": 128, "random_state": 0, "language": "english"},
    "CooccurrenceEncoder": {
        "n_components": 128, "smoothing": 0.75, "random_state": 0, "language": "english",
    },
    "ContrastiveEncoder": {
        "n_components": 128, "init": "ppmi", "temperature": 0.2, "epochs": 20, "batch_size": 128,
        "learning_rate": 0.003, "dropout": 0.2, "held_out": 0.2, "max_items": 5000,
        "random_state": 0, "language": "english",
    },
}  # fmt: skip

BASELINES = {
    "Popularity": {"callback": None},
    "ItemKNN": {"n_neighbors": 100, "shrinkage": 20.0, "callback": None},
    "EASE": {"reg": 400.0, "callback": None},
}

ENGINE = {
    "search": {
        "k": 10, "heads": None, "user": None, "strict_user": False,
        "where": None, "fields": (), "distinct": None, "offset": 0,
        "temperature": None, "prefix": False, "facets": (),
        "snippet": False, "explain": False, "anyway": False,
    },
    "recommend": {
        "user": None, "strict_user": False, "likes": (), "ratings": None, "without": (),
        "exclude": (), "k": 10, "where": None, "only": None, "seen": False,
        "model": "preferences", "heads": None, "recent": None, "damping": 0.0, "diversity": 0.0,
        "fields": (), "distinct": None, "offset": 0, "temperature": None,
        "explain": False, "because": None,
    },
    "recommend_all": {
        "k": 10, "where": None, "only": None, "seen": False, "model": "preferences", "recent": None,
        "damping": 0.0, "heads": None, "fields": (), "format": None, "raw": False,
        "progress": None,
    },
    "similar": {
        "exclude": (), "k": 10, "where": None, "fields": (), "distinct": None, "offset": 0,
        "temperature": None,
    },
    "history": {"k": None, "offset": 0},
    "records": {"user": None, "k": None, "offset": 0},
    "map": {"head": None, "query": None, "user": None, "k": 10},
    "attend": {"mask": "none", "layer": None, "head": None},
    "record": {"rating": None, "weight": None},
}  # fmt: skip

# Package, the name as a pattern, the value.
CONSTANTS = [
    ("retrieval", "K1", 1.2),
    ("retrieval", "B", 0.75),
    ("retrieval", "DEPTH", 30),
    ("retrieval", "LONGEST_ITEM", 128),
    ("retrieval", "TEMPERATURE", 0.05),
    ("text", "SECOND_PASS", {"static": 0.3, "minilm": 1 / 3, "transformer": 1 / 3}),
    (
        "text",
        "CHOICES",
        {
            "corpus": {"lexical": 0.3, "lsa": 0.1, "contrastive": 0.6},
            "static": {"lexical": 0.15, "lsa": 0.05, "contrastive": 0.3, "static": 0.5},
            "minilm": {
                "lexical": 0.08,
                "lsa": 0.02,
                "contrastive": 0.15,
                "static": 0.15,
                "minilm": 0.6,
            },
        },
    ),
    ("search", r"\w+_WEIGHT", 0.3),
    ("recommend", "WEIGHTS", {"collaborative": 0.6, "semantic": 0.4}),
    ("recommend", "POOL", 200),
    ("recommend", "REACH", 100),
    ("collaborative", "AUTO_ALPHA0", 10.0),
    ("collaborative", "AUTO_REG", 0.2),
    ("collaborative", "MAX_ALPHA0", 1.0),
    ("collaborative", "SHRINKAGE", 5.0),
    ("data", "OUTLIERS", 0.005),
    ("data", "MIN_ONES", 0.4),
    ("data", "MAX_HIGH", 0.2),
    ("collaborative", "MIN_ITEMS", 50),
    ("collaborative", "MAX_RELATIVE_ERROR", 0.99),
    ("retrieval", "MIN_QUERIES", 100),
    ("retrieval", "MAX_OVERLAP", 0.6),
    ("evaluation", "TEST_SHARE", 0.2),
    ("evaluation", "ITEM_DAMPING", 25.0),
    ("evaluation", "USER_DAMPING", 10.0),
    ("evaluation", "N_RESAMPLES", 1000),
    ("evaluation", "CONFIDENCE", 0.95),
    ("evaluation", "MAX_EASE_ITEMS", 10_000),
    ("evaluation", "N_USERS", 2000),
    ("evaluation", "MAX_USERS", 10_000),
    ("text", "COSINE_SCALE", 2.0),
    ("text", "MAX_SECONDS", 60),
    ("text", "PATIENCE", 3),  # of contrastive training, in epochs
    ("text", "MAX_TERM", 32),
    ("storage", "MAX_BASES", 2),
    ("storage", "MAX_BUILDS", 50),
    ("storage", "FORMAT_VERSION", 11),
    ("index", "MAX_SEGMENTS", 32),
    ("index", "MAX_CHANGED_SHARE", 0.2),
]


def defaults(function):
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_the_defaults_that_were_measured(name):
    found = defaults(getattr(next_item if name == "NextItem" else qkvsearch, name))
    assert found.pop("attention", "none") == "none"
    assert found == MODELS[name]


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_has_the_defaults_that_it_is_strong_with(name):
    assert defaults(getattr(systems, name)) == BASELINES[name]


@pytest.mark.parametrize("name", ENGINE)
def test_a_question_has_the_defaults_that_the_commands_have(name):
    assert defaults(getattr(qkvsearch.Engine, name)) == ENGINE[name]


@cache
def constants(package):
    """Name and value of each, wherever in the package it is set."""
    found = []
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            for name in (one.id for one in ast.walk(ast.Tuple(targets)) if type(one) is ast.Name):
                if name.isupper():
                    module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
                    module = importlib.import_module(module.removesuffix(".__init__"))
                    found.append((name, getattr(module, name)))
    return found


@pytest.mark.parametrize(("package", "name", "value"), CONSTANTS)
def test_a_constant_is_the_one_that_was_measured(package, name, value):
    found = [one for called, one in constants(package) if re.fullmatch(name, called)]
    assert found, f"{package} has no {name} any more; what took its place belongs here"
    assert value in found
