"""Lesson 10, learned: what one head of the same width cannot do, and what each head is for."""

from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention
from qkvsearch.attention.gradients import attention_vjp
from qkvsearch.attention.layers import gaussian
from qkvsearch.attention.layers.transformer import join_heads, split_heads
from qkvsearch.attention.symbols import numbered
from qkvsearch.attention.training import Adam, mean_squared_error
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Curve, Matrix, Step, Table, step, tell

# Sequences of TOKENS vectors: two numbers, and where the token stands.
SEQUENCES, TOKENS, D_HEADS = 64, 4, 8
ROUNDS, LEARNING_RATE, DEVIATION = 250, 0.05, 0.2
NAMES = ("query", "key", "value")


def two_places(seed: int) -> tuple[Array, Array]:
    """Inputs (SEQUENCES, TOKENS, 2 + TOKENS), and what to give back, (SEQUENCES, TOKENS, 2): the
    first number of the token before and the second of the token after, in a ring.
    """
    content = np.random.default_rng(seed).normal(size=(SEQUENCES, TOKENS, 2))
    places = np.broadcast_to(np.eye(TOKENS), (SEQUENCES, TOKENS, TOKENS))
    before, after = np.roll(content, 1, axis=1), np.roll(content, -1, axis=1)
    target = np.stack([before[..., 0], after[..., 1]], axis=-1)
    return np.concatenate([content, places], axis=2), target


def heads_of(x: Array, w: dict[str, Array], n_heads: int) -> list[Array]:
    """Queries, keys and values, (SEQUENCES, n_heads, TOKENS, width of a head)."""
    return [split_heads(x @ w[name], n_heads) for name in NAMES]


def train(n_heads: int, rounds: int) -> tuple[dict[str, Array], list[float]]:
    """The matrices learned, and the loss of each round. W_O is learned, too."""
    (x, target), rng = two_places(seed=0), np.random.default_rng(1)
    w = {name: gaussian((x.shape[-1], D_HEADS), rng, DEVIATION) for name in NAMES}
    w["out"] = gaussian((D_HEADS, 2), rng, DEVIATION)
    optimizer, losses = Adam(LEARNING_RATE), []
    for _ in range(rounds):
        mixed, pull = attention_vjp(*heads_of(x, w, n_heads))
        heads = join_heads(mixed)
        loss, gradient = mean_squared_error(heads @ w["out"], target)
        by = pull(split_heads(gradient @ w["out"].T, n_heads))
        inputs = x.reshape(-1, x.shape[-1]).T
        back = {n: inputs @ join_heads(getattr(by, n)).reshape(-1, D_HEADS) for n in NAMES}
        back["out"] = heads.reshape(-1, D_HEADS).T @ gradient.reshape(-1, 2)
        optimizer.step(w, back)
        losses.append(loss)
    return w, losses


def loss_on_new(w: dict[str, Array], n_heads: int, without: int | None = None) -> Array:
    """The mean squared error of each of the two numbers, (2,), on sequences that were not seen;
    without: a head whose outputs are made 0."""
    x, target = two_places(seed=9)
    mixed = attention(*heads_of(x, w, n_heads))
    if without is not None:
        mixed[:, without] = 0
    return np.square(join_heads(mixed) @ w["out"] - target).mean(axis=(0, 1))


class Trained(NamedTuple):
    """By the number of heads, what was learned and its losses; and the code that did it."""

    one: tuple[dict[str, Array], list[float]]
    two: tuple[dict[str, Array], list[float]]


def both() -> Trained:
    return Trained(train(1, ROUNDS), train(2, ROUNDS))


def learn(n_heads: int, rounds: int) -> tuple[Array, Array]:
    w, losses = train(n_heads, rounds)
    return np.array(losses), loss_on_new(w, n_heads)


def compared(trained: Trained) -> Step:
    """The same width, the same number of weights, the same rounds: one head, and two."""
    cell, (falling, left) = ran(learn, n_heads=2, rounds=ROUNDS)
    losses = [np.array(trained.one[1]), falling]
    unseen = [loss_on_new(trained.one[0], 1), left]
    weights = sum(array.size for array in trained.two[0].values())
    return step(
        "A task that one head does not learn",
        tell(
            "A task: give back the first number of the token *before* and the second number of "
            "the token *after*, in a circle: before the first stands the last. One head with {d} "
            "columns and two heads with {half} each learn it from the same sequences, with "
            "{weights} numbers each, in {rounds} rounds:",
            d=D_HEADS,
            half=D_HEADS // 2,
            weights=weights,
            rounds=ROUNDS,
        ),
        Curve(say("loss, one head"), say("rounds"), losses[0]),
        Curve(say("loss, two heads"), say("rounds"), losses[1]),
        Table(
            say("Mean squared error on sequences that neither has seen"),
            [say("heads"), say("number from before"), say("number from after")],
            [[n, *map(float, loss)] for n, loss in enumerate(unseen, start=1)],
        ),
        tell(
            "One head stays at {one} on average, two come to {two}. (The numbers to be found have "
            "the variance 1, so guessing 0 would be wrong by 1.) W_Q, W_K, W_V and W_O were as "
            "large in both; only the split into two rows of weights was another.",
            one=unseen[0].mean(),
            two=unseen[1].mean(),
        ),
        points=(63,),
        found={"one": losses[0], "two": falling, "left": left, "unseen": unseen},
        code=cell,
    )


def looks(query: Array, key: Array, value: Array) -> tuple[Array, Array]:
    x, _ = two_places(seed=9)
    heads = [split_heads(x[0] @ w, 2) for w in (query, key, value)]
    first, second = attention(*heads, return_weights=True)[1]
    return first, second


def taken_away(trained: Trained) -> Step:
    """Each head's output made 0: which number is lost with it."""
    w = trained.two[0]
    cell, found = ran(looks, **{name: w[name] for name in NAMES})
    weights = np.array(found)
    whole = loss_on_new(w, 2)
    lost = [loss_on_new(w, 2, head) for head in range(2)]
    rows = [
        [say("both heads"), *whole],
        *([say("without head {n}", n=n + 1), *lost[n]] for n in (0, 1)),
    ]
    tokens = numbered(TOKENS)
    places = np.arange(TOKENS)
    before, after = (weights[:, places, (places + n) % TOKENS].mean(axis=1) for n in (-1, 1))
    return step(
        "Take a head away",
        tell(
            "What did each head learn? Its weights say where it looks. On average head 1 gives "
            "{before_1} to the token before and {after_1} to the one after; head 2 gives "
            "{before_2} and {after_2}. But where a head looks is not yet what it is for. To see "
            "that, make its output 0, leave the rest, and measure again:",
            before_1=before[0],
            after_1=after[0],
            before_2=before[1],
            after_2=after[1],
        ),
        Matrix(say("weights, head 1"), weights[0], tokens, tokens, "weights"),
        Matrix(say("weights, head 2"), weights[1], tokens, tokens, "weights"),
        Table(
            say("Mean squared error of each number"),
            ["", say("number from before"), say("number from after")],
            rows,
        ),
        tell(
            "Without head 1 the error of the {first} grows most, without head 2 that of the "
            "{second}. W_O may use a head to correct another one: so a head "
            "that looks at both may serve one number, and one that looks at one may serve both. "
            "In large models the same test finds heads that can be left out unnoticed (Michel, "
            "Levy and Neubig, “Are Sixteen Heads Really Better than One?”, 2019).",
            first=_place(lost[0] - whole),
            second=_place(lost[1] - whole),
        ),
        points=(66,),
        found={
            "first": weights[0],
            "second": weights[1],
            "whole": whole,
            "lost": lost,
            "before": before,
            "after": after,
        },
        code=cell,
    )


def _place(grown: Array) -> str:
    return (say("number from before"), say("number from after"))[int(grown.argmax())]
