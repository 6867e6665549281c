"""The delimiter and the header are found in ordinary tables, whatever is in their cells."""

import csv
import io
import random
from itertools import cycle, islice, product

import pytest

from qkvsearch.tables.files.delimited import DELIMITERS, find_layout
from qkvsearch.tables.files.tables import read_table

WORDS = "stone river lamp cloud paper maple ember slate north quiet".split()


def joined(chance, sign, n):
    return sign.join(chance.choice(WORDS) for _ in range(n))


# Of each kind of table the names of its columns, and what makes a row.
TABLES = {
    "lists of three": ("id title tags", lambda c, s: ["x", joined(c, " ", 2), joined(c, s, 3)]),
    "paths of four": ("id name path", lambda c, s: ["x", "y", joined(c, s, 4)]),
    "two lists": ("id sizes colors", lambda c, s: ["x", f"S{s}M{s}L", joined(c, s, 3)]),
    "decimal commas": (
        "id title price weight color",
        lambda c, s: ["x", joined(c, " ", 2), f"{c.randint(1, 9)},{c.randint(10, 99)}", "1,2", "y"],
    ),
    "names with a comma": ("id author title", lambda c, s: ["x", joined(c, ", ", 2), "y"]),
    "prose": ("id title text", lambda c, s: ["x", "y", joined(c, f"{s} ", c.randint(1, 8))]),
    "cells of several lines": ("id text color", lambda c, s: ["x", joined(c, f"{s}\n", 3), "y"]),
    "last columns mostly empty": (
        "id title a b",
        lambda c, s: ["x", "y", *(c.choice(["", "", "z"]) for _ in "ab")],
    ),
    "names in quotes": ('id price,_EUR size;_cm a|b say_"so"', lambda c, s: ["x", *"abcd"]),
}
# What is above the header, by the delimiter and the number of columns.
ABOVE = {
    "nothing": lambda sign, width: [],
    "a line": lambda sign, width: ["Stock in May"],
    "a line with a comma": lambda sign, width: ["Stock of the shop, in May"],
    "a title cell of a spreadsheet": lambda sign, width: ["Stock in May" + sign * (width - 1)],
    "lines and a blank one": lambda sign, width: ["Stock", "", "All"],
    "the delimiter by its name": lambda sign, width: [f"sep={sign}"],
}
KINDS = list(product(TABLES, ABOVE, DELIMITERS))


def table(kind, sign, n_rows, chance):
    names, row = TABLES[kind]
    inner = chance.choice([other for other in "|;,/" if other != sign])
    if "comma" in kind:
        inner = ","
    rows = [[f"m{n}", *row(chance, inner)[1:]] for n in range(n_rows)]
    return [name.replace("_", " ") for name in names.split(" ")], rows


def written(rows, sign, chance):
    out = io.StringIO()
    quoting = chance.choice([csv.QUOTE_MINIMAL] * 4 + [csv.QUOTE_ALL])
    csv.writer(out, delimiter=sign, quoting=quoting, lineterminator="\n").writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_the_header_and_every_row_of_ordinary_tables_stay(seed, tmp_path):
    chance = random.Random(seed)
    lost = []
    for (kind, above, sign), n_rows in zip(KINDS, cycle([3, 40, 4, 1]), strict=False):
        names, rows = table(kind, sign, n_rows, chance)
        lines = ABOVE[above](sign, len(names))
        path = tmp_path / "table.csv"
        end = chance.choice(["\n", "\n", "\r\n"])
        text = "".join(f"{line}\n" for line in lines) + written([names, *rows], sign, chance)
        path.write_text(text.replace("\n", end), encoding="utf-8", newline="")
        frame, report = read_table(path)
        cells = frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
        expected = [[cell.replace("\n", end) for cell in row] for row in rows]
        noted = [f"lines above the table, left out: {len(lines)}"] if lines else []
        if list(frame) != names or cells != expected or not _are_noted(report.notes, noted):
            lost.append((kind, above, sign, n_rows))
    assert not lost
    assert len(KINDS) > 200


def _are_noted(notes, expected):
    return len(notes) == len(expected) and all(map(str.startswith, notes, expected))


@pytest.mark.parametrize("extra", ["long", "short"])
@pytest.mark.parametrize("kind", ["lists of three", "decimal commas", "names with a comma"])
def test_ragged_rows_cost_themselves_alone(kind, extra, tmp_path):
    chance = random.Random(1)
    names, rows = table(kind, ";" if "comma" in kind else ",", 40, chance)
    sign = ";" if "comma" in kind else ","
    for row in islice(rows, 0, None, 9):
        row[2:] = [*row[2:], "more"] if extra == "long" else []
    (tmp_path / "t.csv").write_text("".join(f"{sign.join(row)}\n" for row in [names, *rows]))
    frame, report = read_table(tmp_path / "t.csv")
    assert list(frame) == names
    assert report.kept == (35 if extra == "long" else 40)
    assert not report.notes


@pytest.mark.parametrize(
    ("text", "delimiter", "n_above", "width"),
    [
        ("title\nTents, ropes, and more\nRopes, tents, lamps, and more\nA, b, c\n", "\x1f", 0, 1),
        ("title\nred, blue, green\nblack\n", "\x1f", 0, 1),
        ("id;;\n1;a;b\n2;c;d\n", ";", 0, 3),  # a column with a name, and two without
        ("id,title\n1,a,\n2,b,\n", ",", 0, 2),  # a delimiter ends each row
        ("id,title\n1,Tom, Jerry\n2,Good, Bad\n", ",", 0, 2),
        ("id,title,tags\nm1\nm2,b\n", ",", 0, 3),
        ("id,title,a|b|c\nx,y,1|2|3\n", ",", 0, 3),
        ("id|title\n", "|", 0, 2),
        ("1::Heat::Crime|Drama\n2::Alien::Horror|SciFi\n", "|", 0, 2),
    ],
)
def test_where_little_tells_the_first_line_is_the_header(text, delimiter, n_above, width):
    found = find_layout(text)
    assert (found.delimiter, len(found.above), found.width) == (delimiter, n_above, width)


def test_of_delimiters_that_fit_equally_well_the_first_is_taken_with_a_warning(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id;title;price, EUR\nm1;Tent;9,50\nm2;Rope;1,20\n")
    assert list(read_table(path)[0]) == ["id;title;price", "EUR"]
    assert read_table(path)[1].warnings == [
        "t.csv: ',' and ';' divide its lines equally well, and ',' was taken for the delimiter; "
        "`delimiter` says which"
    ]
    frame, report = read_table(path, delimiter=";")
    assert list(frame) == ["id", "title", "price, EUR"]
    assert not report.warnings


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Inventory\n\nname\nTent\nRope\nMug\n", 3),
        ("Stock, May 2024\nname\nTent\nRope\nMug\n", 2),
        ("thing\nTent\nRope\n", None),
        ("name\nTitle\nRope\n", None),
        ("wer,was\nann,name\nbob,rope\n", None),
    ],
)
def test_a_title_that_is_taken_for_the_header_is_a_warning(tmp_path, text, line):
    (tmp_path / "t.csv").write_text(text)
    warnings = read_table(tmp_path / "t.csv")[1].warnings
    assert [warning.partition(" may have")[0] for warning in warnings] == (
        [f"t.csv: line {line}"] if line else []
    )


@pytest.mark.slow
def test_a_header_longer_than_the_sample_is_read_whole(tmp_path):
    names = [f"{'column, ' * 8}{k}" for k in range(1_900)]
    (tmp_path / "t.csv").write_text(f"{';'.join(names)}\n{';'.join('x' * 1_900)}\n" * 3)
    frame, report = read_table(tmp_path / "t.csv")
    assert list(frame) == names
    assert (report.kept, report.skipped.total()) == (3, 2)  # the other headers


def test_a_delimiter_that_is_told_decides(tmp_path):
    path = tmp_path / "movies.dat"
    path.write_text("Films, of May\nid::title::genres\nm1::Heat, again::A|B\nm2::Alien, too::A|B\n")
    frame, _ = read_table(path, delimiter="::")
    assert frame.to_numpy().tolist() == [["m1", "Heat, again", "A|B"], ["m2", "Alien, too", "A|B"]]
    assert list(read_table(path, delimiter="|")[0]) == ["m1::Heat, again::A", "B"]


def test_years_are_names_of_columns():
    found = find_layout("Sales\nid,title,2023,2024\n1,a,5,6\n2,b,6,7\n")
    assert (found.delimiter, found.above, found.width) == (",", ["Sales\n"], 4)


def test_a_delimiter_is_for_the_files_that_have_it(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text('id,title\n1,"Tent; red"\n2,Rope\n')
    frame, report = read_table(path, delimiter=";")
    assert frame.to_dict("list") == {"id": ["1", "2"], "title": ["Tent; red", "Rope"]}
    assert any("';'" in note and "','" in note for note in report.notes)


def test_a_delimiter_that_is_named_wins_where_it_is_in_the_header(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("id,x;title\n1,2;Tent\n2,3;Rope\n")
    assert list(read_table(path, delimiter=";")[0]) == ["id,x", "title"]


@pytest.mark.parametrize("sign", ["，", "；", "｜", "،", "؛"])
def test_a_sign_of_other_keyboards_divides_lines_that_have_it_equally_often(tmp_path, sign):
    path = tmp_path / "t.csv"
    path.write_text(
        '编号，名称，价格\n1，"茶，壶"，1,299\n2，"茶""碗"，\n'.replace("，", sign), "utf-8"
    )
    frame, report = read_table(path)
    assert list(frame) == ["编号", "名称", "价格"]
    assert frame.fillna("").to_numpy().tolist() == [
        ["1", f"茶{sign}壶", "1,299"],
        ["2", '茶"碗', ""],
    ]
    assert sign in "".join(report.notes)
    assert not report.warnings


@pytest.mark.parametrize(
    "text",
    ["title\n你好，世界\n再见，世界\n", "编号,别名\n1,甲，乙\n", "编号,名，别名\n1,甲，乙\n"],
)
def test_such_a_sign_in_a_text_divides_nothing(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, "utf-8")
    frame, report = read_table(tmp_path / "t.csv")
    assert list(frame) == text.split("\n")[0].split(",")
    assert not report.notes
    assert not report.warnings


def test_lines_that_have_such_a_sign_unequally_often_are_one_column_and_a_warning(tmp_path):
    (tmp_path / "t.csv").write_text("编号，名称\n1，茶壶，好看\n2，茶碗\n", "utf-8")
    frame, report = read_table(tmp_path / "t.csv")
    assert list(frame) == ["编号，名称"]
    assert "'，'" in report.warnings[0]
    assert "`delimiter`" in report.warnings[0]
    frame, report = read_table(tmp_path / "t.csv", delimiter="，")
    assert frame.to_numpy().tolist() == [["2", "茶碗"]]
    assert report.skipped.total() == 1


@pytest.mark.parametrize("sign", ["，", "§", "é", "🙂", "::"])
def test_any_sign_is_a_delimiter_that_is_named(tmp_path, sign):
    (tmp_path / "t.csv").write_text(f"id{sign}title\n1{sign}Tent, red\n2{sign}Rope\n", "utf-8")
    frame, _ = read_table(tmp_path / "t.csv", delimiter=sign)
    assert frame.to_numpy().tolist() == [["1", "Tent, red"], ["2", "Rope"]]


def test_a_line_of_excel_may_name_any_sign(tmp_path):
    (tmp_path / "t.csv").write_text("sep=§\nid§title\n1§Tent, red\n", "utf-8")
    assert list(read_table(tmp_path / "t.csv")[0]) == ["id", "title"]
