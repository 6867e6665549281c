"""Line breaks that a program wrote as a backslash and an n, as some exports of videos have them."""

from __future__ import annotations

import re

import pandas as pd

# What tells that a column was written so: an empty line, or a line that ends as on Windows. Paths
# and formulas have neither: C:\new, \nabla.
TELLING = re.compile(r"\\n\s*\\n|\\r\\n")
WRITTEN = re.compile(r"\\r\\n|\\[nr]")
BACKSLASH = re.compile(r"\\(?P<sign>.)")
# At least this share of the backslashes of such a column are for breaks.
MIN_SHARE = 0.95
BREAKS = "line breaks written as \\n"


def with_line_breaks(texts: pd.Series) -> pd.Series:
    r"""Return texts with line breaks where they have them as two characters; the same object where
    the column was not written so.

    >>> with_line_breaks(pd.Series([r"Talks.\n\nSubscribe", r"A\nB", "C"])).tolist()
    ['Talks.\n\nSubscribe', 'A\nB', 'C']
    >>> with_line_breaks(pd.Series([r"C:\new\notes"])).tolist()
    ['C:\\new\\notes']
    """
    with_backslash = [text for text in texts if "\\" in text]
    if not any(map(TELLING.search, with_backslash)) or any("\n" in text for text in texts):
        return texts
    signs = [sign for text in with_backslash for sign in BACKSLASH.findall(text)]
    if sum(sign in "nr" for sign in signs) < MIN_SHARE * len(signs):
        return texts
    read = [WRITTEN.sub("\n", text) if "\\" in text else text for text in texts]
    return pd.Series(read, index=texts.index, dtype=object)
