"""Facts about the devices, determined in a process of its own.

pytest's process then neither loads the native module nor initialises the driver: programs that fork before their first CUDA
call work as they do without the plugin, and a driver that hangs or crashes does not take pytest with it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import warnings

import pytest

SECONDS = 120
CAPABILITY = "CUPYRITE_CPU_COMPUTE_CAPABILITY"
CODE = "import sys; sys.path.insert(0, {!r}); from cupyrite.pytest_plugin import _query; _query.main()"


@dataclasses.dataclass(frozen=True)
class Facts:
    """The devices that a process sees."""

    #: "cpu" or "gpu".
    device: str
    #: Why this device was chosen.
    reason: str
    #: The name of each device.
    names: tuple[str, ...]
    #: (major, minor) of each device.
    capabilities: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> Facts:
        """The facts that `dump` wrote."""
        data = json.loads(text)
        capabilities = tuple((major, minor) for major, minor in data["capabilities"])
        return cls(data["device"], data["reason"], tuple(data["names"]), capabilities)

    def dump(self) -> str:
        """The facts as JSON."""
        return json.dumps(dataclasses.asdict(self))

    def rotated(self, first: int) -> Facts:
        """The facts with device `first` at the start."""
        names = self.names[first:] + self.names[:first]
        return Facts(self.device, self.reason, names, self.capabilities[first:] + self.capabilities[:first])


def query(environment: dict[str, str], option: str | None = None, arch_place: str = "") -> Facts:
    """The devices of a process with this environment. Raises UsageError if CUDA cannot be used there.

    `option` is the value of --cuda-device if it chose the device of the environment, and `arch_place` where the compute
    capability was given.
    """
    # This package, also if the tests have changed sys.path since it was imported.
    code = CODE.format(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise pytest.UsageError(
            f"the CUDA driver did not answer in {SECONDS} s; python -m cupyrite examines the installation"
        ) from None
    if done.returncode == 0:
        return Facts.parse(done.stdout.splitlines()[-1])
    message = done.stderr.strip() or f"the query of the CUDA devices ended with status {done.returncode}"
    if option:
        # Options have precedence over the variable that the message names.
        message = message.replace("CUPYRITE_DEVICE=gpu:", f"--cuda-device={option}:")
        message = message.replace("CUPYRITE_DEVICE=cpu", "--cuda-device=cpu")
    if message.startswith(f"{CAPABILITY}="):
        raise pytest.UsageError((arch_place or f"{CAPABILITY}=") + message.removeprefix(f"{CAPABILITY}="))
    raise pytest.UsageError(f"{message}\npython -m cupyrite examines the installation")


def _unsupported() -> str | None:
    """What is wrong with a compute capability that was asked for: NVRTC, if it is installed, compiles nothing for it."""
    given = os.environ.get(CAPABILITY, "").strip()
    if not given:
        return None
    from cuda.bindings import nvrtc

    try:
        status, major, minor = nvrtc.nvrtcVersion()
        supported = nvrtc.nvrtcGetSupportedArchs()[1]
    except (ImportError, OSError, RuntimeError):
        return None
    names = [f"{number // 10}.{number % 10}" for number in supported or ()]
    if status != 0 or not names or given in names:
        return None
    return f"{CAPABILITY}={given!r}: NVRTC {major}.{minor} does not compile for it; expected {', '.join(names)}"


def main() -> None:
    """Prints the facts about this process's devices as JSON, or a message to standard error and exits with status 1."""
    from ._driver import Driver

    try:
        from cupyrite import _native

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reason, device = _native.device_reason(), _native.device()
        driver = Driver(device)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        sys.exit(str(error))
    status = driver.initialize()
    count = driver.count() if status == 0 else 0
    if not count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hint = "" if visible is None else f" (CUDA_VISIBLE_DEVICES={visible!r})"
        sys.exit(f"no CUDA device can be used: {driver.error_name(status or 100)}{hint}. {reason}")
    if device == "cpu" and (problem := _unsupported()):
        sys.exit(problem)
    ordinals = range(count)
    names = tuple(map(driver.name, ordinals))
    print(Facts(device, reason, names, tuple(map(driver.compute_capability, ordinals))).dump())
