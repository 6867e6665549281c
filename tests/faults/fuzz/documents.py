"""Subtitles, texts, Markdown and HTML, messy and hostile ones, many with changed bytes."""

import json
import os
import resource
import shutil

from qkvsearch.tables.columns import Columns
from qkvsearch.tables.documents.document_files import FORMAT_OF
from qkvsearch.tables.sources import read_source
from tests.faults import fuzz
from tests.faults.runner import Fault

# Bytes that reading a document may take, beside what a process has anyway.
MEMORY = 3 << 30
TIMES = (
    "00:00:01.469 --> 00:00:03.000 align:start", "00:01 --> 00:02", "1:2:3,4 -> 99:99:99,999",
    "00:00:05,000 --> 00:00:01,000", "9999:59:59.999 --> 00:00", "00:00:xx --> 00:00:05",
    "00:01.5 → 00:02.5", "--> -->",
)  # fmt: skip
SUBTITLES = (
    "WEBVTT", "WEBVTT - x", "NOTE a\nb", "STYLE\n::cue{}", "REGION\nid:1", "1", "two", "", " ",
    "<v Ann>hi</v> <v.loud Bob>ho", "<00:00:01.469><c> word</c>", "a<00:00:02.000>b<00:00:03.000>",
    "{\\an8}top", "{\\" * 500, "<font color=red>x</font>", "[Music]", "[" * 900, "♪ la ♪",
    "&amp;lt;b&gt;",
    "- who?", ">> me", "10:00.00 to 12:00.00", "<v \x01>x", "\x01a\x01b", "\\N\\h", "<" * 900,
)  # fmt: skip
MARKDOWN = (
    "---", "---\ntitle: a\n---", "---\ntitle: a: b\n---", "---\na: &x [*x]\n---", "+++", "# Head",
    "---\n" + "\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9 if n else ['x'])}]"
    for n in range(12)) + "\n---", "---\nid: 7\ntext: x\ntext_times: [[0,1,2]]\n---", "***",
    "a\n===",
    "[a](http://x.org)", "![b](c)", "<https://x.org>", "> " * 300, "- " * 300,
    "|a|b|\n|-|-|\n|1|2|", "---\n" + "{" * 5000,
    "```\n<b>\n```", "<div>\n<script>x</script>", "`<b>`", "[" * 400, "*" * 900, "\\[03:52\\]",
)  # fmt: skip
HTML = (
    "<!doctype html>", "<title>a</title>", "<h1>b", "<p>c", "<nav>d</nav>", "<script>e", "<style>f",
    "<div>" * 3000, "</div>" * 50, "<table><tr><td>g", "<main>", "<!--", "<meta charset=gbk>",
    "<meta charset=hex>", "<svg><title>h", "<template><p>i", "&#0;&nbsp;&amp;lt;",
    "<a href='j'>k</a>",
    "<frameset>", "<body class='nav'>", "<x-y>l</x-y>", "<plaintext>", "<select><option>m",
)  # fmt: skip
LINES = {".srt": SUBTITLES, ".vtt": SUBTITLES, ".md": MARKDOWN, ".html": HTML, ".txt": MARKDOWN}
ENCODINGS = "utf-8 utf-8 utf-8 utf-8-sig utf-16 cp1252 gb18030 utf-32".split()


def document(chance, suffix):
    """The bytes of a document of a format, or of one that its name does not have."""
    if chance.random() < 0.1:
        suffix = chance.choice(list(LINES))
    parts = []
    for _ in range(chance.randint(0, 25)):
        if LINES[suffix] is SUBTITLES and chance.random() < 0.4:
            parts.append(chance.choice(TIMES))
        parts.append(
            fuzz.text(chance, 4) if chance.random() < 0.3 else chance.choice(LINES[suffix])
        )
    text = chance.choice(["\n", "\n\n", "\r\n", "\r"]).join(parts)
    content = text.encode(chance.choice(ENCODINGS), "replace")
    return fuzz.changed_bytes(content, chance) if chance.random() < 0.35 else content


def folder(chance):
    """Names of files with their bytes, and the encoding that a build is told."""
    suffixes = [chance.choice(list(FORMAT_OF)) for _ in range(chance.randint(1, 4))]
    names = [chance.choice(["a", "b", "ü", "a.en", "x y"]) + suffix for suffix in suffixes]
    files = {
        name: document(chance, suffix if suffix in LINES else ".html")
        for name, suffix in zip(names, suffixes, strict=True)
    }
    encoding = chance.choice([None, None, None, "cp1252", "gbk", "utf-16", "no-encoding"])
    return files, encoding


def fuzz_documents(trial):
    """A folder is read, and the times of a text lie within it; or an error says what and where."""
    os.environ["QKVSEARCH_MAX_UNPACKED"] = "20_000_000"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def use(made):
        files, encoding = made
        path = trial.folder / "documents"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for name, content in files.items():
            (path / name).write_bytes(content)
        catalog = read_source(items=path, columns=Columns(encoding=encoding)).catalog
        frame = catalog.frame
        if len(frame) > len(files):
            raise Fault(f"{len(frame)} items of {len(files)} files")
        if "text_times" not in frame:
            return
        for text, written in zip(frame["text"], frame["text_times"], strict=True):
            if isinstance(written, str):
                check_times(text, json.loads(written))

    fuzz.inputs(trial, folder, use, most=700)


def check_times(text, times):
    """Parts of a text follow each other, and none begins behind the end."""
    offsets = [offset for offset, _, _ in times]
    if offsets != sorted(set(offsets)) or offsets[-1] >= len(text):
        raise Fault(f"parts begin at {offsets} of {len(text)} characters")
    if any(end < start for _, start, end in times):
        raise Fault(f"a part ends before it begins: {times}")
