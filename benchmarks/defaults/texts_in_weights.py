"""Texts inside the weights of items: L3AE, and a sum with weights of texts alone.

L3AE (Moon, Park and Lee 2025, arXiv 2508.13500) draws the weights of EASE^R to those of texts:
B = argmin |X − XB|² + λ|B|² + β|B − S|² with a zero diagonal, and S the weights of an EASE^R whose
"users" are the components of the items' text vectors. λ + β, the share of β in it and the penalty
of S are chosen on a fifth of the training part, and so is EASE^R's λ. *For rare items* takes the
setting that is best on these, among those that are no worse on all items than EASE^R. Rare items
are the quarter with the fewest interactions in training, at least one.

*rare* ranks all items and asks for the rare ones; *among rare* ranks these alone; *others* asks for
all others. "`recommend`, L3AE for neighbours" has the 200 largest weights of each item in place of
the neighbours, with the shares learned as a build learns them. "`recommend` + S" adds the 200
largest weights of S to what a build has: the smallest of the shares 0, .05, .1, .15, .2 and .3
within half a standard error of the best on the same fifth.

What was seen of test parts before: that a sum pays and that a penalty of 100 does better than 10 in
it, on MovieLens-100k; that shares near equal ones do harm, on MovieLens-1M.

New items: all interactions of some items are held out, and these are ranked among each other, and
among all items, for everyone who liked one of them and has a history. They are a random tenth of
the items, or those that first occur in the last tenth of the timeline. *Placed by text* is what
embeddings do today. The settings of L3AE are chosen on another tenth of the items that are left.

QKVSEARCH_DATA=data python benchmarks --only texts_in_weights    (half an hour)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.metrics import roc_auc_score

from benchmarks.support.public_data import data_folder, read_films, read_positives, split
from benchmarks.support.quality import Score, mean_ndcg, rankings
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import ndcg
from qkvsearch.evaluation.systems import Fused
from qkvsearch.models.confidences import rating_confidences
from qkvsearch.models.item_neighbours import NeighbourWeights
from qkvsearch.models.preferences import COLLABORATIVE, NEIGHBOURS, Preferences
from qkvsearch.models.recommend_head import FittedHead
from qkvsearch.tables.interactions import Interactions
from qkvsearch.tables.ratings import infer_scale
from qkvsearch.tables.sources import read_movielens
from qkvsearch.text.encoders import fitted_encoder
from qkvsearch.text.text_encoder import item_keys

ENCODERS = ("static", "minilm", "e5")
# λ + β in mean confidences, the shares of β in it, and the penalties of the weights of texts.
REGS = (100.0, 400.0, 1000.0)
SHARES = (0.5, 1.0)
TEXT_REGS = (1.0, 10.0)
# How much of XᵀX's diagonal is added to λ, as in EDLAE: on MovieLens-100k's validation part better
# than none.
DROPOUT = 0.5
# Of the weights of texts alone, and their shares beside the heads of a build.
SUM_REG, SUM_SHARES = 100.0, (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
# Users of the validation part who are ranked for.
MAX_USERS = 500
K, N_WEIGHTS, NEW = 20, 200, 0.1


@dataclass(frozen=True)
class Log:
    """A log in two parts, and the texts of its items, a list a column."""

    title: str
    train: csr_matrix
    test: csr_matrix
    columns: tuple[Sequence[str], ...]
    # When each item first occurs, where times are known.
    first_times: np.ndarray | None = None

    @property
    def whole(self) -> csr_matrix:
        return (self.train + self.test).tocsr()


class Setting(NamedTuple):
    """text_reg and share are 0 without texts."""

    reg: float
    text_reg: float = 0.0
    share: float = 0.0


# --- logs ---


def steam() -> Log:
    """Purchases, split as their rows are drawn."""
    table = pd.read_csv(data_folder() / "steam/game_purchase.dat", sep="\t", usecols=[0, 1])
    table = table.drop_duplicates()
    users, items = pd.factorize(table.iloc[:, 0])[0], table.iloc[:, 1].to_numpy() - 1
    names = pd.read_csv(data_folder() / "steam/item_info.dat", sep="\t", index_col=0)
    titles = names.iloc[:, 0].reindex(range(1, items.max() + 2)).fillna("").astype(str)
    is_test = np.random.default_rng(0).random(len(table)) < 0.2
    shape = (users.max() + 1, items.max() + 1)
    train, test = (
        csr_matrix((np.ones(part.sum(), np.float32), (users[part], items[part])), shape=shape)
        for part in (~is_test, is_test)
    )
    return Log("Steam purchases, names", *with_history(train, test), (titles.tolist(),))


def movielens_1m() -> Log:
    """Positives by the split that is stored with them."""
    films = read_films()
    folder = data_folder() / "ml-1m-implicit"
    shape = (6040, len(films))
    train, test = (read_positives(folder / f"{part}.txt", shape) for part in ("train", "test"))
    genres = films["genres"].str.replace("|", " ")
    columns = (films["title"].tolist(), genres.tolist())
    return Log("MovieLens-1M, titles and genres", train, test, columns)


def likes(name: str, title: str) -> Log:
    """Ratings from the middle up, as confidences."""
    data = read_movielens(data_folder() / name)
    log = data.interactions
    assert isinstance(log, Interactions)
    assert log.ratings is not None
    assert log.times is not None
    confidences = rating_confidences(log.ratings, len(log), infer_scale(log.ratings))
    liked = confidences > 0
    shape = (len(log.user_ids), len(log.item_ids))
    matrix = csr_matrix((confidences[liked], (log.users[liked], log.items[liked])), shape=shape)
    first_times = np.full(shape[1], np.iinfo(np.int64).max)
    np.minimum.at(first_times, log.items, log.times)
    parts = with_history(*split(matrix, seed=16))
    return Log(title, *parts, tuple(data.catalog.fields()), first_times)


def with_history(train: csr_matrix, test: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    """The users with interactions in training; the others are recommended what is popular."""
    is_known = train.getnnz(axis=1) > 0
    return train[is_known], test[is_known]


LOGS: dict[str, Callable[[], Log]] = {
    "steam": steam,
    "ml-1m": movielens_1m,
    "latest-small": partial(
        likes, "ml-latest-small", "MovieLens latest-small, titles, genres and tags"
    ),
    "ml-100k": partial(likes, "ml-100k", "MovieLens-100k, titles and genres"),
}


@cache
def keys_of(name: str, encoder: str) -> np.ndarray:
    fields = LOGS[name]().columns
    encode_many = fitted_encoder(encoder, fields, encoder).encode_many
    return item_keys(encode_many, fields)


# --- the method ---


class TextWeights:
    """S = keys·right − diag(diagonal): EASE^R on the components of text vectors (n_items, d)."""

    def __init__(self, keys: np.ndarray, reg: float) -> None:
        gram = keys.T @ keys
        gram[np.diag_indices(len(gram))] += reg
        right = np.linalg.solve(gram, keys.T)
        # The inverse of keys·keysᵀ + reg·I is (I − keys·right) / reg.
        own = np.einsum("nd,dn->n", keys, right)
        self.keys = keys
        self.right = right / (1 - own)
        self.diagonal = own / (1 - own)

    def times(self, left: np.ndarray) -> np.ndarray:
        """left (n, n_items) times S."""
        return (left @ self.keys) @ self.right - left * self.diagonal

    def matrix(self) -> np.ndarray:
        """S (n_items, n_items)."""
        weights = self.keys @ self.right
        weights[np.diag_indices(len(weights))] = 0
        return weights

    def diagonal_of_product(self, left: np.ndarray) -> np.ndarray:
        """The diagonal of left (n_items, n_items) times S."""
        product_diagonal = np.einsum("nd,dn->n", left @ self.keys, self.right)
        return product_diagonal - np.diag(left) * self.diagonal


class Interior:
    """(XᵀX + Λ + βI)⁻¹ of some interactions, Λ with the dropout, and the weights that it makes."""

    def __init__(self, X: csr_matrix, reg: float) -> None:
        X = X.astype(np.float32)
        self.reg = np.float32(reg * X.data.mean())
        squares = np.asarray(X.power(2).sum(axis=0)).ravel()
        penalties = self.reg + np.float32(DROPOUT) * squares
        if X.shape[0] > X.shape[1]:
            gram = (X.T @ X).toarray()
            gram[np.diag_indices(len(gram))] += penalties
            self.inverse = np.linalg.inv(gram)
        else:  # by Woodbury's identity: the users are fewer than the items
            scaled = X.multiply(1 / penalties).tocsr()
            gram = (scaled @ X.T).toarray()
            gram[np.diag_indices(len(gram))] += 1
            self.inverse = -(scaled.T @ np.linalg.solve(gram, scaled.toarray()))
            self.inverse[np.diag_indices(len(penalties))] += 1 / penalties

    def scores(
        self, histories: np.ndarray, texts: TextWeights | None, shares: Sequence[float]
    ) -> Iterator[np.ndarray]:
        """Scores (n, n_items) of histories times the inverse, with each share of β.

        B = βPS − P·diag(μ), where μ makes the diagonal zero. What B has on its diagonal is not
        among the scores of items that a history has not.
        """
        diagonal = np.diag(self.inverse)
        if texts is None:
            yield histories / -diagonal
            return
        of_texts, own = texts.times(histories), texts.diagonal_of_product(self.inverse)
        for share in shares:
            beta = np.float32(share) * self.reg
            yield beta * of_texts - histories * ((1 + beta * own) / diagonal)

    def weights(self, texts: TextWeights | None, share: float) -> np.ndarray:
        """B (n_items, n_items)."""
        (weights,) = self.scores(self.inverse, texts, [share])
        weights[np.diag_indices(len(weights))] = 0
        return weights


def fit(X: csr_matrix, keys: np.ndarray | None, setting: Setting) -> np.ndarray:
    """B of some interactions, by texts where there are keys."""
    texts = None if keys is None else TextWeights(keys, setting.text_reg)
    return Interior(X, setting.reg).weights(texts, setting.share)


def largest(weights: np.ndarray, k: int) -> NeighbourWeights:
    """The k largest weights, by their absolute value, that each item gets from others."""
    n_items = len(weights)
    sources = np.argpartition(-np.abs(weights), min(k, n_items - 1), axis=0)[:k]
    targets = np.broadcast_to(np.arange(n_items), sources.shape)
    values = np.take_along_axis(weights, sources, axis=0)
    shape = (n_items, n_items)
    kept = csr_matrix((values.ravel(), (sources.ravel(), targets.ravel())), shape=shape)
    kept.eliminate_zeros()
    kept.sort_indices()
    return NeighbourWeights(kept.indptr.astype(np.int64), kept.indices, kept.data)


# --- judging known items ---


def rare_items(train: csr_matrix) -> np.ndarray:
    """The quarter of the items with the fewest interactions, at least one (bool, n_items)."""
    counts = train.getnnz(axis=0)
    return (counts > 0) & (counts <= np.quantile(counts[counts > 0], 0.25))


def of_items(test: csr_matrix, items: np.ndarray) -> csr_matrix:
    """The entries of some items (bool, n_items) alone."""
    kept = test.tocoo()
    chosen = items[kept.col]
    pairs = kept.row[chosen], kept.col[chosen]
    return csr_matrix((kept.data[chosen], pairs), shape=test.shape)


def judge(score: Score, train: csr_matrix, test: csr_matrix) -> dict[str, float]:
    """NDCG@20 of all items, of rare ones, of these among each other, and of the others."""
    rare = rare_items(train)
    top = list(rankings(score, train, K))

    def of_rare(rows: slice) -> np.ndarray:
        scores = score(rows)
        scores[:, ~rare] = -np.inf
        return scores

    rare_test = of_items(test, rare)
    return {
        f"NDCG@{K}": mean_ndcg(top, test, K),
        f"NDCG@{K}, rare": mean_ndcg(top, rare_test, K),
        f"NDCG@{K}, among rare": mean_ndcg(rankings(of_rare, train, K), rare_test, K),
        f"NDCG@{K}, others": mean_ndcg(top, of_items(test, ~rare), K),
    }


# What a setting reaches, by the scores of some users, their histories and what was held out.
Judge = Callable[[np.ndarray, csr_matrix, csr_matrix], tuple[float, float]]


def grid(
    name: str, train: csr_matrix, test: csr_matrix, judged: Judge
) -> dict[str, dict[Setting, tuple[float, float]]]:
    """What each setting reaches on a validation part, by encoder; "" is EASE^R, without texts."""
    users = np.flatnonzero((train.getnnz(axis=1) > 0) & (test.getnnz(axis=1) > 0))
    users = users[:: 1 + (len(users) - 1) // MAX_USERS]
    parts = train[users], test[users]
    encoders = list(product(ENCODERS, TEXT_REGS))
    found: dict[str, dict[Setting, tuple[float, float]]] = {name: {} for name in ("", *ENCODERS)}
    for reg in REGS:
        interior = Interior(train, reg)
        histories = parts[0] @ interior.inverse
        (scores,) = interior.scores(histories, None, [0.0])
        found[""][Setting(reg)] = judged(scores, *parts)
        for encoder, text_reg in encoders:
            texts = TextWeights(keys_of(name, encoder), text_reg)
            made = interior.scores(histories, texts, SHARES)
            for share, scores in zip(SHARES, made, strict=True):
                setting = Setting(reg, text_reg, share)
                found[encoder][setting] = judged(scores, *parts)
    return found


def all_and_rare(scores: np.ndarray, train: csr_matrix, test: csr_matrix) -> tuple[float, float]:
    judged = judge(lambda rows: scores[rows].copy(), train, test)
    return judged[f"NDCG@{K}"], judged[f"NDCG@{K}, among rare"]


def described(name: str, setting: Setting) -> str:
    if setting.share == 0:
        return f"{name}, λ {setting.reg:g}"
    return (
        f"{name}, λ + β {setting.reg:g}, β's share {setting.share:g}, "
        f"penalty of S {setting.text_reg:g}"
    )


def sums(name: str) -> Iterable[Row]:
    """The heads of a build, and with them the weights of texts alone."""
    log = LOGS[name]()
    rows = partial(rows_of, log.title, log.train, log.test)
    today = Fused(keys_of(name, "static")).fit(log.train)
    preferences = today.preferences_
    yield from rows("`recommend`", by_system(today, log.train))
    for head, title in {COLLABORATIVE: "embeddings", NEIGHBOURS: "neighbours"}.items():
        yield from rows(f"{title} alone", by_head(preferences, head, log.train))
    for encoder, (share, score) in with_texts(name, log.train, today).items():
        yield from rows(f"`recommend` + S, {encoder}, share {share:g}", score)


def l3ae(name: str) -> Iterable[Row]:
    """EASE^R and L3AE alone, and in place of a build's neighbours."""
    log = LOGS[name]()
    rows = partial(rows_of, log.title, log.train, log.test)
    learners = {head: once_each(learn) for head, learn in Fused().learners.items()}
    found = grid(name, *split(log.train, seed=17), all_and_rare)
    for title, (encoder, setting) in settings_to_judge(found).items():
        keys = keys_of(name, encoder) if encoder else None
        weights = fit(log.train, keys, setting)
        yield from rows(described(title, setting), by_weights(weights, log.train))
        if "rare" in title:
            continue
        other = Fused(keys_of(name, "static"))
        other.learners = {**learners, NEIGHBOURS: partial(largest_of_fit, keys, setting)}
        other.fit(log.train)
        yield from rows(f"`recommend`, {title} for neighbours", by_system(other, log.train))


def once_each(learn: Callable[[csr_matrix], FittedHead]) -> Callable[[csr_matrix], FittedHead]:
    """Learn from each matrix once, known by how many entries it has."""
    learned: dict[int, FittedHead] = {}

    def learn_once(X: csr_matrix) -> FittedHead:
        if X.nnz not in learned:
            learned[X.nnz] = learn(X)
        return learned[X.nnz]

    return learn_once


def settings_to_judge(
    found: dict[str, dict[Setting, tuple[float, float]]],
) -> dict[str, tuple[str, Setting]]:
    """The encoder and the setting of each system that is judged on the test part."""

    def best(encoder: str) -> Setting:
        return max(found[encoder], key=lambda each: found[encoder][each][0])

    chosen = {"EASE^R": ("", best(""))}
    least = found[""][best("")][0]
    for encoder in ENCODERS:
        of_encoder = found[encoder]
        chosen[f"L3AE, {encoder}"] = (encoder, best(encoder))
        no_worse = [each for each in of_encoder if of_encoder[each][0] >= least]
        for_rare = max(no_worse or [best(encoder)], key=lambda each: of_encoder[each][1])
        if for_rare != best(encoder):
            chosen[f"L3AE for rare items, {encoder}"] = (encoder, for_rare)
    return chosen


def rows_of(
    task: str, train: csr_matrix, test: csr_matrix, system: str, score: Score
) -> Iterator[Row]:
    for metric, quality in judge(score, train, test).items():
        yield Row(task, system, metric, quality)


def largest_of_fit(keys: np.ndarray | None, setting: Setting, X: csr_matrix) -> NeighbourWeights:
    return largest(fit(X, keys, setting), N_WEIGHTS)


def by_system(system: Fused, train: csr_matrix) -> Score:
    return lambda users: system.scores(train[users])


def by_head(preferences: Preferences, head: str, train: csr_matrix) -> Score:
    return lambda users: preferences.head_scores(head, train[users])


def by_weights(weights: np.ndarray, train: csr_matrix) -> Score:
    return lambda users: train[users] @ weights


# --- the sum with weights of texts alone ---


def with_texts(name: str, train: csr_matrix, today: Fused) -> dict[str, tuple[float, Score]]:
    """By encoder, the share that S gets beside a build's heads, and what they score together.

    today: fitted to the training part.
    """
    known, held_out = with_history(*split(train, seed=17))
    trial = Fused(keys_of(name, "static"))
    trial.fit(known)
    users = np.flatnonzero(held_out.getnnz(axis=1) > 0)
    users = users[:: 1 + (len(users) - 1) // 2000]
    histories, wanted = known[users], held_out[users]
    heads = trial.scores(histories)
    heads /= spread(heads)
    found = {}
    for encoder in ENCODERS:
        kept = weights_of_texts(keys_of(name, encoder))
        scores = (histories @ kept).toarray()
        scores /= spread(scores)
        gains = np.array(
            [gains_of((1 - share) * heads + share * scores, histories, wanted)
             for share in SUM_SHARES]
        )  # fmt: skip
        share = smallest_good(gains)
        found[encoder] = (share, sum_of(today, kept, train, share))
    return found


def weights_of_texts(keys: np.ndarray) -> csr_matrix:
    """The largest weights of S."""
    return largest(TextWeights(keys, SUM_REG).matrix(), N_WEIGHTS).matrix()


def spread(scores: np.ndarray) -> float:
    """The standard deviation of a user's scores, on average."""
    return float(scores.std(axis=1).mean())


def gains_of(scores: np.ndarray, histories: csr_matrix, wanted: csr_matrix) -> list[float]:
    """The NDCG@20 of each user."""
    top = rankings(lambda rows: scores[rows].copy(), histories, K)
    entries = np.split(wanted.indices, wanted.indptr[1:-1])
    return [
        ndcg(found, dict.fromkeys(relevant.tolist(), 1), K)
        for found, relevant in zip(top, entries, strict=True)
    ]


def smallest_good(gains: np.ndarray) -> float:
    """The smallest share within half a standard error of the best; gains (n_shares, n_users)."""
    means = gains.mean(axis=1)
    best = int(np.argmax(means))
    errors = (gains[best] - gains).std(axis=1) / np.sqrt(gains.shape[1])
    good = means[best] - means <= errors / 2
    return SUM_SHARES[int(np.argmax(good))]


def sum_of(today: Fused, texts: csr_matrix, train: csr_matrix, share: float) -> Score:
    sample = train[:: 1 + train.shape[0] // 2000]
    scale = spread(today.scores(sample))
    scale_of_texts = spread((sample @ texts).toarray())

    def score(users: slice) -> np.ndarray:
        heads = today.scores(train[users]) * np.float32((1 - share) / scale)
        return np.asarray(
            heads + (train[users] @ texts).toarray() * np.float32(share / scale_of_texts)
        )

    return score


# --- judging new items ---


def without_items(matrix: csr_matrix, new: np.ndarray) -> tuple[csr_matrix, csr_matrix]:
    """What is known without some items (bool, n_items), and of them what the users liked who have
    something else.
    """
    train, test = of_items(matrix, ~new), of_items(matrix, new)
    return with_history(train, test)


def judge_new(
    scores: np.ndarray, train: csr_matrix, test: csr_matrix, *, with_area: bool = False
) -> dict[str, float]:
    """New items, those in `test`, ranked among each other and among all."""
    new = np.flatnonzero(test.getnnz(axis=0) > 0)
    liked = test[:, new].tocsr()
    top = list(rankings(lambda rows: scores[rows][:, new], train[:, new], K // 2))
    top_of_all = list(rankings(lambda rows: scores[rows].copy(), train, K))
    figures = {
        f"NDCG@{K // 2}, among new": mean_ndcg(top, liked, K // 2),
        f"NDCG@{K}, among all": mean_ndcg(top_of_all, test, K),
    }
    if with_area:
        n_liked = liked.getnnz(axis=1)
        judged = np.flatnonzero((n_liked > 0) & (n_liked < len(new)))
        areas = [roc_auc_score(liked[[u]].toarray()[0] > 0, scores[u, new]) for u in judged]
        figures["AUC, among new"] = float(np.mean(areas))
    return figures


def among_new(scores: np.ndarray, train: csr_matrix, test: csr_matrix) -> tuple[float, float]:
    among, of_all = judge_new(scores, train, test).values()
    return among, of_all


def new_items(name: str, kind: str) -> Iterable[Row]:
    log = LOGS[name]()
    rng = np.random.default_rng(0)
    n_items = log.train.shape[1]
    is_random = kind == "random"
    new = rng.random(n_items) < NEW if is_random else last_items(log)
    matrix = log.whole
    train, test = without_items(matrix, new)
    users = np.flatnonzero(test.getnnz(axis=1) > 0)
    of_users, wanted = train[users], test[users]
    n_new = (test.getnnz(axis=0) > 0).sum()
    task = f"{log.title}: {n_new} new items, {kind}, {len(users)} users"

    def rows(system: str, scores: np.ndarray) -> Iterator[Row]:
        for metric, quality in judge_new(scores, of_users, wanted, with_area=True).items():
            yield Row(task, system, metric, quality)

    yield from rows("random scores", rng.random(of_users.shape))
    is_known = train.getnnz(axis=0) > 0
    also_new = is_known & (rng.random(n_items) < NEW)
    trial, held_out = without_items(train, also_new)
    found = grid(name, trial, held_out, among_new)
    today = Fused().fit(train)
    together_of = with_texts(name, train, today)
    for encoder in ENCODERS:
        keys = keys_of(name, encoder)
        fused = Fused(keys).using(today.preferences_, train)
        embeddings = fused.preferences_.head_scores(COLLABORATIVE, of_users)
        yield from rows(f"placed by text, {encoder}", embeddings)
        yield from rows(f"`recommend`, {encoder}", fused.scores(of_users))
        share = together_of[encoder][0]
        texts = weights_of_texts(keys)
        together = sum_of(fused, texts, of_users, share)(slice(None))
        yield from rows(f"`recommend` + S, {encoder}, share {share:g}", together)
        yield from rows(f"text alone, {encoder}", of_users @ keys @ keys.T)
        of_encoder = found[encoder]
        setting = max(of_encoder, key=lambda each: of_encoder[each][0])
        weights = fit(train, keys, setting)
        yield from rows(described(f"L3AE, {encoder}", setting), of_users @ weights)


def last_items(log: Log) -> np.ndarray:
    """The tenth of the items that first occurs last (bool, n_items)."""
    assert log.first_times is not None
    occurs = log.whole.getnnz(axis=0) > 0
    return occurs & (log.first_times > np.quantile(log.first_times[occurs], 1 - NEW))


PARTS = {name: partial(sums, name) for name in LOGS}
PARTS |= {f"{name}, L3AE": partial(l3ae, name) for name in LOGS}
PARTS |= {f"{name}, new": partial(new_items, name, "random") for name in LOGS}
PARTS |= {f"{name}, last": partial(new_items, name, "last") for name in ("latest-small", "ml-100k")}

if __name__ == "__main__":
    main(__file__, PARTS)
