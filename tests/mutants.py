"""How many small faults in the code make a test fail: `make mutants`, `make mutants N=30 SEED=1`.

Mutation testing (DeMillo, Lipton & Sayward 1978): a mutant is the package with one operator,
constant or statement changed. N are drawn over all packages but the lessons, in proportion to their
lines, and each is judged by the tests that run the changed function: this file is also the pytest
plugin that finds out which those are. Everything happens in copies of the tree in build/mutants.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
WORK, REPORT = ROOT / "build" / "mutants", ROOT / "docs" / "trust.md"
MARKERS = "<!-- mutants -->", "<!-- end of mutants -->"
PACKAGE, LEFT_OUT = "qkvsearch", "lessons"
# Seconds of tests a mutant: what is slower than all of these is left to `make test`.
MOST_SECONDS, AT_ONCE = 60.0, 2
# It reads signatures and constants instead of running what they are of.
ALWAYS = "tests/contract/test_defaults.py"
FULL = 150

# Lines that prefetch change when a number is there, never which one.
SPEED_ONLY = re.compile(r"prefetch|ask_ahead|\bAHEAD\b")
# (file, its line, the line after, why no test can tell them apart), checked by a person.
EQUIVALENT = [
    (
        "learning/head_weights.py",
        "others = np.setdiff1d(np.arange(n_items), taken, assume_unique=True)",
        "others = np.setdiff1d(np.arange(n_items), taken, assume_unique=False)",
        "both are unique: only the time differs",
    ),
    (
        "learning/head_weights.py",
        "offsets: np.ndarray ¦ float = 0.0",
        "offsets: np.ndarray ¦ float = 1.0",
        "a number added to all scores of a softmax",
    ),
    (
        "retrieval/topk.py",
        "queries = queries.astype(keys.dtype, copy=False)",
        "queries = queries.astype(keys.dtype, copy=True)",
        "only the time differs",
    ),
    (
        "engine.py",
        "return ids[0], titles[0]",
        "return ids[0], titles[-1]",
        "the list holds one title",
    ),
    (
        "workspace/publish.py",
        "if datetime.fromisoformat(replaced) > just_now:",
        "if (datetime.fromisoformat(replaced) >= just_now):",
        "equal to the microsecond",
    ),
    (
        "evaluation/held_out.py",
        "relevant.setdefault(user, {})[item] = 1",
        "relevant.setdefault(user, {})[item] = 2",
        "where all grades are equal, every figure divides by them",
    ),
    (
        "workspace/arrays.py",
        "json.dump(manifest, text, indent=1, ensure_ascii=False)",
        "json.dump(manifest, text, indent=0, ensure_ascii=False)",
        "white space in a file that json reads",
    ),
    (
        "data/files/tables.py",
        "if place.path.stat().st_size > CELL.most:",
        "if (place.path.stat().st_size >= CELL.most):",
        "a file of just this size holds no longer cell, looked for or not",
    ),
    (
        "collaborative/als.py",
        "if observed.data.min() < observed.data.max():",
        "if (observed.data.min() <= observed.data.max()):",
        "equal confidences kept one by one are the same numbers",
    ),
    (
        "threads.py",
        "with one_blas_thread(), ThreadPoolExecutor(n_threads or available_cores()) as pool:",
        "with one_blas_thread(), ThreadPoolExecutor((n_threads and available_cores())) as pool:",
        "another number of threads, which changes no bit",
    ),
    (
        "sequences/model.py",
        "return self.encoder.layers[0].attention.n_heads",
        "return self.encoder.layers[-1].attention.n_heads",
        "all layers have as many heads",
    ),
    (
        "stored/preferences.py",
        "factors = ImplicitFactors.from_state(arrays, build.snapshot.facts[self.group])",
        "factors = ImplicitFactors.from_state(build.snapshot.facts[self.group], arrays)",
        "both are merged into one set of names",
    ),
    (
        "stored/ratings.py",
        "return RatingFactors.from_state(self.read(build.snapshot), numbers)",
        "return RatingFactors.from_state(numbers, self.read(build.snapshot))",
        "both are merged into one set of names",
    ),
    (
        "answers/similar.py",
        "others = np.asarray(embeddings.any(axis=1))",
        "others = np.asarray(embeddings.all(axis=1))",
        "an embedding that is not all zeros has no component of exactly 0",
    ),
    (
        "texts/learned/svd.py",
        "present.data[:] = 1",
        "present.data[:] = 2",
        "every pair counts twice as much, of twice the total",
    ),
]

COMPARED = {"Lt": "LtE", "Gt": "GtE", "Eq": "NotEq", "Is": "IsNot", "In": "NotIn"}
COMPARED |= {other: op for op, other in COMPARED.items()}
COMPUTED = {"Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "Mod": "Mult", "Pow": "Mult"}
COMPUTED |= {"FloorDiv": "Mult", "BitAnd": "BitOr", "BitOr": "BitAnd", "And": "Or", "Or": "And"}
NAMES = {"min": "max", "any": "all", "minimum": "maximum", "argmin": "argmax", "floor": "ceil"}
NAMES |= {other: name for name, other in NAMES.items()}


class Mutant(NamedTuple):
    """One change of a file: its bytes from `start` to `stop` become `text`."""

    file: str
    start: int
    stop: int
    text: str
    line: int
    functions: tuple[int, ...]  # first lines of the functions that it lies in, the innermost first

    def lines(self) -> tuple[str, str]:
        """The line, or lines, before and after."""
        source = (ROOT / self.file).read_bytes()
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.stop)
        after = source[first : self.start] + self.text.encode() + source[self.stop : last]
        return one_line(source[first:last]), one_line(after)

    def __str__(self) -> str:
        before, after = self.lines()
        return f"{self.file}:{self.line} `{before}` → `{after}`"


def one_line(text: bytes) -> str:
    return " ".join(text.decode().split()).replace("`", "'").replace("|", "¦")


# --- the changes of one file ---


def changed(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Parts of a node, and what may stand in their place."""

    def like(**fields: Any) -> str:
        copy = type(node)(**{**dict(ast.iter_fields(node)), **fields})
        return f"({ast.unparse(copy)})"

    match node:
        case ast.Compare(ops=[op]) if type(op).__name__ in COMPARED:
            yield node, like(ops=[getattr(ast, COMPARED[type(op).__name__])()])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op).__name__ in COMPUTED:
            yield node, like(op=getattr(ast, COMPUTED[type(op).__name__])())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, str(value + 1)
            yield node, str(value - 1)
        case ast.IfExp():
            yield node, f"({ast.unparse(node.body)})"
            yield node, f"({ast.unparse(node.orelse)})"
        case ast.Call(func=func, args=args):
            name = func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")
            plain = not any(isinstance(arg, ast.Starred) for arg in args[:2])
            if len(args) > 1 and plain and name not in NAMES:  # min(a, b) is min(b, a)
                swapped = ast.Call(func, [args[1], args[0], *args[2:]], node.keywords)
                if ast.dump(swapped) != ast.dump(node):
                    yield node, ast.unparse(swapped)
            if name in NAMES:
                other = ast.unparse(func).removesuffix(name) + NAMES[name]
                yield func, other
        case ast.Slice():
            for end in (node.lower, node.upper):
                if end is not None:
                    yield end, f"{ast.unparse(end)} + 1"
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield node, "pass"
        case ast.If(body=[ast.Raise() | ast.Return() | ast.Continue() | ast.Break()], orelse=[]):
            yield node, "pass"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every change of a file; nothing in annotations, texts, assertions and what is for mypy."""
    source = path.read_bytes()
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def visit(node: ast.AST, functions: tuple[int, ...]) -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":  # zip's own assertion
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        for part, text in changed(node):
            start = lines[part.lineno - 1] + part.col_offset
            stop = lines[part.end_lineno - 1] + part.end_col_offset
            yield Mutant(str(path.relative_to(ROOT)), start, stop, text, part.lineno, functions)
        inside = functions
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            inside = (first, *functions)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child, inside)

    yield from visit(ast.parse(source), ())


def package_of(file: str) -> str:
    parts = Path(file).parts
    return parts[1] if len(parts) > 2 else "engine, builder, …"


def sample(n: int, seed: int, only: str) -> list[Mutant]:
    """N mutants, in proportion to the packages' lines; of a line at most one."""
    rng, by_package, sizes = random.Random(seed), defaultdict(list), Counter()
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        file = str(path.relative_to(ROOT))
        if package_of(file) == LEFT_OUT or only not in file:
            continue
        sizes[package_of(file)] += path.read_bytes().count(b"\n")
        of_line = defaultdict(list)
        for mutant in mutants(path):
            of_line[mutant.line].append(mutant)
        by_package[package_of(file)] += [rng.choice(of_line[line]) for line in sorted(of_line)]
    # Largest remainders, so that the counts add up to n.
    exact = {name: n * size / sizes.total() for name, size in sizes.items()}
    counts = {name: int(share) for name, share in exact.items()}
    for name in sorted(exact, key=lambda name: counts[name] - exact[name])[
        : n - sum(counts.values())
    ]:
        counts[name] += 1
    return [
        mutant
        for name in sorted(counts)
        for mutant in rng.sample(by_package[name], min(counts[name], len(by_package[name])))
    ]


# --- which tests run which functions: a pytest plugin, `-p tests.mutants` ---


class Recorder:
    """Notes the package's functions that each test and each fixture runs, and the seconds taken."""

    def __init__(self, out: Path) -> None:
        self.out, self.root = out, str(Path.cwd() / PACKAGE) + os.sep
        self.fixtures: dict[str, tuple[set[str], float]] = {}
        self.tests: dict[str, tuple[list[str], float]] = {}
        self.seen: set[Any] = set()

    def trace(self, frame: Any, _event: str, _argument: Any) -> None:
        self.seen.add(frame.f_code)

    def functions(self) -> set[str]:
        found = {
            f"{code.co_filename.removeprefix(self.root)}:{code.co_firstlineno}"
            for code in self.seen
            if code.co_filename.startswith(self.root) and code.co_name != "<module>"
        }
        self.seen.clear()
        return found

    def pytest_runtest_protocol(self, item: Any) -> None:
        self.functions()
        sys.settrace(self.trace)
        threading.settrace(self.trace)

    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before, self.seen, start = self.seen, set(), time.perf_counter()
        yield
        if fixturedef.scope != "function":
            self.fixtures[fixturedef.argname] = self.functions(), time.perf_counter() - start
        self.seen |= before

    pytest_fixture_setup.hookwrapper = True  # type: ignore[attr-defined]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.duration = report.duration

    def pytest_runtest_teardown(self, item: Any) -> None:
        sys.settrace(None)
        duration, self.duration = getattr(self, "duration", None), None
        if duration is None:  # failed or skipped
            return
        found = self.functions()
        for name in getattr(item, "fixturenames", ()):
            functions, seconds = self.fixtures.get(name, (set(), 0.0))
            found |= functions
            duration += seconds
        self.tests[item.nodeid] = sorted(found), duration

    def pytest_sessionfinish(self) -> None:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        (self.out / f"{worker}.json").write_text(json.dumps(self.tests))


def pytest_configure(config: Any) -> None:
    if "MUTANTS_MAP" in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ["MUTANTS_MAP"])))


def copy_tree(target: Path) -> None:
    """The files of the working tree as they are now, those that git ignores left out."""
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)


def run_tests(tree: Path, *arguments: str, timeout: float | None = None, **env: str) -> int:
    """Pytest's exit code; 1 where the tests do not come to an end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *arguments],
        cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(tree), **env},
    )  # fmt: skip
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return 1


Tests = dict[str, tuple[list[str], float]]


def tests_of_functions(tests: list[str]) -> Tests:
    """For each test that passes, its functions and its seconds; kept until a file changes."""
    copy_tree(WORK / "map")
    digest = hashlib.sha256(" ".join(tests).encode())
    for path in sorted([*(WORK / "map").rglob("*.py"), *(WORK / "map").rglob("*.toml")]):
        digest.update(path.read_bytes())
    kept = WORK / f"map-{digest.hexdigest()[:16]}.json"
    if not kept.exists():
        out = WORK / "map" / "build"
        out.mkdir()
        run_tests(
            WORK / "map", "-p", "tests.mutants", "-n", str(AT_ONCE), "--dist", "loadgroup", *tests,
            MUTANTS_MAP=str(out),
        )  # fmt: skip
        found: Tests = {}
        for part in out.glob("gw*.json"):
            found |= json.loads(part.read_text())
        if not found:
            raise SystemExit("no test passes: run make test first")
        kept.write_text(json.dumps(found))
    return json.loads(kept.read_text())


class Choice:
    """The tests that can see a change, the quickest and nearest first."""

    def __init__(self, tests: Tests) -> None:
        self.tests = tests
        self.of_function, self.of_file = defaultdict(set), defaultdict(set)
        for test, (functions, _) in tests.items():
            for function in functions:
                self.of_function[function].add(test)
                self.of_file[function.split(":")[0]].add(test)
        self.importers = defaultdict(set)
        for path in (ROOT / PACKAGE).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
                    for module in (node.module, *(f"{node.module}.{a.name}" for a in node.names)):
                        file = str(path.relative_to(ROOT / PACKAGE))
                        self.importers[module].add(file)

    def of(self, mutant: Mutant) -> list[str]:
        """Those that run its function; else, for what is compiled or only read once, its file or
        the files that import it; else those in the folder of its package's tests.
        """
        file = str(Path(mutant.file).relative_to(PACKAGE))
        found: set[str] = set()
        for first in mutant.functions:
            found = found or self.of_function[f"{file}:{first}"]
        found = found or self.of_file[file]
        module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for importer in () if found else self.importers[module]:
            found = found | self.of_file[importer]
        parts = Path(mutant.file).with_suffix("").parts
        folder, name = parts[1], parts[-1]
        found = found or {test for test in self.tests if test.startswith(f"tests/{folder}")}

        found = found | {test for test in self.tests if test.startswith(ALWAYS)}

        def order(test: str) -> tuple[float, str]:
            nearness = (f"test_{name}.py" in test or mutant.file in test) + (f"/{folder}/" in test)
            return self.tests[test][1] / (1 + 4 * nearness), test

        chosen, seconds = [], 0.0
        for test in sorted(found, key=order):
            seconds += self.tests[test][1]
            if chosen and seconds > MOST_SECONDS:
                break
            chosen.append(test)
        return chosen


def judge(mutant: Mutant, tree: Path, tests: list[str], seconds: float, seed: int) -> bool:
    """Whether a test fails, or does not end, once the change is made in this copy of the tree."""
    if not tests:
        return False
    path = tree / mutant.file
    source = (ROOT / mutant.file).read_bytes()
    asked = tree / "build" / "tests.txt"
    asked.parent.mkdir(exist_ok=True)
    asked.write_text("\n".join(tests), encoding="utf-8")
    try:
        path.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.stop :])
        forget(path, tree)
        how = ["-x", f"--hypothesis-seed={seed}", f"@{asked}"]
        return run_tests(tree, *how, timeout=3 * seconds + 60) != 0
    finally:
        path.write_bytes(source)
        forget(path, tree)


def forget(path: Path, tree: Path) -> None:
    """What Python and numba compiled of a file, whose time of change may be the same second."""
    Path(cache_from_source(str(path))).unlink(missing_ok=True)
    if b"import compiled" in path.read_bytes():
        for kept in [*(tree / PACKAGE).rglob("*.nbi"), *(tree / PACKAGE).rglob("*.nbc")]:
            kept.unlink(missing_ok=True)


def equivalent(mutant: Mutant) -> bool:
    lines = mutant.lines()
    named = ((file, (before, after)) for file, before, after, _ in EQUIVALENT)
    return bool(SPEED_ONLY.search(lines[0])) or any(
        mutant.file.endswith(file) and lines == both for file, both in named
    )


def judged(chosen: list[Mutant], tests: list[str], seed: int) -> list[tuple[Mutant, bool]]:
    choice = Choice(tests_of_functions(tests))
    trees = [WORK / str(number) for number in range(AT_ONCE)]
    for tree in trees:
        copy_tree(tree)

    def one(mutant: Mutant) -> tuple[Mutant, bool]:
        tree, start, asked = trees.pop(), time.monotonic(), choice.of(mutant)
        try:
            seconds = sum(choice.tests[test][1] for test in asked)
            killed = judge(mutant, tree, asked, seconds, seed)
        finally:
            trees.append(tree)
        word = "killed  " if killed else "SURVIVED"
        print(f"{word} {time.monotonic() - start:4.0f} s, {len(asked)} tests: {mutant}", flush=True)
        return mutant, killed

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, chosen))


def report(results: list[tuple[Mutant, bool]], same: list[Mutant], n: int, seed: int) -> str:
    """The score, a table by package and the survivors, in Markdown."""
    total, killed = Counter(), Counter()
    for mutant, dead in results:
        total[package_of(mutant.file)] += 1
        killed[package_of(mutant.file)] += dead
    rows = [f"| {name} | {killed[name]} | {total[name]} |" for name in sorted(total)]
    lines = [
        f"**{killed.total() / max(total.total(), 1):.0%}** of {total.total()} changes make a test "
        f"fail ({n} drawn with seed {seed}, {len(same)} of them without effect; "
        f"{datetime.now(UTC):%Y-%m-%d}).",
        "",
        "| package | found | changes |",
        "|---|---:|---:|",
        *rows,
        "",
    ]
    survivors = [str(mutant) for mutant, dead in results if not dead]
    if survivors:
        lines += ["Not found:", "", *(f"- {survivor}" for survivor in survivors), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("n", type=int, nargs="?", default=FULL)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--only", default="", help="only files whose path holds this")
    parser.add_argument("--tests", nargs="*", default=[], help="only these tests")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    options = parser.parse_args()
    chosen = sample(options.n, options.seed, options.only)
    if options.list:
        print(*chosen, sep="\n")
        return
    same = [mutant for mutant in chosen if equivalent(mutant)]
    WORK.mkdir(parents=True, exist_ok=True)
    results = judged([one for one in chosen if one not in same], options.tests, options.seed)
    text = report(results, same, len(chosen), options.seed)
    print(f"\n{text}")
    (WORK / "result.md").write_text(text, encoding="utf-8")
    if len(chosen) >= FULL:
        page = REPORT.read_text(encoding="utf-8")
        before, rest = page.split(MARKERS[0])
        after = rest.split(MARKERS[1])[1]
        page = f"{before}{MARKERS[0]}\n\n{text}\n{MARKERS[1]}{after}"
        REPORT.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
