"""Captions that roll: each cue repeats the end of the one before, as automatic captions do.

A recognizer's cue shows the line that was said before, then the line that is said now:

    00:01 --> 00:03    welcome to the show
    00:03 --> 00:05    welcome to the show
                       today we talk about
    00:05 --> 00:07    today we talk about
                       the harbour

Other programs repeat the last words instead of the last line, or show a line again for a moment
when it is complete. Whether captions roll is decided for a file as a whole, so that what a speaker
says twice stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from qkvsearch._utils.caching import cached_property

# A cue that is shown for no longer, in seconds, only completes the one before.
MOMENT = 0.05
# Captions roll if this share of the cues with something new begins with the end of the cue before:
# with a line of it, or with two words. One word often is the same by chance: "it is / is it not".
MIN_LINES, MIN_WORDS = 0.3, 0.5
LEAST_WORDS = 2
# Lines are what is repeated, if they explain this share of the repeated words.
MIN_EXPLAINED = 0.5
# After a pause of more seconds nothing old is shown: a cue that only repeats is said again.
PAUSE = 1.0


@dataclass(frozen=True)
class CaptionLine:
    """A line of a cue. is_timed: its words have times of their own, so that it is said now."""

    text: str
    is_timed: bool = False


@dataclass(frozen=True)
class Cue:
    """What is shown from `start` to `end`, in seconds.

    lines: those with text. is_cleared: a blank line is above them, so nothing old is shown there.
    """

    start: float
    end: float
    lines: tuple[CaptionLine, ...]
    is_cleared: bool = False

    @cached_property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]

    @cached_property
    def words(self) -> list[str]:
        return " ".join(self.texts).split()


def said_once(cues: Sequence[Cue]) -> list[Cue]:
    """Return the cues with what each of them adds, without those that add nothing.

    >>> be, or_not = CaptionLine("to be"), CaptionLine("or not")
    >>> cues = [Cue(0, 1, (be,)), Cue(1, 2, (be, or_not)), Cue(2, 3, (or_not, be))]
    >>> [cue.texts for cue in said_once(cues)]
    [['to be'], ['or not'], ['to be']]
    """
    cues = _without_moments([cue for cue in cues if cue.lines])
    has_times = any(line.is_timed for cue in cues for line in cue.lines)
    repeated_lines = partial(_repeated_lines, has_times=has_times)

    by_lines = _rolling_share(cues, repeated_lines, lambda cue: len(cue.lines), 1)
    by_words = _rolling_share(cues, _repeated_words, lambda cue: len(cue.words), LEAST_WORDS)
    if by_lines >= MIN_LINES and by_lines >= MIN_EXPLAINED * by_words:
        return _added(cues, repeated_lines, _without_lines)
    if by_words >= MIN_WORDS:
        return _added(cues, _repeated_words, _without_words)
    return cues


def _without_moments(cues: Sequence[Cue]) -> list[Cue]:
    """Return cues without those that repeat the one before for a moment."""
    kept = list(cues[:1])
    for cue in cues[1:]:
        n = len(cue.lines)
        if cue.end - cue.start > MOMENT or kept[-1].texts[-n:] != cue.texts:
            kept.append(cue)
    return kept


def _rolling_share(
    cues: Sequence[Cue],
    repeated: Callable[[Cue, Cue], int],
    size: Callable[[Cue], int],
    least: int,
) -> float:
    """Return which share of the cues that add something repeats at least so much as well."""
    n_new = n_rolling = 0
    for before, now in pairwise(cues):
        n_repeated = repeated(before, now)
        if n_repeated < size(now):
            n_new += 1
            n_rolling += n_repeated >= least
    return n_rolling / max(1, n_new)


def _added(
    cues: Sequence[Cue],
    repeated: Callable[[Cue, Cue], int],
    without: Callable[[Cue, int], Cue],
) -> list[Cue]:
    """Return each cue without what it repeats."""
    added = list(cues[:1])
    added += [without(now, repeated(before, now)) for before, now in pairwise(cues)]
    return [cue for cue in added if cue.lines]


def _overlap(before: list[str], now: list[str], most: int) -> int:
    """Return how many of the first `most` of `now` are the end of `before`, the largest number."""
    for start in range(max(0, len(before) - most), len(before)):
        if before[start] == now[0] and before[start:] == now[: len(before) - start]:
            return len(before) - start
    return 0


def _repeated_lines(before: Cue, now: Cue, has_times: bool) -> int:
    """Return how many lines a cue repeats. has_times: words of other cues have times."""
    said_now = (n for n, line in enumerate(now.lines) if line.is_timed)
    n = _overlap(before.texts, now.texts, next(said_now, len(now.lines)))
    # Below a cleared line, a single one is new. Its first word has no time, but others would.
    is_one_word = " " not in now.lines[0].text
    if now.is_cleared and len(now.lines) == 1 and (is_one_word or not has_times):
        return 0
    if n < len(now.lines):
        return n
    if _is_paused(before, now):
        return 0
    # All lines are equal, such as a chant. The screen moved by one line.
    return n - 1 if n > 1 and len(set(now.texts)) == 1 else n


def _repeated_words(before: Cue, now: Cue) -> int:
    n = _overlap(before.words, now.words, len(now.words))
    return 0 if n == len(now.words) and _is_paused(before, now) else n


def _is_paused(before: Cue, now: Cue) -> bool:
    return now.start - before.end > PAUSE


def _without_lines(cue: Cue, n: int) -> Cue:
    return replace(cue, lines=cue.lines[n:])


def _without_words(cue: Cue, n: int) -> Cue:
    """Return a cue without its first n words."""
    lines = []
    for line in cue.lines:
        words = line.text.split()
        if n < len(words):
            lines.append(replace(line, text=" ".join(words[n:])))
        n = max(0, n - len(words))
    return replace(cue, lines=tuple(lines))
