"""`tune`: searches, says how far it is, and changes the workspace for the better or not at all."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from qkvsearch.cli.tune import _search_table, _tuning_table
from qkvsearch.engine import Engine
from qkvsearch.evaluation import search_tuning, tuning
from qkvsearch.evaluation.made_queries import kinds as made_kinds
from qkvsearch.evaluation.made_queries.title_typo import TitleTypo
from qkvsearch.evaluation.search_tuning import SearchTuning
from qkvsearch.evaluation.tuning import Tuning
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.learn.learn_again import learn_preferences
from qkvsearch.learn.tuned_search import use_in_search
from qkvsearch.store import Workspace

pytestmark = pytest.mark.usefixtures("former_builds_stay")
SETTINGS = {"n_components": 8, "max_iter": 5, "alpha0": 0.3, "reg": 0.02, "nu": 0.9}
OF_NEIGHBOURS = {"n_neighbours": 3, "neighbour_reg": 9.0}


@pytest.fixture
def found(monkeypatch):
    """What the search finds, without one."""

    def find(interval, settings=SETTINGS):
        difference = sum(interval) / 2

        def done(*args, in_use, **kwargs):
            figures = {"default": 0.4} | ({"in_use": 0.4} if in_use else {})
            figures["tuned"] = 0.4 + difference
            return Tuning(
                "time", "ndcg@10", settings, figures, figures, difference, interval, [],
                in_use=in_use or {}, users=20, eligible_users=30,
            )  # fmt: skip

        monkeypatch.setattr(tuning, "tune", done)

    return find


def state(path):
    """The current build's folder, its facts, and what it recommends to one user."""
    with Engine(path) as engine:
        user = engine.models.log().user_ids[4]
        hits = [(hit.id, hit.score) for hit in engine.recommend(user=user, k=5)]
        return engine.snapshot.name, engine.snapshot.facts, hits


@pytest.fixture
def small(monkeypatch):
    """Settings that are quickly learned; tests/evaluation draws from all of them."""
    monkeypatch.setattr(
        tuning, "draw", lambda rng, *_: SETTINGS | {"n_components": int(rng.integers(2, 9))}
    )


def test_a_search_gives_one_object_and_says_each_trial(qkv, films_path, small):
    answer = qkv("-w", films_path, "tune", "--trials", 2, "--format", "json")
    found = answer.json()
    assert found["metric"] == "ndcg@10"
    assert set(found["test"]) == set(found["validation"]) == {"default", "tuned"}
    assert answer.stderr.splitlines()[0].startswith("default: 0.")
    assert "trial 2: 0." in answer.stderr
    assert found["validation"]["tuned"] >= found["validation"]["default"]


def test_what_was_found_is_in_use_and_kept_in_the_workspace(qkv, films_path, found):
    before = state(films_path)
    found((-0.01, 0.05), OF_NEIGHBOURS | SETTINGS)
    answer = qkv("-q", "-w", films_path, "tune")
    after = state(films_path)
    assert "Now in use: n_neighbours 3, neighbour_reg 9, n_components 8, max" in answer.stdout
    assert "could be chance" in answer.stdout
    settings = OF_NEIGHBOURS | SETTINGS
    assert after[1]["tuned"] == {"protocol": "random", "seed": 0, "settings": settings}
    assert after[0] != before[0]
    assert after[2] != before[2]
    with Engine(films_path) as engine:
        assert engine.models.implicit.item_embeddings.shape == (engine.n_items, 8)
        assert np.bincount(engine.models.preferences.neighbours.targets).max() == 3
        assert engine.snapshot.damaged() == []


def test_reset_goes_back_to_what_a_build_learns(qkv, films_path):
    before = state(films_path)
    learn_preferences(Workspace(films_path), {"settings": SETTINGS})
    answer = qkv("-w", films_path, "tune", "--reset")
    after = state(films_path)
    assert (answer.code, answer.stdout) == (0, "")
    assert "default settings" in answer.stderr
    assert "tuned" not in after[1]
    assert after[2] == before[2]


@pytest.mark.parametrize("in_use", [None, {"settings": SETTINGS | {"n_components": 4}}])
def test_settings_that_the_test_part_speaks_against_change_nothing(qkv, films_path, found, in_use):
    learn_preferences(Workspace(films_path), in_use)
    before = state(films_path)
    found((-0.05, -0.01))
    answer = qkv("-w", films_path, "tune")
    assert f"compared with {'those in use' if in_use else 'the default ones'}\n" in answer.stdout
    assert "so nothing is changed" in answer.stdout
    assert "A sample: settings are judged by 20 of 30" in answer.stderr
    assert state(films_path) == before


@pytest.mark.slow
def test_what_an_earlier_search_found_is_judged_beside_what_is_tried(qkv, films_path, small):
    learn_preferences(Workspace(films_path), {"settings": SETTINGS, "protocol": "time"})
    answer = qkv("-w", films_path, "tune", "--trials", 1, "--format", "json")
    found = answer.json()
    assert found["in_use"] == SETTINGS
    assert set(found["test"]) == set(found["validation"]) == {"default", "in_use", "tuned"}
    assert found["validation"]["tuned"] >= max(found["validation"].values())
    assert answer.stderr.splitlines()[1].startswith("in use: 0.")


@pytest.mark.parametrize("settings", [SETTINGS, {}])
def test_the_best_of_those_in_use_the_default_and_the_tried_is_in_use_then(
    qkv, films_path, found, settings
):
    learn_preferences(Workspace(films_path), {"settings": SETTINGS})
    before = state(films_path)
    found((0, 0) if settings else (0.01, 0.03), settings)
    answer = qkv("-w", films_path, "tune")
    assert answer.stdout.splitlines()[2].split() == ["in", "use", "0.4000", "0.4000"]
    if settings:
        assert "No settings were better than those in use: nothing is changed." in answer.stdout
        assert state(films_path) == before
    else:
        assert "Now in use: the default settings" in answer.stdout
        assert "tuned" not in state(films_path)[1]


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(KeyboardInterrupt, 130, "Stopped.\n"), (MemoryError, 1, "Error: not enough memory\n")],
)
def test_a_command_that_is_ended_leaves_the_workspace_as_it_was(
    qkv, films_path, monkeypatch, error, code, message
):
    before = state(films_path)

    def ended(*args, callback, **kwargs):
        raise error

    monkeypatch.setattr(tuning, "tune", ended)
    answer = qkv("-w", films_path, "tune")
    assert (answer.code, answer.stdout) == (code, "")
    assert answer.stderr.endswith(message)
    assert state(films_path) == before


@pytest.mark.parametrize("columns", [80, 40, 24])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"settings": {}, "in_use": {"n_components": 16}},
        {"difference": -0.2, "interval": (-0.3, -0.1)},
        {"settings": {}},
    ],
)
def test_the_conclusion_fits_into_the_window(monkeypatch, changes, columns):
    found = {
        "protocol": "random",
        "metric": "ndcg@10",
        "settings": {"n_components": 16, "regularization": 0.125, "n_neighbors": 300},
        "validation": {"default": 0.1, "tuned": 0.2},
        "test": {"default": 0.1, "tuned": 0.2},
        "difference": 0.1,
        "interval": (-0.05, 0.15),
        "trials": [],
    }
    monkeypatch.setenv("COLUMNS", str(columns))
    text = _tuning_table(Tuning(**found | changes))
    assert max(map(len, text.split("\n"))) <= columns


# --- searches ---

HEADS = {"lexical": 0.1, "lsa": 0.3, "contrastive": 0.6}


def search_tuning_of(**changes):
    """What the search for settings of searches gives."""
    found = SearchSettings(heads=HEADS)
    row = {"queries": 70, "in_use": 0.5, "tuned": 0.6, "difference": 0.1, "interval": [0.05, 0.15]}
    fields = {
        "metric": "mrr@10",
        "settings": found.to_dict(),
        "in_use": {},
        "found_on": {"in_use": 0.5, "tuned": 0.7},
        "held_out": {"in_use": 0.5, "tuned": 0.6},
        "difference": 0.1,
        "interval": (0.05, 0.15),
        "kinds": {"title_beginning": row},
        "other_kinds": {},
        "worse": [],
        "queries": 140,
        "asked": 140,
        "changed": 12,
        "found_already": [],
        "left_out": [],
        "found": found,
    }
    return SearchTuning(**fields | changes)


@pytest.fixture
def found_for_searches(monkeypatch):
    """Sets what the search for settings of searches finds, without one."""

    def find(**changes):
        monkeypatch.setattr(
            search_tuning, "tune_search", lambda *_, **__: search_tuning_of(**changes)
        )

    return find


def searched(path):
    """The current build's folder, what it finds, and what it recommends to one user."""
    name, _, recommended = state(path)
    with Engine(path) as engine:
        return name, [(hit.id, hit.score) for hit in engine.search("space war")], recommended


def test_tuned_searches_are_in_use_until_a_reset(qkv, films_path, found_for_searches):
    before = searched(films_path)
    found_for_searches()
    answer = qkv("-w", films_path, "tune", "search", "--format", "json")
    result = answer.json()
    assert result["settings"] == {"heads": HEADS}
    assert (result["difference"], result["interval"], result["worthwhile"]) == (
        0.1,
        [0.05, 0.15],
        True,
    )
    after = searched(films_path)
    assert after[1] != before[1]
    assert after[2] == before[2]
    shown = " ".join(qkv("-w", films_path, "info").stdout.split())
    assert "heads (lexical 0.1, lsa 0.3, contrastive 0.6)" in shown
    assert "tune search" in qkv("-w", films_path, "builds").stdout
    reset = qkv("-w", films_path, "tune", "--reset")
    assert (reset.code, reset.stdout) == (0, "")
    assert "searches" in reset.stderr
    assert searched(films_path)[1:] == before[1:]


@pytest.mark.parametrize(
    "changes",
    [
        {"interval": (-0.01, 0.15)},
        {"worse": ["title_beginning"]},
        {"changed": 5},
        {"settings": {}, "found": SearchSettings()},
    ],
)
def test_what_is_not_worthwhile_changes_nothing(qkv, films_path, found_for_searches, changes):
    before = searched(films_path)
    found_for_searches(**changes)
    answer = qkv("-w", films_path, "tune", "search")
    assert "nothing is changed" in " ".join(answer.stdout.split())
    assert searched(films_path) == before


def test_what_to_do_to_go_back_is_said_where_other_settings_are_in_use():
    tuned = _search_table(search_tuning_of())
    default = _search_table(search_tuning_of(settings={}, in_use={"heads": HEADS}))
    assert "tune --reset" in tuned
    assert "the default settings" in default
    assert "tune --reset" not in default


def test_an_evaluation_by_made_queries_tells_of_tuned_searches(movies, monkeypatch):
    monkeypatch.setattr(made_kinds, "KINDS", [TitleTypo()])
    assert "tune search" not in " ".join(movies.evaluate_search().notes)
    in_use = SearchSettings(families=0.5)
    monkeypatch.setattr(movies.current_build.models, "search_settings", in_use)
    assert "tune search" in " ".join(movies.evaluate_search().notes)


def test_a_reset_of_both_learns_preferences_again(qkv, films_path):
    before = searched(films_path)
    learn_preferences(Workspace(films_path), {"settings": SETTINGS})
    use_in_search(Workspace(films_path), SearchSettings(heads=HEADS), 0)
    assert searched(films_path)[1] != before[1]
    answer = qkv("-w", films_path, "tune", "--reset")
    assert "recommendations, searches" in answer.stderr
    assert searched(films_path)[1:] == before[1:]


def test_a_workspace_without_a_log_is_reset_too(qkv, things_path, tmp_path):
    path = shutil.copytree(things_path, tmp_path / "things")

    def found():
        with Engine(path) as engine:
            return [(hit.id, hit.score) for hit in engine.search("river")]

    before = found()
    assert "nothing is changed" in qkv("-w", path, "tune", "--reset").stderr
    use_in_search(Workspace(path), SearchSettings(heads=HEADS), 0)
    assert found() != before
    assert qkv("-w", path, "tune", "--reset").code == 0
    assert found() == before


def test_an_ended_search_for_settings_leaves_no_trace(qkv, films_path, monkeypatch):
    before = searched(films_path)
    files = sorted(films_path.rglob("*"))

    def ended(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(search_tuning.Asking, "figures", ended)
    answer = qkv("-w", films_path, "tune", "search")
    assert (answer.code, answer.stdout) == (130, "")
    assert searched(films_path) == before
    assert sorted(films_path.rglob("*")) == files


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("tune", "--minutes", 1, "search"), "tune search"),
        (("tune", "search", "--queries", "queries.tsv"), "--qrels"),
        (("tune", "search", "--minutes", 0), "minutes"),
    ],
)
def test_wrong_options_are_named(qkv, films_path, arguments, named):
    Path("queries.tsv").write_text("1\twar\n")
    answer = qkv("-w", films_path, *arguments)
    assert answer.code == 2
    assert named in answer.stderr


@pytest.mark.parametrize("columns", [80, 40, 24])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"in_use": {"heads": HEADS, "second_pass": 0.6}},
        {"worse": ["title_beginning"]},
        {"interval": (-0.05, 0.15)},
        {"changed": 5},
        {"changed": 0, "difference": 0.0, "interval": (0.0, 0.0)},
        {"settings": {}},
        {"kinds": {}},
    ],
)
def test_the_conclusion_about_searches_fits_into_the_window(monkeypatch, changes, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = _search_table(search_tuning_of(**changes))
    assert max(map(len, text.split("\n"))) <= columns


@pytest.mark.slow
def test_wrong_weights_are_found_to_be_wrong(qkv, films_path):
    """People find the first hit of the default weights right, and others are in use."""
    with Engine(films_path) as engine:
        titles = engine.catalog.names(range(0, engine.n_items, 2))[1]
        texts = {f"q{n}": f"{title.split()[-1]} drama" for n, title in enumerate(titles)}
        right = {name: engine.search(text, k=1, anyway=True)[0].id for name, text in texts.items()}
    Path("queries.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in texts.items()))
    Path("qrels.tsv").write_text("".join(f"{name}\t{item}\n" for name, item in right.items()))
    wrong = SearchSettings(heads={"lexical": 0.1, "lsa": 0.8, "contrastive": 0.1})
    use_in_search(Workspace(films_path), wrong, 0)
    judged = ("--queries", "queries.tsv", "--qrels", "qrels.tsv", "--format", "json")
    before = qkv("-w", films_path, "evaluate", "search", *judged).json()["metrics"]["ndcg@10"]
    result = qkv("-w", films_path, "tune", "search", *judged).json()
    assert result["worthwhile"]
    assert result["in_use"] == wrong.to_dict()
    assert 0 < result["interval"][0] <= result["difference"] <= result["interval"][1]
    after = qkv("-w", films_path, "evaluate", "search", *judged).json()["metrics"]["ndcg@10"]
    assert after > before + 0.05
