"""Modules that tests, and programs started by tests, share.

The folder `tests` is on the module path (`pythonpath` in pyproject.toml); child programs started through
`programs.run_python` have it on theirs.
"""

import pathlib

TESTS = pathlib.Path(__file__).resolve().parent.parent
