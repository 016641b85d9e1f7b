"""What MkDocs does not do itself: the reference's pages, the pages of the root folder, and links to names.

Belongs here: everything that connects MkDocs with this repository. What the reference says is in `reference.py`.
"""

import os
import posixpath
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
# The reference imports the modules; nothing is called on a device.
os.environ.setdefault("CUPYRITE_DEVICE", "cpu")

from mkdocs.structure.files import File
from reference import Reference

ROOT = Path(__file__).resolve().parents[2]
#: Pages outside of docs/: their place on the site.
ROOT_PAGES = {
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "RELEASING.md": "RELEASING.md",
    "SECURITY.md": "SECURITY.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "examples/README.md": "examples.md",
    "README.md": "README.md",
}
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
SPAN = re.compile(r"(?<![`\[])`([A-Za-z_][\w.]*)(\(\))?`(?!`)")
#: Pages in which names of cuda.core are links without their module.
SHORT_NAMES = ("tutorials/", "howto/", "core.md", "README.md")
#: Pages that a search shows after the others: lists of differences, figures, and pages for contributors.
SHOWN_LATER = (
    "abi-differences.md",
    "architecture.md",
    "CHANGELOG.md",
    "codegen.md",
    "core-compatibility.md",
    "core-differences.md",
    "differential.md",
    "performance.md",
    "reference/cuda.bindings._v2.",
)

_reference: Reference | None = None


def on_files(files, config):
    """Adds the generated pages."""
    global _reference
    _reference = Reference(ROOT / "python")
    for name, text in _reference.pages().items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    for source, page in ROOT_PAGES.items():
        if page != "README.md":
            text = _from_root((ROOT / source).read_text(), posixpath.dirname(source))
            files.append(File.generated(config, page, content=text))
    # The gallery links to its programs.
    for program in sorted((ROOT / "examples").glob("*.py")):
        files.append(File.generated(config, f"examples/{program.name}", content=program.read_text()))
    return files


def _from_root(text: str, folder: str) -> str:
    """Links of a page of the root folder as links of a page of docs/."""

    def moved(found: re.Match) -> str:
        target, anchor = found[1], found[2] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        place = ROOT_PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        # A file that is not on the site is named, not linked.
        return f"]({place}{anchor})" if place else "]"

    return LINK.sub(moved, text)


def on_page_markdown(markdown, page, config, files):
    """Links out of docs/ lead to the root folder's pages; names of the reference are links to it."""
    here = posixpath.dirname(page.file.src_uri)
    if page.file.src_uri.startswith(SHOWN_LATER):
        page.meta.setdefault("search", {"boost": 0.3})

    def moved(found: re.Match) -> str:
        path = posixpath.normpath(posixpath.join("docs", here, found[1]))
        if path in ROOT_PAGES:
            return f"]({posixpath.relpath(ROOT_PAGES[path], here or '.')}{found[2] or ''})"
        if path.startswith("examples/"):
            return f"]({posixpath.relpath(path, here or '.')})"
        return found[0]

    if page.file.src_uri.startswith("reference/"):
        return markdown
    seen: set[str] = set()

    def named(found: re.Match) -> str:
        name = found[1]
        place = _reference.places.get(name)
        if place is None and page.file.src_uri.startswith(SHORT_NAMES):
            place = _reference.places.get(f"cuda.core.{name}")
        if place is None or name in seen or page.file.src_uri == "CHANGELOG.md":
            return found[0]
        seen.add(name)
        return f"[{found[0]}]({posixpath.relpath('reference/' + place, here or '.')})"

    out, fenced = [], False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if not fenced:
            line = LINK.sub(moved, line)
            # Links cannot contain links, and headings are in the navigation.
            if not line.startswith("#") and "](" not in line:
                line = SPAN.sub(named, line)
        out.append(line)
    return "\n".join(out)
