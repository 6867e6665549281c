"""Lesson 5: softmax, temperature, and why scores are divided by the root of their width."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention import attention, softmax
from qkvsearch.lessons.course.softmax.questions import quizzes
from qkvsearch.lessons.course.softmax.widths import slopes, variances
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.own_numbers import refuse
from qkvsearch.lessons.parts import Formula, Given, Lesson, Matrix, Step, tell
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("Softmax and temperature")
GOAL = mark("Turn scores into weights by hand, and know why they are divided by √d.")
MINUTES = 6

QUERIES = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
KEYS = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
VALUES = np.array([[4.0, 0.0], [0.0, 4.0], [2.0, 2.0]])
TOKENS = "123"
TEMPERATURES = (4.0, 2.0, 1.0, 0.5, 0.1)
EXTRA = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)


def lesson(given: Given) -> Lesson:
    refuse(given, "softmax")
    bench = workbench()
    pairs, weights, warmth, wide = scores(bench), by_hand(bench), temperatures(bench), variances()
    return Lesson(
        name="softmax",
        number=5,
        title=say(TITLE),
        goal=say(GOAL),
        minutes=MINUTES,
        steps=[pairs, weights, warmth, dominance(), wide, slopes()],
        quizzes=quizzes(pairs, weights, warmth, wide),
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


def scores(bench: Workbench) -> Step:
    """Every query against every key, its own included."""
    steps = bench.trace(bench.matrices)
    queries, keys, array = (steps[name].array for name in ("queries", "keys", "scores"))
    return Step(
        say("A score for every pair"),
        [
            tell(
                "Let several queries search at once, as the words of a text will. There are three "
                "tokens (pieces of a text), and each has a query q, a key k and, later, a value v. "
                "A raised number says whose it is: q¹ is the query of the first."
            ),
            Matrix.of(steps["queries"], say("queries Q")),
            Matrix.of(steps["keys"], say("keys K")),
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
        ],
        points=(28,),
        found={"queries": queries, "keys": keys, "scores": array},
        code=f"import numpy as np\nQ = np.array({queries.tolist()})\n"
        f"K = np.array({keys.tolist()})\nQ @ K.T",
        result="scores",
    )


def by_hand(bench: Workbench) -> Step:
    """exp, the sum of each row, and the quotient; then the mix."""
    steps = bench.trace(bench.matrices)
    array, weights = steps["scores"].array, steps["weights"].array
    raised = np.exp(array)
    return Step(
        say("Softmax, by hand"),
        [
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
            Matrix.of(steps["values"], say("values V")),
            Matrix.of(steps["outputs"], say("outputs b")),
            bench,
        ],
        points=(51, 9),
        found={
            "exp": raised,
            "weights": weights,
            "values": steps["values"].array,
            "outputs": steps["outputs"].array,
        },
        code="raised = np.exp(Q @ K.T)\nraised / raised.sum(axis=1, keepdims=True)",
        result="weights",
    )


def temperatures(bench: Workbench, chosen: tuple[float, ...] = TEMPERATURES) -> Step:
    row = bench.steps()["scores"][0]
    weights = np.array([softmax(row, temperature) for temperature in chosen])
    return Step(
        say("Temperature"),
        [
            tell(
                "Divide the scores by a temperature T before softmax. The first query's scores "
                "stay {row}, but its weights go from nearly even, where T is high, to nearly all "
                "for the largest, where it is low. The order never changes.",
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
        ],
        points=(51,),
        found={"temperatures": list(chosen), "weights": weights},
        code="from qkvsearch.attention import softmax\n"
        f"np.array([softmax((Q @ K.T)[0], T) for T in {list(chosen)}])",
        result="weights",
    )


def dominance(extra: tuple[float, ...] = EXTRA) -> Step:
    """Something is added to the first query's score for the second key, more and more."""
    found = [
        attention(QUERIES[:1], KEYS, VALUES, scale=1, bias=[[0, more, 0]], return_weights=True)
        for more in extra
    ]
    outputs, weights = (np.vstack(parts) for parts in zip(*found, strict=True))
    rows = [f"+ {more:g}" for more in extra]
    return Step(
        say("The largest score dominates"),
        [
            tell(
                "Add more and more to one score, α₁,₂, and leave the others. Its weight α′₁,₂ "
                "comes close to 1 (to four decimals it is {last} in the end), and the others fade.",
                last=weights[-1, 1],
            ),
            Matrix(say("weights of the first query"), weights, rows, TOKENS, "weights"),
            Matrix(say("output b¹"), outputs, rows, ["1", "2"], "output"),
            tell(
                "The output b¹ therefore comes close to the second value, v² = {value}. Whoever "
                "has the largest score has the say.",
                value=VALUES[1],
            ),
        ],
        points=(30,),
        found={"weights": weights, "outputs": outputs, "value": VALUES[1]},
        code=f"""from qkvsearch.attention import attention
V = np.array({VALUES.tolist()})
np.vstack([attention(Q[:1], K, V, scale=1, bias=[[0, more, 0]]) for more in {list(extra)}])""",
        result="outputs",
    )
