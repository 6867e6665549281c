"""Lesson 5: softmax, temperature, and why scores are divided by the root of their width."""

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention, softmax
from qkvsearch.attention.gradients import softmax_vjp
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.softmax.questions import quizzes
from qkvsearch.lessons.drawings import Arrows, Flow
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Table, arrays, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("Softmax and temperature")
GOAL = mark("Turn scores into weights by hand, and know why they are divided by √d.")
MINUTES = 14

QUERIES = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
KEYS = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
VALUES = np.array([[4.0, 0.0], [0.0, 4.0], [2.0, 2.0]])
TOKENS = "123"
TEMPERATURES = (4.0, 2.0, 1.0, 0.5, 0.1)
WIDTHS = (4, 16, 64, 256)
SAMPLES, N_KEYS = 4_000, 8
SHIFT = 50.0
EXTRA = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    bench = workbench()
    pairs, weights, warmth, wide = scores(bench), by_hand(bench), temperatures(bench), variances()
    return [pairs, weights, warmth, dominance(), wide, slopes()], quizzes(
        pairs, weights, warmth, wide
    )


def workbench(queries: np.ndarray = QUERIES, keys: np.ndarray = KEYS) -> Workbench:
    return Workbench(
        name="softmax",
        caption=say("Change queries, keys and values; turn the temperature up and down."),
        matrices={"queries": queries, "keys": keys, "values": VALUES},
        rows=TOKENS,
        columns=TOKENS,
        scale=1.0,
    )


def scored(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    scores = Q @ K.T
    return scores


def scores(bench: Workbench) -> Step:
    """Every query against every key, its own included."""
    steps = bench.trace(bench.matrices)
    queries, keys = steps["queries"].array, steps["keys"].array
    cell, array = ran(scored, Q=queries, K=keys)
    return step(
        "A score for every pair",
        tell(
            "Let several queries search at once, as the words of a text will. There are three "
            "tokens (pieces of a text), and each has a query q, a key k and, later, a value v. "
            "A raised number says whose it is: q¹ is the query of the first."
        ),
        Matrix.of(steps["queries"], say("queries Q")),
        Matrix.of(steps["keys"], say("keys K")),
        Arrows(
            "scores",
            say("The first query and the keys as arrows: turn one and see its score"),
            np.vstack([queries[:1], keys]),
            ["q¹", "k¹", "k²", "k³"],
            (say("first number"), say("second number")),
            chosen=2,
        ),
        Formula("α₁,₂ = q¹·k²"),
        tell(
            "The score α₁,₂ (“alpha one two”) says how well the second key answers the first "
            "query: {first} times {second}, number by number and added up, is {score}. A token "
            "also scores against itself: α₁,₁ = {own}.",
            first=queries[0],
            second=keys[1],
            score=array[0, 1],
            own=array[0, 0],
        ),
        Matrix.of(steps["scores"], say("scores α"), symbols=True),
        points=(28,),
        found={"queries": queries, "keys": keys, "scores": array},
        code=cell,
    )


def weighed(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    raised = np.exp(scores)
    weights = raised / raised.sum(axis=1, keepdims=True)
    return raised, weights


def by_hand(bench: Workbench) -> Step:
    """exp, the sum of each row, and the quotient; then the mix."""
    steps = bench.trace(bench.matrices)
    cell, (raised, weights) = ran(weighed, scores=steps["scores"].array)
    return step(
        "Softmax, by hand",
        tell(
            "First take exp of each score: the number e = {e}, raised to it. That is always "
            "positive, and grows fast. Then divide by the sum of the row. The first row, "
            "{raised}, has the sum {total}, and becomes {row}. (Σⱼ adds up a row: j runs over "
            "its keys. ′ says: after softmax.)",
            e=np.e,
            raised=raised[0],
            total=raised[0].sum(),
            row=weights[0],
        ),
        Formula("α′ᵢ,ⱼ = exp(αᵢ,ⱼ) / Σⱼ exp(αᵢ,ⱼ)"),
        Matrix(say("exp of the scores"), raised, TOKENS, TOKENS, "score"),
        Matrix.of(steps["weights"], say("weights α′")),
        tell(
            "Softmax works row by row, for a row is one query's question. So every row adds up "
            "to 1: here {rows}. The columns need not: {columns}. With the weights, each query "
            "mixes the values: b¹ = α′₁,₁·v¹ + α′₁,₂·v² + α′₁,₃·v³.",
            rows=weights.sum(axis=1),
            columns=weights.sum(axis=0),
        ),
        tell(
            "Only the differences of the scores count. Add the same number to all scores of a "
            "row: exp of each becomes the same number of times as large, and so does their sum. "
            "The quotients stay. With {shift} added to each, the first row is {row}, as before.",
            shift=SHIFT,
            row=softmax(steps["scores"].array[0] + SHIFT),
        ),
        Matrix.of(steps["values"], say("values V")),
        Matrix.of(steps["outputs"], say("outputs b")),
        Flow(
            "softmax",
            say("Scores become weights, and weights mix values: turn the temperature"),
            bench,
            asks=say("query of token"),
            asked=say("key of token"),
        ),
        bench,
        points=(51, 9),
        found={"exp": raised, "weights": weights, **arrays(steps, "values", "outputs")},
        code=cell,
    )


def tempered(scores: np.ndarray, temperatures: tuple[float, ...]) -> np.ndarray:
    return np.array([softmax(scores[0], T) for T in temperatures])


def temperatures(bench: Workbench, chosen: tuple[float, ...] = TEMPERATURES) -> Step:
    scores = bench.steps()["scores"]
    row, (cell, weights) = scores[0], ran(tempered, scores=scores, temperatures=chosen)
    return step(
        "Temperature",
        tell(
            "Divide the scores by a temperature T before softmax. The first query's scores "
            "stay {row}, but its weights go from nearly even, where T is high, to nearly all "
            "for the largest, where it is low. The differences of the scores are what counts, and "
            "T divides them. The order never changes.",
            row=row,
        ),
        Formula("softmax(α / T)"),
        Matrix(
            say("weights of the first query"),
            weights,
            [f"T = {temperature:g}" for temperature in chosen],
            TOKENS,
            "weights",
        ),
        points=(51,),
        found={"temperatures": list(chosen), "weights": weights},
        code=cell,
    )


def with_more(Q: Array, K: Array, V: Array, extra: tuple[float, ...]) -> tuple[Array, Array]:
    found = [
        attention(Q[:1], K, V, scale=1, bias=[[0, more, 0]], return_weights=True) for more in extra
    ]
    outputs, weights = (np.vstack(parts) for parts in zip(*found, strict=True))
    return outputs, weights


def dominance(extra: tuple[float, ...] = EXTRA) -> Step:
    """Something is added to the first query's score for the second key, more and more."""
    cell, (outputs, weights) = ran(with_more, Q=QUERIES, K=KEYS, V=VALUES, extra=extra)
    rows = [f"+ {more:g}" for more in extra]
    return step(
        "The largest score dominates",
        tell(
            "Add more and more to one score, α₁,₂, and leave the others. Its weight α′₁,₂ "
            "comes close to 1 (to four decimals it is {last} in the end), and the others fade.",
            last=weights[-1, 1],
        ),
        Matrix(say("weights of the first query"), weights, rows, TOKENS, "weights"),
        Matrix(say("output b¹"), outputs, rows, ["1", "2"], "output"),
        tell(
            "The output b¹ therefore comes close to the second value, v² = {value}. A score far "
            "above the others makes the output nearly its value; one that is only a little larger "
            "does not.",
            value=VALUES[1],
        ),
        points=(30,),
        found={"weights": weights, "outputs": outputs, "value": VALUES[1]},
        code=cell,
    )


# --- the width of keys ---


def spreads(widths: tuple[int, ...], n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    found = []
    for d in widths:
        queries, keys = rng.normal(size=(2, n, d))
        found.append((queries * keys).sum(axis=1).var())
    return np.array(found)


def variances(widths: tuple[int, ...] = WIDTHS, n: int = SAMPLES) -> Step:
    """Of dot products of random rows, by how wide the rows are; and of the same over √d."""
    cell, plain = ran(spreads, widths=widths, n=n)
    scaled = plain / np.array(widths)
    return step(
        "Wide rows make large scores",
        tell(
            "A real model has rows of d numbers, d in the hundreds. The larger d is, the more "
            "products a dot product adds up, so it spreads more and more. Spread is measured by "
            "the *variance* (Var), the mean squared distance from the mean. Here are {n} pairs of "
            "random queries and keys for each d. Their numbers have mean 0 and variance 1 and are "
            "independent: none of them says anything about another.",
            n=n,
        ),
        Table(
            say("Variance of the scores"),
            ["d", say("of q·k"), say("of q·k / √d")],
            [[d, float(a), float(b)] for d, a, b in zip(widths, plain, scaled, strict=True)],
        ),
        Formula("Var(q·k) ≈ d      Var(q·k / √d) ≈ 1"),
        tell(
            "Why d? The product of two such numbers has mean 0 and variance 1, too, and the "
            "variances of independent numbers add up. There are d products, so the variance of a "
            "score is about d, and its typical size √d. Divided by √d, the square root of the "
            "width, a score has a variance of about 1 whatever the width. That is why a "
            "transformer divides (Vaswani et al., “Attention Is All You Need”, 2017)."
        ),
        points=(50,),
        found={"widths": list(widths), "variances": plain, "scaled": scaled},
        code=cell,
    )


def largest(scores: np.ndarray) -> tuple[float, float]:
    """Of rows of scores (n, S), on average: the largest weight, and its gradient by its score."""
    weights, pull = softmax_vjp(scores)
    top = np.eye(scores.shape[1])[weights.argmax(axis=1)]
    return (weights * top).sum(axis=1).mean(), (pull(top) * top).sum(axis=1).mean()


def by_width(widths: tuple[int, ...], n: int, n_keys: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    found = []
    for d in widths:
        queries, keys = rng.normal(size=(n, 1, d)), rng.normal(size=(n, n_keys, d))
        scores = (queries @ keys.swapaxes(1, 2))[:, 0]
        found.append([*largest(scores), *largest(scores / np.sqrt(d))])
    return np.array(found)


def slopes(widths: tuple[int, ...] = WIDTHS, n: int = 500) -> Step:
    """How much the largest weight answers to its score, without and with the division."""
    cell, table = ran(by_width, widths=widths, n=n, n_keys=N_KEYS)
    return step(
        "Large scores stop learning",
        tell(
            "Why not leave large scores? Because one weight is then nearly 1, the others "
            "nearly 0, and a small change of a score changes nothing. How much a weight "
            "answers to its score is the *gradient* of softmax, and learning goes by gradients. "
            "For a weight w and its own score it is w · (1 − w). The table has the means of {n} "
            "draws.",
            n=n,
        ),
        Table(
            say("The largest of {n} weights, and its gradient", n=N_KEYS),
            [
                "d",
                say("weight"),
                say("gradient"),
                say("weight, over √d"),
                say("gradient, over √d"),
            ],
            [[d, *map(float, row)] for d, row in zip(widths, table, strict=True)],
        ),
        tell(
            "Without the division the gradient shrinks as d grows, from {first} to {last}. "
            "With it, the last one is {scaled}.",
            first=table[0, 1],
            last=table[-1, 1],
            scaled=table[-1, 3],
        ),
        points=(50,),
        found={
            "widths": list(widths),
            "table": table,
            "gradients": table[:, 1],
            "scaled": table[:, 3],
        },
        code=cell,
    )
