"""One form of texts that differ only in case, accents, signs and Unicode form."""

from __future__ import annotations

import re
import unicodedata

from qkvsearch._utils.scripts import JOINERS, same_letters

# Letters that Unicode does not decompose, and how they are typed without them.
PLAIN_LETTERS = {"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th"}
PLAIN_LETTERS |= {"ħ": "h", "ŧ": "t", "ı": "i"}
UNDECOMPOSED = re.compile(f"[{''.join(PLAIN_LETTERS)}]")
ACCENTS = re.compile("[\u0300-\u036f]")

# Signs that are typed for an apostrophe, a hyphen, the x of 4 × 20, the stroke of ½, and the signs
# in an Arabic 1,000.5.
APOSTROPHES = "’‘ʼʻʹʽ`′‛"
DASHES = "‐‑‒–—―−"
IN_NUMBERS = {"×": "x", "\u2044": "/", "\u066b": ".", "\u066c": ","}
PLAIN_SIGNS = str.maketrans(
    dict.fromkeys(APOSTROPHES, "'") | dict.fromkeys(DASHES, "-") | IN_NUMBERS
)
# Fractions behind a digit, as decimals: 1½ is 1.5. Alone they are typed as 1/2.
DECIMALS = dict(
    zip("½¼¾⅕⅖⅗⅘⅛⅜⅝⅞", ".5 .25 .75 .2 .4 .6 .8 .125 .375 .625 .875".split(), strict=True)
)
# Others behind a digit are a number of their own: 1⅓ is 1 1/3.
ENDLESS = "⅓⅔⅙⅚⅐⅑"
FRACTIONS = frozenset((*DECIMALS, *ENDLESS))
MIXED = re.compile(f"[{''.join(FRACTIONS)}](?<=[0-9].)")
# No reader sees these: soft hyphens, characters of no width, variants of one sign, and the skin
# tones of an emoji. Joiners have a meaning in the scripts of India and Persia, and in an emoji, so
# they are left out between Latin, Greek and Cyrillic letters alone.
INVISIBLE = "\u00ad\u200b\u2060\ufeff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"
UNSEEN = re.compile(f"[{INVISIBLE}]+|(?<=[a-zA-Z\u00c0-\u052f])[{JOINERS}]+")
IS_UNSEEN = re.compile(f"[{INVISIBLE}{JOINERS}]").match


def fold(text: str) -> str:
    """Return lower case without accents, ligatures and unseen characters, in one Unicode form, with
    one kind of apostrophe and one of dash, and `same_letters` of other scripts.

    >>> fold("Beyoncé’s ＤＪ"), fold("L’Œuvre"), fold("Straße in Łódź")
    ("beyonce's dj", "l'oeuvre", 'strasse in lodz')
    >>> fold("п`ять, пʼять"), fold("AB‑1042, 4 × 20")
    ("п'ять, п'ять", 'ab-1042, 4 x 20')
    >>> fold("1½ cups, ½ l, 2⅓")
    '1.5 cups, 1/2 l, 2 1/3'
    """
    if text.isascii():
        return text.lower().replace("`", "'")
    plain = _decomposed(text)
    plain = UNDECOMPOSED.sub(lambda match: PLAIN_LETTERS[match[0]], plain)
    plain = ACCENTS.sub("", unicodedata.normalize("NFKD", plain))
    return unicodedata.normalize("NFC", same_letters(plain))


def lower(text: str) -> str:
    """Do the same as `fold`, but keep the accents that are part of a letter, for stemmers.

    >>> lower("Informações")
    'informações'
    """
    if text.isascii():
        return fold(text)
    plain = unicodedata.normalize("NFKC", same_letters(_decomposed(text)))
    return unicodedata.normalize("NFC", ACCENTS.sub("", plain))


def composed(text: str) -> str:
    """Return a text in the one Unicode form in which names, cells, ids and conditions are compared:
    a letter with its accent is one character.

    >>> len(composed("u\u0308"))
    1
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_mixed(text: str, i: int) -> bool:
    """Return whether the fraction at place i of a text belongs to a digit before it."""
    return MIXED.match(text, i) is not None


def _behind_digit(fraction: re.Match[str]) -> str:
    return DECIMALS.get(fraction[0]) or f" {fraction[0]}"


def _decomposed(text: str) -> str:
    """Return a text in lower case, decomposed, with plain signs and without unseen characters."""
    # It would be decomposed into a blank and an accent.
    typed = MIXED.sub(_behind_digit, text.replace("´", "'"))
    # Decompose before lower case: "𝐀" has none, but the "A" that it represents has.
    plain = unicodedata.normalize("NFKD", typed).casefold()
    return UNSEEN.sub("", unicodedata.normalize("NFKD", plain.translate(PLAIN_SIGNS)))
