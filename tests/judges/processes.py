"""Commands with a limit."""

import os
import signal
import subprocess
import time


def execute(command, folder, variables, seconds):
    """Exit status (None after the limit), seconds and output of a command in a process group of its own.

    The group is killed after `seconds`. Standard error is part of the output.
    """
    begun = time.monotonic()
    process = subprocess.Popen(
        [str(word) for word in command], cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True, text=True, errors="replace",
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = None
    return status, time.monotonic() - begun, output
