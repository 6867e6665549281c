"""Tune recommendations: search for settings that are better for a log than those in use."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Callback, Progress, silent
from qkvsearch._utils.validation import random_seed
from qkvsearch.evaluation.held_out import HeldOutUsers
from qkvsearch.evaluation.metrics import interval, ndcg, resampled_means
from qkvsearch.evaluation.out_of_time import OutOfTimeError
from qkvsearch.evaluation.splits import split
from qkvsearch.evaluation.systems import Fused
from qkvsearch.models.confidences import scale_of
from qkvsearch.models.estimators import ImplicitALS
from qkvsearch.models.item_neighbours import NeighbourRegression
from qkvsearch.models.preferences import Preferences, settings_by_head, with_shares_for
from qkvsearch.models.recommend_head import FittedHead
from qkvsearch.tables.interactions import Interactions

Settings = dict[str, Any]

# Numbers of the trials that are not random; among equals the lowest number wins.
IN_USE, DEFAULT = -1, 0

# The share of its iterations that a trial gets in each round, and the share of trials that reach
# the next round.
ITERATION_SHARES = (1 / 9, 1 / 3, 1.0)
SURVIVOR_SHARE = 1 / 3
# The last fits take longer than the trials: they use more data, and learn their shares from a first
# fit to a part of it.
LAST_FITS_FACTOR = 2.0
# At most this many users are evaluated on, since ranking for all would take longer than learning.
MAX_USERS = 10_000


@dataclass(frozen=True)
class Trial:
    """One evaluation of settings on the validation part."""

    # 0 for the default settings, −1 for those in use.
    number: int
    # Parameters of all heads; empty for the default ones.
    settings: Settings
    # Of the iterations.
    share: float
    # nDCG@k
    figure: float
    seconds: float

    @property
    def name(self) -> str:
        """The trial's name for people."""
        return {IN_USE: "in use", DEFAULT: "default"}.get(self.number, f"trial {self.number}")


@dataclass(frozen=True)
class Tuning:
    """The result of tuning."""

    protocol: str
    metric: str
    # The best parameters of all heads (`settings_by_head`), empty for the default ones.
    settings: Settings
    # The metric on both parts of "default", "in_use" (where that differs) and "tuned".
    validation: dict[str, float]
    test: dict[str, float]
    # Tuned − in use on the test part, with its 95% interval.
    difference: float
    interval: tuple[float, float]
    trials: list[Trial] = field(repr=False)
    # Whether time ran out before all settings were tried to the end.
    out_of_time: bool = False
    # The parameters to improve on.
    in_use: Settings = field(default_factory=dict)
    # How many of `eligible_users` the test part was evaluated on.
    users: int = 0
    eligible_users: int = 0

    @property
    def worthwhile(self) -> bool:
        """Whether settings other than those in use were best, and are not significantly worse on
        the test part, where more data may need other settings.
        """
        return self.settings != self.in_use and self.interval[1] >= 0

    @property
    def notes(self) -> list[str]:
        """Sentences for people about limits of the result."""
        notes = []
        if self.out_of_time:
            notes.append("The time was up before all settings were tried: `minutes` gives it more.")
        if self.users < self.eligible_users:
            notes.append(
                f"A sample: settings are judged by {self.users:,} of {self.eligible_users:,} "
                "users, drawn at random."
            )
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return an object for JSON, without seconds, which differ from run to run."""
        result = asdict(self) | {"interval": list(self.interval), "worthwhile": self.worthwhile}
        for trial in result["trials"]:
            del trial["seconds"]
        return result

    def to_records(self) -> list[dict[str, Any]]:
        """Return one row each for the default settings, those in use, and the tuned ones."""
        return [
            {"system": name, "validation": self.validation[name], "test": figure}
            for name, figure in self.test.items()
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
    random_state: Any = 0,
    callback: Callable[[list[Trial]], None] | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Search for settings by random search and successive halving.

    The protocol holds out a test part and then, from the rest, a validation part. First, a third as
    many settings of the neighbours as `trials` are tried beside embeddings with the default ones.
    With the best neighbours, `trials` settings of the embeddings learn for a ninth of their
    iterations, the best third of them for a third, and the best third of those to the end, like the
    default settings and those `in_use`. Each trial is evaluated on the validation part with the
    shares of the heads that are best there, and the best wins. Only then are all three learned from
    all data outside the test part, with their shares, as in a build, and evaluated on it once. Each
    part is evaluated on at most 10,000 users.

    Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and hyperparameter
    optimization"; Bergstra and Bengio 2012, "Random search for hyper-parameter optimization".

    minutes: the time limit; each round gets an equal share, and trials beyond it are left out.
    Without a limit the result depends on `random_state` alone. keys: as in
    `evaluate_recommend`. callback: called with all trials after each. Raises `QkvError` if the log
    cannot be split twice.
    """
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    seed = random_seed(random_state)
    parts, scale = split(log, protocol, seed), scale_of(log)
    # A different seed, so that the second split is independent of the first.
    inner = split(parts.train, protocol, seed + 1)
    validation = HeldOutUsers.of(inner, scale, MAX_USERS, seed)
    test = HeldOutUsers.of(parts, scale, MAX_USERS, seed)
    evaluator = _Evaluator(k, keys, seed)
    progress = progress or silent
    search = _Search(validation, evaluator, deadline, trials, in_use or {}, callback, progress)
    best = search.best()
    finalists = search.finalists | {"tuned": best}
    figures = evaluator.compare(finalists, test, progress)
    gain = figures["tuned"] - figures.get("in_use", figures["default"])
    return Tuning(
        protocol=protocol,
        metric=f"ndcg@{k}",
        settings=best.settings,
        validation={name: trial.figure for name, trial in finalists.items()},
        test={name: float(figure.mean()) for name, figure in figures.items()},
        difference=float(gain.mean()),
        interval=interval(resampled_means(gain[:, None], random_state=seed)),
        trials=search.trials,
        out_of_time=search.out_of_time,
        in_use=in_use or {},
        users=len(test.users),
        eligible_users=test.n_eligible,
    )


def draw(rng: np.random.Generator, default: Settings, mean_length: float, n_items: int) -> Settings:
    """Draw random settings around `default`, whose alpha0 and reg are numbers.

    n_components is the default times 1/4, 1/2, 1, 2 or 4: few widths, since the solver is compiled
    for each width of a block. max_iter, alpha0 and reg are log-uniform within a factor of 2, 8 and
    8 of the default, nu is uniform between 0.5 and 1. reg is drawn around the value that keeps the
    penalty of a user with a mean history, reg·(n̄ + α₀·n_items)^nu, for the drawn nu.
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


def draw_neighbours(rng: np.random.Generator) -> Settings:
    """Draw random settings of the neighbours: the default number times 1/2, 1 or 2, and a penalty
    that is log-uniform within a factor of 8 of the default.
    """
    default = NeighbourRegression()
    return {
        "n_neighbours": round(default.n_neighbours * 2.0 ** rng.integers(-1, 2)),
        "neighbour_reg": float(f"{default.reg * 8.0 ** rng.uniform(-1, 1):.3g}"),
    }


def _best(trials: Sequence[Trial]) -> Trial:
    return max(trials, key=lambda trial: (trial.figure, -trial.number))


class _LearnedHead(NamedTuple):
    """What was learned with some settings."""

    settings: Settings
    head: FittedHead


@dataclass(frozen=True)
class _Evaluator:
    """Evaluation of all heads together with any settings, by nDCG@k."""

    k: int
    keys: np.ndarray | None
    random_state: int
    # By name, each head of the last trial: the next one often differs in another head.
    cached: dict[str, _LearnedHead] = field(default_factory=dict)

    def fused(self, settings: Settings, callback: Callback | None = None) -> Fused:
        settings = {"random_state": self.random_state, "callback": callback, **settings}
        return Fused(self.keys, **settings)

    def trial(self, held_out: HeldOutUsers, settings: Settings, callback: Callback) -> Fused:
        """Learn the heads, and the shares that are best for the held-out users."""
        system, train = self.fused(settings, callback), held_out.train
        by_head = settings_by_head(settings)
        for name, learn in system.learners.items():
            if name not in self.cached or self.cached[name].settings != by_head[name]:
                self.cached[name] = _LearnedHead(by_head[name], learn(train))
        preferences = Preferences({name: self.cached[name].head for name in system.learners})
        relevant = [np.array([*items]) for items in held_out.relevant]
        return system.using(with_shares_for(preferences, held_out.liked, relevant), train)

    def user_figures(self, system: Fused, held_out: HeldOutUsers) -> np.ndarray:
        """Return the figure of each user, (n,)."""
        rankings = held_out.rankings(system, self.k)
        pairs = zip(rankings, held_out.relevant, strict=True)
        return np.array([ndcg(ranked, relevant, self.k) for ranked, relevant in pairs])

    def compare(
        self, finalists: dict[str, Trial], held_out: HeldOutUsers, progress: Progress
    ) -> dict[str, np.ndarray]:
        """Return the figures of each finalist by user; equal trials are evaluated once."""
        figures: dict[int, np.ndarray] = {}
        for n, trial in enumerate(finalists.values()):
            progress("judging by the test part", n, len(finalists))
            if trial.number not in figures:
                fitted = self.fused(trial.settings).fit(held_out.train)
                figures[trial.number] = self.user_figures(fitted, held_out)
        progress("judging by the test part", len(finalists), len(finalists))
        return {name: figures[trial.number] for name, trial in finalists.items()}


@dataclass
class _Search:
    """Trials on the same users, until a deadline before which the last fits need `reserved`
    seconds.
    """

    held_out: HeldOutUsers
    evaluator: _Evaluator
    deadline: float
    n_trials: int
    in_use: Settings
    callback: Callable[[list[Trial]], None] | None
    progress: Progress
    trials: list[Trial] = field(default_factory=list)
    out_of_time: bool = False
    reserved: float = 0.0

    def __post_init__(self) -> None:
        self.n_neighbours = math.ceil(SURVIVOR_SHARE * self.n_trials)
        self.n_planned = self._count_planned()
        self.rng = np.random.default_rng(self.evaluator.random_state)
        defaults = ImplicitALS().get_params()
        # The settings of the embeddings that random ones are drawn around; `_run` adds alpha0 and
        # reg, as the default trial computed them.
        self.center = {name: defaults[name] for name in ("n_components", "max_iter", "nu")}
        self.finalists = {"default": self._run(DEFAULT, {}, 1.0)}
        if self.in_use:
            self.finalists["in_use"] = self._run(IN_USE, self.in_use, 1.0)

    def _count_planned(self) -> int:
        """Return how many trials there are if no time limit ends them."""
        n_planned = self.n_neighbours + 1  # and the default settings
        if self.in_use:
            n_planned += 1
        n_in_round = self.n_trials
        for _ in ITERATION_SHARES:
            n_planned += n_in_round
            n_in_round = math.ceil(SURVIVOR_SHARE * n_in_round)
        return n_planned

    def best(self) -> Trial:
        """Return the best trial that learned to the end; among equals the lowest number."""
        try:
            self._run_rounds()
        except OutOfTimeError:
            self.out_of_time = True
        return _best([trial for trial in self.trials if trial.share == ITERATION_SHARES[-1]])

    def _run_rounds(self) -> None:
        """Try settings of the neighbours, and with the best ones settings of the embeddings, of
        which a part survives each round.
        """
        rounds_left = len(ITERATION_SHARES)
        numbers = range(1, self.n_neighbours + 1)
        of_neighbours = {number: draw_neighbours(self.rng) for number in numbers}
        trials = self._round(of_neighbours, 1.0, rounds_left + 1)
        settings = self._draw(_best([self.finalists["default"], *trials]).settings)
        for share in ITERATION_SHARES:
            trials = self._round(settings, share, rounds_left)
            survivors = trials[: math.ceil(SURVIVOR_SHARE * len(trials))]
            settings = {trial.number: trial.settings for trial in survivors}
            rounds_left -= 1

    def _draw(self, of_neighbours: Settings) -> dict[int, Settings]:
        """Draw random settings of the embeddings, by trial number."""
        train = self.held_out.train
        n_users = np.count_nonzero(train.getnnz(axis=1))
        n_items = int(np.count_nonzero(train.getnnz(axis=0)))
        settings = {}
        for number in range(1, self.n_trials + 1):
            drawn = draw(self.rng, self.center, train.nnz / n_users, n_items)
            settings[self.n_neighbours + number] = of_neighbours | drawn
        return settings

    def _round(self, settings: dict[int, Settings], share: float, rounds_left: int) -> list[Trial]:
        """Run trials in an equal share of the time, without those beyond it; return them, the best
        first.
        """
        end = time.monotonic() + (self._left() - self.reserved) / rounds_left
        trials: list[Trial] = []
        for number, trial_settings in settings.items():
            if trials and time.monotonic() >= end:
                self.out_of_time = True
                break
            trials.append(self._run(number, trial_settings, share))
        return sorted(trials, key=lambda trial: (-trial.figure, trial.number))

    def _run(self, number: int, settings: Settings, share: float) -> Trial:
        """Run one trial and append it to the list. Raise `OutOfTimeError` as soon as too little
        time would be left; the default settings and those in use always finish.
        """
        start = time.monotonic()
        max_iter = settings.get("max_iter", self.center["max_iter"])
        iterations = max(1, round(share * max_iter))

        def check(iteration: int, of: int) -> None:
            if number > DEFAULT and self._left() < self.reserved:
                raise OutOfTimeError

        check(0, iterations)
        limited = settings | {"max_iter": iterations}
        system = self.evaluator.trial(self.held_out, limited, check)
        if number == DEFAULT:
            fitted = system.preferences_.factors
            self.center |= {"alpha0": fitted.alpha0, "reg": fitted.reg}
        figure = float(self.evaluator.user_figures(system, self.held_out).mean())
        trial = Trial(number, settings, share, figure, time.monotonic() - start)
        self.trials.append(trial)
        if share == ITERATION_SHARES[-1]:
            # The finalists learn for the test part, and the best once more from all data.
            slowest = max(each.seconds for each in self.trials if each.share == share)
            not_random = sum(each.seconds for each in self.trials if each.number <= DEFAULT)
            self.reserved = LAST_FITS_FACTOR * (not_random + 2 * slowest)
        self.progress("trying settings", len(self.trials), self.n_planned)
        if self.callback is not None:
            self.callback(self.trials)
        return trial

    def _left(self) -> float:
        return self.deadline - time.monotonic()
