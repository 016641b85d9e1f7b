"""`tests/check_assertions.py`, which finds tests without an assertion."""

import subprocess
import sys
import textwrap

import pytest

from helpers import TESTS

FILES = {
    "conftest.py": """
        import pytest

        @pytest.fixture
        def prepared():
            assert 1 + 1 == 2
            return 3

        @pytest.fixture
        def verified():
            yield 3
            assert 1 + 1 == 2

        @pytest.fixture
        def released():
            def compare(value):
                assert value is None
            return compare
    """,
    "helpers/__init__.py": "",
    "helpers/programs.py": """
        def output(code):
            assert start(code) == 0

        def start(code):
            return 0

        def twice(code):
            output(code), output(code)
    """,
}
WITH = [
    "def test(): assert True",
    "import pytest\ndef test():\n    with pytest.raises(ValueError): int('x')",
    "import warnings\ndef test():\n    warnings.simplefilter('error')\n    int('1')",
    "from helpers.device import check\ndef test(): check(3)",
    "from helpers.programs import twice\ndef test(): twice('1')",
    "from helpers import programs\ndef test(): programs.output('1')",
    "def same(a): assert a\ndef test(): same(1)",
    "def test(verified): int('1')",
    "def test(released): released(None)",
    "class TestIt:\n    def same(self): assert self\n    def test(self): self.same()",
    "import pytest\n@pytest.fixture(autouse=True)\ndef healthy():\n    yield\n    assert True\ndef test(): int('1')",
]
WITHOUT = [
    "def test(): int('1')",
    "import warnings\ndef test():\n    warnings.simplefilter('ignore')\n    int('1')",
    "from helpers.programs import start\ndef test(): start('1')",
    "from helpers import programs\ndef test(): programs.start('1')",
    "def test(): {}.output('1')\ndef output(x): assert x",
    "def test(prepared): int('1')",
    "def test(released): int('1')",
    "def test(made): made.raises('1')",
    "if False:\n    pass\nelse:\n    def test(): pass",
]


def check(folder, text):
    for name, content in {**FILES, "test_it.py": text.replace("def test(", "def test_one(")}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(textwrap.dedent(content))
    command = [sys.executable, str(TESTS / "check_assertions.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("text", WITH)
def test_assertions_are_found(tmp_path, text):
    done = check(tmp_path, text)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text", WITHOUT)
def test_tests_without_assertion_are_reported(tmp_path, text):
    done = check(tmp_path, text)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_it.py" in done.stdout and "test_one has no assertion" in done.stdout
