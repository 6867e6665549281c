"""Lists the licences of what qkvsearch needs, as installed here: python docs/licences.py [EXTRA…].

One line of Markdown for each package, with those that they need in turn. Exits 1 if a package
states no licence, or if one is not installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement


def needed(name: str, extras: Iterable[str], seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the names of all packages that a package with extras needs on this machine."""
    try:
        requirements = distribution(name).requires or []
    except PackageNotFoundError:
        return
    for extra in ("", *extras):
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                yield re.sub(r"[-_.]+", "-", requirement.name).lower()
                yield from needed(requirement.name, requirement.extras, seen)


def licence(package: Distribution) -> str:
    """Return the licence that a package states: an expression, a classifier or the first line."""
    metadata = package.metadata
    classifiers = metadata.get_all("Classifier", [])
    named = [line.split(" :: ")[-1] for line in classifiers if line.startswith("License ::")]
    stated = metadata.get("License-Expression") or ", ".join(named) or metadata.get("License", "")
    return stated.strip().partition("\n")[0]


def main() -> None:
    names = sorted(set(needed("qkvsearch", sys.argv[1:], set())) - {"qkvsearch"})
    print("| package | version | licence |\n|---|---|---|")
    unknown = []
    for name in names:
        try:
            package = distribution(name)
        except PackageNotFoundError:
            unknown.append(f"{name} (not installed)")
            continue
        stated = licence(package)
        unknown += [] if stated else [f"{name} (states no licence)"]
        print(f"| {name} | {package.version} | {stated} |")
    if unknown:
        sys.exit(f"not known: {', '.join(unknown)}")


if __name__ == "__main__":
    main()
