"""Texts to terms: every script and oddity that people type, and what matching relies on."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qkvsearch._utils.folding import fold
from qkvsearch.text.analysis import MAX_TERM, NUMBER, Analyzer, word_spans

analyzer = Analyzer()
words_and_oddities = st.text() | st.lists(
    st.sampled_from(["the", "It", "don’t", "ℂ", "ŉ", "ﬁ", "İ", "ß", "猫", "カ\u3099", "हिन्दी"])
    | st.text(max_size=3)
).map(" ".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Beyoncé", "beyonce"),
        ("STRASSE Straße", "strasse strasse"),
        ("Œuvre Ærø Łódź Đorđe Þór ILGIN ılgın", "oeuvre aero lodz dorde thor ilgin ilgin"),
        ("ＤＪ　ｄｊ", "dj dj"),
        ("ﬁnal", "final"),
        ("don’t", "don't"),
        ("İstanbul", "istanbul"),
        ("𝐎𝐅𝐅𝐈𝐂𝐈𝐀𝐋 ℂ", "official c"),
        ("", ""),
        ("n’ n‘ nʼ nʻ n´ n` n′ n＇", " ".join(["n'"] * 8)),
        ("a‐b a‑b a‒b a–b a—b a−b a－b", " ".join(["a-b"] * 7)),
        ("so\u00adft ze\u200bro wo\u2060rd \ufeffBOM", "soft zero word bom"),
        ("a\u200db c\u200cd", "ab cd"),
        ("می\u200cخواهم", "مي\u200cخواهم"),  # a joiner has a meaning in Persian
        ("क्\u200dष", "क्ष"),
    ],
)
def test_fold_makes_spellings_of_one_word_equal(text, expected):
    assert fold(text) == expected


@pytest.mark.parametrize("language", ["english", "german", "french", "none"])
def test_an_elided_article_is_no_part_of_a_foreign_word(language):
    analyzer = Analyzer(language)
    for text in ("L'œuvre", "L’Œuvre"):
        assert analyzer.spans(text, set(analyzer.terms("oeuvre"))) == [(2, 7)]


@given(words_and_oddities)
@example("𝐀")
@example("ᾳ\u0345")
def test_fold_of_a_folded_text_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


@given(words_and_oddities)
@example("𝐓𝐡𝐞 𝐂𝐚𝐭")
def test_a_folded_text_has_the_same_tokens(text):
    assert analyzer.tokens(fold(text)) == analyzer.tokens(text)
    assert analyzer.key_terms(fold(text)) == analyzer.key_terms(text)


@given(st.text(alphabet=st.characters()))
def test_any_text_gives_terms_that_are_short_and_never_blank(text):
    for term in analyzer.key_terms(text) + analyzer.terms(text):
        assert 0 < len(term) <= MAX_TERM
        assert term.strip() == term
        assert "_" not in term
        term.encode()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The Cafés of Montréal", ["cafe", "montreal"]),
        ("running runs", ["run", "run"]),
        ("rock'n'roll", ["rock'n'rol"]),
        ("'quoted' words'", ["quot", "word"]),
        ("snake_case", ["snake", "case"]),
        ("C3PO", ["c3po"]),
        ("🎸 ✂️ 👩‍💻", []),
        ("— … !", []),
        ("", []),
        (" \n\t", []),
    ],
)
def test_terms_of_ordinary_and_odd_latin_text(text, terms):
    assert analyzer.terms(text) == terms


@pytest.mark.parametrize("apostrophe", "'’‘ʼʻ´`′＇")
def test_a_contraction_is_a_stop_word_with_either_apostrophe(apostrophe):
    assert analyzer.terms(f"I can{apostrophe}t cook") == ["cook"]


def test_stop_words_are_left_out_of_a_query_unless_it_has_nothing_else():
    assert analyzer.terms("to be or not") == ["to", "be", "or", "not"]
    assert analyzer.terms("to be or not to bake") == ["bake"]


def test_numbers_are_matched_as_words_but_mean_nothing():
    text = "Blade Runner 2049"
    assert [token.term for token in analyzer.query_tokens(text)] == ["blade", "runner", "2049"]
    assert "2049" in analyzer.key_terms(text)
    assert analyzer.terms(text) == ["blade", "runner"]


@pytest.mark.parametrize(
    ("text", "found"), [("猫咪", True), ("小猫", True), ("猫", True), ("咪", False)]
)
def test_one_character_finds_the_words_that_have_it(text, found):
    assert ("猫" in analyzer.key_terms(text)) == found


def test_a_key_can_be_found_by_its_stop_words():
    assert analyzer.key_terms("It") == ["it"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("床前明月光", ["床前", "前明", "明月", "月光"]),
        ("猫", ["猫"]),
        ("カタカナ", ["かた", "たか", "かな"]),
        ("ｶﾞﾝﾀﾞﾑ", ["がん", "んだ", "だむ"]),
        ("ひらがな", ["ひら", "らが", "がな"]),
        ("한국어", ["한국", "국어"]),
        ("用Python写", ["用", "python", "写"]),
        ("注意力 attention", ["注意", "意力", "attent"]),
    ],
)
def test_chinese_japanese_and_korean_are_pairs_and_a_lone_character_is_a_word(text, terms):
    assert analyzer.terms(text) == terms


def test_a_single_character_query_finds_a_longer_chinese_title():
    assert set(analyzer.terms("月")) <= set(analyzer.key_terms("床前明月光"))
    assert analyzer.key_terms("猫").count("猫") == 1


@given(st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=2))
def test_a_run_of_n_characters_is_n_minus_one_pairs_in_order(text):
    tokens = [token.text for token in analyzer.tokens(text)]
    assert tokens == [a + b for a, b in pairwise(fold(text))]


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "বাংলা", "ਪੰਜਾਬੀ", "русский", "ελληνικα"])
def test_words_of_other_alphabets_stay_whole(word):
    assert analyzer.terms(f"{word} {word}") == [fold(word)] * 2


def test_danda_ends_a_hindi_sentence_and_is_no_part_of_its_last_word():
    assert analyzer.terms("नमस्ते।") == ["नमस्ते"]


def test_a_very_long_word_is_cut_as_a_term_and_kept_as_a_label():
    (token,) = analyzer.tokens("x" * 5000)
    assert token.term == "x" * MAX_TERM
    assert token.text == "x" * 5000


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Cafés, and the CAFÉ", "cafe", ["Cafés", "CAFÉ"]),
        ("Don’t stop", "don't", ["Don’t"]),
        ("自注意力机制", "注意力", ["注意力"]),
        ("一 猫", "猫", ["猫"]),
        ("猫咪视频", "猫", ["猫"]),
        ("Montre\u0301al", "Montréal", ["Montre\u0301al"]),
        ("a ｶﾞｲﾄﾞ", "ガイド", ["ｶﾞｲﾄﾞ"]),
        ("a ＤＪ set", "dj", ["ＤＪ"]),
        ("don＇t", "don't", ["don＇t"]),
        ("ㄱ한국", "한국", ["한국"]),
        ("The Running Man", "runs", ["Running"]),
        ("nothing of it", "else", []),
    ],
)
def test_spans_are_the_words_as_written_that_have_the_terms(text, query, expected):
    terms = {token.term for token in analyzer.tokens(query)}
    assert [text[start:end] for start, end in analyzer.spans(text, terms)] == expected


@given(words_and_oddities)
def test_spans_lie_in_the_text_in_order_without_overlap(text):
    spans = analyzer.spans(text, set(analyzer.key_terms(text)))
    flat = [place for span in spans for place in span]
    assert flat == sorted(flat)
    assert all(0 <= start < end <= len(text) for start, end in spans)


@given(words_and_oddities)
def test_every_token_has_its_place(text):
    tokens, places = analyzer.tokens(text), analyzer.token_spans(text)
    assert len(places) == len(tokens)
    for token, (start, end) in zip(tokens, places, strict=True):
        # Initials are read without their points: "A.O" as "ao".
        typed = fold(text[start:end])
        assert token.text in typed or token.text == typed.replace(".", "") or NUMBER(token.text)


def test_titles_are_marked_where_words_match_and_nowhere_else():
    title = "什么是注意力机制: attention, not attentive; une café"
    marked = word_spans(["注意力", "café"], title)
    assert [title[start:end] for start, end in marked] == ["注意力", "café"]


@pytest.mark.parametrize("apostrophe", "'’‘ʼʻ´`′＇")
@pytest.mark.parametrize(
    ("language", "written", "typed"),
    [
        ("english", "O'Neill", "oneill"),
        ("english", "L'Oréal", "loreal"),
        ("english", "Xi'an", "xian"),
        ("none", "п'ять", "пять"),
        ("french", "L'Oréal", "loreal"),
    ],
)
def test_a_word_is_found_with_any_apostrophe_and_without(apostrophe, language, written, typed):
    analyzer = Analyzer(language)
    text = written.replace("'", apostrophe)
    assert analyzer.tokens(text) == analyzer.tokens(written)
    assert {token.term for token in analyzer.tokens(typed)} <= set(analyzer.key_terms(text))


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("Party 🎂", ["🎂"]),
        ("❤️❤", ["❤", "❤"]),
        ("👍🏽 👍", ["👍", "👍"]),
        ("👩🏽‍💻👩‍💻", ["👩‍💻", "👩‍💻"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴", ["🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏴"]),
        ("1️⃣", ["1⃣"]),
    ],
)
def test_an_emoji_is_one_word_whatever_its_variant(text, units):
    tokens = [token for token in analyzer.tokens(text) if not token.text.isalpha()]
    assert [token.term for token in tokens] == units
    assert not any(token.is_stop_word for token in tokens)
    assert len(analyzer.spans(text, set(units))) == len(units)
    assert analyzer.terms(text) == analyzer.terms("".join(filter(str.isalpha, text)))


def test_unseen_characters_belong_to_the_word_that_is_marked():
    text = "a so\u00adft\u200b thing"
    assert [text[a:b] for a, b in analyzer.spans(text, {"soft"})] == ["so\u00adft\u200b"]
