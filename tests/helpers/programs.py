"""Python programs in processes of their own: for crashes, process exit, and settings that are read once.

The programs can import `helpers`. Their code may be indented. `environment` changes this process's environment for them;
None removes a variable.
"""

import os
import subprocess
import sys
import textwrap

from helpers import TESTS


def _popen_arguments(code, arguments, options, environment, text):
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(TESTS))))
    variables = dict(os.environ, PYTHONPATH=path)
    for name, value in dict(environment).items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = str(value)
    command = [sys.executable, *options, "-c", textwrap.dedent(code), *map(str, arguments)]
    return {"args": command, "env": variables, "text": text}


def start(code, *arguments, options=(), text=True, environment=(), **more):
    """The running process of `python OPTIONS -c CODE ARGUMENTS`, with pipes for stdout and stderr."""
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen(**_popen_arguments(code, arguments, options, environment, text), **more)


def python(code, *arguments, options=(), text=True, environment=(), timeout=120, **more):
    """The completed process of `python OPTIONS -c CODE ARGUMENTS`."""
    words = _popen_arguments(code, arguments, options, environment, text)
    return subprocess.run(**words, capture_output=True, timeout=timeout, **more)


def output(code, *arguments, returncode=0, **more):
    """What the program prints; asserts its exit status."""
    done = python(code, *arguments, **more)
    assert done.returncode == returncode, (done.returncode, done.stdout[-1000:], done.stderr[-3000:])
    return done.stdout
