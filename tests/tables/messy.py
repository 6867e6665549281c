"""Tables as nobody should write them, made from a seed: a file's name and its bytes."""

import csv
import gzip
import io
import json
import random
import re
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.tables import other_books

HEADERS = (
    "id title tags price added", "SKU Name Description Price Categories", "user item rating time",
    "customer_email product_sku quantity ordered_at", "id id id title", "a b c d e",
    "  ID  Titel ", "user_id movie_id stars", "商品ID 商品名 価格", "id; title", 'id "title" x',
    "1 2 3", "id title \x00x", "\ufeffid title", "título descrição preço", "user\u202eemag item",
    "id _position rowid title", "select from where", "id [title] `x` \"",
    "user item weight weight.1 rating rating",
)  # fmt: skip
CELLS = (
    "", " ", "0", "1", "-1", "007", "1e5", "1e400", "3e38", "-3e38", "NaN", "nan", "inf",
    "-Infinity", "N/A", "null", "-", "#REF!", "1,299.00", "$1,299.00", "66,80 €", "12%", "1.5",
    "true", "yes", "2024-03-01", "01/03/2024", "March 1, 2024", "1709290000", "1709290000000",
    "99999-99-99", "0000-00-00", "17.14.11", "9999-12-31T23:59:59Z", "0001-01-01",
    "user@example.org", "USER@X", "rain jacket", "Żółw 🐢", "a|b|c", "a;b",
    "<p>A <b>tent</b>&nbsp;&amp;</p>", "<script", "&#0;", 'say "so"', '"', "''", "two\nlines",
    "cr\ronly", "\x00", "a\x00b", "\x1b[31mred", "\u202eevil", "\u200b", "\ufeff", "e\u0301",
    "\u00a0", "=1+1", "@cmd", "x" * 300, "9" * 400, "(((" * 50, str(2**63), str(2**64), "0x1F",
    "1_000", "١٢٣", "½", "--", "--help", "'; DROP TABLE items; --", "S;M;L", "A|B|C|D", "9,50",
    "Last, First", "{n.__class__.__mro__}", "{n:>2000000000}", "{}", "100 % {", "%s%n",
    f"[0x{'f' * 5000}]", "<a " * 9_000, "<!--" * 9_000, '<a "<a" ' * 9_000,
)  # fmt: skip
ABOVE = (
    "Stock {May}", "Stock, as of 1 March", "Stock;;;;", "{n.__class__}", "{}", "sep=;", "a|b|c", "",
    "Shop;tents", '"Stock, May"',
)  # fmt: skip
VIEWS = (
    "SELECT 1 AS id, hex(zeroblob(400000000)) AS title", "SELECT * FROM items",
    "WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c) SELECT id FROM c",
)  # fmt: skip
ELEMENTS = ("<row/>", "<x/>", "<row><c/></row>", "<c/>", "<row><c><f>1</f></c></row>")
ENCODINGS = "utf-8 utf-8 utf-8-sig utf-16 utf-16-le utf-32 latin-1 cp1252 shift-jis utf-7".split()


def messy_table(seed: int) -> tuple[str, bytes]:
    """A name, whose suffix may lie, and what is in the file."""
    rng = random.Random(seed)
    name, content = rng.choice(KINDS)(rng)
    if rng.random() < 0.1:
        content = content[: rng.randrange(len(content) + 1)]
    if rng.random() < 0.1 and content:
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 20)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        content = bytes(damaged)
    if rng.random() < 0.05:
        name = f"table{rng.choice(['', '.txt', '.csv', '.json', '.xlsx', '.db', '.parquet'])}"
    return name, content


def _rows(rng: random.Random) -> tuple[list[str], list[list[str]]]:
    """A header and rows, of which some are too short or too long."""
    header = rng.choice(HEADERS).split(" ")
    rng.random() < 0.1 and rng.shuffle(header)  # type: ignore[func-returns-value]
    usual = [rng.sample(CELLS, rng.randint(1, 6)) for _ in header]
    rows = []
    for number in range(rng.choice([0, 1, 2, 5, 20, 60])):
        row = [rng.choice(CELLS if rng.random() < 0.1 else kind) for kind in usual]
        if rng.random() < 0.8:
            row[0] = str(number)
        ragged = rng.random()
        if ragged < 0.03:
            row += rng.choices(CELLS, k=rng.randint(1, 4))
        elif ragged < 0.06:
            del row[rng.randrange(len(row)) :]
        rows.append(row)
    return header, rows


def _delimited(rng: random.Random) -> tuple[str, bytes]:
    header, rows = _rows(rng)
    out, delimiter = io.StringIO(), rng.choice(",,;\t|")
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    end = rng.choice(["\n", "\r\n", "\r", "\n\n"])
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows([header, *rows])
    text = out.getvalue()
    if rng.random() < 0.3:  # as if nothing had to be quoted
        text = end.join(delimiter.join(row) for row in [header, *rows])
    if rng.random() < 0.05:
        text = text.replace('"', "", 1)
    if rng.random() < 0.15:
        text = "".join(f"{line}{end}" for line in rng.choices(ABOVE, k=rng.randint(1, 3))) + text
    encoding = rng.choice(ENCODINGS)
    lines = [
        line.encode(rng.choice(ENCODINGS) if rng.random() < 0.01 else encoding, errors="replace")
        for line in (text.splitlines(keepends=True) if rng.random() < 0.2 else [text])
    ]
    return f"table.{rng.choice(['csv', 'csv', 'csv', 'tsv', 'txt'])}", b"".join(lines)


def _json(rng: random.Random) -> tuple[str, bytes]:
    header, rows = _rows(rng)

    def value(text: str) -> object:
        return rng.choice(
            [text, text, [text, 1], {"a": {"b": text}}, None, 1e308 * 10, 2**70, True, "\ud83d", []]
        )

    if rng.random() < 0.1:
        header[rng.randrange(len(header))] = rng.choice(["a\ud800", "\udfff", "x" * 2_000, "{n}"])
    nested_ids = rng.random() < 0.1
    objects: list[object] = [
        dict(
            zip(header, [*row[: not nested_ids], *map(value, row[not nested_ids :])], strict=False)
        )
        for row in rows
    ]
    if rng.random() < 0.1:
        objects.append(rng.choice([1, "x", [], None]))
    ascii_only = rng.random() < 0.5
    if rng.random() < 0.3:
        text = json.dumps(objects, ensure_ascii=ascii_only, indent=rng.choice([None, 1]))
    else:
        text = "\n".join(json.dumps(each, ensure_ascii=ascii_only) for each in objects)
    if rng.random() < 0.05:
        text = '{"id": ' + "[" * 100_000
    return f"table.{rng.choice(['json', 'jsonl', 'csv'])}", text.encode(errors="surrogatepass")


def _odd(rng: random.Random) -> tuple[str, bytes]:
    """What is hardly a table at all."""
    wide = 10 ** rng.randint(3, 6)
    contents: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: b"\n" * rng.randint(1, 50),
        lambda: b"\x00" * rng.randint(1, 5000),
        lambda: b",,,;;;\t\t|||\n" * rng.randint(1, 9),
        lambda: b"id,title\n",
        lambda: b"id",
        lambda: b"id,title\n" + b'1,"never closed\n' * rng.randint(1, 9),
        lambda: ",".join(f"c{n}" for n in range(wide)).encode() + b"\n1,2,3\n",
        lambda: b"," * wide,
        lambda: b"id,title\n" + b"1" + b"," * wide + b"\n2,b\n",
        lambda: b"id,title\n1," + b"word " * rng.choice([1, 100_000, 400_000]) + b"\n2,b\n",
        lambda: rng.randbytes(rng.randint(1, 5000)),
        lambda: b"\xff\xfe" + rng.randbytes(rng.randint(1, 999)),
        lambda: b"\xef\xbb\xbf",
        lambda: b"PK\x03\x04" + rng.randbytes(100),
        lambda: b"SQLite format 3\x00" + rng.randbytes(2000),
        lambda: b"PAR1" + rng.randbytes(100) + b"PAR1",
        lambda: b"\x28\xb5\x2f\xfd" + rng.randbytes(100),
        lambda: b"\x1f\x8b\x08\x00" + rng.randbytes(100),
        lambda: b"BZh9" + rng.randbytes(100),
        lambda: b"\xfd7zXZ\x00" + rng.randbytes(100),
        lambda: b"[" * rng.choice([1, 100_000]),
        lambda: b'{"id": 1}\n' * 3 + b"{",
    ]
    return rng.choice(["table.csv", "table.json", "table.tsv"]), rng.choice(contents)()


def _packed(rng: random.Random) -> tuple[str, bytes]:
    name, content = rng.choice([_delimited, _json])(rng)
    if rng.random() < 0.5:
        return f"{name}.gz", gzip.compress(content, mtime=0)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(rng.choice([0, 1, 1, 1, 1, 2])):
            archive.writestr(zipfile.ZipInfo(f"{number}/{name}"), content)
    return "table.zip", out.getvalue()


def _workbook(rng: random.Random) -> tuple[str, bytes]:
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book, out = Workbook(), io.BytesIO()
    header, rows = _rows(rng)
    for row in [header, *rows]:
        cells = [ILLEGAL_CHARACTERS_RE.sub("", cell) for cell in row]
        book.active.append([rng.choice([cell, cell, 1.5, None, True]) for cell in cells])
    book.save(out)
    if rng.random() < 0.8:
        return "table.xlsx", out.getvalue()
    many = io.BytesIO()
    with zipfile.ZipFile(out) as whole, zipfile.ZipFile(many, "w", zipfile.ZIP_DEFLATED) as file:
        for name in whole.namelist():
            end = f"{rng.choice(ELEMENTS) * rng.choice([9, 300_000])}</sheetData>"
            file.writestr(name, whole.read(name).replace(b"</sheetData>", end.encode()))
    return "table.xlsx", many.getvalue()


def _parquet(rng: random.Random) -> tuple[str, bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    header, rows = _rows(rng)
    rows = [[*row, *[None] * len(header)][: len(header)] for row in rows]
    columns = {
        f"{name}{rng.choice(['', '', '{n}'])}": _arrow(list(cells), rng)
        for name, cells in zip(header, zip(*rows, strict=True), strict=False)
    }
    out = io.BytesIO()
    options = {"compression": rng.choice(["zstd", "snappy", "none"])}
    options |= {"row_group_size": rng.choice([7, 1000]), "use_dictionary": rng.random() < 0.7}
    parquet.write_table(pa.table(columns), out, **options)
    return "table.parquet", out.getvalue()


def _arrow(cells: list[str], rng: random.Random) -> Any:
    """A column of any type."""
    import pyarrow as pa

    n, texts = len(cells), [cell and cell.encode(errors="replace").decode() for cell in cells]
    kind = rng.randrange(9)
    if kind == 0:
        return pa.array(range(n), pa.timestamp("us"))
    if kind == 1:
        return pa.array([rng.choice([None, -1.5, 1e308]) for _ in range(n)], pa.float64())
    if kind == 2:
        return pa.array([["x" * 10_000] * 999, *[None] * n][:n])
    if kind == 3:
        return pa.array(["x" * 10_000_001, *["x"] * n][:n])
    values = {4: [{"a": text, "b": [text]} for text in texts], 5: [[text] * 2 for text in texts]}
    return pa.array(values.get(kind, texts) if n else [None][:n], None if n else pa.string())


def _database(rng: random.Random) -> tuple[str, bytes]:
    header, rows = _rows(rng)
    names = [f'"{n} {name}"'.replace("\x00", "") for n, name in enumerate(header)]
    names = [name if rng.random() < 0.2 else f'"{name[3:]}' for name in names]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.db"
        with closing(sqlite3.connect(path)) as database:
            try:
                database.execute(f"CREATE TABLE things ({', '.join(names)})")
            except sqlite3.Error:  # names that SQLite does not take
                database.execute("CREATE TABLE things (id, title)")
                rows = [[*row, "", ""][:2] for row in rows]
            marks = len(database.execute("SELECT * FROM things").description)
            for row in rows:
                cells = [*row, *[None] * marks][:marks]
                database.execute(f"INSERT INTO things VALUES ({', '.join('?' * marks)})", cells)
            if rng.random() < 0.1:
                database.execute("CREATE TABLE more (x)")
            if rng.random() < 0.3:
                database.execute("DROP TABLE things")
                database.execute(f"CREATE VIEW items AS {rng.choice(VIEWS)}")
            database.commit()
        return "table.db", path.read_bytes()


def _document(rng: random.Random) -> tuple[str, bytes]:
    """One JSON document that holds rows in one of the usual ways, or in hardly any."""
    header, rows = _rows(rng)
    objects = [dict(zip(header, row, strict=False)) for row in rows]
    keys = [rng.choice([str(n), f"k{n}", f"k{n % 7}"]) for n in range(len(rows))]
    hits: list[object] = [
        {"_id": key, "_source": each} for key, each in zip(keys, objects, strict=False)
    ]
    columns = {
        name: {key: each.get(name) for key, each in zip(keys, objects, strict=False)}
        for name in header
    }
    documents: list[object] = [
        dict(zip(keys, objects, strict=False)),
        columns,
        {name: [*column.values()] for name, column in columns.items()},
        {"columns": header, "index": keys, "data": rows},
        {"hits": {"total": 7, "hits": hits}},
        {rng.choice(["items", "a.b", "title", ""]): objects, "n": rng.choice([1, None, objects])},
        {"meta": {"a": 1}, "data": {"items": dict(zip(keys, objects, strict=False))}},
        [
            {"id": n, "x": {"y": [each, {"y": [[each], None, []]}]}}
            for n, each in enumerate(objects)
        ],
        rng.choice([{}, [], [[]], {"a": {}}, {"a": []}, {"a": {"b": {}}}, {"": {"": 1}}, 7]),
    ]
    text = json.dumps(rng.choice(documents), indent=rng.choice([None, None, 1]))
    if rng.random() < 0.2:
        actions = [{rng.choice(["index", "update", "delete"]): {"_id": key}} for key in keys]
        lines = [
            line
            for pair in zip(actions, objects, strict=False)
            for line in pair
            if rng.random() < 0.95
        ]
        text = "\n".join(map(json.dumps, lines))
    if rng.random() < 0.1:
        text = text[: rng.randrange(len(text) + 1)]
    return f"table.{rng.choice(['json', 'jsonl', 'txt'])}", text.encode(errors="replace")


def _joined(rng: random.Random) -> tuple[str, bytes]:
    """Files one after another, each with its byte order mark."""
    name, content = rng.choice([_delimited, _json, _document])(rng)
    encoding = rng.choice(["utf-8-sig", "utf-8-sig", "utf-16"])
    text = content.decode("utf-8", errors="replace")
    ends = [rng.choice(["", "\n", "\r\n", "\r"]) for _ in range(rng.randint(1, 3))]
    return name, b"".join((text + end).encode(encoding, errors="replace") for end in ends)


def _other_workbook(rng: random.Random) -> tuple[str, bytes]:
    """An .ods, or an .xls with a few damaged bytes."""
    if rng.random() < 0.5:
        content = bytearray(other_books.XLS)
        for _ in range(rng.choice([0, 1, 1, 9])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        return rng.choice(["table.xls", "table.csv"]), bytes(content)
    header, rows = _rows(rng)
    odd = other_books.typed("percentage", 0.1), other_books.typed("date", "?")
    lines = []
    for cells in [header, *rows]:
        written = [rng.choice([_in_xml(cell), _in_xml(cell), None, 1.5, *odd]) for cell in cells]
        repeated = rng.choice([3, 10**6, 10**9]) if rng.random() < 0.02 else 1
        lines.append(other_books.row(*written, repeated=repeated))
    content = other_books.ods(*["".join(lines)] * rng.choice([1, 1, 1, 2]))
    return rng.choice(["table.ods", "table.csv"]), content


def _in_xml(cell: str) -> str:
    """A text that XML can have."""
    return re.sub("[^\t -\ud7ff\ue000-\ufffd]|^<", "", cell)


KINDS = (_delimited,) * 8 + (_json,) * 3 + (_odd,) * 3 + (
    _packed, _workbook, _database, _parquet, _document, _document, _joined, _other_workbook,
)  # fmt: skip
