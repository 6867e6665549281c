"""Writes what the pages can be told by the code itself: python docs/generate.py.

docs/commands.md from the commands' own help, docs/api.md from the server's OpenAPI document,
docs/points.md from the lessons and their tests, the tables of docs/teaching.md from the lessons,
the limits of docs/trust.md, and the formats and rules of docs/formats.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from qkvsearch._utils import limits
from qkvsearch.cli import group
from qkvsearch.lessons import LESSONS, lesson
from qkvsearch.lessons.exports.markdown import table
from qkvsearch.lessons.parts import Lesson
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.tables.columns.row_meaning import RULES
from qkvsearch.tables.documents.document import DocumentFormat
from qkvsearch.tables.documents.document_files import DOCUMENT_FORMATS
from qkvsearch.tables.files.file_format import BinaryFormat, TextFormat
from qkvsearch.tables.files.tables import BINARY_FORMATS, TEXT_FORMATS
from qkvsearch.tables.role_choice import CATALOG_RULES, LOG_RULES, RoleRule

DOCS = Path(__file__).parent
PAGE = DOCS / "commands.md"
API = DOCS / "api.md"
POINTS = DOCS / "points.md"
TEACHING = DOCS / "teaching.md"
TRUST = DOCS / "trust.md"
FORMATS = DOCS / "formats.md"
TESTS = DOCS.parent / "tests"
INTRODUCTION = """# Commands

Written by `python docs/generate.py` from `--help`; edit the help, not this page. What all commands
share (workspaces, formats, exit codes, JSON fields) is in [formats.md](formats.md).
"""
WIDTH = 80


def sections(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """A command's name and help, then those of its commands."""
    settings = command.context_settings | {"terminal_width": WIDTH, "max_content_width": WIDTH}
    with click.Context(command, info_name=name, parent=parent, **settings) as ctx:
        yield ctx.command_path, command.get_help(ctx)
        if isinstance(command, click.Group):
            for child in command.list_commands(ctx):
                found = command.get_command(ctx, child)
                assert found is not None
                yield from sections(found, child, ctx)


def page() -> str:
    parts = [INTRODUCTION]
    for name, text in sections(group, "qkvsearch"):
        parts.append(f"## {name}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(parts)


# --- the points of the course ---

POINTS_INTRODUCTION = """# The points of the course

What a person can do or explain after the course, point by point, where it is shown and which test
checks it there by running the lesson's own step. Written by `python docs/generate.py`.
"""
# A line each, from point 1 on.
WHAT = """
one-hot vectors have nothing in common, embeddings do
a film as four shares: their sum, dot product with itself, length
arithmetic with word vectors
dot product and angle: right angles, obtuse angles
a person and a film: who likes action gets the action film
all people and all films in one product of matrices
users and films learned from ratings by gradient descent
a search has a query, keys and values; a low temperature makes it hard
from scores to weights to a weighted sum
words of a translation attend to the characters of the source
what a translator does, beside what the vectors do
from the prediction vector to the next word
queries from the decoder, keys and values from the encoder
what "it" attends to, in a real encoder
a re-mixed vector knows its context
the formula with and without learned projections
three linear layers and what shapes they give
layers give context of context
any tokens: words, patches of an image, frames of sound
one vector in is enough; its weight is 1
a label for a whole sequence
a label for each vector
a model that chooses how long its output is
"I saw a saw": what a layer for each word cannot tell apart
windows, and what it costs to widen them
attention and fully connected layers take turns
every output depends on every input
the first query scores every key, its own included
ReLU in place of softmax
the largest score dominates the output
the same with vectors as columns
which entry of the score matrix is whose
the three weight matrices are learned
additive scores beside dot products
the eight steps, one after another
the shapes of the eight steps
values may be wider or narrower than keys
ways to start a weight matrix
one by one, or all at once by matrices
a bias, and one of zeros
keys, queries, values and scores of the eight steps
the weights of the eight steps, exact and as a text rounds them
weighted values of the first output
the first output, exact and by rounded weights
the other outputs, and with scaled scores
colours that carry meaning, with words beside them
queries, keys and values in symbols and in numbers
weights never mix the rows
every score with its name
why scores are divided by √d
softmax goes row by row
without a mask every token reaches every other
a mask is −∞ added to a score
padding: its column becomes 0, its row stays
why there is padding: texts of unequal length in one batch
hiding a row's every key
look-ahead: what comes later is hidden
one pass in training, in place of one a word
four masks side by side
why every layer needs the mask
attention keeps the order of the tokens
three questions from the beginning, answered
one head has one row of weights for all columns of its output
heads split, attend and are joined by a last matrix
many heads are learned by as many numbers as one wide head
what a head is for: what happens without it
the residual keeps tokens apart
the norm brings the numbers of every block to one scale
feed forward works on each token, and needs an activation
positions, added once, make order count; the block is all of these
""".strip().splitlines()


def marked() -> dict[int, list[tuple[str, str]]]:
    """The tests in tests/lessons that are marked with a point: file and function, by the point."""
    found: dict[int, list[tuple[str, str]]] = {}
    for path in sorted(TESTS.glob("lessons/**/test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for mark in getattr(node, "decorator_list", []):
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.point":
                    for number in map(ast.literal_eval, mark.args):
                        place = path.relative_to(DOCS.parent).as_posix(), node.name
                        found.setdefault(number, []).append(place)
    return found


def points_page(lessons: Sequence[Lesson]) -> str:
    rows = []
    for number, what in enumerate(WHAT, start=1):
        places = "; ".join(filter(None, (_steps(one, number) for one in lessons)))
        rows.append([str(number), what, places])
    tests = [
        f"- **{number}** " + ", ".join(f"[`{name}`](../{path})" for path, name in found)
        for number, found in sorted(marked().items())
    ]
    shown = table(["point", "what", "lesson and step"], rows, [1, 2])
    return "\n".join([POINTS_INTRODUCTION, shown, "", "## The tests", "", *tests, ""])


def _steps(one: Lesson, point: int) -> str:
    """The lesson's steps that show the point; where they are many, the first by its title."""
    found = [(n, step.title) for n, step in enumerate(one.steps, start=1) if point in step.points]
    named = [f"{n}, *{title}*" for n, title in found]
    if len(named) > 2:
        named = [named[0], ", ".join(str(n) for n, _ in found[1:])]
    return f"{one.name} {', and '.join(named)}" if named else ""


# --- the tables of the teacher's page ---


def teaching_page(text: str, lessons: Sequence[Lesson]) -> str:
    """The page with its generated parts made anew."""
    return _renewed(_renewed(text, "outline", _outline(lessons)), "quizzes", _quizzes(lessons))


def _renewed(text: str, name: str, made: str) -> str:
    """A page with one part made anew; what stands around it is written by hand."""
    start, end = f"<!-- {name}, generated -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = text.partition(start)
    _, found, after = rest.partition(end)
    assert found, f"a page has lost its marker {end.strip()}"
    return f"{before}{start}\n{made}\n{end}{after}"


def _outline(lessons: Sequence[Lesson]) -> str:
    columns = ["lesson", "what it is for", "steps", "questions", "minutes"]
    rows = [
        [
            f"{one.number}. `{one.name}`",
            one.goal,
            *map(str, (len(one.steps), len(one.quizzes), one.minutes)),
        ]
        for one in lessons
    ]
    totals = [sum(int(row[column]) for row in rows) for column in (2, 3, 4)]
    return table(columns, [*rows, ["together", "", *map(str, totals)]], [0, 1]) + "\n"


def _quizzes(lessons: Sequence[Lesson]) -> str:
    rows = [[q.name, q.question, _kind(q), q.solution] for one in lessons for q in one.quizzes]
    return table(["quiz", "question", "takes", "answer"], rows, [0, 1, 2, 3]) + "\n"


def _kind(quiz: Quiz) -> str:
    if quiz.choices:
        return "a choice"
    if isinstance(quiz.answer, frozenset):
        return "words"
    return "a number" if isinstance(quiz.answer, float | int) else "numbers"


# --- the table of limits ---


def trust_page(text: str) -> str:
    """docs/trust.md with the limits as qkvsearch/_utils/limits.py has them."""
    rows = [
        [limit.what, f"{limit.default:,}", limit.beyond, _raised_by(limit)]
        for limit in limits.ALL.values()
    ]
    columns = ["limit on", "maximum", "beyond it", "raised by"]
    return _renewed(text, "limits", table(columns, rows, [0, 2, 3]) + "\n")


def _raised_by(limit: limits.Limit) -> str:
    return f"`{limit.raised_by}`" if limit.raised_by else ""


# --- the rules on columns ---

MAX_CELLS = 3


def formats_page(text: str) -> str:
    """docs/formats.md with the formats and the rules on columns as qkvsearch/tables has them."""
    text = _renewed(text, "file formats", _file_formats(*reversed(TEXT_FORMATS), *BINARY_FORMATS))
    text = _renewed(text, "formats of documents", _file_formats(*DOCUMENT_FORMATS))
    text = _renewed(text, "roles in a catalog", _roles(CATALOG_RULES))
    text = _renewed(text, "roles in a log", _roles(LOG_RULES))
    return _renewed(text, "rules of row meaning", _meanings())


def _file_formats(*formats: TextFormat | BinaryFormat | DocumentFormat) -> str:
    rows = [[each.name, each.recognized_by, each.notes] for each in formats]
    return table(["format", "recognized by", "notes"], rows, [0, 1, 2]) + "\n"


def _roles(rules: Sequence[RoleRule]) -> str:
    rows = [
        [str(number), rule.role, rule.condition, rule.example]
        for number, rule in enumerate(rules, 1)
    ]
    return table(["", "role", "condition", "example"], rows, [1, 2, 3]) + "\n"


def _meanings() -> str:
    rows = []
    for number, rule in enumerate(RULES, 1):
        name, cells = rule.example
        shown = ", ".join(dict.fromkeys(cell or "(empty)" for cell in cells[:MAX_CELLS]))
        example = f"`{name}`: {shown}{', …' if len(cells) > MAX_CELLS else ''}"
        outcome = "goes on"
        if rule.meaning is not None:
            outcome = f"stops: it may say {rule.meaning.what}"
        rows.append([str(number), rule.name, rule.condition, example, outcome])
    columns = ["", "rule", "condition", "example", "the build"]
    return table(columns, rows, [1, 2, 3, 4]) + "\n"


if __name__ == "__main__":
    import openapi_page  # beside this file, which is the first folder that a script imports from

    API.write_text(openapi_page.page(openapi_page.document()), encoding="utf-8")
    course = [lesson(name) for name in LESSONS]
    PAGE.write_text(page(), encoding="utf-8")
    POINTS.write_text(points_page(course), encoding="utf-8")
    written = TEACHING.read_text(encoding="utf-8")
    TEACHING.write_text(teaching_page(written, course), encoding="utf-8")
    TRUST.write_text(trust_page(TRUST.read_text(encoding="utf-8")), encoding="utf-8")
    FORMATS.write_text(formats_page(FORMATS.read_text(encoding="utf-8")), encoding="utf-8")
