"""Count how many small faults in the code make a test fail: `make mutants N=30 SEED=1`.

Mutation testing (DeMillo, Lipton & Sayward 1978): a mutant is the package with one operator,
constant or statement changed. N of them are drawn over all lines but those of the lessons. Each is
judged by the tests that run the changed function; this file is also the pytest plugin that records
which tests those are. Everything happens in copies of the tree in build/mutants.

mutmut and cosmic-ray are not used: mutmut wraps each function in another one, which numba and
checks of signatures do not take; cosmic-ray neither draws a sample nor selects tests.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
WORK, PACKAGE, LEFT_OUT = ROOT / "build" / "mutants", "qkvsearch", "lessons"
# Seconds of tests for each mutant, as they take while they are recorded; for one that these do not
# find, seconds of other tests; and how many mutants are judged at once.
MAX_SECONDS, MORE_SECONDS, AT_ONCE = 60.0, 300.0, 2

COMPARED = {"Lt": "LtE", "Gt": "GtE", "Eq": "NotEq", "Is": "IsNot", "In": "NotIn"}
COMPARED |= {other: op for op, other in COMPARED.items()}
COMPUTED = {"Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "Mod": "Mult", "Pow": "Mult"}
COMPUTED |= {"FloorDiv": "Mult", "BitAnd": "BitOr", "BitOr": "BitAnd", "And": "Or", "Or": "And"}
NAMES = {"min": "max", "any": "all", "minimum": "maximum", "argmin": "argmax", "floor": "ceil"}
NAMES |= {other: name for name, other in NAMES.items()}


class Mutant(NamedTuple):
    """One change of a file: its bytes from `start` to `stop` become `text`."""

    file: str
    line: int
    start: int
    stop: int
    text: str
    functions: tuple[int, ...]  # first lines of the functions around it, the innermost first

    def __str__(self) -> str:
        before = (ROOT / self.file).read_bytes()[self.start : self.stop].decode()
        return f"{self.file}:{self.line} `{' '.join(before.split())}` → `{self.text}`"


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield parts of a node, each with a text that may replace it."""

    def copy(**fields: Any) -> str:
        return f"({ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), **fields}))})"

    match node:
        case ast.Compare(ops=[op]) if type(op).__name__ in COMPARED:
            yield node, copy(ops=[getattr(ast, COMPARED[type(op).__name__])()])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op).__name__ in COMPUTED:
            yield node, copy(op=getattr(ast, COMPUTED[type(op).__name__])())
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
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in NAMES:
            yield node.func, ast.unparse(node.func).removesuffix(name) + NAMES[name]
        case ast.Call(args=[first, second, *others]) if not isinstance(first, ast.Starred):
            if not isinstance(second, ast.Starred) and ast.dump(first) != ast.dump(second):
                yield node, copy(args=[second, first, *others])
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield node, "pass"
        case ast.If(body=[ast.Raise() | ast.Return() | ast.Continue() | ast.Break()], orelse=[]):
            yield node, "pass"


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield every change of a file except in annotations, messages and assertions."""
    lines = [0]
    for line in path.read_bytes().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def visit(node: ast.AST, functions: tuple[int, ...]) -> Iterator[Mutant]:
        skipped = ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom
        if isinstance(node, skipped) or (isinstance(node, ast.keyword) and node.arg == "strict"):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        for part, text in changes(node):
            start = lines[part.lineno - 1] + part.col_offset
            stop = lines[part.end_lineno - 1] + part.end_col_offset
            yield Mutant(str(path.relative_to(ROOT)), part.lineno, start, stop, text, functions)
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            decorators = getattr(node, "decorator_list", ())
            functions = (min(part.lineno for part in (node, *decorators)), *functions)
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from visit(child, functions)

    yield from visit(ast.parse(path.read_bytes()), ())


def draw(n: int, seed: int, only: str) -> list[Mutant]:
    """Draw N mutants, at most one of a line, from the files whose path contains `only`."""
    rng, by_line = random.Random(seed), defaultdict(list)
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        if LEFT_OUT not in path.parts and only in str(path.relative_to(ROOT)):
            for mutant in mutants(path):
                by_line[mutant.file, mutant.line].append(mutant)
    return [rng.choice(by_line[line]) for line in rng.sample(list(by_line), min(n, len(by_line)))]


# --- which tests run which functions: a pytest plugin, `-p benchmarks.mutants` ---


class Recorder:
    """Record the package's functions that each test and its fixtures run, and the seconds taken."""

    def __init__(self, out: Path) -> None:
        self.out, self.root = out, str(Path.cwd()) + os.sep
        self.fixtures: dict[str, tuple[set[str], float]] = {}
        self.tests: dict[str, tuple[list[str], float]] = {}
        self.seen: set[Any] = set()

    def functions(self) -> set[str]:
        # Other threads go on adding to it.
        seen = self.seen.copy()
        self.seen.clear()
        names = {f"{code.co_filename}:{code.co_firstlineno}" for code in seen}
        inside = self.root + PACKAGE
        return {name.removeprefix(self.root) for name in names if name.startswith(inside)}

    def pytest_runtest_protocol(self, item: Any) -> None:
        def trace(frame: Any, _event: str, _argument: Any) -> None:
            self.seen.add(frame.f_code)

        self.functions()
        sys.settrace(trace)
        threading.settrace(trace)

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
        if duration is not None:  # neither failed nor skipped
            found = self.functions()
            for name in getattr(item, "fixturenames", ()):
                functions, seconds = self.fixtures.get(name, (set(), 0.0))
                found, duration = found | functions, duration + seconds
            self.tests[name_of_test(item)] = sorted(found), duration

    def pytest_sessionfinish(self) -> None:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        (self.out / f"{worker}.json").write_text(json.dumps(self.tests))


def name_of_test(item: Any) -> str:
    """Return the name that pytest takes on its command line, without the group of pytest-xdist."""
    group = item.get_closest_marker("xdist_group")
    if group is None:
        return str(item.nodeid)
    return str(item.nodeid).removesuffix(f"@{group.args[0]}")


def pytest_configure(config: Any) -> None:
    if "MUTANTS_MAP" in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ["MUTANTS_MAP"])))


# --- running them ---


def copy_tree(target: Path) -> Path:
    """Copy the files that git tracks or would add."""
    shutil.rmtree(target, ignore_errors=True)
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    (target / "build").mkdir()
    return target


def run_tests(tree: Path, *arguments: str, timeout: float | None = None, **env: str) -> bool:
    """Return whether all tests pass within the time."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(tree), **env},
    )  # fmt: skip
    try:
        return process.wait(timeout) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return False


def functions_of_tests(tests: list[str]) -> dict[str, tuple[list[str], float]]:
    """Return the functions and the seconds of each test that passes."""
    tree = copy_tree(WORK / "map")
    how = ["-p", "benchmarks.mutants", "-n", str(AT_ONCE), "--dist", "loadgroup"]
    run_tests(tree, *how, *tests, MUTANTS_MAP=str(tree / "build"))
    found = {}
    for part in (tree / "build").glob("gw*.json"):
        found |= json.loads(part.read_text())
    print(f"{len(found):,} tests pass, and are recorded", flush=True)
    return found or sys.exit("no test passes: run make test first")


def chosen_tests(
    mutant: Mutant, found: dict[str, tuple[list[str], float]]
) -> tuple[list[str], list[str]]:
    """Return the tests that run the changed function, otherwise its file; the quickest and nearest
    first: those of a minute. And those of the next minutes, with others of its package behind them:
    what a test asks of a server's thread is not recorded.
    """
    runs = [
        *({test for test in found if f"{mutant.file}:{line}" in found[test][0]}
          for line in mutant.functions),
        {test for test in found if any(f.startswith(f"{mutant.file}:") for f in found[test][0])},
    ]  # fmt: skip
    of_package = {test for test in found if test.startswith(f"tests/{Path(mutant.file).parts[1]}/")}
    surest = next(filter(None, runs), of_package)
    near = f"test_{Path(mutant.file).stem}.py"

    def order(test: str) -> tuple[bool, float]:
        return test not in surest, found[test][1] / (1 + 9 * (near in test))

    first: list[str] = []
    more: list[str] = []
    seconds = 0.0
    for test in sorted(surest | of_package, key=order):
        seconds += found[test][1]
        if not first or (test in surest and seconds <= MAX_SECONDS):
            first.append(test)
        elif seconds <= MAX_SECONDS + MORE_SECONDS:
            more.append(test)
    return first, more


def is_found(
    mutant: Mutant, tree: Path, tests: list[str], seed: int, seconds: float = MAX_SECONDS
) -> bool:
    """Return whether a test fails, or does not end, with the change in this copy of the tree.
    seconds: what they take otherwise, at most.
    """
    path, asked = tree / mutant.file, tree / "build" / "tests.txt"
    source = path.read_bytes()
    asked.write_text("\n".join(tests), encoding="utf-8")
    # What numba compiled elsewhere may contain the function that is changed.
    caches = {"NUMBA_CACHE_DIR": str(tree / "build" / f"numba-{mutant.start}")}
    env = caches if b"compiled import" in source else {}
    how = ["-x", f"--hypothesis-seed={seed}", f"@{asked}"]
    path.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.stop :])
    try:
        return bool(tests) and not run_tests(tree, *how, timeout=5 * seconds, **env)
    finally:
        path.write_bytes(source)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("n", type=int, nargs="?", default=150)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--only", default="", help="only files whose path contains this")
    parser.add_argument("--tests", nargs="*", default=[], help="only these tests")
    options = parser.parse_args()
    drawn, tests = draw(options.n, options.seed, options.only), functions_of_tests(options.tests)
    trees = [copy_tree(WORK / str(number)) for number in range(AT_ONCE)]

    def judged(mutant: Mutant) -> bool:
        tree, (chosen, more) = trees.pop(), chosen_tests(mutant, tests)
        try:
            found = is_found(mutant, tree, chosen, options.seed)
            if not found and more:
                chosen += more
                found = is_found(mutant, tree, more, options.seed, MORE_SECONDS)
        finally:
            trees.append(tree)
        print(f"{'found' if found else 'NOT FOUND'} by {len(chosen)} tests: {mutant}", flush=True)
        return found

    with ThreadPoolExecutor(AT_ONCE) as pool:
        n_found = sum(pool.map(judged, drawn))
    print(f"{n_found / len(drawn):.0%} of {len(drawn)} changes, drawn with seed {options.seed}, "
          "make a test fail.")  # fmt: skip


if __name__ == "__main__":
    main()
