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
    "recommender": Guidance(
        mark("“The computer finds genres.” It finds numbers that fit; a name is what we read in."),
        mark("What would the loss do if the rate were ten times as large?"),
        mark("The steps would jump over the valley, and the loss could grow."),
    ),
    "translation": Guidance(
        mark("“The query comes from what is read.” It comes from what is being written."),
        mark("The source has twice as many characters. Which matrices change their shape?"),
        mark("Keys, values and weights (in columns); the queries do not."),
    ),
    "masks": Guidance(
        mark("“A hidden token is gone.” Hidden as a key, it still asks, and its residual stays."),
        mark("Hide everything from a row. What does softmax give?"),
        mark("0/0: nothing that is defined; a program must choose."),
    ),
    "context": Guidance(
        mark("“Attention knows the order.” Without positions or a look-ahead mask it does not."),
        mark("How could the two “saw” get different outputs without positions?"),
        mark("By a look-ahead mask: the second one sees more words than the first."),
    ),
    "learning": Guidance(
        mark(
            "“A large weight is a reason.” It tells where a head looks; take it away to see causes."
        ),
        mark("What would you compare a weight with, before you believe it?"),
        mark("The other words, another ending, other heads, and the output without it."),
    ),
}
