"""Cells of text to yes and no, as 1 and 0."""

from __future__ import annotations

import pandas as pd

from qkvsearch.data.columns.reading import Reading

YES = frozenset(
    "true yes y ja j oui o si sí s sim sì tak да evet kyllä igen ναι 是 有 はい 1".split()
)
NO = frozenset(
    "false no n nein non nee não nao nei nej nie нет ei nem όχι 否 无 無 いいえ 0".split()
)


def read_yes_no(texts: pd.Series) -> Reading:
    """The distinct cells `texts` as 1 and 0.

    A single letter or digit, or one answer throughout, may be anything: that is doubted.

    >>> read_yes_no(pd.Series(["Yes", "no", "maybe"])).values.tolist()
    [1, 0, <NA>]
    """
    said = texts.str.strip().str.casefold()
    values = said.map(dict.fromkeys(YES, 1) | dict.fromkeys(NO, 0)).astype("Int64")
    found = said[values.notna()]
    reading = Reading("yes/no", values)
    if (found.str.len() == 1).all() and values.nunique() < 2:
        reading.doubts = "one letter throughout"
    elif found.isin(["0", "1"]).any():
        reading.doubts = "numbers"
    reading.change("yes and no to 1 and 0", ~said.isin(["0", "1"]).to_numpy(bool))
    return reading
