"""Subtitles to text with the time of each part, as programs and people write them."""

from __future__ import annotations

import html
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from qkvsearch.errors import DataError, need
from qkvsearch.tables.documents.document import (
    MARKUP,
    Document,
    DocumentFormat,
    Time,
    clean,
    in_plain_signs,
    settled,
)
from qkvsearch.tables.documents.rolling_captions import CaptionLine, Cue, said_once

# Two times and an arrow. Hours and fractions may be missing, and what separates them may differ.
ONE_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,:](\d{1,3})\d*)?"
TIMES = re.compile(rf"\s*{ONE_TIME}\s*(?:-{{1,2}}>|→)\s*{ONE_TIME}(?!\S)")
# A line of two whole times with a dash in between, for an arrow.
WHOLE_TIME = r"(\d{1,4}):(\d{1,2}):(\d{1,2})(?:[.,:](\d{1,3})\d*)?"
DASHED_TIMES = re.compile(rf"\s*{WHOLE_TIME}\s*[-–—]{{1,3}}\s*{WHOLE_TIME}\s*")
# The signs of times as keyboards for Chinese and Japanese have them.
WIDE_SIGNS = str.maketrans("：，．－＞０１２３４５６７８９", ":,.->0123456789")
# What shows that a line was meant for times: anywhere, and where a cue begins.
ARROW = re.compile(r"\d\s*-->|-->\s*\d")
BEGINS_AS_TIME = re.compile(r"\s*\d{1,4}:\d{1,2}[:.,]\d")
# Blocks of WebVTT that nobody says.
UNSPOKEN = re.compile(r"(NOTE|STYLE|REGION)(\s|$)")
NUMBER = re.compile(r"\s*\d+\s*")
# pysubs2 takes a line with two times for the beginning of a cue; these signs are a comment of
# SubStation in between, which is removed with the others.
IN_TIME = re.compile(r"(?<=\d):(?=\d\d[.:])")
# What pysubs2 makes of line breaks, and what stands for a blank line, which it would remove.
BREAK, BLANK_LINE = "\\N", "\\h"
# What is counted in the notes on a file.
UNREADABLE_TIMES = "times that cannot be read"
# What stands before and behind a voice until the text is put together.
MARK = "\x01"

# A line without any of these signs is what is said.
MARKED_UP = re.compile(rf"[<{{&\\[【［♩-♯{MARK}]")
SUBSTATION = re.compile(r"\{\\[^{}]*\}")
WORD_TIME = re.compile(r"<\d+:[\d:.,{}\\]*>")
VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^<>]+)>", re.IGNORECASE)
LINE_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
TAG = re.compile(
    r"</?(?:c|i|b|u|s|v|em|strong|lang|ruby|rt|font|span|p|div|small|big|sub|sup)"
    r"(?:[.\s][^<>]*)?/?>",
    re.IGNORECASE,
)
NOTES_OF_MUSIC = re.compile("[♩-♯]+")
IN_BRACKETS = re.compile(r"[\[【［]\s*([^\[\]【】［］]*?)\s*[\]】］]")
# Where a speaker begins: a dash, or the signs of captions for the deaf. A line of its own.
SPEAKER = re.compile(r"(-\s?|>>)\s*\S")


class RawCue(NamedTuple):
    """A cue as it is in the file. start, end: in milliseconds."""

    start: int
    end: int
    lines: list[str]


@cache
def _sounds() -> frozenset[str]:
    """Return what captions write in brackets for what is no speech."""
    return frozenset(json.loads(Path(__file__).with_name("sounds.json").read_text("utf-8")))


def read_subtitles(text: str) -> Document:
    """Read .srt or WebVTT: each word once, at the time when it is said."""
    notes: Counter[str] = Counter()
    raw = _raw_cues(text, notes)
    if not raw:
        raise DataError("there are no subtitles in it")
    raw.sort(key=lambda cue: cue.start)
    cues = [_cue(cue, notes) for cue in _as_read_by_library(raw)]
    return _joined(said_once(cues), notes)


# --- the cues of a file ---


def _raw_cues(text: str, notes: Counter[str]) -> list[RawCue]:
    """Return the cues without numbers, names, comments and styles of the file."""
    lines = in_plain_signs(text).split("\n")
    is_webvtt = text.lstrip().startswith("WEBVTT")
    times = {n: match for n, line in enumerate(lines) if (match := _times(line))}
    starts = list(times)
    has_numbers = bool(starts) and starts[0] > 0 and NUMBER.fullmatch(lines[starts[0] - 1])
    cues = []
    for start, end in pairwise([*starts, len(lines)]):
        body = lines[start + 1 : end]
        if end < len(lines):
            body = _without_name(body, bool(has_numbers), is_webvtt)
        if is_webvtt:
            body = _without_unspoken(body)
        body, n_unreadable = _without_unreadable_times(body, bool(has_numbers))
        notes[UNREADABLE_TIMES] += n_unreadable
        groups = times[start].groups()
        from_, to = _milliseconds(groups[:4]), _milliseconds(groups[4:])
        cues.append(RawCue(from_, max(from_, to), body))
    return cues


def _times(line: str) -> re.Match[str] | None:
    """Return the two times of a line, or None."""
    if not line.lstrip()[:1].isdigit():
        return None
    line = line.translate(WIDE_SIGNS)
    return TIMES.match(line) or DASHED_TIMES.fullmatch(line)


def _without_unreadable_times(body: list[str], has_numbers: bool) -> tuple[list[str], int]:
    """Return lines without those that are times which cannot be read, and without the numbers in
    front of these; and how many there were.
    """
    spoken: list[str] = []
    n_unreadable = 0
    for line in body:
        before = spoken[-1] if spoken else ""
        has_number = has_numbers and NUMBER.fullmatch(before) is not None
        begins_cue = has_number or (bool(spoken) and not before.strip())
        if not _was_meant_for_times(line, begins_cue=begins_cue):
            spoken.append(line)
            continue
        n_unreadable += 1
        if has_number:
            spoken.pop()
    return spoken, n_unreadable


def _was_meant_for_times(line: str, *, begins_cue: bool) -> bool:
    """Return whether a line is rather times that cannot be read than speech. begins_cue: whether
    it follows the number of a cue or a blank line, as times do.
    """
    line = line.translate(WIDE_SIGNS)
    if ARROW.search(line):
        return True
    return begins_cue and ("-->" in line or BEGINS_AS_TIME.match(line) is not None)


def _milliseconds(groups: Sequence[str | None]) -> int:
    """Return a time in milliseconds: 5 in `00:01.5` are 500."""
    hours, minutes, seconds, fraction = groups
    whole = 3600 * int(hours or 0) + 60 * int(minutes or 0) + int(seconds or 0)
    return 1000 * whole + int((fraction or "0").ljust(3, "0"))


def _without_name(body: list[str], has_numbers: bool, is_webvtt: bool) -> list[str]:
    """Return the lines up to the times of the next cue without the number or the name of that."""
    last = body[-1] if body else ""
    if has_numbers and NUMBER.fullmatch(last):
        return body[:-1]
    is_alone = len(body) > 1 and not body[-2].strip()
    has_text_before = any(line.strip() for line in body[:-1])
    if is_webvtt and last.strip() and is_alone and has_text_before:
        return body[:-1]
    return body


def _without_unspoken(body: list[str]) -> list[str]:
    """Return lines without the blocks of comments and styles, which follow a blank line."""
    spoken: list[str] = []
    is_spoken = True
    for number, line in enumerate(body):
        follows_blank = number > 0 and not body[number - 1].strip()
        if follows_blank:
            is_spoken = not UNSPOKEN.match(line)
        if is_spoken:
            spoken.append(line)
    return spoken


def _as_read_by_library(cues: Sequence[RawCue]) -> list[Any]:
    """Return the events that pysubs2 reads from the cues, written as it wants them."""
    pysubs2 = need("pysubs2", "subtitles", "reading subtitles", error=DataError)
    written = ["WEBVTT\n"]
    for cue in cues:
        written.append(f"{_clock(cue.start)} --> {_clock(cue.end)}")
        lines = [IN_TIME.sub(r":{\\}", line) if ":" in line else line for line in cue.lines]
        lines = [line if line.strip() else BLANK_LINE for line in lines]
        # The last line is blank: a number at the end would be taken for that of the next cue.
        written += [*lines, BLANK_LINE, ""]
    with warnings.catch_warnings(action="ignore"):
        content = "\n".join(written)
        subtitles = pysubs2.SSAFile.from_string(content, format_="vtt", keep_html_tags=True)
    return list(subtitles.events)


def _clock(milliseconds: int) -> str:
    seconds, fraction = divmod(milliseconds, 1000)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{fraction:03d}"


# --- the words of a cue ---


def _cue(event: Any, notes: Counter[str]) -> Cue:
    """Return a cue with lines of plain text."""
    lines = [_line(part, notes) for part in _parts(event.text)]
    is_cleared = bool(lines) and not lines[0].text and event.text.startswith(BLANK_LINE)
    spoken = tuple(line for line in lines if line.text)
    return Cue(event.start / 1000, event.end / 1000, spoken, is_cleared)


def _parts(text: str) -> Iterator[str]:
    """Yield the lines of an event, each voice in a line of its own, behind a mark."""
    text = VOICE.sub(rf"\n{MARK}\1{MARK}", LINE_TAG.sub("\n", text.replace(BREAK, "\n")))
    begins_with_voice = text.startswith(f"\n{MARK}")
    yield from text[begins_with_voice:].split("\n")


def _line(text: str, notes: Counter[str]) -> CaptionLine:
    """Return a line without tags, entities, sounds and signs of music."""
    if text == BLANK_LINE:
        return CaptionLine("")
    if not MARKED_UP.search(text):
        return CaptionLine(text.strip())
    is_timed = WORD_TIME.search(text) is not None
    _, voice, text = text.split(MARK, 2) if text.startswith(MARK) else ("", "", text)
    text = _plain(WORD_TIME.sub("", text))
    text = " ".join(NOTES_OF_MUSIC.sub(" ", _without_sounds(text, notes)).split())
    if voice and text:
        text = f"{MARK}{clean(_plain(voice))}{MARK}{text}"
    return CaptionLine(text, is_timed)


def _plain(text: str) -> str:
    """Return text without tags, and entities as the signs they stand for."""
    text = SUBSTATION.sub("", TAG.sub("", text)).replace(BLANK_LINE, " ")
    return clean(html.unescape(text)) if "&" in text else text


def _without_sounds(text: str, notes: Counter[str]) -> str:
    """Return text without `[Music]` and the like, and without a line in brackets alone."""
    if not IN_BRACKETS.search(text):
        return text
    is_alone = not IN_BRACKETS.sub("", text).strip(" -♩♪♫♬.")

    def bare(match: re.Match[str]) -> str:
        is_sound = is_alone or match[1].casefold() in _sounds()
        notes["sounds such as [Music] left out"] += is_sound
        return " " if is_sound else match[0]

    return IN_BRACKETS.sub(bare, text)


# --- the text ---


def _joined(cues: Sequence[Cue], notes: Counter[str]) -> Document:
    """Return the text of all cues, with a new line for each new speaker, and their times."""
    pieces: list[str] = []
    times: list[Time] = []
    length, speaker = 0, ""
    starts = [cue.start for cue in cues] + [float("inf")]
    for cue, next_start in zip(cues, starts[1:], strict=True):
        offset = None
        for line in cue.texts:
            text, speaker, is_new = _spoken(line, speaker)
            between = "" if not pieces else "\n" if is_new else " "
            pieces += [between, text]
            offset = length + len(between) if offset is None else offset
            length += len(between) + len(text)
        if offset is not None:
            # A cue may be shown while the next one is said.
            end = min(cue.end, next_start) if next_start > cue.start else cue.end
            times.append(Time(offset, round(cue.start, 3), round(end, 3)))
    text = "".join(pieces)
    if settled(text) == text:
        return Document(text, times=tuple(times), notes=notes)
    return _resettled(text, times, notes)


def _spoken(line: str, speaker: str) -> tuple[str, str, bool]:
    """Return a line as it is read, who speaks, and whether that is somebody new."""
    if not line.startswith(MARK):  # a part of a voice may have been repeated, and is left out
        text = line.rpartition(MARK)[2].strip()
        return text, speaker, SPEAKER.match(text) is not None
    _, voice, text = line.split(MARK, 2)
    if voice == speaker or not voice:
        return text, speaker, False
    return f"{voice}: {text}", voice, True


def _resettled(text: str, times: Sequence[Time], notes: Counter[str]) -> Document:
    """Return a text with signs of HTML as it is stored, and where its parts begin in that."""
    offsets = [time.offset for time in times]
    parts = [text[a:b] for a, b in zip([0, *offsets], [*offsets, len(text)], strict=True)]
    stored = [MARKUP.sub(r"\g<0> ", part) for part in parts]
    moved, length = [], 0
    for time, part in zip(times, stored[:-1], strict=True):
        length += len(part)
        moved.append(time._replace(offset=length))
    return Document("".join(stored), times=tuple(moved), notes=notes)


SUBTITLES = DocumentFormat(
    name="subtitles",
    suffixes=(".srt", ".vtt"),
    notes="each word once, though automatic captions repeat lines; the times are known; voices as "
    "`Ann: `; without `[Music]` and the like; needs `pip install 'qkvsearch[subtitles]'`",
    read=read_subtitles,
    extra="subtitles",
    libraries=("pysubs2",),
)
