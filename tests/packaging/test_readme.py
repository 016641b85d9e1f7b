"""The example at the top of README.md prints what README.md shows."""

import re
import subprocess
import sys

from helpers import TESTS

README = TESTS.parent / "README.md"


def test_first_example_prints_the_output_shown():
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    languages = [language for language, _ in blocks]
    program = languages.index("python")
    shown = blocks[program + 1][1]
    command = [sys.executable, "-W", "ignore", "-c", blocks[program][1]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # The device's name differs from machine to machine.
    numbers = re.search(r"\[.*\]", shown).group()
    assert done.stdout.strip().endswith(numbers), done.stdout
