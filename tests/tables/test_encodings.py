"""Text files of any encoding: read rightly, or with a warning that names the encoding."""

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.files.encodings import detect, open_text, wide_encoding
from qkvsearch.tables.files.tables import read_table

TEXTS = {
    "cp1252 cp850 cp437 iso8859_15": "Müller: Vögel am See\nLöwe und Bär\nGröße und Maß\nStraße\n",
    "cp1252 cp850 mac_roman": "Año nuevo\nNiño y señal\nCorazón\nJardín\n¿Qué pasó?\nÁrbol\n",
    "cp1252 cp850 mac_roman ": "L’été à la mer\nLe garçon et la forêt\nOù êtes-vous, mère ?\nÂge\n",
    "cp1250 cp852 iso8859_2 mac_latin2": "Zażółć gęślą jaźń\nŁódź\nKsiążka\nŻycie i śmierć\n",
    "cp1251 koi8_r mac_cyrillic": "Книга о вкусной пище\nВойна и мир\nПреступление и наказание\n",
    "cp1251 koi8_u": "Тіні забутих предків\nЇжак і ґава\nЄдиний шлях\nЛісова пісня\n",
    "cp1254 cp857": "Şehir ve ışık\nGüneşin doğuşu\nKırmızı saçlı kadın\nÇocuk ve ağaç\n",
    "iso8859_15": "Œuvres d’été\nUn œuf à la mer\nForêt et œillets\nL’œil, 5 €\n",
    "cp932 euc_jp": "吾輩は猫である\nノルウェイの森\n雪国\n坊っちゃん\nこころ\n",
    "gb18030": "红楼梦\n三国演义\n水浒传\n西游记\n",
    "big5": "紅樓夢\n三國演義\n水滸傳\n西遊記\n",
    "cp949": "채식주의자\n소년이 온다\n엄마를 부탁해\n",
}
CASES = [(name, text) for names, text in TEXTS.items() for name in names.split()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.csv"


def csv(text):
    lines = text.replace("’", "'").splitlines() * 3
    return "id;title\n" + "".join(f"{n};{line}\n" for n, line in enumerate(lines))


@pytest.mark.parametrize(("encoding", "text"), CASES)
def test_the_usual_encodings_come_out_right_or_are_doubted(path, encoding, text):
    path.write_bytes(csv(text).encode(encoding))
    frame, report = read_table(path)
    titles = [line.partition(";")[2] for line in csv(text).splitlines()[1:]]
    assert list(frame["title"]) == titles or "could not tell the encoding" in report.warnings[0]
    assert "decoded as" in str(report)


@pytest.mark.parametrize(("encoding", "text"), CASES[:7] + CASES[-3:])
def test_most_are_certain(encoding, text):
    assert detect(csv(text).encode(encoding))[1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"])
@pytest.mark.parametrize("text", ["id,title\n1,Löwe\n", csv(TEXTS["gb18030"])])
def test_unicode_is_told_with_a_mark_and_without(path, encoding, text):
    path.write_bytes(text.encode(encoding))
    assert list(read_table(path)[0]) == ["id", "title"]
    assert wide_encoding(b"id,title\n1,a\0b\n") is None


def test_a_named_encoding_decides_and_what_it_lacks_is_counted(path):
    path.write_bytes("id,title\n1,Größe\n2,Maß\n".encode("cp850"))
    assert list(read_table(path, encoding="cp850")[0]["title"]) == ["Größe", "Maß"]
    warnings = read_table(path, encoding="ascii")[1].warnings
    assert warnings == ["t.csv: 3 characters are not ascii and were lost"]
    for name in ("cp85", "hex", "mbcs", "rot13", "\0"):
        with pytest.raises(DataError, match=r"no encoding .*\(`encoding`\)(?!.*(hex|mbcs|rot))"):
            read_table(path, encoding=name)


def test_one_line_is_too_little_to_be_certain(path):
    path.write_bytes("id,title\n1,Café\n".encode("cp1252"))
    report = read_table(path)[1]
    assert "could not tell the encoding; read as Windows-1252" in report.warnings[0]
    with pytest.raises(DataError, match="could not tell the encoding"):
        report.conclude(strict=True)
    joined = "".join(f"{n},Größe {n}\n" for n in range(20)).encode()
    path.write_bytes(b"id,title\n" + joined + "99,Café\n".encode("cp1252"))
    assert not read_table(path)[1].warnings


@pytest.mark.parametrize(
    "text",
    [
        "29 °C",
        "“x” 5 €",
        "it’s £5",
        "½ m²",
        "10 × 20 µm",
        "A–Z, win–win",
        "Béla, Åke, Señor, Søren",
    ],
)
def test_symbols_and_names_of_many_languages_are_of_windows_1252(text):
    assert detect(f"1,{text}\n".encode("cp1252") * 20) == ("Windows-1252", True)


FEW = {"cp1250 iso8859_2": ["Łódź żółw ćma", "Dvořák, Łukasz, Müller, José", "Łukasz"],
       "mac_roman": ["Niño, señal, año", "cuña"], "cp1252": ["Séptimo, Mäkinen, père"],
       "cp850": ["Perché e però"]}  # fmt: skip


def test_many_words_of_two_letters_beyond_ascii_are_certain():
    assert detect("Die schöne Müllerin\n".encode("mac_roman") * 20) == ("mac_roman", True)


@pytest.mark.parametrize("encodings", FEW)
def test_a_few_names_are_doubted(encodings):
    for encoding in encodings.split():
        for text in FEW[encodings]:
            assert not detect(text.encode(encoding))[1], text


def test_a_last_line_that_is_cut_off_within_a_character_decides_nothing(path):
    path.write_bytes("id,title\n1,Größe\n2,Maß\n3,naiv".encode() + "é".encode()[:1])
    frame, report = read_table(path)
    assert list(frame["title"]) == ["Größe", "Maß", "naiv\ufffd"]
    assert report.warnings == ["t.csv: 1 character is not UTF-8 and was lost"]
    assert not report.repaired


def test_a_long_line_is_told_by_its_letters(path):
    path.write_bytes(b"x" * 3_000_000 + " Größe, Müller, Löwe".encode("cp1252"))
    assert open_text(path, b"", None).encoding == "Windows-1252"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_within_joined_files_are_left_out(tmp_path, encoding):
    path = tmp_path / "all.csv"
    parts = ["id,title\n1,Kettle\n", "id,title\n2,Lämp", "id,title\n3,Rope\n"]
    path.write_bytes(b"".join(part.encode(encoding) for part in parts))
    frame, report = read_table(path)
    assert frame.to_numpy().tolist() == [["1", "Kettle"], ["2", "Lämp"], ["3", "Rope"]]
    assert report.skipped == {"that repeats the header": 2}
    assert any(note.startswith("2 byte order marks") for note in report.notes)


def test_a_zero_width_space_in_a_cell_stays(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("id,title\n1,Ket\ufefftle\n", encoding="utf-8")
    frame, report = read_table(path)
    assert frame["title"].tolist() == ["Ket\ufefftle"]
    assert not report.notes


def test_joined_lines_of_json_lose_their_marks(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": 1}\n\xef\xbb\xbf{"id": 2}\xef\xbb\xbf{"id": 3}\n')
    assert read_table(path)[0]["id"].tolist() == ["1", "2", "3"]


def encoded_twice(text):
    """The text as it is after UTF-8 was read as Windows-1252 and saved again."""
    letters = (bytes([byte]) for byte in text.encode())
    return "".join(letter.decode("cp1252", "ignore") or chr(letter[0]) for letter in letters)


@pytest.mark.parametrize(
    "word",
    "Crème Über Łódź İstanbul O’Neil “x” 1– 5€ Привет 今天 日本 ไทย 한국 العربية ελιά שלום".split(),
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_letters_that_were_encoded_twice_are_counted_in_a_warning(tmp_path, word, mark):
    path = tmp_path / "t.csv"
    path.write_text(f"id,title\n1,Tent\n2,{encoded_twice(word)} x\n{mark}3,Rope\n", "utf-8")
    _, report = read_table(path)
    assert len(report.warnings) == 1
    assert "t.csv" in report.warnings[0]
    assert repr(encoded_twice(word)) in report.warnings[0]
    path.write_text(f"id,title\n1,Tent\n2,{word} x\n{mark}3,Rope\n", "utf-8")
    assert not read_table(path)[1].warnings


@pytest.mark.parametrize(
    "text",
    [
        "«MAÇÃ» e",
        "voilà\xa0»",
        "« café… », “café…”",
        "„Gruß“ und „Größe“",
        "“IRMÃ”, São Ângelo",
        "ÅÄÖ, Ñandú, n° 5, GARÇON’s, café’s, MENÜ™ neu",
        "l’été–hiver, Citroën® C3, café™, 2×“x”, 3×®",
    ],
)
def test_what_people_write_was_not_encoded_twice(tmp_path, text):
    (tmp_path / "t.csv").write_text(f"id|title\n1|{text}\n", "utf-8")
    assert not read_table(tmp_path / "t.csv")[1].warnings
