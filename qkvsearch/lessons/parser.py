"""The Markdown documents of the lessons, parsed into blocks: `NN-name/en.md` and its translations.

A document begins with fields between two lines of ---: among them `explain`, what the reader says
back at its end, and `paged: yes` for one step at a time. A heading `## Title` begins a step. A
comment under it, `<!-- points: 9, 51; when: expression -->`, names its points, and when it is
there. Everything else is a paragraph or a fence (```kind name). A fence of Python is code. The
others have fields: `key: text`, which is translated, and `key = expression`, which is Python.
Indented lines continue a field. A `paragraph` or `formula` with a name is said of the stage of that
name, of the flow before it; `key:2` behind the name of a formula is the place of its key.

A translation such as `zh.md` has the headings and the fences of `en.md` in the same order, with the
translated text alone. Code and expressions are in `en.md` only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from string import Formatter

from qkvsearch._utils.spoken import ORIGINAL
from qkvsearch.errors import DataError

FOLDER = Path(__file__).parent
FENCE = re.compile(r"(`{3,})(\w+) ?(.*)")
FIELD = re.compile(r"([a-z_]+)( =|:)(?: (.*))?$")
COMMENT = re.compile(r"<!-- points: ([\d, ]*)(?:; when: (.*))? -->")
# Between two characters that are written without spaces, a line break is no space either.
CHINESE_BREAK = re.compile(r"(?<=[\u2e80-\u9fff\uff00-\uffef])\n(?=[\u2e80-\u9fff\uff00-\uffef])")


@dataclass(frozen=True)
class Block:
    """A heading, a paragraph or a fence.

    kind: "heading", "prose", or the fence's first word. name: the second word; flags: the others.
    text: of a heading or paragraph, or the code. texts and expressions: the fields of a fence.
    items: its lines that begin with "- " or "~ ", with that mark. line: the number of its first
    line. points: of a heading.
    """

    kind: str
    line: int
    name: str = ""
    flags: tuple[str, ...] = ()
    text: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    expressions: dict[str, str] = field(default_factory=dict)
    items: tuple[str, ...] = ()
    points: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What it has in common with its translation."""
        return self.kind, self.name

    def slots(self) -> list[str]:
        """Return the expressions in its text, sorted."""
        texts = [self.text if self.kind != "python" else "", *self.texts.values(), *self.items]
        expressions = [slot for text in texts for _, slot, _, _ in Formatter().parse(text)]
        return sorted(slot for slot in expressions if slot is not None)


@dataclass(frozen=True)
class LessonDocument:
    """A parsed document: the fields at its beginning, and its blocks."""

    path: Path
    fields: dict[str, str]
    blocks: tuple[Block, ...]

    def translated(self, other: "LessonDocument") -> "LessonDocument":
        """Return this document with the text of its translation.

        Raises `DataError` where the headings and fences of the two are not the same.
        """
        own = [block for block in self.blocks if block.kind not in ("prose", "python")]
        code = self._code_after()
        blocks = list(code[0])
        n = 0  # of the own blocks that the translation has so far
        for block in other.blocks:
            if block.kind == "prose":
                blocks.append(block)
                continue
            if n == len(own) or own[n].key != block.key:
                expected = " ".join(own[n].key) if n < len(own) else "the end"
                raise DataError(
                    f"{other.path}, line {block.line}: {' '.join(block.key).strip()} is where "
                    f"{self.path.name} has {expected.strip()}"
                )
            blocks.append(_merged(own[n], block))
            n += 1
            blocks += code[n]
        if n < len(own):
            raise DataError(f"{other.path}: {' '.join(own[n].key).strip()} is missing at the end")
        return LessonDocument(other.path, {**self.fields, **other.fields}, tuple(blocks))

    def _code_after(self) -> list[list[Block]]:
        """Return the fences of Python before all other fences and headings, and after each."""
        code: list[list[Block]] = [[]]
        for block in self.blocks:
            if block.kind == "python":
                code[-1].append(block)
            elif block.kind != "prose":
                code.append([])
        return code


def folders() -> dict[str, Path]:
    """Return the folders of the lessons by name, in order."""
    paths = sorted(path.parent for path in FOLDER.glob(f"[0-9][0-9]-*/{ORIGINAL}.md"))
    return {path.name[3:]: path for path in paths}


@cache
def read(folder: Path, language: str = ORIGINAL) -> LessonDocument:
    """Read the lesson of a folder in a language. Raises `DataError` for a damaged document."""
    source = parse(folder / f"{ORIGINAL}.md")
    if language == ORIGINAL:
        return source
    return source.translated(parse(folder / f"{language}.md"))


def parse(path: Path) -> LessonDocument:
    """Parse one document. Raises `DataError`, with the line, for what it cannot read."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if lines[:1] != ["---"] or "---" not in lines[1:]:
        raise DataError(f"{path}: begin with fields such as `title:` between two lines of ---")
    end = lines.index("---", 1)
    fields, _, _ = _fields(path, 2, lines[1:end])
    return LessonDocument(path, fields, tuple(_blocks(path, lines, end + 1)))


def _blocks(path: Path, lines: list[str], at: int) -> Iterator[Block]:
    """Yield the blocks from a line on. at: its index, from 0; blocks count lines from 1."""
    while at < len(lines):
        line = lines[at]
        start = at
        if not line.strip():
            at += 1
        elif fence := FENCE.match(line):
            try:
                end = lines.index(fence[1], at + 1)
            except ValueError:
                raise DataError(f"{path}, line {at + 1}: the fence has no end") from None
            yield _fence(path, at + 1, fence[2], fence[3].split(), lines[at + 1 : end])
            at = end + 1
        elif line.startswith("## "):
            comment = COMMENT.match(lines[at + 1]) if at + 1 < len(lines) else None
            yield _heading(at + 1, line.removeprefix("## "), comment)
            at += 1 if comment is None else 2
        else:
            while at < len(lines) and lines[at].strip() and not FENCE.match(lines[at]):
                at += 1
            text = CHINESE_BREAK.sub("", "\n".join(map(str.strip, lines[start:at])))
            yield Block("prose", start + 1, text=text.replace("\n", " "))


def _heading(line: int, text: str, comment: re.Match[str] | None) -> Block:
    """Return the heading of a step. comment: names its points, and when it is there."""
    points: tuple[int, ...] = ()
    expressions = {}
    if comment is not None and comment[1]:
        points = tuple(int(point) for point in comment[1].split(","))
    if comment is not None and comment[2]:
        expressions["when"] = comment[2]
    return Block("heading", line, text=text, expressions=expressions, points=points)


def _fence(path: Path, line: int, kind: str, words: list[str], body: list[str]) -> Block:
    """Return a fence. words: its name and flags. body: the lines in it."""
    name = words[0] if words else ""
    flags = tuple(words[1:])
    if kind in ("python", "formula"):
        return Block(kind, line, name, flags, "\n".join(body).strip("\n"))
    texts, expressions, items = _fields(path, line + 1, body)
    return Block(kind, line, name, flags, "", texts, expressions, tuple(items))


def _fields(
    path: Path, first: int, body: list[str]
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return texts and expressions by their names, and the lines of a list."""
    texts: dict[str, str] = {}
    expressions: dict[str, str] = {}
    items: list[str] = []
    entries: list[tuple[int, str]] = []
    for n, line in enumerate(body, first):
        if not line.strip():
            continue
        if line[0].isspace() and entries:  # continues the entry before
            begun, entry = entries[-1]
            entries[-1] = (begun, f"{entry}\n{line.strip()}")
        else:
            entries.append((n, line))
    for n, entry in entries:
        if entry.startswith(("- ", "~ ")):
            items.append(_joined(entry))
        elif match := FIELD.match(entry.partition("\n")[0]):
            value = entry[match.start(3) :] if match[3] else entry[match.end() :].lstrip("\n")
            if match[2] == ":":
                texts[match[1]] = _joined(value)
            else:
                expressions[match[1]] = value
        else:
            raise DataError(
                f"{path}, line {n}: write `name: text`, `name = expression` or `- choice`, not "
                f"{entry!r}"
            )
    return texts, expressions, items


def _joined(text: str) -> str:
    return CHINESE_BREAK.sub("", text).replace("\n", " ").strip()


def _merged(block: Block, other: Block) -> Block:
    """Return a heading or fence with its translated text; a formula may be empty there."""
    if block.kind in ("heading", "formula"):
        return replace(block, text=other.text or block.text)
    items = other.items or block.items
    return replace(block, line=other.line, texts={**block.texts, **other.texts}, items=items)
