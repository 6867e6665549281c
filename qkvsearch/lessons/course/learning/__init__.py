"""Lesson 12: attention without weights, with weights, how they are learned, and a real model."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention, softmax
from qkvsearch.attention.gradients import attention_vjp
from qkvsearch.attention.layers import Linear, gaussian
from qkvsearch.attention.symbols import numbered
from qkvsearch.attention.trace import trace, trace_self_attention
from qkvsearch.attention.training import Adam, mean_squared_error
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.compute.self_attention import W_KEY, W_QUERY, W_VALUE, X
from qkvsearch.lessons.course.context.outputs import of_themselves
from qkvsearch.lessons.course.learning import at_work
from qkvsearch.lessons.course.learning.questions import quizzes
from qkvsearch.lessons.course.learning.starts import starts
from qkvsearch.lessons.drawings import AttendedText, Flow, Heads
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.parts import (
    Curve,
    Formula,
    Given,
    Matrix,
    Part,
    Step,
    Table,
    step,
    tell,
)
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("Learning, and a real transformer")
GOAL = mark("See where the weight matrices come from, and what a trained model does with them.")
MINUTES = 22
TAKES = ("sentence", "encoder")

# Their scores are not symmetric, so that a row can be told from a column.
FEW = np.array([[1, 0], [0, 2], [1, 1]], dtype=float)
FEW_QUERY = np.array([[1, 2], [0, 1]], dtype=float)
FEW_KEY = np.array([[1, 0], [1, 1]], dtype=float)
FEW_VALUE = np.array([[2, 0], [1, 1]], dtype=float)

# The task: sequences of TOKENS vectors, WIDTH numbers each and then where the token stands.
SEQUENCES, TOKENS, WIDTH = 32, 4, 2
ROUNDS, LEARNING_RATE, DEVIATION = 150, 0.1, 0.1


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    steps = [no_weights(), still_x(), columns(), learned()]
    shown = [*steps[:-1], starts(), steps[-1], *at_work.steps(given)]
    return shown, quizzes(*(step.found for step in steps))


def no_weights(x: Array = X) -> Step:
    """softmax(XXᵀ/√d)X, and the same with three identity matrices, on a workbench."""
    identity, letters = np.eye(x.shape[1]), "abcdefgh"[: len(x)]
    bench = Workbench(
        name="identity",
        caption=say(
            "The matrices do nothing yet. Change one, and watch which tokens are attended to."
        ),
        matrices={"inputs": x, "w_query": identity, "w_key": identity, "w_value": identity},
        rows=letters,
        columns=letters,
    )
    steps, projected, (cell, outputs) = trace(x, x, x), bench.steps(), ran(of_themselves, X=x)
    apart = float(np.abs(projected["outputs"] - outputs).max())
    return step(
        "Attention without anything to learn",
        tell(
            "Attention works without any weight matrices. The inputs X themselves are queries, "
            "keys and values; d, their width, is {d}.",
            d=x.shape[1],
        ),
        Formula("softmax(X·Xᵀ/√d)·X"),
        Matrix(say("inputs X"), x, letters, numbered(x.shape[1]), "input"),
        Matrix.of(steps["weights"], say("weights")),
        Matrix.of(steps["outputs"], say("outputs")),
        tell(
            "An *identity* matrix, 1 on the diagonal and 0 elsewhere, changes no vector. With "
            "identities for W_Q, W_K and W_V the outputs differ by {apart}.",
            apart=apart,
        ),
        bench,
        points=(16,),
        found={"outputs": outputs, "projected": projected["outputs"], "apart": apart},
        code=cell,
    )


def three_layers(X: Array, W_Q: Array, W_K: Array, W_V: Array) -> tuple[Array, ...]:
    Q, K, V = (Linear(W.T)(X) for W in (W_Q, W_K, W_V))
    return Q, K, V, attention(Q, K, V)


def still_x(
    x: Array = X, w_query: Array = W_QUERY, w_key: Array = W_KEY, w_value: Array = W_VALUE
) -> Step:
    """Three `Linear` layers on one X; what they make is still a row for each token."""
    given = {"X": x, "W_Q": w_query, "W_K": w_key, "W_V": w_value}
    cell, value = ran(three_layers, **given)
    found = dict(zip(("Q", "K", "V", "outputs"), value, strict=True))
    shapes = {name: array.shape for name, array in {**given, **found}.items()}
    outputs = found["outputs"]
    names = {**{name: name for name in shapes}, "outputs": say("outputs")}
    return step(
        "Three layers, all of the same X",
        tell(
            "Without weight matrices a word can only ask for what it is itself. Three *linear "
            "layers*, one product of matrices each, make queries, keys and values of the same "
            "X, each for its own purpose. Each still has a row for every token, in the same order. "
            "X and the matrices are those of lesson 7; here the scores are divided by √d."
        ),
        Formula("Q = X·W_Q    K = X·W_K    V = X·W_V"),
        Table(
            say("Shapes"),
            [say("matrix"), say("rows"), say("columns")],
            [[names[name], *shape] for name, shape in shapes.items()],
        ),
        Matrix(
            say("outputs"),
            outputs,
            list("abcdefgh")[: len(x)],
            numbered(outputs.shape[1]),
            "output",
        ),
        points=(17,),
        found={"shapes": shapes, **found},
        code=cell,
    )


def turned(inputs: Array, W_q: Array, W_k: Array, W_v: Array) -> tuple[Array, Array, Array]:
    Q, K, V = W_q @ inputs, W_k @ inputs, W_v @ inputs
    A = K.T @ Q
    weights = softmax(A, axis=0)
    return A, weights, V @ weights


def columns(
    x: Array = FEW, w_query: Array = FEW_QUERY, w_key: Array = FEW_KEY, w_value: Array = FEW_VALUE
) -> Step:
    """The formula with one input a column, beside the row form's trace."""
    steps = trace_self_attention(x, w_query, w_key, w_value, scale=1)
    cell, (scores, weights, outputs) = ran(
        turned, inputs=x.T, W_q=w_query.T, W_k=w_key.T, W_v=w_value.T
    )
    rows = {name: steps[name].array for name in ("scores", "weights", "outputs")}
    pairs = zip((scores, weights, outputs), rows.values(), strict=True)
    apart = max(float(np.abs(column.T - row).max()) for column, row in pairs)
    n = range(1, len(x) + 1)
    names = np.array([[f"α{column},{row}" for column in n] for row in n])
    tokens = steps["inputs"].rows
    keys, queries = [f"k {token}" for token in tokens], [f"q {token}" for token in tokens]
    return step(
        "The same in columns",
        tell(
            "Hung-yi Lee's lectures (“Self-attention”, 2021), among others, write an input as a "
            "*column*: I is X turned on its side, and a matrix stands before it. W^q, "
            "W^k and W^v are our W_Q, W_K and W_V, turned. To keep the "
            "matrices small, the numbers are others than in the step before."
        ),
        Formula("Q = W^q·I    K = W^k·I    V = W^v·I    A = Kᵀ·Q    O = V·A′"),
        tell(
            "A′ is the softmax of A, column by column; √d is left out here. α1,2 is the score "
            "of the first query for the second key. In A it stands in row 2, column 1: a "
            "*column* of A is a query. Turned back, A, A′ and O differ from the scores, "
            "weights and outputs of the rows' form by {apart} at most.",
            apart=apart,
        ),
        Matrix("I", x.T, numbered(x.shape[1]), tokens, "input"),
        Matrix("W^q", w_query.T, numbered(w_query.shape[1]), numbered(x.shape[1]), "weight"),
        Matrix("W^k", w_key.T, numbered(w_key.shape[1]), numbered(x.shape[1]), "weight"),
        Matrix("A", scores, keys, queries, "score", symbols=names),
        _in_rows(x, w_query, w_key, w_value, tokens),
        Matrix("A′", weights, keys, queries, "weights"),
        Matrix("O", outputs, numbered(len(outputs)), list(tokens), "output"),
        points=(31, 32),
        found={
            "A": scores,
            "names": names,
            "weights": weights,
            "O": outputs,
            "rows": rows,
            "apart": apart,
        },
        code=cell,
    )


def _in_rows(x: Array, w_query: Array, w_key: Array, w_value: Array, tokens: Sequence[str]) -> Flow:
    matrices = {"inputs": x, "w_query": w_query, "w_key": w_key, "w_value": w_value}
    return Flow(
        "columns",
        say("The same numbers in rows, as everywhere else in the course"),
        Workbench("few", "", matrices, rows=tokens, columns=tokens, scale=1.0),
        asks=say("query of input"),
        asked=say("key of input"),
    )


# --- learning ---


def task(seed: int = 0) -> tuple[Array, Array]:
    """Inputs (SEQUENCES, TOKENS, WIDTH + TOKENS), and what to give back: the numbers of the token
    before, (SEQUENCES, TOKENS, WIDTH); the first token's is the last.
    """
    content = np.random.default_rng(seed).normal(size=(SEQUENCES, TOKENS, WIDTH))
    places = np.broadcast_to(np.eye(TOKENS), (SEQUENCES, TOKENS, TOKENS))
    return np.concatenate([content, places], axis=2), np.roll(content, 1, axis=1)


def train(
    x: Array, target: Array, rounds: int = ROUNDS
) -> tuple[dict[str, Array], dict[str, Array], list[float]]:
    """The three matrices as they were drawn, as they were learned, and the loss of each round."""
    rng = np.random.default_rng(1)
    widths = {"query": TOKENS, "key": TOKENS, "value": WIDTH}
    w = {name: gaussian((x.shape[-1], d), rng, DEVIATION) for name, d in widths.items()}
    drawn = {name: array.copy() for name, array in w.items()}
    optimizer, losses = Adam(LEARNING_RATE), []
    for _ in range(rounds):
        outputs, pull = attention_vjp(x @ w["query"], x @ w["key"], x @ w["value"])
        loss, gradient = mean_squared_error(outputs, target)
        by, inputs = pull(gradient), x.reshape(-1, x.shape[-1]).T
        optimizer.step(
            w, {name: inputs @ getattr(by, name).reshape(-1, d) for name, d in widths.items()}
        )
        losses.append(loss)
    return drawn, w, losses


def learn(rounds: int) -> tuple[dict[str, Array], dict[str, Array], list[float], Array, Array]:
    x, target = task()
    drawn, w, losses = train(x, target, rounds)
    before, after = (
        attention(*(x[0] @ part for part in matrices.values()), return_weights=True)[1]
        for matrices in (drawn, w)
    )
    return drawn, w, losses, before, after


def two_sequences(w: dict[str, Array]) -> dict[str, float]:
    """How much attention weights and outputs of two sequences differ under the same matrices."""
    x, _ = task()
    outputs, weights = attention(*(x[:2] @ part for part in w.values()), return_weights=True)
    return {
        "weights": float(np.abs(weights[0] - weights[1]).max()),
        "outputs": float(np.abs(outputs[0] - outputs[1]).max()),
    }


def fixed_and_new(apart: dict[str, float]) -> list[Part]:
    """What learning leaves behind, beside what each sentence makes anew."""
    learned, anew = say("learned, then fixed"), say("computed anew for each sentence")
    return [
        tell(
            "After learning, the matrices stay as they are. The same three serve every sequence, "
            "and each sequence makes its own queries, keys, values, scores and attention weights "
            "of them. For two sequences of the task the outputs differ by up to {outputs}; the "
            "attention weights differ by up to {weights} only, for here the place decides almost "
            "alone. In a language model the table with a vector for each word (lesson 9) is "
            "learned in the same way, together with the matrices, and is then fixed, too.",
            **apart,
        ),
        Table(
            say("What is learned, and what is computed"),
            [say("what"), say("when")],
            [
                [say("table of embeddings, a row for each word"), learned],
                [say("weight matrices W_Q, W_K, W_V and those of other layers"), learned],
                [say("queries, keys and values"), anew],
                [say("scores and attention weights"), anew],
                [say("outputs"), anew],
            ],
        ),
    ]


def learned() -> Step:
    """Weights before and after learning; `losses` tells how wrong it was on the way."""
    cell, (drawn, w, losses, before, after) = ran(learn, rounds=ROUNDS)
    tokens, apart = numbered(TOKENS), two_sequences(w)
    return step(
        "The matrices are learned",
        tell(
            "The task here: give back the {width} numbers of the token *before*; the first token "
            "gives those of the last. An input is its own numbers and where it stands. W_Q, W_K "
            "and W_V start as small random numbers.",
            width=WIDTH,
        ),
        tell(
            "The *loss* is the mean square of what is wrong. Its gradient says, for every "
            "number of the three matrices, which way makes the loss larger; each is moved a "
            "little the other way. In {rounds} rounds it falls from {first} to {last}.",
            rounds=len(losses),
            first=losses[0],
            last=losses[-1],
        ),
        Curve(say("loss"), say("rounds"), np.array(losses)),
        Matrix(say("weights at the start"), before, tokens, tokens, "weights"),
        Matrix(say("weights, learned"), after, tokens, tokens, "weights"),
        Heads(
            "learned",
            say("The weights before and after learning: choose one and a token"),
            (AttendedText(tokens, np.stack([before, after])[None]),),
            head=1,
            word=1,
            names=(say("at the start"), say("learned")),
        ),
        Matrix(say("W_V, learned"), w["value"], numbered(len(w["value"])), ("1", "2"), "weight"),
        tell(
            "Nobody said so, but every token has learned to attend to the one before, and "
            "W_V has learned to pass on a token's own numbers and to leave out its place."
        ),
        *fixed_and_new(apart),
        points=(33,),
        found={
            "losses": losses,
            "drawn": drawn,
            "w": w,
            "before": before,
            "weights": after,
            "apart": apart,
        },
        code=cell,
    )
