"""Conditions of `--where`: made by a grammar of SQL, then changed."""

from functools import cache

import qkvsearch
from tests.faults import fuzz, world

COLUMNS = ["id", "title", "year", "tags", "ID", '"title"', "[year]", "yaer", "rowid", "_row"]
OPERATORS = (
    "= == != <> < > <= >= + - * / % || & | << >> AND OR IS LIKE GLOB IN MATCH REGEXP".split()
)
FUNCTIONS = (
    "length lower upper abs round substr replace instr has like glob coalesce ifnull nullif min "
    "max random date datetime strftime julianday printf hex zeroblob randomblob quote typeof trim "
    "load_extension readfile sqlite_version total_changes count sum group_concat json_extract iif"
).split()
STATEMENTS = [
    "SELECT 1", "1); DROP TABLE items; --", "EXISTS (SELECT * FROM items)", "year IN (SELECT 1)",
    "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT max(x) FROM c)",
    "ATTACH 'x' AS y", "PRAGMA writable_schema=1", "CASE WHEN 1 THEN 2 END", "year BETWEEN 1 AND",
    "CAST(year AS TEXT)", "title COLLATE NOCASE", "?", "?1", ":a", "@a", "$a", "NULL", "x'00'",
    "1 ORDER BY 1", "1 LIMIT 1", "count(*) OVER ()", "title -> '$'",
]  # fmt: skip


def expression(chance, depth=4):
    kind = chance.randrange(11)
    if depth <= 0 or kind <= 2:
        return chance.choice(
            [
                chance.choice(COLUMNS[:4]),
                chance.choice(COLUMNS),
                str(chance.choice([0, 1, 2005, -3, 2.5, 10**30])),
                "'" + fuzz.text(chance, 2).replace("'", "''") + "'",
                f"'{chance.choice(world.WORDS)}'",
            ]
        )
    one, two = (lambda: expression(chance, depth - 1)), (lambda: expression(chance, depth - 2))
    if kind <= 6:
        return f"{one()} {chance.choice(OPERATORS)} {one()}"
    if kind == 7:
        return f"({one()})" if chance.random() < 0.7 else f"NOT {one()}"
    if kind == 8:
        arguments = ", ".join(two() for _ in range(chance.randint(0, 3)))
        return f"{chance.choice(FUNCTIONS)}({arguments})"
    if kind == 9:
        return f"{one()} IN ({', '.join(two() for _ in range(chance.randint(0, 4)))})"
    return chance.choice(STATEMENTS)


def condition(chance):
    made = expression(chance, chance.randint(0, 5))
    roll = chance.random()
    if roll < 0.25:
        made = fuzz.changed_bytes(made.encode("utf-8", "surrogatepass"), chance).decode(
            "utf-8", chance.choice(["replace", "surrogateescape", "ignore"])
        )
    elif roll < 0.27:
        made = chance.choice(["(", "NOT ", "-", "1+", "a.", "CASE ", "DATE("]) * chance.choice(
            [50, 3000]
        )
    elif roll < 0.3:
        made = fuzz.text(chance, 8)
    return made


@cache
def engine():
    return qkvsearch.open(world.made("segments"))


def fuzz_where(trial):
    opened = engine()

    def use(where):
        # A listing that is asked for one row costs little beside the condition.
        opened.recommend(likes=[3], k=1, where=where)

    fuzz.inputs(trial, condition, use)
