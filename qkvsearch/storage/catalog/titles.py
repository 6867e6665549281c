"""Fuzzy titles: items by a title without its year or article, and near matches of a wrong one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter

ARTICLES = "The|A|An|Le|La|Les|El|Los|Las|Der|Die|Das|Il|Un|Une"
FIRST_ARTICLE = re.compile(rf"^({ARTICLES})\s+(?=\S)", re.IGNORECASE)
MAX_SHOWN = 3
# Zeros that an id may have before what was typed.
MAX_ZEROS = 30
# In hundredths.
MIN_SIMILARITY = 60


def split_prefix(name: str) -> tuple[str, str]:
    """How a name of an item is to be read, "id", "title" or "" for either; and what is named.

    >>> split_prefix("id:300"), split_prefix("Title: Heat"), split_prefix("Alien: Covenant")
    (('id', '300'), ('title', 'Heat'), ('', 'Alien: Covenant'))
    """
    form, _, named = name.partition(":")
    form, named = form.strip().casefold(), named.strip()
    return (form, named) if form in ("id", "title") and named else ("", name)


def title_key(title: str) -> str:
    """A title without case, without the year or other brackets at its end, and without its article.

    >>> title_key("Matrix, The (1999)") == title_key("the matrix")
    True
    """
    bare = title.strip()
    if bare.endswith(")"):
        bare = re.sub(r"(?<=\S)(\s*\([^()]*\))+$", "", bare)
    if ", " in bare:
        bare = re.sub(rf"^(.*), ({ARTICLES})$", r"\2 \1", bare, flags=re.IGNORECASE)
    return FIRST_ARTICLE.sub("", bare).casefold()


def near_names(name: str, titles: Sequence[str], ids: Sequence[str]) -> list[tuple[str, int]]:
    """Titles that contain it, then titles and ids that are spelled much like it: of each whether it
    is a "title" or an "id", and its place.

    titles: keys, as `title_key` makes them. Both are in the order of the ids. How much two names
    are alike is the share of their characters that they have in common, in order (`fuzz.ratio` of
    RapidFuzz); at least 0.6.

    >>> near_names("the matrx", ["heat", "matrix"], ["m1", "m2"])
    [('title', 1)]
    """
    from rapidfuzz import fuzz, process

    key = title_key(name)
    containing = (i for i, title in enumerate(titles) if key and key in title)
    close = [
        (-score, kind, i)
        for kind, names in (("title", titles), ("id", ids))
        for _, score, i in process.extract(
            key, names, scorer=fuzz.ratio, limit=2 * MAX_SHOWN, score_cutoff=MIN_SIMILARITY
        )
    ]
    return [
        *(("title", i) for i in islice(containing, MAX_SHOWN)),
        *((kind, i) for _, kind, i in sorted(close, key=itemgetter(0))),
    ]
