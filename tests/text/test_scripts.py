"""Letters of other scripts than Latin: which are typed for one another, and where words end."""

import pytest

from qkvsearch._utils.folding import fold
from qkvsearch._utils.scripts import same_letters
from qkvsearch.text.analysis import Analyzer, is_unit, lower, units

analyzer = Analyzer("none")


@pytest.mark.parametrize(
    "spellings",
    [
        "盗梦空间 盜夢空間",
        "后来 後來",
        "里程 裏程 裡程",
        "らーめん ラーメン ﾗｰﾒﾝ",
        "がんだむ ガンダム ｶﾞﾝﾀﾞﾑ",
        "ゔぁいおりん ヴァイオリン",
        "مدرسة مدرسه مَدْرَسَة مدرســة",
        "أحمد احمد",
        "إسلام اسلام",
        "آداب اداب",
        "على علي",
        "کتاب كتاب",
        "فیلم فيلم",
        "שלום שָׁלוֹם",
        "ґрунт грунт",
        "फ़िल्म फिल्म",
        "हिन्दी हिंदी",
        "चाँद चांद",
        "क्‍या क्या",
        "ড়া ডা",
        "ਪੰਜਾਬ਼ੀ ਪੰਜਾਬੀ",
        "ශ්‍රී ශ්රී",
        "แกง เเกง",
        "กาแฟ กาเเฟ",
        "2024 ２０２４ ٢٠٢٤ ۲۰۲۴ २०२४ ২০২৪ ๒๐๒๔",
        "python Ｐｙｔｈｏｎ",
    ],
)
def test_spellings_of_a_word_find_each_other(spellings):
    first, *others = spellings.split()
    for other in others:
        assert analyzer.key_terms(other) == analyzer.key_terms(first)
        assert lower(other) == lower(first)


@pytest.mark.parametrize(
    "spellings", ["ば は", "て で", "か が", "大 太", "ب ت", "ह म", "คา ค่า ข่า", "г х", "ש ס"]
)
def test_different_letters_stay_different(spellings):
    folded = list(map(fold, spellings.split()))
    assert len(set(folded)) == len(folded)


@pytest.mark.parametrize("text", ["薴麻", "ﾗｰﾒﾝ", "फ़िल्म", "น้ำ", "مَدْرَسَة", "乾隆", "հայ", "한국"])
def test_a_folded_text_stays_the_same(text):
    assert fold(fold(text)) == fold(text)


def test_latin_greek_and_russian_need_no_rule():
    for text in ("Straße “quoted” — dash", "ελληνικά", "русский"):
        assert same_letters(text) is text


@pytest.mark.parametrize(
    ("run", "parts"),
    [
        ("注意力", "注 意 力"),
        ("人々", "人 々"),
        ("二〇二〇年", "二 〇 二 〇 年"),
        ("กาแฟ", "กา แฟ"),
        ("เท้า", "เท้า"),
        ("ข้าว", "ข้า ว"),
        ("น้ำ", "น้ำ"),
        ("ประเทศ", "ป ระ เท ศ"),
        ("ກາເຟ", "ກາ ເຟ"),
        ("ខ្មែរ", "ខ្មែ រ"),
        ("မြန်မာ", "မြ န် မာ"),
        ("เ", "เ"),
    ],
)
def test_a_letter_and_its_vowels_are_one_unit(run, parts):
    assert units(fold(run)) == fold(parts).split()
    assert [is_unit(unit) for unit in units(fold(run))] == [True] * len(parts.split())


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("ข้าว", "ข้าวหอมมะลิ"),
        ("กาแฟ", "ร้านกาแฟสด"),
        ("เท้า", "รองเท้าวิ่ง"),
        ("น้ำ", "แม่น้ำ"),
        ("ກາເຟ", "ຮ້ານກາເຟ"),
        ("မြန်မာ", "မြန်မာနိုင်ငံ"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("กาเเฟ", "ร้านกาแฟสด"),
        ("กาแฟ", "ร้านกาเเฟสด"),
        ("梦", "盜夢空間"),
        ("夢空", "盗梦空间"),
    ],
)
def test_a_part_of_a_text_without_spaces_is_found_and_marked(part, text):
    terms = set(analyzer.terms(part))
    assert terms <= set(analyzer.key_terms(text))
    spans = analyzer.spans(text, terms)
    assert any(fold(text[start:end]) == fold(part) for start, end in spans)


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "বাংলা", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "සිංහල", "བོད་"])
def test_vowel_signs_break_no_word(word):
    assert analyzer.terms(word) == [fold(word).removesuffix("་")]


@pytest.mark.parametrize(
    ("text", "typed", "marked"),
    [
        ("看《盜夢空間》吧", "盗梦空间", "盜夢空間"),
        ("ﾗｰﾒﾝの店", "らーめん", "ﾗｰﾒﾝ"),
        ("هذه مَدْرَسَة كبيرة", "مدرسه", "مَدْرَسَة"),
        ("एक फ़िल्म और", "फिल्म", "फ़िल्म"),
        ("मेरी हिन्दी कविता", "हिंदी", "हिन्दी"),
        ("שיר שָׁלוֹם", "שלום", "שָׁלוֹם"),
        ("ดื่มน้ำเย็น", "น้ำ", "น้ำ"),
        ("入門Ｐｙｔｈｏｎ本", "python", "Ｐｙｔｈｏｎ"),
    ],
)
def test_the_text_is_marked_as_it_is_written(text, typed, marked):
    spans = analyzer.spans(text, set(analyzer.terms(typed)))
    assert [text[start:end] for start, end in spans] == [marked]
    for (start, end), token in zip(analyzer.token_spans(text), analyzer.tokens(text), strict=True):
        assert fold(text[start:end]) == token.text
