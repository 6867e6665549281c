"""One form of texts that differ only in case, accents and Unicode form, to compare them by."""

from __future__ import annotations

import re
import unicodedata

from qkvsearch._utils.scripts import same_letters

# Letters that Unicode does not decompose, and how they are typed without them.
PLAIN_LETTERS = {"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th"}
PLAIN_LETTERS |= {"ħ": "h", "ŧ": "t", "ı": "i"}
UNDECOMPOSED = re.compile(f"[{''.join(PLAIN_LETTERS)}]")
ACCENTS = re.compile("[\u0300-\u036f]")


def fold(text: str) -> str:
    """Return lower case without accents and ligatures, in one Unicode form, with one kind of
    apostrophe, and `same_letters` of other scripts.

    >>> fold("Beyoncé’s ＤＪ"), fold("L’Œuvre"), fold("Straße in Łódź")
    ("beyonce's dj", "l'oeuvre", 'strasse in lodz')
    """
    if text.isascii():
        return text.lower()
    # Decompose first: "𝐀" has no lower case, but the "A" that it represents has.
    plain = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
    plain = UNDECOMPOSED.sub(lambda match: PLAIN_LETTERS[match[0]], plain)
    plain = ACCENTS.sub("", unicodedata.normalize("NFKD", plain))
    return unicodedata.normalize("NFC", same_letters(plain))
