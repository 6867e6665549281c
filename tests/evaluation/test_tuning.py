"""The search for settings: nothing leaks, what is in use is among them, time is kept."""

import json
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from qkvsearch.errors import DataError
from qkvsearch.evaluation import systems, tuning
from qkvsearch.evaluation.recommend_protocol import evaluate_recommend
from qkvsearch.evaluation.splits import PROTOCOLS, split
from qkvsearch.evaluation.tuning import Tuning, draw, tune
from qkvsearch.models.estimators import ImplicitALS
from qkvsearch.tables.interactions import Interactions
from tests.evaluation.parts import pairs, protocols


@pytest.fixture(scope="module", params=PROTOCOLS)
def searched(request, log):
    """A protocol, a short search by it, and the pairs that each fit is shown."""
    fits = []
    original = ImplicitALS.fit

    def spied(self, X, y=None):
        users = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        fits.append(set(zip(users.tolist(), X.indices.tolist(), strict=True)))
        return original(self, X)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ImplicitALS, "fit", spied)
        return request.param, tune(log, request.param, trials=3, k=5), fits


@pytest.fixture(scope="module")
def progress():
    """What `nine_trials` reports on its way."""
    return []


@pytest.fixture(scope="module")
def nine_trials(log, progress):
    return tune(log, trials=9, progress=lambda *where: progress.append(where))


def test_the_search_sees_neither_the_test_part_nor_the_validation_part(log, searched):
    protocol, found, shown = searched
    parts = split(log, protocol)
    inner = split(parts.train, protocol, 1)
    n_searched = len(found.trials) - 1  # one is of neighbours alone
    of_trials, of_finalists = shown[:n_searched], shown[n_searched:]
    assert all(fit == pairs(inner.train) for fit in of_trials)
    # as by a build: a first time without what the shares are learned from
    assert all(fit <= pairs(parts.train) for fit in of_finalists)
    assert of_finalists.count(pairs(parts.train)) == len(of_finalists) / 2 <= 2
    assert not pairs(parts.test) & set().union(*shown)
    assert not pairs(inner.test) & set().union(*of_trials)


def test_what_is_found_is_never_worse_on_the_validation_part(searched):
    _, found, _ = searched
    finished = [trial for trial in found.trials if trial.share == 1]
    assert found.metric == "ndcg@5"
    assert found.validation["tuned"] == max(trial.figure for trial in finished)
    assert found.validation["default"] == found.trials[0].figure
    assert found.trials[0].settings == {}


@protocols
@pytest.mark.slow
def test_texts_are_learned_from_by_what_each_fit_is_shown(
    log_with_new_items, keys, protocol, monkeypatch
):
    learned_from = []
    original = systems.fit_text_map

    def spied(keys, items):
        learned_from.append(set(np.flatnonzero(items.any(axis=1)).tolist()))
        return original(keys, items)

    monkeypatch.setattr(systems, "fit_text_map", spied)
    found = tune(log_with_new_items, protocol, trials=2, keys=keys)
    parts = split(log_with_new_items, protocol)
    inner = set(split(parts.train, protocol, 1).train.items.tolist())
    n_searched = len(found.trials)
    assert learned_from[:n_searched] == [inner] * n_searched
    finalists = learned_from[n_searched:]
    assert finalists == [set(parts.train.items.tolist())] * len(finalists) != []


@pytest.mark.slow
def test_better_settings_in_use_are_not_given_up_for_worse_ones(log, nine_trials):
    """What another search found is judged beside the default, by both parts."""
    good = nine_trials
    assert good.settings
    found = tune(log, trials=1, in_use=good.settings)
    assert found.settings == found.in_use == good.settings
    assert not found.worthwhile
    assert found.difference == 0
    assert found.validation["in_use"] == found.validation["tuned"] == good.validation["tuned"]
    assert found.test == good.test | {"in_use": good.test["tuned"]}
    assert [trial.name for trial in found.trials[:2]] == ["default", "in use"]
    assert [row["system"] for row in found.to_records()] == ["default", "in_use", "tuned"]


def test_settings_in_use_that_are_worse_than_the_default_give_way_to_it(log):
    poor = {"n_components": 1, "max_iter": 1, "n_neighbours": 1, "neighbour_reg": 1000.0}
    found = tune(log, trials=1, in_use=poor)
    assert found.settings != poor
    assert found.worthwhile
    assert found.difference == pytest.approx(found.test["tuned"] - found.test["in_use"])
    assert found.difference > 0


@pytest.mark.slow
def test_a_third_of_each_round_goes_on_and_the_default_is_in_the_last(nine_trials, progress):
    assert progress[16] == ("trying settings", 17, 17)
    assert progress[17] == ("judging by the test part", 0, 2)
    by_share = {
        share: [t for t in nine_trials.trials if t.share == share]
        for share in tuning.ITERATION_SHARES
    }
    first, second, last = by_share.values()
    assert [len(first), len(second), len(last)] == [9, 3, 5]
    _, *of_neighbours, _ = last
    assert all(t.settings.keys() == {"n_neighbours", "neighbour_reg"} for t in of_neighbours)
    best = min(last[:4], key=lambda trial: (-trial.figure, trial.number)).settings
    assert all({**trial.settings, **best} == trial.settings for trial in [*first, *second])
    best = sorted(first, key=lambda trial: -trial.figure)[:3]
    assert {trial.number for trial in second} == {trial.number for trial in best}
    assert 0 in {trial.number for trial in last}


def test_figures_of_the_test_part_are_those_of_evaluate(log, nine_trials):
    found = nine_trials
    for who, settings in (("default", {}), ("tuned", found.settings)):
        expected = evaluate_recommend(log, settings=settings).metrics["ndcg@10"]
        assert found.test[who] == pytest.approx(expected, abs=1e-12)
    assert found.difference == pytest.approx(found.test["tuned"] - found.test["default"])
    low, high = found.interval
    assert low <= found.difference <= high


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result_on_one_thread_and_on_two(log):
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(tune(log, "strong", trials=2).to_dict())
    assert found[0] == found[1] == json.loads(json.dumps(found[0]))
    other = tune(log, "strong", trials=2, random_state=1)
    assert other.trials[1].settings != found[0]["trials"][1]["settings"]


def test_time_that_is_up_leaves_the_default(log, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    told = []

    def tell(trials):
        told.append(len(trials))
        now[0] += 100  # every trial takes longer than there is

    found = tune(log, trials=9, minutes=1, callback=tell)
    assert found.out_of_time
    assert [trial.number for trial in found.trials] == [0]
    assert found.settings == {}
    assert found.test["tuned"] == found.test["default"]
    assert told == [1]


def test_a_fit_is_stopped_in_the_middle(log, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    original = tuning.Fused

    class Slow(original):
        def __init__(self, keys=None, callback=None, **settings):
            def tick(iteration, of):
                now[0] += 1
                if callback is not None:
                    callback(iteration, of)

            super().__init__(keys, callback=tick, **settings)

    monkeypatch.setattr(tuning, "Fused", Slow)
    found = tune(log, trials=9, minutes=57 / 60)  # ten seconds, and 45 kept for the last fits
    assert found.out_of_time
    assert len(found.trials) < 4


@pytest.mark.slow
def test_every_round_has_its_part_of_the_time(log, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    original = tuning._Evaluator.user_figures

    def slow(*args):
        now[0] += 1
        return original(*args)

    monkeypatch.setattr(tuning._Evaluator, "user_figures", slow)
    found = tune(log, trials=500, minutes=26 / 60)  # of 26 s the first takes 1, the last fits 6
    assert found.out_of_time
    by_share = [[t.share for t in found.trials].count(share) for share in tuning.ITERATION_SHARES]
    assert by_share == [5, 2, 1 + 5 + 1]
    assert now[0] <= 26


def test_random_settings_are_near_the_default_and_valid():
    default = {"n_components": 64, "max_iter": 10, "alpha0": 0.1, "reg": 0.01, "nu": 1.0}
    rng = np.random.default_rng(0)
    drawn = [draw(rng, default, mean_length=50, n_items=1000) for _ in range(200)]
    for name, factor in (("n_components", 4), ("max_iter", 2), ("alpha0", 8)):
        values = np.array([settings[name] for settings in drawn]) / default[name]
        assert 1 / factor * 0.9 <= values.min() < values.max() <= factor * 1.1
        assert np.log(values).mean() == pytest.approx(0, abs=0.25)
    assert {settings["n_components"] for settings in drawn} == {16, 32, 64, 128, 256}
    penalties = [s["reg"] * (50 + s["alpha0"] * 1000) ** (s["nu"] - 1) for s in drawn]
    assert 0.01 / 8.1 <= min(penalties) < max(penalties) <= 0.01 * 8.1
    for settings in drawn[:3]:
        ImplicitALS(**settings)._check_parameters()


@pytest.mark.parametrize(
    ("in_use", "settings", "interval", "worthwhile"),
    [
        ({}, {}, (0, 0), False),
        ({}, {"nu": 1}, (-0.2, -0.1), False),
        ({}, {"nu": 1}, (-0.1, 0.2), True),
        ({"nu": 1}, {"nu": 1}, (0, 0), False),
        ({"nu": 1}, {}, (-0.2, -0.1), False),
        ({"nu": 1}, {}, (-0.1, 0.2), True),
    ],
)
def test_settings_in_use_or_that_the_test_part_speaks_against_are_not_worthwhile(
    in_use, settings, interval, worthwhile
):
    figures = {"default": 0.5, "tuned": 0.5}
    found = Tuning(
        "random", "ndcg@10", settings, figures, figures, 0.0, interval, [], in_use=in_use
    )
    assert found.worthwhile == worthwhile


def test_a_log_that_cannot_be_split_twice_is_refused():
    log = Interactions.from_columns([1, 1, 2, 2], [1, 2, 1, 2])
    with pytest.raises(DataError, match="too few interactions"):
        tune(log)


@pytest.mark.slow
def test_of_many_users_a_sample_is_judged_and_that_is_said(log, nine_trials, monkeypatch):
    every = nine_trials
    assert every.users == every.eligible_users > 80
    assert every.notes == []
    monkeypatch.setattr(tuning, "MAX_USERS", 30)
    some = tune(log, trials=1)
    assert (some.users, some.eligible_users) == (30, every.users)
    (note,) = some.notes
    assert f"30 of {every.users} users, drawn at random" in note
    assert some.to_dict() == tune(log, trials=1).to_dict()
