"""The catalog of each translation has everything that the code says, as the code says it."""

import ast
import gettext
import re
from string import Formatter

import pytest

from qkvsearch._utils.spoken import ORIGINAL
from qkvsearch.lessons import LANGUAGES, LESSONS, lesson
from qkvsearch.lessons.drawings import Drawing
from qkvsearch.lessons.messages import LOCALE, language, say
from qkvsearch.lessons.parts import Text

LETTER = re.compile(r"[^\W\d_]")
CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def translations(script):
    return script("translations")


@pytest.fixture(scope="module", params=sorted(set(LANGUAGES) - {ORIGINAL}))
def po(request, translations):
    """The .po file of each translation."""
    return translations.catalog_path(request.param)


@pytest.fixture(scope="module")
def written(translations, po):
    """English → the other language, as they stand in the .po."""
    return {message.id: message.string for message in translations.catalog(po) if message.id}


@pytest.fixture(scope="module")
def written_in_chinese(translations):
    catalog = translations.catalog(translations.catalog_path("zh"))
    return {message.id: message.string for message in catalog if message.id}


@pytest.fixture(scope="module")
def said(translations):
    """What the code says."""
    found = [message.id for message in translations.template() if message.id]
    assert len(found) > 100
    return found


def test_every_language_has_a_catalog_but_the_one_of_the_code():
    assert {path.name for path in LOCALE.iterdir()} == set(LANGUAGES) - {ORIGINAL}


def test_the_catalog_holds_what_the_code_says_and_nothing_else(said, written):
    hint = "run python docs/translations.py, then translate what is empty"
    assert [message for message in said if message not in written] == [], hint
    assert [message for message in written if message not in set(said)] == [], hint


def test_nothing_is_empty_fuzzy_or_obsolete(translations, po):
    catalog = translations.catalog(po)
    assert [message.id for message in catalog if message.id and not message.string] == []
    assert [message.id for message in catalog if message.id and message.fuzzy] == []
    assert list(catalog.obsolete) == []


def test_a_translation_is_chinese(written_in_chinese):
    worded = {text: chinese for text, chinese in written_in_chinese.items() if words(text)}
    assert [english for english, chinese in worded.items() if not CHINESE.search(chinese)] == []


def test_a_translation_has_the_places_of_the_original(written):
    for english, translated in written.items():
        assert fields(translated) == fields(english), english


def test_a_message_is_never_put_together_before_it_is_translated(translations):
    """The catalog cannot find what is no literal; a name stands for one that was marked."""
    for place, message in translations.said():
        bad = isinstance(message, ast.JoinedStr | ast.BinOp)
        assert not bad, f"{place}, line {message.lineno}"


def test_gettext_reads_what_the_catalog_holds(written, po):
    with po.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    stale = "run python docs/translations.py"
    assert {english: compiled.gettext(english) for english in written} == written, stale


def test_what_is_said_is_chinese_within_and_english_without():
    with language("zh"):
        assert say("weights") == "权重"
        with language("en"):
            assert say("weights") == "weights"
    assert say("weights") == "weights"


def test_names_are_parted_as_the_language_does_it():
    with language("zh"):
        assert say("{names}", names=["甲", "乙"]) == "[甲、乙]"
        assert say("{numbers}", numbers=[1.5, 2]) == "[1.5, 2]"
    assert say("{names}", names=("a", "b")) == "[a, b]"


@pytest.mark.parametrize("name", LESSONS)
def test_nothing_is_told_past_the_catalog(name):
    """Every sentence of a lesson is Chinese when Chinese is spoken."""
    with language("zh"):
        made = lesson(name)
        parts = [part for step in made.steps for part in step.parts]
        texts = [part.text for part in parts if isinstance(part, Text)]
        texts += [part.caption for part in parts if hasattr(part, "caption")]
        texts += [part.told for part in parts if isinstance(part, Drawing)]
    texts += [text for quiz in made.quizzes for text in (quiz.question, quiz.worked)]
    texts += [made.title, made.goal, *(step.title for step in made.steps)]
    assert [text for text in texts if not CHINESE.search(text)] == []


def words(message):
    """What is left of a message without the places for numbers: letters that a person reads."""
    return LETTER.search(re.sub(r"\{\w+\}", "", message))


def fields(message):
    """The {places}, with how often each stands there; raises ValueError for a stray brace."""
    return sorted(name for _, name, _, _ in Formatter().parse(message) if name is not None)
