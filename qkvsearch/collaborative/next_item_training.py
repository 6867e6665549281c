"""Training of `NextItem`: histories cut into windows, and the loop in PyTorch.

PyTorch is imported here alone, and inside functions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np

from qkvsearch._utils.progress import Callback
from qkvsearch._utils.threads import available_cores
from qkvsearch.attention.layers import load, state
from qkvsearch.collaborative.next_item_model import NextItemModel
from qkvsearch.data.interactions import Interactions
from qkvsearch.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

# Windows are sorted by length within this many batches, which leaves little to pad.
BATCHES_SORTED = 32


class Batch(NamedTuple):
    """Windows side by side: the items read, the item that follows each, and which places count.

    All (B, L); where `counts` is False a window has ended, and 0 stands there.
    """

    items: np.ndarray
    targets: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Sequences:
    """The items that each user interacted with, oldest first, one user after another.

    items: int64 (n,), those of user u from starts[u] on, lengths[u] of them. starts, lengths: int64
    (n_users,); a user without a history has length 0.

    >>> log = Interactions.from_columns(["a", "a", "b"], [7, 5, 5], times=[2, 1, 1])
    >>> Sequences.of(log).items
    array([0, 1, 0])
    """

    items: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, log: Interactions) -> Sequences:
        """By time; of equally late items, in the log's order, which is that of the catalog.

        Raises `DataError` for a log without times.
        """
        if log.times is None:
            raise DataError(
                "what comes next needs to know what came before: the interactions have no times; "
                "give a time column"
            )
        order = np.lexsort((log.times, log.users))
        lengths = np.bincount(log.users, minlength=len(log.user_ids))
        return cls(log.items[order].astype(np.int64), np.cumsum(lengths) - lengths, lengths)

    def histories(self, users: np.ndarray, n_left_out: int = 0) -> list[np.ndarray]:
        """The items of these users, all but the last `n_left_out`."""
        ends = self.starts + self.lengths - n_left_out
        return [self.items[self.starts[user] : ends[user]] for user in users]


class Windows:
    """Every history in windows of at most `size` items, cut at other places each time through.

    held_out: users whose last item is no target. A window is read from its first item on; what
    came before it is not, as in truncated backpropagation.
    """

    def __init__(
        self,
        sequences: Sequences,
        size: int,
        batch_size: int,
        held_out: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self.items, self.starts = sequences.items, sequences.starts
        self.size, self.batch_size, self.rng = size, batch_size, rng
        self.n_targets = sequences.lengths - 1
        self.n_targets[held_out] -= 1

    def __len__(self) -> int:
        """How many batches there are on average: a first window's length is random."""
        is_cut = self.n_targets > self.size
        n_windows = np.sum(self.n_targets > 0) + np.sum((self.n_targets[is_cut] - 1) / self.size)
        return max(1, int(np.ceil(n_windows / self.batch_size)))

    def __iter__(self) -> Iterator[Batch]:
        starts, lengths = self._cut()
        order = self.rng.permutation(len(starts))
        pool = self.batch_size * BATCHES_SORTED
        batches = []
        for first in range(0, len(order), pool):
            some = order[first : first + pool]
            some = some[np.argsort(lengths[some], kind="stable")]
            batches += np.split(some, range(self.batch_size, len(some), self.batch_size))
        for place in self.rng.permutation(len(batches)):
            chosen = batches[place]
            yield self._batch(starts[chosen], lengths[chosen])

    def _cut(self) -> tuple[np.ndarray, np.ndarray]:
        """Where windows start among the items, and how many of them each reads."""
        # A long history's first window has a random length, the others the greatest.
        first = self.rng.integers(1, self.size + 1, len(self.n_targets))
        first[self.n_targets <= self.size] = self.size
        n_windows = 1 - (first - self.n_targets) // self.size
        n_windows[self.n_targets <= 0] = 0
        owners = np.repeat(np.arange(len(n_windows)), n_windows)
        turns = np.arange(len(owners)) - np.repeat(np.cumsum(n_windows) - n_windows, n_windows)
        begin = np.where(turns > 0, first[owners] + (turns - 1) * self.size, 0)
        end = np.minimum(first[owners] + turns * self.size, self.n_targets[owners])
        return self.starts[owners] + begin, end - begin

    def _batch(self, starts: np.ndarray, lengths: np.ndarray) -> Batch:
        steps = np.arange(lengths.max())
        counts = steps < lengths[:, None]
        places = np.where(counts, starts[:, None] + steps, 0)
        items = np.where(counts, self.items[places], 0)
        # The next item is the same user's: a window never reads a history's last one.
        targets = np.where(counts, self.items[np.where(counts, places + 1, 0)], 0)
        return Batch(items, targets, counts)


# The most items that are all in the softmax; of more, those sampled for each batch are.
FULL_SOFTMAX_ITEMS = 20_000
# The share of training in which the learning rate rises; then it falls, as half a cosine.
WARM_UP = 0.05
BETAS = (0.9, 0.98)
# Multiplications of a batch's scores below which threads wait longer than they work.
FEW_PRODUCTS = 2**24
# The share of the minutes in which the clock does not count: training that will be done in time is
# ahead of it ever after, and no bit depends on it.
UNTIMED = 0.1
HISTORIES_AT_ONCE = 128
# States at a time: their scores of some thousand items stay in a processor's cache.
STATES_AT_ONCE = 128
# Items to tell the next one from, where there are too many items for all.
N_SAMPLED = 4096


class Parameters(Protocol):
    """Those of `NextItem` that say how to train."""

    dropout: float
    learning_rate: float
    max_iter: int
    max_minutes: float | None
    batch_size: int
    callback: Callback | None


def train(
    parameters: Parameters,
    model: NextItemModel,
    sequences: Sequences,
    held_out: np.ndarray,
    rng: np.random.Generator,
) -> NextItemModel:
    """The model with the weights of the epoch that predicted best the last items of `held_out`.

    parameters: a `NextItem`. held_out: users (n,) with two items or more; their last items are
    never targets. Where there are none, the weights of the last epoch. The same rng gives the same
    bits on one machine. Raises `DataError` where they are not finite.
    """
    import torch

    with _cores(model, parameters.batch_size), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        training = _Training(parameters, model, sequences, held_out, rng)
        return load(model, training.run())


@contextmanager
def _cores(model: NextItemModel, batch_size: int) -> Iterator[None]:
    """All cores of this process for PyTorch, or one for small batches, whatever was set before."""
    import torch

    before = torch.get_num_threads()
    products = batch_size * len(model.positions.weight) * model.items.weight.size
    torch.set_num_threads(1 if products < FEW_PRODUCTS else available_cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Training:
    """The weights on their way, and the clock."""

    def __init__(
        self,
        parameters: Parameters,
        model: NextItemModel,
        sequences: Sequences,
        held_out: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        import torch

        # In PyTorch's own memory: where NumPy's begins differs from run to run, and so would bits.
        self.weights: dict[str, Tensor] = {
            name: torch.tensor(array, requires_grad=True) for name, array in state(model).items()
        }
        self.keys = self.weights["items.weight"]
        self.n_heads = model.n_heads
        self.parameters = parameters
        size = len(model.positions.weight)
        self.windows = Windows(sequences, size, parameters.batch_size, held_out, rng)
        self.proposal: Proposal | None = None
        if len(self.keys) > FULL_SOFTMAX_ITEMS:
            self.proposal = Proposal.of(sequences.items, len(self.keys), rng)
        self.histories = sequences.histories(held_out, n_left_out=1)
        self.targets = [history[-1] for history in sequences.histories(held_out)]
        self.optimizer = torch.optim.AdamW(
            self.weights.values(), lr=parameters.learning_rate, betas=BETAS
        )
        self.began = time.monotonic()
        self.n_steps = 0

    def run(self) -> dict[str, np.ndarray]:
        """Epoch after epoch until `max_iter` or `max_minutes`; the best weights. Raises `DataError`
        where they are not finite.
        """
        best: dict[str, np.ndarray] = {}
        best_quality = -1.0
        for epoch in range(1, self.parameters.max_iter + 1):
            for batch in self.windows:
                self._step(batch)
                if self._progress() >= 1:
                    break
            quality = self._quality() if self.histories else float(epoch)
            if quality >= best_quality:  # of equal ones the one that learned longer
                best_quality = quality
                best = {name: w.copy() for name, w in self._arrays().items()}
            if self.parameters.callback is not None:
                self.parameters.callback(epoch, self.parameters.max_iter)
            # From what is no number no step leads back.
            if self._progress() >= 1 or not _are_finite(self._arrays()):
                break
        if not _are_finite(best):
            rate = self.parameters.learning_rate
            raise DataError(f"learning what comes next diverged: lower learning_rate ({rate:g})")
        return best

    def _arrays(self) -> dict[str, np.ndarray]:
        """The weights as they are now, in PyTorch's memory."""
        return {name: weight.detach().numpy() for name, weight in self.weights.items()}

    def _progress(self) -> float:
        """How much of the training is done: by steps, unless the minutes will not do for all."""
        done = self.n_steps / (self.parameters.max_iter * len(self.windows))
        if self.parameters.max_minutes is None:
            return done
        elapsed = (time.monotonic() - self.began) / (60 * self.parameters.max_minutes)
        return max(done, (elapsed - UNTIMED) / (1 - UNTIMED))

    def _learning_rate(self) -> float:
        progress = min(self._progress(), 1.0)
        warm = min(progress / WARM_UP, 1.0)
        cooling = max(progress - WARM_UP, 0.0) / (1 - WARM_UP)
        return self.parameters.learning_rate * warm * (1 + math.cos(math.pi * cooling)) / 2

    def _step(self, batch: Batch) -> None:
        """One batch's gradients of the mean cross entropy, and one step against them."""
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        self.optimizer.zero_grad()
        items, targets, counts = map(torch.from_numpy, batch)
        found = states(self.weights, items, self.n_heads, self.parameters.dropout)[counts]
        wanted = targets[counts]
        if self.proposal is None:
            gradients = full_softmax(found.detach(), self.keys.detach(), wanted)
            torch.autograd.backward([found, self.keys], list(gradients))
        else:
            sampled_softmax(found, self.keys, wanted, self.proposal).backward()
        self.optimizer.step()
        self.n_steps += 1

    def _quality(self) -> float:
        """Mean of 1 / log₂(rank + 1) of the items held out, among those new to the user."""
        total = 0.0
        for first in range(0, len(self.histories), HISTORIES_AT_ONCE):
            some = slice(first, first + HISTORIES_AT_ONCE)
            histories, targets = self.histories[some], self.targets[some]
            scores = self._scores(histories)
            for row, seen, target in zip(scores, histories, targets, strict=True):
                if not np.isfinite(row).all():
                    continue
                row[seen] = -np.inf
                # Ties count against it: equal scores for all predict nothing.
                rank = np.count_nonzero(row >= row[target])
                total += 1 / math.log2(rank + 1)
        return total / len(self.histories)

    def _scores(self, histories: list[np.ndarray]) -> np.ndarray:
        """Of all items, after each history (n, n_items)."""
        import torch

        size = self.windows.size
        recent = [history[-size:] for history in histories]
        items = np.zeros((len(recent), max(map(len, recent))), np.int64)
        for row, history in zip(items, recent, strict=True):
            row[: len(history)] = history
        with torch.no_grad():
            found = states(self.weights, torch.from_numpy(items), self.n_heads)
            last = found[torch.arange(len(recent)), [len(history) - 1 for history in recent]]
            scores: np.ndarray = (last @ self.keys.T).numpy()
        return scores


def states(
    weights: Mapping[str, Tensor], items: Tensor, n_heads: int, dropout: float = 0.0
) -> Tensor:
    """`NextItemModel.states` of windows side by side: items (B, L) -> (B, L, d).

    A forward of its own, for training alone: PyTorch follows its own operations backwards, and
    dropout stands between them. A test compares it with what answers.

    weights: `layers.state` of a model. What stands after a window's end is never attended to.
    dropout: of the embeddings and of what each sublayer adds, as in Vaswani et
    al. 2017, section 5.4.
    """
    from torch.nn import functional as F

    is_training, d = dropout > 0, weights["items.weight"].shape[1]

    def drop(x: Tensor) -> Tensor:
        return F.dropout(x, dropout) if is_training else x

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, (d,), weights[f"{name}.weight"], weights[f"{name}.bias"])

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def attend(x: Tensor, name: str) -> Tensor:
        projected = (linear(x, f"{name}.{part}") for part in ("query", "key", "value"))
        query, key, value = (y.unflatten(-1, (n_heads, -1)).transpose(1, 2) for y in projected)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return linear(mixed.transpose(1, 2).flatten(-2), f"{name}.output")

    def feed_forward(x: Tensor, name: str) -> Tensor:
        return linear(F.relu(linear(x, f"{name}.hidden")), f"{name}.output")

    x = F.embedding(items, weights["items.weight"]) * math.sqrt(d)
    x = drop(x + weights["positions.weight"][: items.shape[1]])
    n_layers = sum(name.endswith("attention.query.weight") for name in weights)
    for number in range(n_layers):
        name = f"encoder.layers.{number}"
        x = x + drop(attend(norm(x, f"{name}.attention_norm"), f"{name}.attention"))
        x = x + drop(feed_forward(norm(x, f"{name}.feed_forward_norm"), f"{name}.feed_forward"))
    return norm(x, "encoder.norm")


def _are_finite(arrays: Mapping[str, np.ndarray]) -> bool:
    return all(np.isfinite(array).all() for array in arrays.values())


# --- cross entropy of the next item: over all items, or over some that were sampled ---


def full_softmax(states: Tensor, keys: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the mean of −log softmax(states·keysᵀ)[target], by states and by keys.

    states (n, d), keys (n_items, d), targets int64 (n,) -> (n, d), (n_items, d). The scores (n,
    n_items) are never held at once, and nothing of them is kept for a second pass.
    """
    import torch

    keys_down = keys.T.contiguous()
    by_states, by_keys = torch.empty_like(states), torch.zeros_like(keys_down)
    buffer = states.new_empty(min(STATES_AT_ONCE, len(states)), len(keys))
    for first in range(0, len(states), STATES_AT_ONCE):
        some = slice(first, first + STATES_AT_ONCE)
        given, wanted = states[some], targets[some, None]
        errors = torch.mm(given, keys_down, out=buffer[: len(given)])
        torch.softmax(errors, -1, out=errors)
        errors.scatter_add_(1, wanted, errors.new_full(wanted.shape, -1))
        torch.mm(errors, keys, out=by_states[some])
        by_keys.addmm_(given.T, errors)
    return by_states / len(states), by_keys.T / len(states)


@dataclass(frozen=True)
class Proposal:
    """Samples items with probability proportional to the square root of their count.

    shares: float64 (n_items,), adding up to 1.
    """

    shares: np.ndarray
    rng: np.random.Generator

    @classmethod
    def of(cls, items: np.ndarray, n_items: int, rng: np.random.Generator) -> Self:
        roots = np.sqrt(np.bincount(items, minlength=n_items))
        return cls(roots / roots.sum(), rng)

    def sample(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Items (n,), the same one perhaps twice, and how often each was to be expected (n,)."""
        found = np.searchsorted(self.shares.cumsum(), self.rng.random(n), side="right")
        found = np.minimum(found, len(self.shares) - 1)
        return found, n * self.shares[found]


def sampled_softmax(
    states: Tensor, keys: Tensor, targets: Tensor, proposal: Proposal, n: int = N_SAMPLED
) -> Tensor:
    """The mean of −log softmax(states·keysᵀ)[target], its denominator estimated from n items.

    states (n, d), keys (n_items, d), targets int64 (n,) -> (). From the score of a
    sampled item the log of how often it was to be expected is subtracted (logQ correction); the
    target is there once, and samples of it do not count. The estimated denominator is
    right on average. Bengio and Senécal 2008; Jean et al. 2015, section 3.
    """
    import torch

    found, expected = map(torch.from_numpy, proposal.sample(n))
    scores = states @ keys[found].T - expected.log().to(states.dtype)
    scores = scores.masked_fill(found == targets[:, None], -torch.inf)
    own = (states * keys[targets]).sum(-1, keepdim=True)
    return (torch.logsumexp(torch.cat([own, scores], -1), -1, keepdim=True) - own).mean()
