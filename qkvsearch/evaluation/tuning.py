"""Search for settings of `ImplicitALS` that suit a log better than the default, or those in use."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from qkvsearch._utils.progress import Callback, Progress, silent
from qkvsearch.collaborative.confidences import scale_of
from qkvsearch.collaborative.estimators import ImplicitALS
from qkvsearch.data.interactions import Interactions
from qkvsearch.evaluation.bootstrap import interval, resampled_means
from qkvsearch.evaluation.held_out import HeldOutUsers
from qkvsearch.evaluation.metrics import ndcg
from qkvsearch.evaluation.splits import split
from qkvsearch.evaluation.systems import Preferences

Settings = dict[str, Any]

# Numbers of the trials that were not drawn; of equal ones the lowest number is best.
IN_USE, DEFAULT = -1, 0

# Of the iterations that a setting asks for, what it is given in each round; of those who were in a
# round, a third go on.
SHARES = (1 / 9, 1 / 3, 1.0)
KEPT = 1 / 3
# Figures of the test part and the last fit are on more data than the trials.
GROWTH = 1.5
# Of more users so many are drawn to judge by: ranking for all would take longer than to learn.
MOST_USERS = 10_000


@dataclass(frozen=True)
class Trial:
    """Settings tried (none: the default ones) with a `share` of their iterations: nDCG@k on the
    validation part, and how many seconds it took. `number` 0 is the default, −1 what was in use.
    """

    number: int
    settings: Settings
    share: float
    figure: float
    seconds: float

    @property
    def name(self) -> str:
        """What a line about it begins with."""
        return {IN_USE: "in use", DEFAULT: "default"}.get(self.number, f"trial {self.number}")


@dataclass(frozen=True)
class Tuning:
    """What a search found. `settings`: parameters of `ImplicitALS`, none where the default ones
    were best; `in_use`: those that it was to improve on. `validation` and `test`: the figure called
    `metric` by "default", "in_use" where that is something else, and "tuned", what was best.
    `difference` on the test part, tuned − in use, and its 95% `interval`. `out_of_time`: whether
    some settings were not tried, or not to the end, for lack of it. `users`: how many the test part
    was judged by, of `eligible_users`.
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
    in_use: Settings = field(default_factory=dict)
    users: int = 0
    eligible_users: int = 0

    @property
    def worthwhile(self) -> bool:
        """True where settings other than those in use were best, and the test part does not say
        that they are worse: what is learned from more data may want others than what was searched
        by.
        """
        return self.settings != self.in_use and self.interval[1] >= 0

    @property
    def notes(self) -> list[str]:
        """What a person should know of it beside the figures."""
        found = []
        if self.out_of_time:
            found.append("The time was up before all settings were tried: `minutes` gives it more.")
        if self.users < self.eligible_users:
            found.append(
                f"A sample: settings are judged by {self.users:,} of {self.eligible_users:,} "
                "users, drawn at random."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """One object, ready for JSON; without seconds, which are never the same twice."""
        found = asdict(self) | {"interval": list(self.interval), "worthwhile": self.worthwhile}
        for trial in found["trials"]:
            del trial["seconds"]
        return found

    def to_records(self) -> list[dict[str, Any]]:
        """The default settings, those in use, and those found."""
        return [
            {"system": who, "validation": self.validation[who], "test": figure}
            for who, figure in self.test.items()
        ]


def tune(
    log: Interactions,
    protocol: str = "random",
    *,
    k: int = 10,
    trials: int = 27,
    minutes: float | None = None,
    keys: np.ndarray | None = None,
    in_use: Settings | None = None,
    random_state: int = 0,
    estimator: Callable[..., Any] | None = None,
    callback: Callable[[list[Trial]], None] | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Search by random settings and successive halving, on a validation part of the training part.

    The protocol holds out a test part, and from what is left, in the same way, a validation part.
    `trials` random settings learn for a ninth of their iterations; the best third of them for a
    third; the best third of those to the end, beside the default settings and those `in_use`. The
    best on the validation part wins, so that there it is never worse than these. Only then are all
    three judged on the test part, once, after learning from all that is not in it. Each part is
    judged by 10,000 of its users where it has more.

    Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and hyperparameter
    optimization"; Bergstra and Bengio 2012, "Random search for hyper-parameter optimization".

    minutes: when to be done; each round has an equal part of it, and what there is no time for is
    left out. Without a limit the same `random_state` gives the same result. keys: text vectors of
    the items, and estimator, as in `evaluate_recommend`. `callback` is given all trials after each.
    Raises `QkvError` where the log cannot be split twice.
    """
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    parts, scale = split(log, protocol, random_state), scale_of(log)
    # Another seed, so that what is held out the second time does not follow the first.
    inner = split(parts.train, protocol, random_state + 1)
    validation, test = (
        HeldOutUsers.of(some, scale, MOST_USERS, random_state) for some in (inner, parts)
    )
    judge = _Judge(k, keys, random_state, estimator)
    progress = progress or silent
    search = _Search(validation, judge, deadline, trials, in_use or {}, callback, progress)
    best = search.best()
    finalists = search.finalists | {"tuned": best}
    figures = judge.of_each(finalists, test, progress)
    gain = figures["tuned"] - figures.get("in_use", figures["default"])
    return Tuning(
        protocol=protocol,
        metric=f"ndcg@{k}",
        settings=best.settings,
        validation={who: trial.figure for who, trial in finalists.items()},
        test={who: float(of_users.mean()) for who, of_users in figures.items()},
        difference=float(gain.mean()),
        interval=interval(resampled_means(gain[:, None], random_state=random_state)),
        trials=search.trials,
        out_of_time=search.out_of_time,
        in_use=in_use or {},
        users=len(test.users),
        eligible_users=test.n_eligible,
    )


def draw(rng: np.random.Generator, default: Settings, mean_length: float, n_items: int) -> Settings:
    """Random settings around `default`, whose strengths are numbers.

    n_components is the default times 1/4, 1/2, 1, 2 or 4: of few widths, since the solver is
    compiled for each width of a block. max_iter, alpha0 and reg are log-uniform within a factor of
    2, 8 and 8 of the default, nu is uniform between 0.5 and 1. The penalty of a user with a history
    of mean length, reg·(n̄ + α₀·n_items)^nu, is held while nu changes.
    """

    def around(value: float, factor: float) -> float:
        return float(f"{value * factor ** rng.uniform(-1, 1):.3g}")

    alpha0 = around(default["alpha0"], 8)
    nu = round(float(rng.uniform(0.5, 1)), 2)
    strength = mean_length + alpha0 * n_items
    return {
        "n_components": max(1, round(default["n_components"] * 2.0 ** rng.integers(-2, 3))),
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
    estimator: Callable[..., Any] | None = None

    def fitted(
        self, held_out: HeldOutUsers, settings: Settings, callback: Callback | None = None
    ) -> Preferences:
        settings = {**settings, "random_state": self.random_state, "callback": callback}
        return Preferences(self.keys, estimator=self.estimator, **settings).fit(held_out.train)

    def of_users(self, preferences: Preferences, held_out: HeldOutUsers) -> np.ndarray:
        """The figure of each user (n,)."""
        rankings = held_out.rankings(preferences, self.k)
        pairs = zip(rankings, held_out.relevant, strict=True)
        return np.array([ndcg(ranked, relevant, self.k) for ranked, relevant in pairs])

    def of_each(
        self, finalists: dict[str, Trial], held_out: HeldOutUsers, progress: Progress
    ) -> dict[str, np.ndarray]:
        """The figures of each finalist by user; one that is there twice learns once."""
        figures: dict[int, np.ndarray] = {}
        for n, trial in enumerate(finalists.values()):
            progress("judging by the test part", n, len(finalists))
            if trial.number not in figures:
                fitted = self.fitted(held_out, trial.settings)
                figures[trial.number] = self.of_users(fitted, held_out)
        progress("judging by the test part", len(finalists), len(finalists))
        return {who: figures[trial.number] for who, trial in finalists.items()}


class _OutOfTimeError(Exception):
    """The trial that is running would leave too little time for the last fits."""


@dataclass
class _Search:
    """Trials judged by the same users, until a deadline that leaves `closing` seconds."""

    held_out: HeldOutUsers
    judge: _Judge
    deadline: float
    n_trials: int
    in_use: Settings
    callback: Callable[[list[Trial]], None] | None
    progress: Progress
    trials: list[Trial] = field(default_factory=list)
    out_of_time: bool = False
    closing: float = 0.0

    def __post_init__(self) -> None:
        left = self.n_trials
        rounds = accumulate(SHARES[1:], lambda left, _: math.ceil(KEPT * left), initial=left)
        self.n_planned = int(sum(rounds)) + 1 + bool(self.in_use)
        known = ImplicitALS().get_params()
        self.drawn_around = {name: known[name] for name in ("n_components", "max_iter", "nu")}
        self.finalists = {"default": self._run(DEFAULT, {}, 1.0)}
        if self.in_use:
            self.finalists["in_use"] = self._run(IN_USE, self.in_use, 1.0)

    def best(self) -> Trial:
        """The best of those that learned to the end; of equal ones the lowest number."""
        try:
            self._halve(self._draw())
        except _OutOfTimeError:
            self.out_of_time = True
        finished = [trial for trial in self.trials if trial.share == SHARES[-1]]
        return max(finished, key=lambda trial: (trial.figure, -trial.number))

    def _draw(self) -> dict[int, Settings]:
        """Settings by number."""
        rng = np.random.default_rng(self.judge.random_state)
        known = self.held_out.train
        n_users, n_items = (np.count_nonzero(known.getnnz(axis=axis)) for axis in (1, 0))
        return {
            number: draw(rng, self.drawn_around, known.nnz / n_users, int(n_items))
            for number in range(1, self.n_trials + 1)
        }

    def _halve(self, settings: dict[int, Settings]) -> None:
        """Every round has an equal part of the time; what there is no time for is left out."""
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
        time would be left; the default's, and that of what is in use, are always done.
        """
        began = time.monotonic()
        max_iter = settings.get("max_iter", self.drawn_around["max_iter"])
        iterations = max(1, round(share * max_iter))

        def check(iteration: int, of: int) -> None:
            if number > DEFAULT and self._left() < self.closing:
                raise _OutOfTimeError

        check(0, iterations)
        preferences = self.judge.fitted(self.held_out, settings | {"max_iter": iterations}, check)
        if number == DEFAULT:
            fitted = preferences.model
            self.drawn_around |= {"alpha0": fitted.alpha0_, "reg": fitted.reg_}
        figure = float(self.judge.of_users(preferences, self.held_out).mean())
        trial = Trial(number, settings, share, figure, time.monotonic() - began)
        self.trials.append(trial)
        if share == SHARES[-1]:
            # The finalists on the test part, and the best once more on all there is.
            slowest = max(t.seconds for t in self.trials if t.share == share)
            always = sum(t.seconds for t in self.trials if t.number <= DEFAULT)
            self.closing = GROWTH * (always + 2 * slowest)
        self.progress("trying settings", len(self.trials), self.n_planned)
        if self.callback is not None:
            self.callback(self.trials)
        return trial

    def _left(self) -> float:
        return self.deadline - time.monotonic()
