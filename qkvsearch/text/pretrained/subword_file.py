"""A tokenizer's file, read only in part for short texts: reading all takes a tenth of a search.

Byte-pair encoding merges neighbours, so each subword is a substring of the text, and without all
other subwords and merges the text is split in the same way: Sennrich, Haddow
and Birch 2016, section 3.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from qkvsearch._utils.caching import cached_property
from qkvsearch.errors import QkvError, need
from qkvsearch.text.pretrained.model_files import ENCODERS, TokenizerFile, check_json_size, named

# After this many texts the whole file is read: a command encodes one text to compare the encoder
# with the build's, and a query with its corrections.
FEW = 4
# The maximal length of such a text.
SHORT = 200
# `tokenizers` writes each entry on its own line. Strings in JSON contain no line breaks, so these
# patterns match nothing inside a string.
LINE = b'\n      "'
SUBWORDS, MERGES, END = b'\n    "vocab": {', b'\n    },\n    "merges": [', b"\n    ]\n"
ESCAPED = re.compile(rb"\\(?=u)")  # a character written in another way
BYTE = rb"<0x[0-9A-F]{2}>"
# With one of these options, a subword is not just a substring of the text.
UNUSUAL = ("dropout", "continuing_subword_prefix", "end_of_word_suffix")


class SubwordFile(TokenizerFile):
    """A `TokenizerFile` that reads only the lines for first short texts, if the layout is usual."""

    def __init__(self, path: Path) -> None:
        need("tokenizers", *ENCODERS)
        check_json_size(path)
        self.path = path
        self._n_texts = 0
        with named(f"{path}: cannot be read"):
            self._lines = SubwordLines.of(path)
        if self._lines is None:
            self._tokenizer  # noqa: B018  (raises now if it is no tokenizer)

    @cached_property
    def _tokenizer(self) -> Any:
        self._lines = None
        return self._whole()

    def encode(self, text: str, **options: Any) -> Any:
        self._n_texts += 1
        lines = self._lines
        if lines is not None and self._n_texts <= FEW and 0 < len(text) <= SHORT:
            # If this fails, the whole file reports the error.
            with suppress(QkvError), named(""):
                tokenizer = lines.tokenizer_for(text)
                if tokenizer is not None:
                    return tokenizer.encode(text, **options)
        return super().encode(text, **options)


class SubwordLines:
    """The lines of a file of byte-pair encoding that does not split texts at spaces.

    data: the file. marks: where its subwords and its merges begin, and where the merges end.
    names: the special tokens, and the one for unknown text.
    """

    def __init__(self, data: mmap, marks: list[int], names: list[str]) -> None:
        self.data, self.marks = data, marks
        self.names = [re.escape(name.encode()) for name in names]

    @classmethod
    def of(cls, path: Path) -> SubwordLines | None:
        """Open a file; None if more than the lines with a text's characters may matter."""
        with path.open("rb") as file, suppress(ValueError):  # an empty file cannot be mapped
            return cls._of_lines(mmap(file.fileno(), 0, access=ACCESS_READ))
        return None

    @classmethod
    def _of_lines(cls, data: mmap) -> SubwordLines | None:
        marks = [data.find(SUBWORDS + LINE)]
        marks.append(data.find(MERGES + LINE, marks[0]))
        marks.append(data.find(END, marks[1]))
        if min(marks) < 0 or ESCAPED.search(data):
            return None
        try:
            whole = json.loads(_file(data, marks))
            model = whole["model"]
            is_usual = model["type"] == "BPE" and not any(model[name] for name in UNUSUAL)
            is_usual &= not whole["pre_tokenizer"] and not model["vocab"] and not model["merges"]
            names = [model["unk_token"], *(token["content"] for token in whole["added_tokens"])]
            is_usual &= all(data.find(b'%s%s": ' % (LINE, name.encode())) > 0 for name in names)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return cls(data, marks, names) if is_usual else None

    def tokenizer_for(self, text: str) -> Any | None:
        """Return a `tokenizers.Tokenizer` that splits this text as the whole file would; None if
        the text contains a special token, or characters that JSON escapes.
        """
        normalizer = _tokenizer(_file(self.data, self.marks)).normalizer
        read = text if normalizer is None else normalizer.normalize_str(text)
        letters = read.encode()
        is_special = re.search(b"|".join(self.names), text.encode() + b"\n" + letters)
        if is_special or not _is_plain(read):
            return None
        letters_class = b"[" + re.escape(bytes(sorted(set(letters)))) + b"]++"
        subword = b"|".join([letters_class, *self.names, BYTE])
        lines = self._lines(b"(" + subword + rb')": \d+', 0)
        named = re.compile(b"|".join([*self.names, BYTE]))
        subwords = {
            line[1]: line[0] for line in lines if line[1] in letters or named.fullmatch(line[1])
        }
        pairs = self._lines(b"(" + letters_class + b") (" + letters_class + b')"', 1)
        merges = [
            pair[0] for pair in pairs if {pair[1], pair[2], pair[1] + pair[2]} <= subwords.keys()
        ]
        return _tokenizer(_file(self.data, self.marks, subwords.values(), merges))

    def _lines(self, pattern: bytes, section: int) -> Iterator[re.Match[bytes]]:
        return re.compile(LINE + pattern).finditer(self.data, *self.marks[section : section + 2])


def _file(
    data: mmap, marks: list[int], subwords: Iterable[bytes] = (), merges: Iterable[bytes] = ()
) -> bytes:
    """Return the file with these subwords and merges only."""
    before, behind = data[: marks[0]], data[marks[2] :]
    return b"".join([before, SUBWORDS, b",".join(subwords), MERGES, b",".join(merges), behind])


def _tokenizer(data: bytes) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(data.decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _is_plain(text: str) -> bool:
    """Return whether JSON writes the text unchanged. Spaces are excluded, since they separate the
    two halves of a merge, and slashes, which can be written in two ways.
    """
    return json.dumps(text, ensure_ascii=False) == f'"{text}"' and not set(text) & set(" /")
