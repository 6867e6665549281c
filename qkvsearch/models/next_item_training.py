"""Training of `NextItem`: histories cut into windows, and the loop in PyTorch.

PyTorch is imported here alone, and inside functions.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from qkvsearch._utils.callbacks import Callback
from qkvsearch._utils.threads import available_cores
from qkvsearch.attention.layers import load, state
from qkvsearch.errors import DataError
from qkvsearch.imports import leaving_no_trace
from qkvsearch.models.next_item_model import NextItemModel
from qkvsearch.tables.interactions import Interactions

if TYPE_CHECKING:
    from torch import Tensor

# Windows are sorted by length within this many batches, which leaves little to pad.
BATCHES_SORTED = 32
# PyTorch's compiler, and the variable that names its folder.
COMPILER = "torch._dynamo", "torch._inductor"
COMPILER_FOLDER = "TORCHINDUCTOR_CACHE_DIR"


@dataclass(frozen=True)
class TrainingSettings:
    """How `NextItem` is trained; its parameters of the same names."""

    dropout: float
    learning_rate: float
    max_iter: int
    max_minutes: float | None
    batch_size: int
    callback: Callback | None


class Batch(NamedTuple):
    """A batch of windows: their items, the next item of each, and which entries count.

    All are (B, L); after the end of a window, `counts` is False and the items are 0.
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
        """Sort a log by user and time; items of the same time stay in the order of the catalog.

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
        """Return the items of these users, without the last `n_left_out`."""
        ends = self.starts + self.lengths - n_left_out
        return [self.items[self.starts[user] : ends[user]] for user in users]


class Windows:
    """All histories in windows of at most `size` items, split differently in each iteration.

    held_out: users whose last item is no target. The model does not see the items before a window,
    as in truncated backpropagation.
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
        """Return the mean number of batches; the length of a first window is random."""
        is_cut = self.n_targets > self.size
        n_windows = np.sum(self.n_targets > 0) + np.sum((self.n_targets[is_cut] - 1) / self.size)
        return max(1, int(np.ceil(n_windows / self.batch_size)))

    def __iter__(self) -> Iterator[Batch]:
        starts, lengths = self._spans()
        order = self.rng.permutation(len(starts))
        pool = self.batch_size * BATCHES_SORTED
        batches = []
        for first in range(0, len(order), pool):
            block = order[first : first + pool]
            block = block[np.argsort(lengths[block], kind="stable")]
            batches += np.split(block, range(self.batch_size, len(block), self.batch_size))
        for i in self.rng.permutation(len(batches)):
            chosen = batches[i]
            yield self._batch(starts[chosen], lengths[chosen])

    def _spans(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw windows: where each starts among the items, and its length."""
        # A long history's first window has a random length, the others the greatest.
        first = self.rng.integers(1, self.size + 1, len(self.n_targets))
        first[self.n_targets <= self.size] = self.size
        n_windows = 1 - (first - self.n_targets) // self.size
        n_windows[self.n_targets <= 0] = 0
        owners = np.repeat(np.arange(len(n_windows)), n_windows)
        window_numbers = np.arange(len(owners)) - np.repeat(
            np.cumsum(n_windows) - n_windows, n_windows
        )
        begin = np.where(window_numbers > 0, first[owners] + (window_numbers - 1) * self.size, 0)
        end = np.minimum(first[owners] + window_numbers * self.size, self.n_targets[owners])
        return self.starts[owners] + begin, end - begin

    def _batch(self, starts: np.ndarray, lengths: np.ndarray) -> Batch:
        steps = np.arange(lengths.max())
        counts = steps < lengths[:, None]
        indices = np.where(counts, starts[:, None] + steps, 0)
        items = np.where(counts, self.items[indices], 0)
        # The next item is the same user's: a window never reads a history's last one.
        targets = np.where(counts, self.items[np.where(counts, indices + 1, 0)], 0)
        return Batch(items, targets, counts)


# Up to this many items, all are in the softmax; otherwise a sample of them.
FULL_SOFTMAX_ITEMS = 20_000
# The share of training in which the learning rate rises; then it falls, as half a cosine.
WARM_UP = 0.05
BETAS = (0.9, 0.98)
# Multiplications of a batch's scores below which threads wait longer than they work.
FEW_PRODUCTS = 2**24
# In this share of max_minutes the clock does not count. Training that will end in time is then
# always ahead of the clock, and no bit depends on it.
UNTIMED = 0.1
HISTORIES_AT_ONCE = 128
# States at a time: their scores of some thousand items stay in a processor's cache.
STATES_AT_ONCE = 128
# The size of such a sample.
N_SAMPLED = 4096


def train(
    settings: TrainingSettings,
    model: NextItemModel,
    sequences: Sequences,
    held_out: np.ndarray,
    rng: np.random.Generator,
) -> NextItemModel:
    """Train a model, and return it with the weights of the best epoch.

    That is the epoch that predicts best the last items of the users `held_out` (n,), which are
    never targets; without such users, the last epoch. The same rng gives the same bits on one
    machine. Raises `DataError` for weights that are not finite.
    """
    import torch

    with _cores(model, settings.batch_size), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        training = _Training(settings, model, sequences, held_out, rng)
        return load(model, training.run())


@contextmanager
def _cores(model: NextItemModel, batch_size: int) -> Iterator[None]:
    """Let PyTorch use all cores of this process, or one for small batches; restore its setting."""
    import torch

    before = torch.get_num_threads()
    products = batch_size * len(model.positions.weight) * model.items.weight.size
    torch.set_num_threads(1 if products < FEW_PRODUCTS else available_cores())
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Training:
    """The weights, the optimizer and the clock of a training."""

    def __init__(
        self,
        settings: TrainingSettings,
        model: NextItemModel,
        sequences: Sequences,
        held_out: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        import torch

        # In PyTorch's own memory: the alignment of NumPy's differs between runs, and so would bits.
        self.weights: dict[str, Tensor] = {
            name: torch.tensor(array, requires_grad=True) for name, array in state(model).items()
        }
        self.keys = self.weights["items.weight"]
        self.n_heads = model.n_heads
        self.settings = settings
        size = len(model.positions.weight)
        self.windows = Windows(sequences, size, settings.batch_size, held_out, rng)
        self.proposal: Proposal | None = None
        if len(self.keys) > FULL_SOFTMAX_ITEMS:
            self.proposal = Proposal.of(sequences.items, len(self.keys), rng)
        self.histories = sequences.histories(held_out, n_left_out=1)
        self.targets = [history[-1] for history in sequences.histories(held_out)]
        # The first optimizer imports PyTorch's compiler, which is not used here and makes a folder
        # for itself, unless a folder that exists is named.
        folder = os.environ.get(COMPILER_FOLDER) or tempfile.gettempdir()
        with leaving_no_trace(*COMPILER, variables={COMPILER_FOLDER: folder}):
            self.optimizer = torch.optim.AdamW(
                self.weights.values(), lr=settings.learning_rate, betas=BETAS
            )
        self.began = time.monotonic()
        self.n_steps = 0

    def run(self) -> dict[str, np.ndarray]:
        """Run epochs until `max_iter` or `max_minutes`, and return the best weights. Raises
        `DataError` if they are not finite.
        """
        best: dict[str, np.ndarray] = {}
        best_quality = -1.0
        for epoch in range(1, self.settings.max_iter + 1):
            for batch in self.windows:
                self._step(batch)
                if self._progress() >= 1:
                    break
            quality = self._quality() if self.histories else float(epoch)
            if quality >= best_quality:  # among equal ones, the later
                best_quality = quality
                best = {name: w.copy() for name, w in self._arrays().items()}
            if self.settings.callback is not None:
                self.settings.callback(epoch, self.settings.max_iter)
            # No step leads back from a NaN.
            if self._progress() >= 1 or not _are_finite(self._arrays()):
                break
        if not _are_finite(best):
            rate = self.settings.learning_rate
            raise DataError(f"learning what comes next diverged: lower learning_rate ({rate:g})")
        return best

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the current weights, in PyTorch's memory."""
        return {name: weight.detach().numpy() for name, weight in self.weights.items()}

    def _progress(self) -> float:
        """Return the share of the training that is done, by steps or by the clock."""
        done = self.n_steps / (self.settings.max_iter * len(self.windows))
        if self.settings.max_minutes is None:
            return done
        elapsed = (time.monotonic() - self.began) / (60 * self.settings.max_minutes)
        return max(done, (elapsed - UNTIMED) / (1 - UNTIMED))

    def _learning_rate(self) -> float:
        progress = min(self._progress(), 1.0)
        warm = min(progress / WARM_UP, 1.0)
        cooling = max(progress - WARM_UP, 0.0) / (1 - WARM_UP)
        return self.settings.learning_rate * warm * (1 + math.cos(math.pi * cooling)) / 2

    def _step(self, batch: Batch) -> None:
        """Compute the gradients of a batch's mean cross entropy, and take a step."""
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate()
        self.optimizer.zero_grad()
        items, targets, counts = map(torch.from_numpy, batch)
        outputs = states(self.weights, items, self.n_heads, self.settings.dropout)[counts]
        block_targets = targets[counts]
        if self.proposal is None:
            gradients = full_softmax(outputs.detach(), self.keys.detach(), block_targets)
            torch.autograd.backward([outputs, self.keys], list(gradients))
        else:
            sampled_softmax(outputs, self.keys, block_targets, self.proposal).backward()
        self.optimizer.step()
        self.n_steps += 1

    def _quality(self) -> float:
        """Return the mean of 1 / log₂(rank + 1) of held-out items, among those new to the user."""
        total = 0.0
        for first in range(0, len(self.histories), HISTORIES_AT_ONCE):
            block = slice(first, first + HISTORIES_AT_ONCE)
            histories, targets = self.histories[block], self.targets[block]
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
        """Return the scores of all items after each history, (n, n_items)."""
        import torch

        size = self.windows.size
        recent = [history[-size:] for history in histories]
        items = np.zeros((len(recent), max(map(len, recent))), np.int64)
        for row, history in zip(items, recent, strict=True):
            row[: len(history)] = history
        with torch.no_grad():
            outputs = states(self.weights, torch.from_numpy(items), self.n_heads)
            last = outputs[torch.arange(len(recent)), [len(history) - 1 for history in recent]]
            scores: np.ndarray = (last @ self.keys.T).numpy()
        return scores


def states(
    weights: Mapping[str, Tensor], items: Tensor, n_heads: int, dropout: float = 0.0
) -> Tensor:
    """Compute `NextItemModel.states` of a batch of windows: items (B, L) -> (B, L, d).

    Training needs a second implementation, since PyTorch differentiates only its own operations,
    and dropout is between them. A test compares it with the model that answers.

    weights: `layers.state` of a model. Nothing attends to entries after a window's end. dropout:
    of the embeddings and of what each sublayer adds, as in Vaswani et al. 2017, section 5.4.
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


# --- cross entropy of the next item: over all items, or over a sample ---


def full_softmax(states: Tensor, keys: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the gradients of the mean of −log softmax(states·keysᵀ)[target] by states and keys.

    states (n, d), keys (n_items, d), targets int64 (n,) -> (n, d), (n_items, d). The scores (n,
    n_items) are computed in blocks, and not stored for a second pass.
    """
    import torch

    keys_down = keys.T.contiguous()
    by_states, by_keys = torch.empty_like(states), torch.zeros_like(keys_down)
    buffer = states.new_empty(min(STATES_AT_ONCE, len(states)), len(keys))
    for first in range(0, len(states), STATES_AT_ONCE):
        block = slice(first, first + STATES_AT_ONCE)
        block_states, block_targets = states[block], targets[block, None]
        errors = torch.mm(block_states, keys_down, out=buffer[: len(block_states)])
        torch.softmax(errors, -1, out=errors)
        errors.scatter_add_(1, block_targets, errors.new_full(block_targets.shape, -1))
        torch.mm(errors, keys, out=by_states[block])
        by_keys.addmm_(block_states.T, errors)
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
        """Draw items (n,), perhaps repeated, and return them with their expected counts (n,)."""
        items = np.searchsorted(self.shares.cumsum(), self.rng.random(n), side="right")
        items = np.minimum(items, len(self.shares) - 1)
        return items, n * self.shares[items]


def sampled_softmax(
    states: Tensor, keys: Tensor, targets: Tensor, proposal: Proposal, n: int = N_SAMPLED
) -> Tensor:
    """Compute the mean of −log softmax(states·keysᵀ)[target], with a sampled denominator.

    states (n, d), keys (n_items, d), targets int64 (n,) -> (). The log of its expected count is
    subtracted from the score of a sampled item (logQ correction). The target counts once, and
    samples of it do not count. The estimated denominator is right on average.
    Bengio and Senécal 2008; Jean et al. 2015, section 3.
    """
    import torch

    sampled, expected = map(torch.from_numpy, proposal.sample(n))
    scores = states @ keys[sampled].T - expected.log().to(states.dtype)
    scores = scores.masked_fill(sampled == targets[:, None], -torch.inf)
    target_scores = (states * keys[targets]).sum(-1, keepdim=True)
    totals = torch.logsumexp(torch.cat([target_scores, scores], -1), -1, keepdim=True)
    return (totals - target_scores).mean()
