"""Makes the software bill of materials that a wheel carries: .dist-info/sboms/qkvsearch.cdx.json.

A wheel holds no other package. The bill (CycloneDX 1.6, PEP 770) lists the packages that it needs,
with those of the extras for users. Each has the version that this release was tested with, if
constraints.txt has one. What they need in turn is not listed, and `compositions` says so.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "qkvsearch.cdx.json"


class BillOfMaterials(BuildHookInterface):
    """Adds the bill to a wheel, but not to an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self.folder = TemporaryDirectory(prefix="qkvsearch-sbom-")
        path = Path(self.folder.name) / FILE
        text = json.dumps(bill_of_materials(Path(self.root)), indent=2, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.folder.cleanup()


def bill_of_materials(root: Path) -> dict[str, Any]:
    """Return the bill of the project in a folder, as CycloneDX 1.6 writes it in JSON.

    It has neither a time nor a random number, so that equal sources make equal wheels.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tested = tested_versions(root / "constraints.txt")
    required = {canonical(line) for line in project["dependencies"]}
    optional = {
        canonical(line)
        for extra in extras_of_all(project["optional-dependencies"])
        for line in project["optional-dependencies"][extra]
    }
    components = [
        component(name, tested.get(name), "required" if name in required else "optional")
        for name in sorted(required | optional)
    ]
    product = component(project["name"], project["version"], "required")
    product["licenses"] = [{"license": {"id": project["license"]}}]
    depends_on = [each["bom-ref"] for each in components]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": product},
        "components": components,
        "dependencies": [{"ref": product["bom-ref"], "dependsOn": depends_on}],
        "compositions": [{"aggregate": "incomplete", "dependencies": depends_on}],
    }


def component(name: str, version: str | None, scope: str) -> dict[str, Any]:
    """Return the entry of a package of the index, with the version if it is known."""
    address = f"pkg:pypi/{name}" + ("" if version is None else f"@{version}")
    entry: dict[str, Any] = {"type": "library", "bom-ref": address, "name": name}
    if version is not None:
        entry["version"] = version
    return {**entry, "scope": scope, "purl": address}


def extras_of_all(extras: dict[str, list[str]]) -> list[str]:
    """Return the extras that `all` names: those for users, without test, docs and the like."""
    (line,) = extras["all"]
    return line.partition("[")[2].rstrip("]").split(",")


def tested_versions(path: Path) -> dict[str, str]:
    """Return the pinned versions of a file of constraints by name."""
    text = path.read_text(encoding="utf-8")
    pinned = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    return {canonical(name): version for name, version in pinned}


def canonical(requirement: str) -> str:
    """Return the name in a requirement, as the index writes it.

    >>> canonical("PyStemmer>=2.2.0.3"), canonical("ast_serialize==0.13.1")
    ('pystemmer', 'ast-serialize')
    """
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()
