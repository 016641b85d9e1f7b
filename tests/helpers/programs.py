"""Python programs in processes of their own: for crashes, process exit, and settings that are read once."""

import os
import subprocess
import sys
import textwrap

from helpers import TESTS


def python(code, *arguments, options=(), timeout=120, text=True, environment=(), **more):
    """The completed process of `python OPTIONS -c CODE ARGUMENTS`; the code may be indented.

    The program can import `helpers`. `environment` changes this process's environment; None removes a variable.
    """
    variables = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(TESTS)))))
    for name, value in dict(environment).items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = str(value)
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code), *map(str, arguments)],
        env=variables,
        capture_output=True,
        text=text,
        timeout=timeout,
        **more,
    )


def output(code, *arguments, returncode=0, **more):
    """What the program prints; asserts its exit status."""
    done = python(code, *arguments, **more)
    assert done.returncode == returncode, (done.returncode, done.stdout[-1000:], done.stderr[-3000:])
    return done.stdout
