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
            rest = json.loads(_file(data, marks))  # all but subwords and merges
            model = rest["model"]
            names = [model["unk_token"], *(token["content"] for token in rest["added_tokens"])]
            splits_like_bpe = (
                model["type"] == "BPE"
                and not any(model[option] for option in UNUSUAL)
                and not rest["pre_tokenizer"]
            )
            marks_are_right = not model["vocab"] and not model["merges"]
            all_names_have_lines = all(
                data.find(b'%s%s": ' % (LINE, name.encode())) > 0 for name in names
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if splits_like_bpe and marks_are_right and all_names_have_lines:
            return cls(data, marks, names)
        return None

    def tokenizer_for(self, text: str) -> Any | None:
        """Return a `tokenizers.Tokenizer` that splits this text as the whole file would; None if
        the text contains a special token, or characters that JSON escapes.
        """
        normalizer = _tokenizer(_file(self.data, self.marks)).normalizer
        read = text if normalizer is None else normalizer.normalize_str(text)
        letters = read.encode()
        # A special token may stand in the text, or appear as it is normalized.
        is_special = re.search(b"|".join(self.names), text.encode() + b"\n" + letters)
        if is_special or not _is_plain(read):
            return None
        # First by a quick pattern: lines of the text's bytes alone, in any order.
        some_letters = b"[" + re.escape(bytes(sorted(set(letters)))) + b"]++"
        always = b"|".join([*self.names, BYTE])
        is_always_kept = re.compile(always).fullmatch
        subwords: dict[bytes, bytes] = {}
        for line in self._lines(b"(" + some_letters + b"|" + always + rb')": \d+', 0):
            subword = line[1]
            if subword in letters or is_always_kept(subword):
                subwords[subword] = line[0]
        merges = []
        for line in self._lines(b"(" + some_letters + b") (" + some_letters + b')"', 1):
            left, right = line[1], line[2]
            if left in subwords and right in subwords and left + right in subwords:
                merges.append(line[0])
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
