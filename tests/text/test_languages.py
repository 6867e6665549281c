"""Stems, stop words and elision go by the language, which a catalog's texts tell."""

import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch._utils.folding import fold
from qkvsearch.errors import QkvError
from qkvsearch.tables.sources import read_source
from qkvsearch.text.analysis import Analyzer, stem
from qkvsearch.text.languages import (
    CODES,
    NONE,
    STOP_WORDS,
    chosen,
    guess,
    languages_in,
    languages_of,
    named,
    stop_words,
)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("german", "Häuser", "Haus"),
        ("german", "HÄUSER", "Hauses"),
        ("french", "chantée", "chantés"),
        ("french", "l'amour", "amour"),
        ("french", "L’Été", "été"),
        ("french", "jusqu'aujourd'hui", "aujourd'hui"),
        ("spanish", "canciones", "canción"),
        ("spanish", "educación", "educaciones"),
        ("portuguese", "informações", "informação"),
        ("italian", "dell’arte", "arte"),
        ("italian", "un'amica", "amica"),
        ("catalan", "l'amor", "amor"),
        ("russian", "синий", "синяя"),
        ("russian", "книгами", "книга"),
        ("dutch", "boeken", "boek"),
        ("finnish", "talossa", "talon"),
        ("swedish", "bilarna", "bilen"),
        ("english", "L'Amour", "amour"),
        ("english", "d'Artagnan", "Artagnan"),
    ],
)
def test_forms_of_a_word_find_each_other(language, one, other):
    analyzer = Analyzer(language)
    for key, query in [(one, other), (other, one)]:
        assert analyzer.terms(query)[0] in analyzer.key_terms(key)


@pytest.mark.parametrize("apostrophe", ["'", "’"])
@pytest.mark.parametrize("word", ["it's", "o'clock", "d'you", "d'oh", "rock'n'roll", "don't"])
def test_english_contractions_stay_whole(word, apostrophe):
    (token,) = Analyzer().tokens(word.replace("'", apostrophe))
    assert token.text == word


def test_what_is_elided_is_not_marked():
    text = "Pour l’amour d'une L'Oréal"
    analyzer = Analyzer("french")
    assert [text[a:b] for a, b in analyzer.spans(text, {"amour"})] == ["amour"]
    assert Analyzer().token_spans("L'Amour fou") == [(2, 7), (8, 11)]
    assert [token.text for token in analyzer.query_tokens(text)] == ["amour", "oreal"]


@pytest.mark.parametrize(
    ("language", "text", "left"),
    [
        ("german", "Das Haus und die Katze für mich", ["haus", "katze"]),
        ("french", "La pièce où il n'a pas dit la parole", ["piece", "dit", "parole"]),
        ("spanish", "El trabajo y la verdad", ["trabajo", "verdad"]),
        ("russian", "Год и жизнь в городе", ["год", "жизнь", "городе"]),
        ("english", "The work and the time", ["work", "time"]),
        ("none", "the work", ["the", "work"]),
    ],
)
def test_only_words_that_carry_nothing_are_left_out(language, text, left):
    assert [token.text for token in Analyzer(language).query_tokens(text)] == left


def test_what_is_typed_without_accents_finds_what_is_written_with_them():
    for language, written in [
        ("portuguese", "Informações"),
        ("french", "chantée"),
        ("german", "Müller"),
        ("spanish", "educación"),
        ("turkish", "çiçeği"),
    ]:
        analyzer = Analyzer(language)
        assert analyzer.terms(fold(written))[0] in analyzer.key_terms(written)


@pytest.mark.parametrize("language", sorted(path.stem for path in STOP_WORDS.iterdir()))
def test_every_stop_word_is_one_however_it_is_typed(language):
    analyzer = Analyzer(language)
    listed = [*stop_words(language), *map(fold, stop_words(language))]
    assert [word for word in listed if not all(t.is_stop_word for t in analyzer.tokens(word))] == []


@pytest.mark.parametrize(
    "forms", ["شركة الشركة والشركة للشركة", "برمجة البرمجة بالبرمجة", "حب الحب", "صين الصين والصين"]
)
def test_arabic_words_find_each_other_with_and_without_the_article(forms):
    terms = [Analyzer("arabic").terms(form) for form in forms.split()]
    assert terms == terms[:1] * len(terms)
    assert len(terms[0]) == 1


def test_what_only_looks_like_an_arabic_article_stays():
    analyzer = Analyzer("arabic")
    assert analyzer.terms("الله") != analyzer.terms("له")
    assert analyzer.terms("ألم") == analyzer.terms("الم")
    assert analyzer.query_tokens("كتاب التي") == analyzer.tokens("كتاب")
    assert Analyzer("persian").tokens("الماس")[0].text == "الماس"
    assert analyzer.spans("من الصين", set(analyzer.terms("والصين"))) == [(5, 8)]


def test_a_word_that_is_all_ending_has_no_stem():
    mother, within = Analyzer("hindi").tokens("माँ में")
    assert mother.term != within.term
    assert len(within.term) > 1
    assert Analyzer("hindi").terms("बेटियाँ") == Analyzer("hindi").terms("बेटी")


def test_threads_do_not_disturb_each_others_stems():
    ends = ["ning", "alization", "ness", "ization", "ational", "ful", "ional", "ed", "ing"]
    asked = [f"{a}{b}" for a in ("run", "nation", "happi", "organ", "hope") for b in ends] * 8
    expected = [stem(word) for word in asked]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(stem, asked)) == expected
    finally:
        sys.setswitchinterval(interval)


def test_a_word_that_is_all_ending_has_a_term_all_the_same():
    assert stem("का", "nepali") == ""
    assert Analyzer("nepali").key_terms("का") == ["का"]


# --- names ---


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_stems(code):
    import Stemmer

    assert named(code) == named(code.upper()) == named(CODES[code])
    assert CODES[code] in Stemmer.algorithms()


def test_an_unknown_language_is_refused_by_name():
    with pytest.raises(
        QkvError, match=r"no `language` 'germn' \(did you mean german\?\)|`language`"
    ):
        named("germn")
    with pytest.raises(QkvError, match="`language` ''"):
        named("")


# --- the guess ---

TEXTS = {
    "german": ["Regenjacke für Damen", "Hose mit Taschen und Gürtel", "Schuhe aus Leder",
               "Die Jacke ist warm", "Hemd ohne Kragen"],
    "french": ["Veste de pluie pour femmes", "Pantalon avec des poches", "Chaussures en cuir",
               "La chemise est dans le sac", "Un pull pour l'hiver"],
    "spanish": ["Chaqueta de lluvia para mujer", "Pantalones con bolsillos", "Los zapatos del bebé",
                "La camisa y el cinturón", "Un abrigo para el invierno"],
    "dutch": ["Regenjas voor dames", "Broek met zakken en een riem", "Schoenen van leer",
              "Het hemd is niet warm", "De jas van de winter"],
    "russian": ["Куртка для дождя", "Брюки с карманами и ремнём", "Рубашка не для зимы",
                "Что это за обувь", "Пальто на зиму"],
    "finnish": ["Takki ja housut", "Kengät ovat tässä", "Paita on lämmin mutta se ei ole uusi"],
    "swedish": ["Jacka för damer", "Byxor med fickor och bälte", "Skjortan är inte varm",
                "Skor till en man"],
    "english": ["Rain jacket for women", "Trousers with pockets and a belt", "The shirt is warm"],
}  # fmt: skip


@pytest.mark.parametrize("language", TEXTS)
def test_a_catalog_tells_its_language(language):
    found = guess(TEXTS[language])
    assert found.name == language
    assert found.why == f"guessed from {len(TEXTS[language])} texts"


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["", "…"],
        ["deep sea", "red car", "fast car"],
        ["AB-1204", "4711"],
        ["Blue"],
        ["Red kettle"],
        ["Rio Bravo"],
        ["Bluetooth speaker black waterproof"] * 100 + ["und die für"],
        ["La La Land", "El Mariachi", "Das Boot", "Der Untergang", "Le Samouraï", "The Thing"],
        ["La vie en rose", "Le chat du rabbin", "Les amants du Pont-Neuf"]
        + ["The Lord of the Rings", "Gone with the Wind", "It Happened One Night"] * 4,
    ],
)
def test_english_it_is_where_that_is_not_plain(texts):
    assert guess(texts).name == "english"


def test_titles_without_stop_words_in_capitals_and_in_two_languages():
    keywords = ["climate ocean temperature measurement", "protein membrane transport", "GLACIER"]
    assert guess(keywords * 20).name == "english"
    assert guess([text.upper() for text in TEXTS["german"]]).name == "german"
    mixed = ["Die Jacke ist warm und neu", "This jacket is warm and new"] * 20
    assert guess(mixed) == ("none", "40 texts are in German and English")
    chinese = guess(["床前明月光", "注意力机制"])
    assert chinese == ("none", "2 texts are in Chinese, which has no stemmer here")
    assert str(chinese).startswith("none (2 texts")


def test_a_catalog_is_in_the_languages_that_a_tenth_of_it_surely_is_in():
    english = [f"The course of the river in the year {year}" for year in range(18)]
    chinese = ["河流为什么会弯曲？", "鲸鱼怎么睡觉"]
    assert languages_in(english) == ["en"]
    assert languages_in(english + chinese) == ["en", "zh"]
    assert languages_in(english + chinese[:1]) == ["en"]
    assert languages_in(chinese * 9 + english[:2]) == ["zh", "en"]
    assert languages_in(chinese) == ["zh"]
    assert languages_in([]) == languages_in(["42"]) == ["en"]


@pytest.mark.parametrize(
    ("titles", "code"),
    [("活着 英雄 功夫 小武", "zh"), ("커피 바다 하늘 나무", "ko"), ("かに さけ いか たこ", "ja")],
)
def test_two_characters_without_spaces_are_a_word(titles, code):
    assert languages_in(titles.split() * 5) == [code]
    assert guess(titles.split() * 5).name == NONE


def test_short_titles_that_look_like_other_languages_are_in_one():
    titles = read_source("sample:movies").catalog.texts()
    assert sum(code != "en" for code in languages_of(titles)) > len(titles) / 10
    assert languages_in(titles) == ["en"]
    assert languages_in(read_source("sample:videos").catalog.texts())[:2] == ["en", "zh"]


def test_the_language_that_was_named_is_one_of_them():
    assert languages_in(["Kessel rot"], "german") == ["de"]
    assert languages_in(TEXTS["german"], "english")[0] == "de"


def test_a_large_catalog_is_guessed_by_a_sample_of_all_of_it():
    texts = ["the sea and the boat"] * 3_000 + ["das Meer und die Boote sind für uns"] * 17_000
    found = guess(texts)
    assert found == ("german", "guessed from 500 texts")
    texts = ["the sea and the boat"] * 500 + ["das Meer und die Boote sind für uns"] * 450
    assert guess(texts) == ("none", "475 texts are in English and German")


def test_marks_between_letters_are_letters():
    assert guess(["हिन्दी में लिखा हुआ पाठ", "किताब की कहानी"]).name == "hindi"


def test_a_language_that_is_asked_for_is_not_guessed():
    assert chosen("fr", TEXTS["german"]) == ("french", "your choice")
    assert chosen("auto", TEXTS["german"]).name == "german"


# --- every script ---

BLOCKS = [
    "".join(map(chr, range(start, start + 256)))
    for start in range(0, sys.maxunicode + 1, 256)
    if any(unicodedata.category(chr(i)) not in ("Cn", "Co") for i in range(start, start + 256))
    # Of the many pages of ideographs and syllables a few will do.
    and ("CJK" not in unicodedata.name(chr(start), "") or start % 0x4000 == 0)
    and (not 0xAC00 < start < 0xD700)
    and (not 0x12000 <= start < 0x1BC00 or start % 0x1000 == 0)
]


@pytest.mark.parametrize("language", ["english", "german"])
def test_no_block_of_unicode_is_too_much(language):
    analyzer = Analyzer(language)
    for block in BLOCKS:
        for text in (block, " ".join(block)):
            tokens = analyzer.tokens(text)
            assert len(analyzer.token_spans(text)) == len(tokens)
            assert all(token.term and token.text for token in tokens)
            assert len(analyzer.key_terms(text)) >= len(tokens)


@given(st.text(), st.sampled_from([*sorted(set(CODES.values())), "none"]))
def test_any_text_is_found_by_its_own_words(text, language):
    analyzer = Analyzer(language)
    keys = set(analyzer.key_terms(text))
    assert set(analyzer.terms(text)) <= keys
    for term in keys:
        assert analyzer.spans(text, {term})
