"""Writes docs/figures.md and the README's table from the rows in benchmarks/results.

python -m benchmarks.figures

The same results give the same pages. Scripts without results are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.support.results import RESULTS, Result, Run, read
from benchmarks.support.tables import best, distinct, markdown, quality, seconds, tables

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
START, END = "<!-- figures, by make bench -->\n", "<!-- end of figures -->\n"
MOST_FIGURES = 12


@dataclass(frozen=True)
class Section:
    """The rows of one script, below its docstring; layouts: of parts that have no table a task."""

    script: str
    title: str
    layouts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pick:
    """Systems of one task, by the beginning of its name, for the README."""

    script: str
    task: str
    systems: tuple[str, ...]
    has_time: bool = True


INTRODUCTION = """# Figures

Written by `make bench` from `benchmarks/results/`; edit the scripts, not this page. A script
keeps its rows there as JSON lines, with the machine, the versions and the date, and can be run
alone: `python benchmarks --only NAME`. Scripts without rows are left out.

Ours and the peers are timed in one run, turn by turn; times are medians. *time / ours* is the time
over that of the task's first row, ours by its defaults: below 1 is quicker than ours. The best
figure of a task is **bold**.
"""

CLAIMS = (
    Section("implicit_feedback", "Recommending from interactions", {"logs": "by task"}),
    Section("removal_curve", "Reasons that a removal confirms"),
    Section("heads_of_recommend", "The heads of recommend, and what they cost"),
    Section("rating_prediction", "Predicting ratings"),
    Section("next_item", "What comes next"),
    Section("text_search", "Searching texts"),
    Section("passages", "Long texts in passages"),
    Section("search_speed", "What a search takes"),
    Section("search", "Searching with typos"),
    Section("phrase_errors", "Chinese titles with an error"),
    Section("sample_search", "The bundled questions"),
    Section("answerability", "Telling what has no answer"),
    Section("match_grades", "What the grade of a hit is worth"),
    Section("unknown_words", "Queries with a word that the catalog lacks"),
    Section("made_queries", "Made queries beside people's judgements"),
    Section("typed_texts", "Queries typed in other ways"),
    Section("languages", "Meaning in many languages"),
    Section("regret_of_fusion", "All heads together, and each alone"),
    Section("tuned_search", "Tuning searches"),
    Section("lexical_speed", "BM25 on 100,000 texts"),
    Section("dense_speed", "A million keys"),
    Section("encoding_speed", "Encoding texts"),
    Section("attention_speed", "Attention in NumPy", {"times": "by task"}),
    Section("evaluate", "Judging by a large log"),
    Section("startup", "Starting"),
    Section("serve", "The server"),
    Section("agents", "Agents"),
    Section("what_if", "Recommending without an item"),
    Section("smallest_changes", "What would have to be gone"),
    Section("map_neighbours", "The map"),
    Section("build_speed", "Building"),
    Section("one_machine", "How far one machine goes"),
    Section("store", "The store"),
    Section("milvus_scale", "Keys in Milvus"),
    Section("spark_scale", "Spark beside one machine"),
)
DEFAULTS = (
    Section(
        "collaborative_defaults",
        "ImplicitALS and BiasedMF",
        dict.fromkeys(("implicit", "dense", "steps", "ratings"), "by system"),
    ),
    Section(
        "neighbour_defaults",
        "ItemNeighbours, and the shares of the heads",
        {"penalties": "by system"},
    ),
    Section("rating_confidences", "From a rating to a confidence"),
    Section("weights_and_scales", "What heavy use is worth, and the scale of ratings"),
    Section("cold_start", "Cold items"),
    Section("texts_in_weights", "Texts inside the weights of items"),
    Section("search_defaults", "The weights of the search heads"),
    Section("small_catalogs", "Small catalogs"),
    Section("part_learned_from", "What encoders learn from a part of a catalog"),
    Section("long_texts", "From how many words on a text has passages"),
    Section("common_subjects", "Queries whose words the catalog lacks"),
    Section("grades", "What grades of hits are computed by"),
    Section("column_weights", "The weights of text columns", {"talks": "by system"}),
    Section("related_words", "Words of one family"),
    Section(
        "token_head",
        "The second pass of search",
        dict.fromkeys(("corpus", "static", "minilm"), "by system"),
    ),
    Section(
        "personal_search",
        "A user's preferences beside the query",
        dict.fromkeys(("first-half", "second-half"), "by system"),
    ),
    Section("encoder_speed", "How fast the encoders read"),
)


def page(folder: Path = RESULTS) -> str:
    """docs/figures.md."""
    parts = [INTRODUCTION]
    for title, some in (("Claims", CLAIMS), ("Choices of defaults", DEFAULTS)):
        shown = [text for one in some if (text := section(one, read(one.script, folder)))]
        parts += [f"## {title}\n", *shown] if shown else []
    return "\n".join(parts)


def section(one: Section, results: Sequence[Result]) -> str:
    if not results:
        return ""
    parts = [f"### {one.title}\n", f"{explained(one.script)}\n"]
    for part in distinct(result.part for result in results):
        rows = [result.row for result in results if result.part == part]
        layout = one.layouts.get(part, "")
        parts.append(tables(rows, layout) + "\n")
    return "\n".join([*parts, f"{measured(one.script, results)}\n"])


def explained(script: str) -> str:
    """The script's docstring, without the paragraphs that say how to run it."""
    (path,) = BENCHMARKS.glob(f"*/{script}.py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return "\n\n".join(p for p in text.split("\n\n") if "python benchmarks" not in p)


def measured(script: str, results: Iterable[Result]) -> str:
    """The script, and when and where its rows were made."""
    runs = distinct(described(result.run) for result in results)
    return f"`{script}`: " + "; ".join(runs) + "."


def described(run: Run) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return f"{run.date}, {run.cores} cores of {run.cpu}; {versions}"


# --- the table of the README ---

PICKS = (
    Pick(
        "implicit_feedback",
        "MovieLens-1M as positives, 80/20, 64 components",
        ("qkvsearch `recommend`, defaults", "EASE^R, λ = 400", "`implicit`, defaults"),
        has_time=False,
    ),
    Pick(
        "implicit_feedback",
        "Steam, purchases",
        ("qkvsearch `recommend`, defaults", "EASE^R, the best λ"),
        has_time=False,
    ),
    Pick(
        "rating_prediction",
        "MovieLens-1M ratings, 5 folds",
        ("qkvsearch `BiasedMF`, defaults", "Surprise `SVD`, defaults"),
        has_time=False,
    ),
    Pick(
        "text_search",
        "TED talks, known item",
        (
            "qkvsearch, minilm",
            "qkvsearch, static",
            "`sentence-transformers`, minilm alone",
            "`bm25s`, stems, longer stop list",
        ),
        has_time=False,
    ),
)


def readme_table(folder: Path = RESULTS) -> str:
    """A line a system: the quality and the time, at most 12 figures together."""
    lines: list[list[str]] = []
    runs: list[str] = []
    for pick in PICKS:
        chosen = [
            result
            for result in read(pick.script, folder)
            if result.row.task.startswith(pick.task) and result.row.system in pick.systems
        ]
        bold = best([result.row for result in chosen])
        for place, result in enumerate(chosen):
            row = result.row
            shown = f"{row.metric} {quality(row, bold)}" if row.quality is not None else ""
            took = seconds(row) if pick.has_time else ""
            lines.append([row.task if place == 0 else "", row.system, shown, took])
            runs.append(f"{result.run.cores} cores of {result.run.cpu}, {result.run.date}")
    figures = sum(bool(cell) for line in lines for cell in line[2:])
    assert figures <= MOST_FIGURES, f"{figures} figures in the README's table"
    if not lines:
        return ""
    headings = ["task", "system", "quality", "time"]
    if not any(took for *_, took in lines):
        headings, lines = headings[:-1], [line[:-1] for line in lines]
    table = markdown(headings, lines, n_names=2)
    return f"{table}\n\n{'; '.join(distinct(runs))}.\n"


def readme(text: str, folder: Path = RESULTS) -> str:
    """The README with its table made anew; what stands around it is written by hand."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    assert start, f"README.md has lost its marker {START.strip()}"
    assert end, f"README.md has lost its marker {END.strip()}"
    return f"{before}{start}\n{readme_table(folder)}\n{end}{after}"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
