"""What tests share. Nothing here is collected by pytest, except the tests of `threads`.

The folder `tests` is on the module path (`pythonpath` in pyproject.toml); child programs get it from `TESTS`.
"""

import pathlib

TESTS = pathlib.Path(__file__).resolve().parent.parent
