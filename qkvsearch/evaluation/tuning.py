"""Search for settings of `ImplicitALS` that suit a log better than the default ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from qkvsearch.data.interactions import Interactions
from qkvsearch.embeddings.implicit import ImplicitALS
from qkvsearch.evaluation.bootstrap import interval, resampled_means
from qkvsearch.evaluation.metrics import ndcg
from qkvsearch.evaluation.panel import Panel, Tastes, scale_of
from qkvsearch.evaluation.splits import split
from qkvsearch.progress import Progress

Settings = dict[str, Any]

# Of the iterations that a setting asks for, what it is given in each round; of those who were in a
# round, a third go on.
SHARES = (1 / 9, 1 / 3, 1.0)
KEPT = 1 / 3
# Figures of the test part and the last fit are on more data than the trials.
GROWTH = 1.5


@dataclass(frozen=True)
class Trial:
    """Settings tried (none: the default ones) with a `share` of their iterations: nDCG@k on the
    validation part, and how many seconds it took. `number` 0 is the default.
    """

    number: int
    settings: Settings
    share: float
    figure: float
    seconds: float


@dataclass(frozen=True)
class Tuning:
    """What a search found. `settings`: parameters of `ImplicitALS`, none where the default ones
    were best. `validation` and `test`: the figure called `metric` by "default" and "tuned".
    `difference` on the test part, tuned − default, and its 95% `interval`. `out_of_time`: whether
    some settings were not tried, or not to the end, for lack of it.
    """

    protocol: str
    metric: str
    settings: Settings
    validation: dict[str, float]
    test: dict[str, float]
    difference: float
    interval: tuple[float, float]
    trials: list[Trial] = field(repr=False)
    out_of_time: bool = False

    @property
    def worthwhile(self) -> bool:
        """True where settings other than the default were best, and the test part does not say that
        they are worse: what is learned from more data may want others than what was searched by.
        """
        return bool(self.settings) and self.interval[1] >= 0

    def to_dict(self) -> dict[str, Any]:
        """One object, ready for JSON; without seconds, which are never the same twice."""
        found = asdict(self) | {"interval": list(self.interval), "worthwhile": self.worthwhile}
        for trial in found["trials"]:
            del trial["seconds"]
        return found

    def to_records(self) -> list[dict[str, Any]]:
        """The default settings and those found."""
        return [
            {"system": who, "validation": self.validation[who], "test": self.test[who]}
            for who in ("default", "tuned")
        ]


def tune(
    log: Interactions,
    protocol: str = "random",
    *,
    k: int = 10,
    trials: int = 27,
    minutes: float | None = None,
    keys: np.ndarray | None = None,
    random_state: int = 0,
    told: Callable[[list[Trial]], None] | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Search by random settings and successive halving, on a validation part of the training part.

    The protocol holds out a test part, and from what is left, in the same way, a validation part.
    `trials` random settings learn for a ninth of their iterations; the best third of them for a
    third; the best third of those to the end, beside the default settings. The best on the
    validation part wins, so that there it is never worse than the default. Only then are both
    judged on the test part, once, after learning from all that is not in it.

    Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and hyperparameter
    optimization"; Bergstra and Bengio 2012, "Random search for hyper-parameter optimization".

    minutes: when to stop the search so that the last fits end in time; each round has an equal part
    of it, and what it does not come to is out. Without a limit the result is the same for the same
    `random_state`.
    keys: text vectors of the items, as in `evaluate_recommend`.
    `told` is given all trials after each. Raises `QkvError` where the log cannot be split twice.
    """
    report = progress or (lambda stage, done, total: None)
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    parts = split(log, protocol, random_state)
    scale = scale_of(log)
    # Another seed, so that what is held out the second time does not follow the first.
    validation = Panel.of(split(parts.train, protocol, random_state + 1), scale)
    judge = _Judge(k, keys, random_state)
    search = _Search(validation, judge, deadline, told or (lambda trials: None))
    best = search.best(trials)
    report("judging by the test part", 0, 1)
    panel = Panel.of(parts, scale)
    figures = {"default": judge.of_users(judge.fitted(panel, {}), panel)}
    figures["tuned"] = figures["default"]
    if best.settings:
        figures["tuned"] = judge.of_users(judge.fitted(panel, best.settings), panel)
    report("judging by the test part", 1, 1)
    gain = figures["tuned"] - figures["default"]
    return Tuning(
        protocol=protocol,
        metric=f"ndcg@{k}",
        settings=best.settings,
        validation={"default": search.default.figure, "tuned": best.figure},
        test={who: float(of_users.mean()) for who, of_users in figures.items()},
        difference=float(gain.mean()),
        interval=interval(resampled_means(gain[:, None], random_state=random_state)),
        trials=search.trials,
        out_of_time=search.out_of_time,
    )


def draw(rng: np.random.Generator, default: Settings, mean_length: float, n_items: int) -> Settings:
    """Random settings around `default`, whose strengths are numbers.

    n_components, max_iter, alpha0 and reg are log-uniform within a factor of 4, 2, 8 and 8 of the
    default, nu is uniform between 0.5 and 1. The penalty of a user with a history of mean length,
    reg·(n̄ + α₀·n_items)^nu, is held while nu changes.
    """

    def around(value: float, factor: float) -> float:
        return float(f"{value * factor ** rng.uniform(-1, 1):.3g}")

    alpha0 = around(default["alpha0"], 8)
    nu = round(float(rng.uniform(0.5, 1)), 2)
    strength = mean_length + alpha0 * n_items
    return {
        "n_components": max(1, round(around(default["n_components"], 4))),
        "max_iter": max(1, round(around(default["max_iter"], 2))),
        "alpha0": alpha0,
        "reg": around(default["reg"] * strength ** (default["nu"] - nu), 8),
        "nu": nu,
    }


@dataclass(frozen=True)
class _Judge:
    """nDCG@k of `ImplicitALS` with any settings."""

    k: int
    keys: np.ndarray | None
    random_state: int

    def fitted(
        self, panel: Panel, settings: Settings, callback: Callable[[int, int], None] | None = None
    ) -> Tastes:
        tastes = Tastes(self.keys, **settings, random_state=self.random_state, callback=callback)
        return tastes.fit(panel.train)

    def of_users(self, tastes: Tastes, panel: Panel) -> np.ndarray:
        """The figure of each user (n,)."""
        rankings = panel.rankings(tastes, self.k)
        pairs = zip(rankings, panel.relevant, strict=True)
        return np.array([ndcg(ranked, relevant, self.k) for ranked, relevant in pairs])


class _OutOfTimeError(Exception):
    """The trial that is running would leave too little time for the last fits."""


class _Search:
    """Trials on one panel, until a deadline."""

    def __init__(
        self,
        panel: Panel,
        judge: _Judge,
        deadline: float,
        told: Callable[[list[Trial]], None],
    ) -> None:
        self.panel, self.judge = panel, judge
        self.deadline, self.told = deadline, told
        self.trials: list[Trial] = []
        self.out_of_time = False
        self.closing = 0.0
        known = ImplicitALS().get_params()
        self.drawn_around = {name: known[name] for name in ("n_components", "max_iter", "nu")}
        self.default = self._run(0, {}, 1.0)
        self.closing = GROWTH * 3 * self.default.seconds

    def best(self, n_trials: int) -> Trial:
        """The best of those that learnt to the end; of equal ones the first, the default before
        all others.
        """
        try:
            self._halve(self._draw(n_trials))
        except _OutOfTimeError:
            self.out_of_time = True
        finished = [trial for trial in self.trials if trial.share == SHARES[-1]]
        return max(finished, key=lambda trial: (trial.figure, -trial.number))

    def _draw(self, n_trials: int) -> dict[int, Settings]:
        """Settings by number."""
        rng = np.random.default_rng(self.judge.random_state)
        met = self.panel.train
        n_users, n_items = (np.count_nonzero(met.getnnz(axis=axis)) for axis in (1, 0))
        return {
            number: draw(rng, self.drawn_around, met.nnz / n_users, int(n_items))
            for number in range(1, n_trials + 1)
        }

    def _halve(self, settings: dict[int, Settings]) -> None:
        """Every round has an equal part of the time; what it does not come to is out."""
        for rounds_left, share in zip(range(len(SHARES), 0, -1), SHARES, strict=True):
            ends = time.monotonic() + (self._left() - self.closing) / rounds_left
            of_round: list[Trial] = []
            for number, drawn in settings.items():
                if of_round and time.monotonic() >= ends:
                    self.out_of_time = True
                    break
                of_round.append(self._run(number, drawn, share))
            of_round.sort(key=lambda trial: (-trial.figure, trial.number))
            kept = of_round[: math.ceil(KEPT * len(of_round))]
            settings = {trial.number: trial.settings for trial in kept}

    def _run(self, number: int, settings: Settings, share: float) -> Trial:
        """One trial, in the list when it is done. Raises `_OutOfTimeError` as soon as too little
        time would be left; the default's is always done.
        """
        began = time.monotonic()
        max_iter = settings.get("max_iter", self.drawn_around["max_iter"])
        iterations = max(1, round(share * max_iter))

        def check(iteration: int, of: int) -> None:
            if number and self._left() < self.closing:
                raise _OutOfTimeError

        check(0, iterations)
        tastes = self.judge.fitted(self.panel, settings | {"max_iter": iterations}, check)
        if not number:
            fitted = tastes.model
            self.drawn_around |= {"alpha0": fitted.alpha0_, "reg": fitted.reg_}
        figure = float(self.judge.of_users(tastes, self.panel).mean())
        trial = Trial(number, settings, share, figure, time.monotonic() - began)
        self.trials.append(trial)
        if share == SHARES[-1]:
            slowest = max(t.seconds for t in self.trials if t.share == share)
            self.closing = GROWTH * (self.trials[0].seconds + 2 * slowest)
        self.told(self.trials)
        return trial

    def _left(self) -> float:
        return self.deadline - time.monotonic()
