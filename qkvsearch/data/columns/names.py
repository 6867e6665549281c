"""What people call the columns of tables, in many languages, and which role each name tells."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

# whole: for each role, whole names as `folded` writes them, in order of preference. words: for each
# role, words that tell it within a longer name. text: names of columns that search reads beside the
# title, in order. text_ends: last words of such names (Book-Author, long_description).
NAMES = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
WORDS: dict[str, list[str]] = NAMES["words"]
NUMBERS, DEEDS, TEXT_ENDS = set(NAMES["numbers"]), set(NAMES["deeds"]), set(NAMES["text_ends"])
# A name of several words plays a role where one of them is in WORDS and all others are in BESIDE:
# customer_email, product_sku, ordered_at, minutes_watched.
THINGS, PEOPLE = WORDS["item"], WORDS["user"]
BESIDE = {
    "user": NUMBERS | {"email", "mail", "e", "address", "name", "login", "unique", "external"},
    "item": NUMBERS
    | {"external", "unique", "parent", "ordered", "purchased", "title", "name", "line", "lineitem"}
    | {"variant"},
    "title": {*THINGS, "original", "full", "display", "line", "lineitem"},
    "rating": {*THINGS, *PEOPLE, "review", "star", "value", "overall"},
    "weight": DEEDS
    | {"total", "sum", "item", "product", "line", "lineitem", "of", "in", "forever", "count"},
    "time": DEEDS
    | {"start", "end", "of", "in", "utc", "local", "unix", "epoch", "date", "time", "added", "and"},
}
LETTERS = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "ı": "i"})


def words_of(name: str) -> list[str]:
    """The words of a name without accents and case.

    >>> words_of("customerEmail"), words_of("Qualität (max.)"), words_of("商品ID")
    (['customer', 'email'], ['qualitat', 'max'], ['商品id'])
    """
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.translate(LETTERS))
    plain = unicodedata.normalize("NFKD", split)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return re.findall(r"[^\W_]+", plain.casefold())


def folded(name: str) -> str:
    """A name without accents, case and all that is between its words.

    >>> folded("Artikel-Nr.")
    'artikelnr'
    """
    return "".join(words_of(name))


def named(role: str, names: Sequence[str]) -> list[str]:
    """The columns whose names tell that they play `role`, the surest first.

    >>> named("user", ["price", "customer_email", "User ID"])
    ['User ID', 'customer_email']
    """
    common = {name: place for place, name in enumerate(map(folded, NAMES["whole"][role]))}
    whole = {name: common[folded(name)] for name in names if folded(name) in common}
    found = sorted(whole, key=lambda name: whole[name])
    if role in WORDS:
        found += [name for name in names if name not in whole and _tells(role, words_of(name))]
    return found


def _tells(role: str, words: Sequence[str]) -> bool:
    telling = WORDS[role]
    return (
        len(words) > 1
        and any(word in telling for word in words)
        and all(word in telling or word in BESIDE[role] for word in words)
    )


def named_as_text(names: Sequence[str]) -> list[str]:
    """The columns whose names tell that search reads them, those it weighs most first.

    >>> named_as_text(["price", "long_description", "Tags"])
    ['Tags', 'long_description']
    """
    places = {name: place for place, name in enumerate(NAMES["text"])}
    whole = {name: places[folded(name)] for name in names if folded(name) in places}
    ends = [name for name in names if name not in whole and {*words_of(name)[-1:]} & TEXT_ENDS]
    return sorted(whole, key=lambda name: whole[name]) + ends
