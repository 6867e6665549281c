"""Which words of a text a query's terms match, for people to see where a hit comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qkvsearch.texts.analysis import Analyzer

# Of each column that has any: its own words that match, as they are written there.
Matches = dict[str, list[str]]


def matching_words(terms: Iterable[str], texts: Mapping[str, str]) -> Matches:
    """The words of each text by which the lexical head finds it, in order, each once.

    >>> matching_words({"run"}, {"title": "Running, run by run", "tags": "sport"})
    {'title': ['Running', 'run']}
    """
    wanted, analyzer = set(terms), Analyzer()
    found = {
        name: list(dict.fromkeys(text[start:end] for start, end in analyzer.spans(text, wanted)))
        for name, text in texts.items()
    }
    return {name: words for name, words in found.items() if words}


def word_spans(words: Iterable[str], text: str) -> list[tuple[int, int]]:
    """Where a text has these words of `matching_words`, or others of the same terms: (start, end).

    >>> word_spans(["注意力"], "什么是注意力机制")
    [(3, 6)]
    """
    analyzer = Analyzer()
    terms = {token.term for word in words for token in analyzer.tokens(word)}
    return analyzer.spans(text, terms)
