"""What MkDocs does for the site beside mkdocs.yml: pages from outside docs/, links, colours.

The pages of the site are the repository's own, and their links are right when they are read there.
So links to files outside docs/ are changed here, for the site alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from qkvsearch._utils.style import tokens

ROOT = Path(__file__).parents[1]
DOCS = "docs"
# Pages of the site that are not in docs/.
OUTSIDE = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "datasets.md": "datasets/README.md",
}
PAGE_OF = {path: page for page, path in OUTSIDE.items()}
FENCE = re.compile(r"^(?P<fence>```+).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<text>!?\[[^\]]*\])\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, and the colours of the product's own pages."""
    for page, path in OUTSIDE.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "assets/palette.css", content=tokens()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page whose links lead to pages of the site. A link to code becomes its text."""
    here = page.file.src_uri
    source = OUTSIDE.get(here, f"{DOCS}/{here}")

    def changed(link: re.Match[str]) -> str:
        path = normpath(PurePosixPath(source).parent / link["target"])
        if path in PAGE_OF:
            found = PAGE_OF[path]
        elif path.startswith(f"{DOCS}/"):
            found = path.removeprefix(f"{DOCS}/")
        else:
            return link["text"].strip("[]")
        target = relpath(found, str(PurePosixPath(here).parent))
        return f"{link['text']}({target}{link['anchor'] or ''})"

    return outside_of_code(markdown, changed)


def outside_of_code(markdown: str, changed: Callable[[re.Match[str]], str]) -> str:
    """Return a page with each of its links changed, except in blocks of code."""
    parts, end = [], 0
    for block in FENCE.finditer(markdown):
        parts += [LINK.sub(changed, markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(changed, markdown[end:])])
