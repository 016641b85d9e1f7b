"""NVIDIA's wheels, downloaded once by pip, below the target folder.

Without a network the tests that need them are skipped; with CUPYRITE_REQUIRE_WHEELS=1 or CI set that is a failure, and so is any
other failure of pip.
"""

import hashlib
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "pathfinder-wheels"
OFFLINE = (
    "NameResolutionError", "Temporary failure in name resolution", "Name or service not known", "NewConnectionError",
    "Network is unreachable", "Connection refused", "ConnectTimeoutError", "ProxyError", "timed out", "getaddrinfo",
)  # fmt: skip


def required():
    """Whether a missing network is a failure."""
    return any(os.environ.get(n, "") not in ("", "0", "false") for n in ("CUPYRITE_REQUIRE_WHEELS", "CI"))


FAILED = []  # A failure of pip is not repeated by each test.


def downloaded(names):
    """A folder with the unpacked wheels, downloaded on first use."""
    key = hashlib.sha256("\n".join([platform.machine(), *sorted(names)]).encode()).hexdigest()[:16]
    folder = CACHE / key
    if folder.is_dir():
        return folder
    for outcome, why in FAILED:
        outcome(why)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        target = pathlib.Path(work) / "unpacked"
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--no-compile"]
        command += ["--disable-pip-version-check", "--no-input", "--retries", "1", "--progress-bar", "off"]
        # One call: a second one would replace the folder `nvidia` of the first.
        done = subprocess.run([*command, "--target", str(target), *names], capture_output=True, text=True)
        text = done.stdout + done.stderr
        if done.returncode != 0:
            if any(sign in text for sign in OFFLINE) and not required():
                FAILED.append((pytest.skip, "needs the network once, to download NVIDIA's wheels"))
            else:
                FAILED.append((pytest.fail, f"pip install ended with status {done.returncode}:\n{text[-4000:]}"))
            return downloaded(names)
        try:
            target.rename(folder)
        except OSError:  # Another run was faster.
            if not folder.is_dir():
                raise
    return folder
