"""What whoever teaches a lesson should know: what goes wrong in it, and what to ask the class."""

from typing import NamedTuple

from qkvsearch.lessons.messages import mark


class Guidance(NamedTuple):
    """Messages to be said: what people wrongly take from the lesson, with what is so; a question
    for the class, and its answer."""

    wrong: str
    ask: str
    answer: str


GUIDANCE = {
    "heads": Guidance(
        mark("“More heads are more numbers to learn.” At the same width they are as many."),
        mark("One row of weights: can an output hold more than the largest value?"),
        mark("No: it is a mean of the values, and lies between them."),
    ),
    "block": Guidance(
        mark("“Attention does the work.” Most numbers of a block are in feed forward."),
        mark("Which parts could be computed for one token without knowing the others?"),
        mark("Residual, norm and feed forward; attention alone needs the others."),
    ),
}
