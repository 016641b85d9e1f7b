"""Code blocks of README.md and docs/ run on the CPU device and print what the pages show.

`helpers/pages.py` describes how a page marks its blocks; as a program it also writes outputs into pages.
"""

import textwrap

import pytest

from helpers import TESTS, pages

ROOT = TESTS.parent
PAGES = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if pages.read(path).blocks)
#: Blocks that are not run, with the beginnings of their reasons. Others fail the test.
NOT_RUN = {
    "docs/howto/cache-compiled-programs.md": ["needs a Redis server"],
    "docs/howto/mix-with-numpy-and-dlpack.md": ["needs PyTorch and a GPU"],
    "docs/style.md": ["a comment without code"],
    "docs/testing.md": ["tests/packaging/test_testing_recipes.py runs it"] * 4,
    "docs/tutorials/from-other-packages.md": ["needs CuPy and a GPU", "needs numba-cuda;", "needs PyCUDA and a GPU"],
}

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_of_page_print_what_it_shows(path):
    page = pages.check(path)
    assert page.problems == [], "\n".join(page.problems)
    missing = [reason for _, reason in page.left_out if reason.endswith(" is not installed")]
    reasons = [reason for _, reason in page.left_out if reason not in missing]
    allowed = NOT_RUN.get(str(path.relative_to(ROOT)), [])
    assert len(reasons) == len(allowed), reasons
    assert all(reason.startswith(start) for reason, start in zip(reasons, allowed)), reasons
    if missing and len(missing) == len(page.blocks):
        pytest.skip(", ".join(missing))


def test_pages_with_code_are_found():
    names = {str(path.relative_to(ROOT)) for path in PAGES}
    assert {"README.md", "docs/core.md", "docs/tutorials/first-kernel.md", "docs/howto/time-a-kernel.md"} <= names
    assert set(NOT_RUN) <= names


def check(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(textwrap.dedent(text))
    return pages.check(page)


def test_blocks_share_a_namespace_and_outputs_are_compared(tmp_path):
    text = """\
        ```python
        x = 1
        ```

        ```python
        print(x + 1, "in 3.5 ms")
        ```

        ```text
        2 in 17 ms
        ```
        """
    assert check(tmp_path, text).problems == []
    (problem,) = check(tmp_path, text.replace("2 in", "3 in")).problems
    assert "the page shows\n3 in 17 ms" in problem and "2 in 3.5 ms" in problem


@pytest.mark.parametrize(
    "text, problem",
    [
        ("```python\nprint(1)\n```\n", "prints what the page does not show"),
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```python\nimport os; os._exit(3)\n```\n", "the interpreter died: 3"),
        ("<!-- run: alone -->\n```python\nraise SystemExit(3)\n```\n", "exit status 3"),
        ("<!-- run: fails -->\n```python\nx = 1\n```\n", "exit status 0"),
        ("<!-- run: file a.py -->\n```python\nx = 1\n```\n", "no console block uses the file a.py"),
        ("<!-- run: console -->\n```console\n$ echo 1\n2\n```\n", "the page shows"),
        ("<!-- run: twice -->\n```python\nx = 1\n```\n", "unknown mark"),
        ("```rust\nfn main() {}\n```\n", "needs a mark"),
        ("<!-- from: crates/core/examples/saxpy.rs -->\n```rust\nlet device = Nothing;\n```\n", "not in crates/core"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path, text, problem):
    assert problem in "\n".join(check(tmp_path, text).problems)


def test_reasons_and_missing_programs_are_counted(tmp_path):
    page = check(
        tmp_path,
        """\
        <!-- not run: needs a printer -->
        ```python
        import printer
        ```

        <!-- run: console, needs no-such-program -->
        ```console
        $ no-such-program
        ```
        """,
    )
    assert [reason for _, reason in page.left_out] == ["needs a printer", "no-such-program is not installed"]
    assert page.problems == []
