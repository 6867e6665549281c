"""Cross entropy of the next item: over all items, or over some that were sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

# States at a time: their scores of some thousand items stay in a processor's cache.
STATES_AT_ONCE = 128
# Items to tell the next one from, where there are too many items for all.
N_SAMPLED = 4096


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
