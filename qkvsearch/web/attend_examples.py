"""The examples of the page on which a sentence attends to itself."""

from collections.abc import Mapping, Sequence

# A sentence, one of its words, and the word that it is shown to attend to; a control sentence in
# which the answer should be another one. They are in English, as MiniLM is. `<PAD>` is hidden, and
# the control of the last one is the same sentence without it.
EXAMPLES: Sequence[Mapping[str, str]] = (
    {
        "text": "The animal didn't cross the street because it was too tired.",
        "word": "it",
        "at": "animal",
        "against": "The animal didn't cross the street because it was too wide.",
    },
    {
        "text": "we walked along the bank of the river",
        "word": "bank",
        "at": "river",
        "against": "she opened an account at the bank",
    },
    {
        "text": "deep learning with attention <PAD> <PAD>",
        "word": "attention",
        "at": "learning",
        "against": "deep learning with attention",
    },
)
# The file with MiniLM's answers to them, in this order, with weights in thousandths;
# `docs/recorded_attention.py` writes it.
RECORDED = "recorded.json"
