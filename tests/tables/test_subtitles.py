"""Subtitles as they come: each word once, at the time when it is said."""

import random

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns.html import plain_text
from qkvsearch.tables.documents.rolling_captions import CaptionLine, Cue, said_once
from qkvsearch.tables.documents.subtitles import read_subtitles

WORDS = (
    "the harbour was quiet and we counted seven waves before lunch no yes thank you very".split()
)


def clock(seconds, comma="."):
    hours, minutes = int(seconds // 3600), int(seconds // 60 % 60)
    return f"{hours:02d}:{minutes:02d}:{seconds % 60:06.3f}".replace(".", comma)


def cue(start, end, text, comma="."):
    return f"{clock(start, comma)} --> {clock(end, comma)} align:start position:0%\n{text}\n"


def spoken(seed):
    """Lines of a talk, 2.5 seconds each, in which some are said twice in a row, or three times."""
    chance = random.Random(seed)
    lines = []
    for _ in range(40):
        line = " ".join(chance.choices(WORDS, k=chance.randint(1, 8)))
        lines += [line] * chance.choice([1] * 12 + [2, 3])
    return lines


def recognized(lines):
    """WebVTT of a recognizer: the line before, the new one with times, then that alone."""
    cues = ["WEBVTT\nKind: captions\nLanguage: en\n"]
    for n, line in enumerate(lines):
        first, *rest = line.split()
        start = 2.5 * n
        said = first + "".join(
            f"<{clock(start + 0.2 * k)}><c> {word}</c>" for k, word in enumerate(rest, 1)
        )
        cues.append(cue(start, start + 2.49, f"{lines[n - 1] if n else ' '}\n{said}"))
        cues.append(cue(start + 2.49, start + 2.5, f"{line}\n "))
    return "\n".join(cues)


def downloaded(lines):
    """An .srt that a downloader makes of the same: no times of words, and cues may begin blank."""
    cues = []
    for n, line in enumerate(lines):
        before = lines[n - 1] if n else ""
        cues.append((2.5 * n, 2.5 * n + 2.49, f"{before}\n{line}"))
        cues.append((2.5 * n + 2.49, 2.5 * n + 2.5, f"{line}\n "))
    return "\n".join(f"{n}\n{cue(*each, ',')}" for n, each in enumerate(cues, 1))


def two_lines(lines):
    """An .srt with each line in two cues, the new one below the old one."""
    pairs = zip(["", *lines], lines, strict=False)
    return "\n".join(cue(2.5 * n, 2.5 * n + 2.5, f"{a}\n{b}") for n, (a, b) in enumerate(pairs))


FORMS = {"recognized": recognized, "downloaded": downloaded, "two lines": two_lines}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_automatic_captions_have_each_line_once_at_its_time(form, seed):
    lines = spoken(seed)
    document = read_subtitles(FORMS[form](lines))
    assert document.text == " ".join(lines)
    assert [time.start for time in document.times] == [2.5 * n for n in range(len(lines))]
    starts = [time.offset for time in document.times]
    parts = [document.text[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    assert parts == lines


def test_captions_that_repeat_words_have_them_once():
    words = [f"word{n}" for n in range(60)]
    overlapping = [" ".join(words[max(0, n - 3) : n + 6]) for n in range(0, 60, 6)]
    growing = [" ".join(words[n - n % 7 : n + 1]) for n in range(60)]
    for shown in (overlapping, growing):
        cues = "\n".join(cue(2 * n, 2 * n + 2, text) for n, text in enumerate(shown))
        assert read_subtitles(cues).text == " ".join(words)


@pytest.mark.parametrize(
    "said", [["No.", "No.", "No!", "No."], ["it is very", "very late", "so we left", "left early"]]
)
def test_what_is_said_twice_in_captions_that_do_not_roll_stays(said):
    cues = "\n".join(cue(3 * n, 3 * n + 2, text) for n, text in enumerate(said))
    assert read_subtitles(cues).text == " ".join(said)


def test_a_line_that_comes_again_after_a_pause_is_said_again():
    lines = [("a b",), ("a b", "c d"), ("c d", "e f"), ("e f", "g h")]
    cues = [Cue(n, n + 1, tuple(map(CaptionLine, texts))) for n, texts in enumerate(lines)]
    again = Cue(20, 21, (CaptionLine("g h"),))
    assert [each.texts for each in said_once([*cues, again])][-2:] == [["g h"], ["g h"]]
    assert len(said_once([*cues, Cue(4, 5, again.lines)])) == 4


def test_times_without_hours_numbers_or_with_other_signs_are_read():
    text = "00:01.5 --> 00:02,25\none\n\n0:3 -> 0:4.007\n42\n\n1:00:00 → 1:00:01\n\nlast"
    times = read_subtitles(text).times
    assert [(each.start, each.end) for each in times] == [(1.5, 2.25), (3, 4.007), (3600, 3601)]
    assert read_subtitles(text).text == "one 42 last"
    with pytest.raises(DataError, match="no subtitles"):
        read_subtitles("WEBVTT\n\njust words")


def test_what_nobody_says_is_left_out():
    document = read_subtitles(
        "WEBVTT - a title\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:x\n\nNOTE by\na machine\n\n"
        "intro\n00:01.000 --> 00:02.000\n{\\an8}<font color='#fff'>Tea &amp; <i>milk</i></font>\n\n"
        "NOTE more\nof it\n\n7\n00:03.000 --> 00:04.000\n[Music] ♪ <v Ann>sing</v> [sic]\n\n"
        "00:05.000 --> 00:06.000\n[door slams]\n\n00:07.000 --> 00:08.000\nNOTE that 7\n7"
    )
    assert document.text == "Tea & milk\nAnn: sing [sic] NOTE that 7 7"
    assert sum(document.notes.values()) == 2


def test_voices_begin_a_line_when_they_change():
    document = read_subtitles(
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann Lin>Who rang?\n\n00:02.000 --> 00:03.000\n"
        "<v.loud Ann Lin>Nobody?</v> <v Bob &amp; Co>Me.\n\n00:03.000 --> 00:04.000\n- You?\n- Me."
    )
    assert document.text == "Ann Lin: Who rang? Nobody?\nBob & Co: Me.\n- You?\n- Me."
    assert document.text[document.times[-1].offset :].startswith("- You?")


def test_storing_a_text_changes_nothing_so_that_its_times_stay_true():
    parts = ["a &lt;b&gt; c", "&amp;amp; d", "cafe\u0301\u00a0 e", "10:00.00 to 12:00.00 f"]
    document = read_subtitles("\n".join(cue(n, n + 1, part) for n, part in enumerate(parts)))
    assert plain_text(document.text) == document.text
    found = [document.text[time.offset :][:4] for time in document.times]
    assert found == ["a < ", "& am", "café", "10:0"]


def with_times(line):
    """Subtitles of which the second cue has this line for its times."""
    return read_subtitles(
        f"1\n00:00:01,000 --> 00:00:03,000\nfirst\n\n2\n{line}\nsecond\n\n"
        "3\n00:00:07,000 --> 00:00:08,000\n10:30:15 to 11:45\n42 - 43\n"
    )


@pytest.mark.parametrize("dash", ["-", "–", "---", "－－＞", "→"])
@pytest.mark.parametrize("colon", [":", "："])
def test_times_with_a_dash_or_with_wide_signs_are_times(dash, colon):
    document = with_times(f"00:00:04,000 {dash} 00:00:06,000".replace(":", colon))
    assert document.text == "first second 10:30:15 to 11:45 42 - 43"
    assert [time.start for time in document.times] == [1, 4, 7]
    assert not document.notes.total()


@pytest.mark.parametrize(
    "line",
    ["xx --> yy", "--> 00:00:06,000", "00:00:04,000 00:00:06,000", "00:00:04,000", "00:00:04 - 1"],
)
def test_times_that_cannot_be_read_are_counted_and_are_no_text(line):
    document = with_times(line)
    assert document.text == "first second 10:30:15 to 11:45 42 - 43"
    assert document.notes["times that cannot be read"] == 1


def test_a_cue_of_webvtt_without_a_number_is_judged_by_the_blank_line_before_it():
    start = "WEBVTT\n\n00:01.000 --> 00:03.000\nfirst --> here\n\n"
    document = read_subtitles(f"{start}xx --> yy\nsecond\n")
    assert document.text == "first --> here second"
    assert document.notes["times that cannot be read"] == 1
