"""Of lesson 4: how much a word counts in a text, by how often, by how long, by how many have it."""

import numpy as np
from scipy.sparse import csc_matrix

from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Formula, Step, Table, step, tell
from qkvsearch.retrieval import LexicalKeys
from qkvsearch.retrieval.bm25 import K1, B, inverse_document_frequency
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.vocabulary import count_terms

WORD, FILLER = "bread", "oven"
TIMES, LENGTHS = (1, 2, 3, 8, 100), (1, 3, 8)


def key_rows(texts: list[str]) -> np.ndarray:
    """How much each word says of each text (n_texts, n_words)."""
    vocabulary, counts = count_terms(texts, Analyzer().key_terms)
    found = LexicalKeys.from_counts(vocabulary, counts)
    shape = (found.n_items, len(vocabulary))
    return csc_matrix((found.weights, found.indices, found.indptr), shape=shape).toarray()


def number_of(texts: list[str], word: str) -> float:
    """The key's number for the word in the last of the texts."""
    vocabulary, _ = count_terms(texts, Analyzer().key_terms)
    return float(key_rows(texts)[-1, vocabulary.rows([word])[0]])


def repeated(texts: list[str], word: str, times: tuple[int, ...]) -> list[float]:
    return [number_of([*texts, " ".join([word] * n)], word) for n in times]


def lengthened(texts: list[str], word: str, filler: str, lengths: tuple[int, ...]) -> list[float]:
    return [number_of([*texts, " ".join([word, *[filler] * (n - 1)])], word) for n in lengths]


def _the_rule() -> Formula:
    """BM25, as `retrieval.bm25.bm25` computes it."""
    return Formula(
        say(
            "number = idf · n · {above} / (n + {k}·({rest} + {b}·length/mean length))",
            above=K1 + 1,
            k=K1,
            rest=1 - B,
            b=B,
        )
    )


def counted(texts: list[str]) -> Step:
    """One more text, which repeats a word, or has it once among others."""
    cell, found = ran(repeated, texts=texts, word=WORD, times=TIMES)
    long = lengthened(texts, WORD, FILLER, LENGTHS)
    n_texts, n_with = len(texts) + 1, sum(WORD in text.casefold() for text in texts) + 1
    rarity = float(inverse_document_frequency(n_with, n_texts))
    return step(
        "How much a word counts",
        tell(
            "Why not simply count words? A text that says “{word}” {most} times would then have "
            "a score of {most} for it, and come first for saying one word again and again. In "
            "BM25 each repeat adds less, up to a ceiling. Here is one more text, which says "
            "“{word}” and nothing else:",
            word=WORD,
            most=TIMES[-1],
        ),
        Table(
            say("The same word again and again"),
            [say("times"), say("plain count"), say("number in the key")],
            [[n, n, number] for n, number in zip(TIMES, found, strict=True)],
        ),
        _the_rule(),
        tell(
            "Here n says how often the word stands in the text, and length how many words the "
            "text has. *idf* is large for a word that few texts have: it is ln(1 + (N − t + ½) / "
            "(t + ½)), with t of the N texts. Here {t} of {n} have “{word}”, so its idf is {idf}, "
            "and the ceiling is {above} · idf = {ceiling}.",
            t=n_with,
            n=n_texts,
            word=WORD,
            idf=rarity,
            above=K1 + 1,
            ceiling=(K1 + 1) * rarity,
        ),
        tell(
            "A longer text counts each of its words less. In texts of {lengths} words, one of them "
            "“{word}”, the number for it is {long}.",
            word=WORD,
            lengths=LENGTHS,
            long=long,
        ),
        points=(8,),
        found={"repeated": found, "lengthened": long, "ceiling": (K1 + 1) * rarity},
        code=cell,
    )
