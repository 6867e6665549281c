"""What a person gets who sets nothing: every default in one table, chosen by the benchmarks and not
to be changed by the way. One that is changed on purpose is measured first and then written here.
"""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import qkvsearch
from qkvsearch.evaluation import systems
from qkvsearch.models import next_item

ROOT = Path(qkvsearch.__file__).parent

# What was measured of each estimator. Its other parameters, such as a seed, change no quality.
ESTIMATORS = {
    "ImplicitALS": {
        "n_components": 64,
        "max_iter": 10,
        "alpha0": "auto",
        "reg": "auto",
        "nu": 1.0,
        "cg_steps": 2,
        "init_scale": 0.1,
    },
    "BiasedMF": {
        "n_components": 64,
        "max_iter": 20,
        "learning_rate": 0.045,
        "reg": 0.04,
        "damping": 50.0,
        "bias_reg": 3.0,
        "init_scale": 0.01,
    },
    "NextItem": {
        "n_components": 64,
        "n_layers": 2,
        "n_heads": 2,
        "n_positions": 100,
        "dropout": 0.2,
        "learning_rate": 0.002,
        "max_iter": 20,
        "max_minutes": 10.0,
        "batch_size": 32,
    },
    "CorpusEncoder": {"n_components": 128},
    "CooccurrenceEncoder": {"n_components": 128, "smoothing": 0.75},
    "ContrastiveEncoder": {
        "n_components": 128,
        "init": "ppmi",
        "temperature": 0.2,
        "epochs": 20,
        "batch_size": 128,
        "learning_rate": 0.003,
        "dropout": 0.2,
        "held_out": 0.2,
        "max_items": 5000,
    },
    "ItemKNN": {"n_neighbors": 100, "shrinkage": 20.0},
    "EASE": {"reg": 400.0},
}

# Package, the name as a pattern, the value.
CONSTANTS = [
    ("heads", "K1", 1.2),
    ("heads", "B", 0.75),
    ("heads", "KNOWN_COMMON", 0.7),
    ("heads", "DEPTH", 30),
    ("heads", "LONGEST_ITEM", 128),
    ("heads", "TEMPERATURE", 0.05),
    ("text", "SECOND_PASS", {"static": 0.3, "minilm": 1 / 3, "e5": 1 / 3, "transformer": 1 / 3}),
    (
        "text",
        "CHOICES",
        {
            "corpus": {"lexical": 0.35, "lsa": 0.1, "contrastive": 0.55},
            "static": {"lexical": 0.15, "lsa": 0.05, "contrastive": 0.3, "static": 0.5},
            "minilm": {
                "lexical": 0.08,
                "lsa": 0.02,
                "contrastive": 0.15,
                "static": 0.15,
                "minilm": 0.6,
            },
            "e5": {"lexical": 0.3, "e5": 0.7},
        },
    ),
    ("text", "ALL_ENGLISH", {"lexical": 0.1, "static": 0.04, "e5": 0.29, "minilm": 0.57}),
    ("rank", r"\w+_WEIGHT", 0.3),
    ("rank", "WEIGHTS", {"collaborative": 0.6, "semantic": 0.4}),
    ("rank", "POOL", 200),
    ("rank", "REACH", 100),
    ("models", "AUTO_ALPHA0", 10.0),
    ("models", "AUTO_REG", 0.2),
    ("models", "MAX_ALPHA0", 1.0),
    ("models", "SHRINKAGE", 5.0),
    ("tables", "OUTLIERS", 0.005),
    ("tables", "MIN_ONES", 0.4),
    ("tables", "MAX_HIGH", 0.2),
    ("models", "MIN_ITEMS", 50),
    ("models", "MAX_RELATIVE_ERROR", 0.99),
    ("learn", "MIN_QUERIES", 100),
    ("learn", "MIN_ITEMS", 500),
    ("learn", "MIN_WORDS", 10_000),
    ("learn", "FIXED_COUNT", 20),
    ("learn", "MAX_OVERLAP", 0.6),
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
    ("store", "MAX_BASES", 2),
    ("store", "MAX_BUILDS", 50),
    ("store", "FORMAT_VERSION", 13),
    ("learn", "MAX_SEGMENTS", 32),
    ("learn", "MAX_CHANGED_SHARE", 0.2),
]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_has_the_parameters_that_were_measured(name):
    package = next(each for each in (qkvsearch, next_item, systems) if hasattr(each, name))
    estimator = getattr(package, name)()
    assert ESTIMATORS[name].items() <= vars(estimator).items()


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
