"""The site's API reference: every public module and name has an entry, and docstrings become Markdown."""

import ast
import importlib
import importlib.util
import re
import sys

import pytest

from helpers import TESTS

ROOT = TESTS.parent


@pytest.fixture(scope="module")
def site():
    """The modules of docs/site, which MkDocs imports as hooks."""
    # The reference describes cupyrite.dask and cupyrite.ray.
    for package in ("distributed", "ray", "redis", "fsspec"):
        pytest.importorskip(package)
    sys.path.insert(0, str(ROOT / "docs" / "site"))
    try:
        yield importlib.import_module("reference"), importlib.import_module("docstrings")
    finally:
        sys.path.remove(str(ROOT / "docs" / "site"))
        for name in ("reference", "docstrings"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def pages(site):
    return site[0].Reference(ROOT / "python").pages()


def test_every_public_module_has_a_page(site):
    cuda = ROOT / "python" / "cuda"
    files = [*cuda.rglob("*.pyi"), *(cuda / "core").rglob("*.py"), *(cuda / "pathfinder").rglob("*.py")]
    names = {".".join(file.relative_to(ROOT / "python").with_suffix("").parts) for file in files}
    names = {name.removesuffix(".__init__") for name in names}
    private = re.compile(r"\._(?!v2\.)")
    # The first raises when it is imported; the names of the second are in cuda.core.system as well.
    names -= {"cuda.core.experimental", "cuda.core.system.exceptions"}
    assert {name for name in names if not private.search(name)} <= set(site[0].MODULES)


def test_navigation_has_every_page_of_the_reference(site):
    text = (ROOT / "mkdocs.yml").read_text()
    assert [name for name in site[0].MODULES if f" reference/{name}.md\n" not in text] == []


def test_every_public_name_has_an_entry(site, pages):
    for module in site[0].MODULES:
        public = getattr(importlib.import_module(module), "__all__", ())
        page = pages[f"{module}.md"]
        missing = [
            name
            for name in public
            if f"{{ #{name} }}" not in page and f'id="{name}"' not in page and not _is_module(module, name)
        ]
        assert missing == [], module


def _is_module(module, name):
    return importlib.util.find_spec(f"{module}.{name}") is not None if _is_package(module) else False


def _is_package(module):
    return hasattr(importlib.import_module(module), "__path__")


def test_entries_have_signature_parameters_and_links(pages):
    page = pages["cuda.core.md"]
    entry = page.split("{ #Device.create_stream }")[1].split("\n#### ")[0]
    assert '<div class="signature"><code>create_stream(' in entry and "-&gt; Stream</code>" in entry
    assert "**Parameters**" in entry and "- `options`" in entry
    assert "](cuda.core.md#" in page  # roles such as :meth:`close` are links


def test_definitions_are_read_as_type_checkers_read_them(site, tmp_path):
    folder = tmp_path / "cuda"
    folder.mkdir()
    (folder / "base.py").write_text(
        "class _Base(Public):\n    def __init__(self): ...\n    def close(self): ...\n    def get(self): ...\n"
    )
    (folder / "module.py").write_text(
        """
from cuda.base import _Base

if TYPE_CHECKING:
    Alias = int

if not TYPE_CHECKING:
    def only_at_run_time(): ...

class Derived(_Base):
    size: "int | None" = None

    def __init__(self, path: "str") -> "None": ...

    if TYPE_CHECKING:
        @overload
        def get(self, key: str) -> str: ...
        @overload
        def get(self, key: int) -> int: ...

    def get(self, key: int | str) -> int | str: ...
"""
    )
    stubs = site[0].Stubs(tmp_path)
    assert list(stubs.names("cuda.module")) == ["_Base", "Alias", "Derived"]
    bases, members = stubs.bases_and_members("cuda.module", "Derived")
    assert bases == ["Public"]
    assert [ast.unparse(member).removeprefix("@overload\n").replace(":\n    ...", "") for member in members] == [
        "size: int | None = None",
        "def __init__(self, path: str) -> None",
        "def get(self, key: str) -> str",
        "def get(self, key: int) -> int",
        "def close(self)",
    ]


def test_properties_that_a_helper_makes_are_described(pages):
    page = pages["cuda.core.system.md"]
    entry = page.partition("{ #Device.cuda_compute_capability }")[2].partition("\n#### ")[0]
    assert "cuda_compute_capability: tuple[int, int]" in entry and "Compute capability" in entry
    assert "_Queried" not in page


def test_members_of_private_bases_are_described(pages):
    assert "{ #DeviceMemoryResource.allocate }" in pages["cuda.core.md"]
    assert "`_MemPool`" not in pages["cuda.core.md"]


def test_long_pages_list_their_names(pages):
    page = pages["cuda.bindings.driver.md"]
    assert "hide: [toc]" in page and '<a href="#cuMemAlloc">cuMemAlloc</a>' in page
    assert "hide: [toc]" not in pages["cuda.core.md"]


def test_sentences_of_every_function_are_not_searched(pages):
    page = pages["cuda.bindings.driver.md"]
    entry = page.split("{ #cuMemAlloc }")[1].split("\n### ")[0]
    before, _, excluded = entry.partition('<div markdown="1" data-search-exclude>')
    assert "**Parameters**" in before and "**Returns**" in excluded
    assert entry.count("<div markdown") == entry.count("</div>") - 1  # that of the signature


def test_links_of_the_reference_lead_to_entries(pages):
    anchors = {name: set(re.findall(r"\{ #(\S+) \}", text)) for name, text in pages.items()}
    links = {link for text in pages.values() for link in re.findall(r"\]\((cuda\.[\w.]+\.md)#([\w.]+)\)", text)}
    assert len(links) > 50
    constants = {(name, i) for name, text in pages.items() for i in re.findall(r'id="(\w+)"', text)}
    assert [link for link in links if link[1] not in anchors[link[0]] and link not in constants] == []


def test_docstrings_become_markdown(site):
    text = site[1].to_markdown(
        """Frees *n* <bytes> of ``a|b``, see :meth:`close` and `the manual <https://x.org/a_b>`_.

        Parameters
        ----------
        n : int
            How many.
        *rest
            A table:

            =====  ======
            int    4 [or] 8
            float  8
            =====  ======

        Returns
        -------
        A tuple.

        int
            The rest.

        Examples
        --------
        >>> 1 + 1
        2

        >>> 3
        3
        """,
        lambda name: f"[`{name}`](here)",
    )
    assert r"Frees \*n\* &lt;bytes> of `a|b`, see [`close`](here) and [the manual](https://x.org/a_b)." in text
    assert "- `n` (*int*): How many." in text
    assert "    | int | 4 &#91;or&#93; 8 |\n    | float | 8 |" in text
    assert "\nA tuple.\n" in text and "- `int`: The rest." in text
    assert "```pycon\n>>> 1 + 1\n2\n\n>>> 3\n3\n```" in text
