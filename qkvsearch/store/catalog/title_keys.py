"""Compare titles without year and article, and find titles similar to an unknown one."""

import re
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter

ARTICLES = "The|A|An|Le|La|Les|El|Los|Las|Der|Die|Das|Il|Un|Une"
FIRST_ARTICLE = re.compile(rf"^({ARTICLES})\s+(?=\S)", re.IGNORECASE)
MAX_SHOWN = 3
# How many leading zeros an id may have in addition to those that were typed.
MAX_ZEROS = 30
# In percent.
MIN_SIMILARITY = 60


def split_prefix(name: str) -> tuple[str, str]:
    """Return the prefix of an item's name, "id", "title" or "", and the name without it.

    >>> split_prefix("id:300"), split_prefix("Title: Heat"), split_prefix("Alien: Covenant")
    (('id', '300'), ('title', 'Heat'), ('', 'Alien: Covenant'))
    """
    prefix, _, rest = name.partition(":")
    prefix, rest = prefix.strip().casefold(), rest.strip()
    return (prefix, rest) if prefix in ("id", "title") and rest else ("", name)


def title_key(title: str) -> str:
    """Return a title in lower case, without brackets at its end, such as the year, and without its
    article.

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
    """Return titles that contain a name, then titles and ids with a similar spelling: "title" or
    "id", and the index in that list.

    titles: keys from `title_key`. The similarity of two names is the share of characters that they
    have in common, in order (`fuzz.ratio` of RapidFuzz), at least 0.6.

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
