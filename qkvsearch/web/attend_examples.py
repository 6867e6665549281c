"""The examples of the page on which a sentence attends to itself."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Examples(NamedTuple):
    """Examples in one language, and what was recorded of them."""

    # Of each example its sentence, one of its words, and the word that it is shown to attend to; a
    # control sentence in which the answer should be another one. `<PAD>` is hidden, and the control
    # of the last one is the same sentence without it.
    sentences: Sequence[Mapping[str, str]]
    # The transformer whose answers are recorded, as options spell it and as people do.
    model: str
    title: str
    # The file with these answers, in the order of the sentences, with weights in thousandths;
    # `docs/recorded_attention.py` writes it.
    file: str


# By the code of the language.
EXAMPLES: Mapping[str, Examples] = {
    "en": Examples(
        sentences=(
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
        ),
        model="minilm",
        title="MiniLM",
        file="recorded-en.json",
    ),
    # MiniLM reads no Chinese.
    "zh": Examples(
        sentences=(
            {
                "text": "动物没有过马路，它太累了。",
                "word": "它",
                "at": "动物",
                "against": "动物没有过马路，它太宽了。",
            },
            {
                "text": "我用苹果手机打电话",
                "word": "苹果",
                "at": "打电话",
                "against": "我吃了一个红苹果",
            },
            {
                "text": "春天来了，花开了 <PAD> <PAD>",
                "word": "花",
                "at": "春天",
                "against": "春天来了，花开了",
            },
        ),
        model="e5",
        title="e5",
        file="recorded-zh.json",
    ),
}
