"""A run of pytest in which the plugin is in use: the device, the skipped tests, the state that each test leaves behind.

Invariant: the device is chosen before the first test, and does not change until the process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from cupyrite import run

from . import ACTIONS, CHECKS, FIXTURES, CudaErrorWarning, CudaLeakWarning, is_own
from ._driver import LIBRARY, Driver
from ._query import Facts, query
from ._settings import Settings

if TYPE_CHECKING:
    from cuda.core import Device, Stream

#: JSON for the processes that this plugin starts (`both`) and for workers of xdist: "parent" is the id of the process that
#: wrote it, so that a pytest which a test starts does not take it for its own.
VARIABLE = "PYTEST_CUPYRITE_SESSION"
WORKER = "PYTEST_XDIST_WORKER"
#: Devices that tests of this process use; a process cannot change from one to the other.
_process: dict[str, str] = {}

NUMBA = frozenset({"numba.cuda", "numba_cuda_mlir"})

#: The exception that reported an error of the device; None if the plugin has reported it.
REPORTED = pytest.StashKey["BaseException | None"]()
#: Present if a phase of the test raised an exception.
FAILED = pytest.StashKey[bool]()
#: The memory in use before the test.
MEMORY = pytest.StashKey["int | None"]()


class CudaSession:
    """The plugin's state of one run."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = Settings.read(config)
        self.facts: Facts | None = None
        self.child: dict[str, Any] = {}
        self.in_header = False
        self._driver: Driver | None = None
        self._devices: tuple[Device, ...] | None = None
        self._unusable: str | None = None
        self._registered = False
        self._failed: list[str] = []
        self._fixtures: dict[str, tuple[pytest.FixtureDef[Any], Any]] = {}

    # ------------------------------------------------------------------------------------------------------------------
    # The device

    def start(self) -> None:
        """Chooses the device and prepares this process and its children for it. Raises UsageError if it is not there."""
        self._change("LD_LIBRARY_PATH", os.environ.get("LD_LIBRARY_PATH"))
        message = self._message()
        if "device" in message:
            # A process of `both`, whose command line says `both` too.
            self.settings = dataclasses.replace(self.settings, device=message["device"])
        device = self.settings.device
        for variable, value in (
            ("CUPYRITE_CPU_DEVICES", self.settings.devices),
            ("CUPYRITE_CPU_COMPUTE_CAPABILITY", self.settings.arch),
        ):
            if value is not None:
                self._change(variable, value)
        if device == "both":
            # Each device has a process of its own; that of the GPU may not be there.
            query(environment_for("gpu"), "both")
            return
        facts = Facts.parse(message["facts"]) if "facts" in message else None
        self.child = {key: message[key] for key in ("device", "summary", "junit") if key in message}
        self.facts = facts or query(
            {**os.environ, "CUPYRITE_DEVICE": device}, device if device == "gpu" else None, self.settings.arch_place
        )
        if WORKER in os.environ and (facts or not message):
            self._rotate()
        self._use(self.facts.device)
        names = {"parent": os.getpid(), "facts": self.facts.dump()}
        self._change(VARIABLE, json.dumps(names))

    def _message(self) -> dict[str, Any]:
        text = os.environ.pop(VARIABLE, None)
        message: dict[str, Any] = json.loads(text) if text else {}
        if message.get("parent") != os.getppid() or ("facts" in message and WORKER not in os.environ):
            return {}
        if "addopts" in message:
            self._change("PYTEST_ADDOPTS", message["addopts"])
        return message

    def _change(self, variable: str, value: str | None) -> None:
        """Sets an environment variable until the run ends."""
        before = os.environ.get(variable)

        def restore() -> None:
            _set(variable, before)

        _set(variable, value)
        self.config.add_cleanup(restore)

    def _rotate(self) -> None:
        """Makes device i mod N the first one of worker i; the others follow, so that a worker still sees all."""
        assert self.facts is not None
        count = len(self.facts.names)
        number = re.fullmatch(r"gw(\d+)", os.environ[WORKER])
        if number is None or count < 2:
            return
        first = int(number[1]) % count
        entries = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")][:count]
        if len(entries) < count:
            entries = [str(ordinal) for ordinal in range(count)]
        self._change("CUDA_VISIBLE_DEVICES", ",".join(entries[first:] + entries[:first]))
        self.facts = self.facts.rotated(first)

    def _use(self, device: str) -> None:
        """Lets everything in this process and its children that loads the driver find the device."""
        if _process.setdefault("device", device) != device:
            raise pytest.UsageError(
                f"this process already uses the {_process['device']} device; start another process for the {device} device"
            )
        self._change("CUPYRITE_DEVICE", device)
        if device == "gpu":
            return
        try:
            run.check_files()
        except run.Refused as problem:
            raise pytest.UsageError(str(problem)) from None
        if os.pathsep in run.FOLDER:
            raise pytest.UsageError(
                f"{run.FOLDER}: LD_LIBRARY_PATH cannot hold a folder with '{os.pathsep}' in its name"
            )
        # For child processes. The loader read the variable when this process started.
        self._change("LD_LIBRARY_PATH", run.library_path(run.FOLDER))
        for name, value in run.triton_variables("cpu").items():
            self._change(name, value)
        # For this process: the loader compares a name with the SONAMEs of the libraries that are loaded before it searches.
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            ctypes.CDLL(os.path.join(run.FOLDER, name))
        if not hasattr(ctypes.CDLL(LIBRARY), "cupyrite_cpu_device"):
            raise pytest.UsageError(
                "this process has loaded NVIDIA's driver before the plugin started; "
                "start pytest with: python -m cupyrite run --device cpu -m pytest"
            )

    @property
    def driver(self) -> Driver:
        """The driver of the chosen device."""
        if self._driver is None:
            assert self.facts is not None
            self._driver = Driver(self.facts.device)
        return self._driver

    def devices(self) -> tuple[Device, ...]:
        """All devices; the first is current in this thread."""
        if self._devices is None:
            try:
                from cuda.core import Device
            except ImportError as error:
                raise pytest.UsageError(f"{error}. The fixtures need cuda.core: python -m cupyrite stand-in") from None
            self._devices = tuple(Device(ordinal) for ordinal in range(len(Device.get_all_devices())))
        self._devices[0].set_current()
        return self._devices

    # ------------------------------------------------------------------------------------------------------------------
    # What pytest shows

    def configure(self) -> None:
        """Registers the hooks of a run in which the plugin is in use."""
        if self.settings.device == "both":
            return
        if path := self.child.get("junit"):
            self.config.option.xmlpath = path
        if not self._registered:
            self._registered = True
            self.config.pluginmanager.register(self, "cupyrite-session")

    def line(self) -> str:
        """The devices in one line."""
        assert self.facts is not None
        names, count = self.facts.names, len(self.facts.names)
        kind = "CPU device" if self.facts.device == "cpu" else "GPU"
        major, minor = self.facts.capabilities[0]
        text = f"cuda: {kind}: {names[0]}, compute capability {major}.{minor}, {count} device{'s' * (count > 1)}"
        if self.facts.device == "gpu" and (self.settings.devices or self.settings.arch):
            text += " (number and compute capability can be chosen for the CPU device only)"
        elif "auto" in self.facts.reason:
            text += " (no NVIDIA driver is installed)" if self.facts.device == "cpu" else ""
        return text

    def pytest_report_header(self) -> str:
        self.in_header = True
        return self.line()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.in_header:
            # The plugin was started by a fixture or a marker, after the header.
            terminalreporter.write_line(self.line())
        if path := self.child.get("summary"):
            counts = {key: len(found) for key, found in terminalreporter.stats.items() if key}
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"counts": counts, "failed": self._failed}, file)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.child:
            self._failed.append(report.nodeid)

    # ------------------------------------------------------------------------------------------------------------------
    # Which tests run

    def prepare(self, items: list[pytest.Item]) -> None:
        """Prepares collected tests that use CUDA. Raises UsageError for a marker with invalid arguments."""
        if self.settings.device == "both":
            return
        self.configure()
        for item in items:
            for mark in item.iter_markers():
                if check := MARKS.get(mark.name):
                    try:
                        check(mark)
                    except ValueError as error:
                        raise pytest.UsageError(f"{item.nodeid}: marker {mark.name}: {error}") from None
            names = getattr(item, "fixturenames", None)
            if names is not None and CHECKS not in names:
                names.insert(_place(item, names), CHECKS)

    # Innermost: the wrappers of other plugins prepare what their teardown needs, also for a skipped test.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if _uses(item):
            self._skip(item)
        with self._failures(item):
            return (yield)

    def _skip(self, item: pytest.Item) -> None:
        """Skips a test that this device cannot run, with the reason."""
        assert self.facts is not None
        is_cpu, count = self.facts.device == "cpu", len(self.facts.names)
        if self._unusable:
            pytest.fail(self._unusable, pytrace=False)
        for mark in item.iter_markers():
            if mark.name == "gpu" and is_cpu:
                _skip("needs an NVIDIA GPU; this run uses the CPU device")
            if mark.name == "cpu_device" and not is_cpu:
                _skip("needs the CPU device; this run uses a GPU")
            if mark.name == "multi_gpu" and count < (needed := needed_devices(mark)):
                hint = f"; --cuda-devices={needed} makes more of the CPU device" if is_cpu else ""
                _skip(f"needs {needed} CUDA devices; this run has {count}{hint}")
            if mark.name == "min_arch" and self.facts.capabilities[0] < (version := needed_version(mark)):
                needs, has = (f"{major}.{minor}" for major, minor in (version, self.facts.capabilities[0]))
                hint = f"; --cuda-arch={needs} sets that of the CPU device" if is_cpu else ""
                _skip(f"needs compute capability {needs}; this device has {has}{hint}")

    # ------------------------------------------------------------------------------------------------------------------
    # What a test leaves behind

    def begin(self, item: pytest.Item) -> None:
        """Before the function-scoped fixtures of a test that uses CUDA."""
        if self._devices is not None:
            self._devices[0].set_current()
        item.stash[MEMORY] = self._memory()

    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
        if fixturedef.scope == "session" and fixturedef.argname in FIXTURES and is_own(fixturedef):
            self._fixtures[fixturedef.argname] = (fixturedef, request)

    # Innermost: what the driver prints meanwhile belongs to the test's captured output.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        intended = self._action(item, "cuda_errors", self.settings.errors) == "ignore"
        # Objects that die in the test after its fault.
        with self._failures(item), _silent_cuda_errors() if intended else contextlib.nullcontext():
            result = yield
        self._report(item)
        return result

    def end(self, item: pytest.Item) -> None:
        """After the function-scoped fixtures of a test that uses CUDA."""
        if self._recover(item):
            return
        # The traceback of a failure owns the test's objects. numba-cuda keeps kernels loaded and frees arrays late.
        if FAILED in item.stash or not NUMBA.isdisjoint(sys.modules):
            return
        before = item.stash.get(MEMORY, None)
        after = self._memory()
        if before is None or after is None or after <= before:
            return
        action = self._action(item, "cuda_leaks", self.settings.leaks)
        if action == "ignore" or (after := self._memory_after_collection()) is None or after <= before:
            return
        text = (
            f"the test left {after - before} bytes of device memory allocated (buffers, loaded modules). "
            'Close them, or allow it: @pytest.mark.cuda_leaks("ignore")'
        )
        _act(item, action, text, CudaLeakWarning)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            with self._failures(item):
                result = yield
        finally:
            # Tests without the fixtures, and faults in fixtures of a larger scope.
            self._recover(item)
        return result

    @contextlib.contextmanager
    def _failures(self, item: pytest.Item) -> Iterator[None]:
        """Remembers that a phase of a test failed, and whether a device was in an error state: the error is reported then."""
        try:
            yield
        except BaseException as error:
            item.stash[FAILED] = True
            if self._problem():
                # The traceback owns objects of the test, which are freed before the context is reset.
                item.stash[REPORTED] = error
            raise

    def _report(self, item: pytest.Item) -> bool:
        """Waits for the devices and reports an error that the test has not reported. Returns whether there is an error."""
        if not (problem := self._problem()):
            return False
        if REPORTED not in item.stash:
            item.stash[REPORTED] = None
            text = (
                f"the test left a CUDA error behind: {problem}. No call reported it, or the test caught it. "
                'If it is intended: @pytest.mark.cuda_errors("ignore")'
            )
            _act(item, self._action(item, "cuda_errors", self.settings.errors), text, CudaErrorWarning)
        return True

    def close(self, stream: Stream) -> None:
        """Closes the stream of the fixture. In a context after a fault that fails, and the fault is reported elsewhere."""
        with contextlib.suppress(RuntimeError):
            stream.close()

    def _ordinals(self) -> range:
        assert self.facts is not None
        return range(len(self.facts.names))

    def _problem(self) -> str | None:
        """Waits for the devices and returns the first error, or None."""
        for ordinal in self._ordinals():
            if status := self.driver.synchronize(ordinal):
                return f"{self.driver.error_name(status)} on device {ordinal}"
        return None

    def _recover(self, item: pytest.Item) -> bool:
        """Reports an error that was not reported, and resets the primary contexts. Returns whether there was an error."""
        if self._unusable or not (problem := self._problem()):
            return False
        try:
            self._report(item)
        finally:
            self._release(item)
            still = None
            for ordinal in self._ordinals():
                if self.driver.synchronize(ordinal) and (status := self.driver.reset(ordinal)):
                    still = still or self.driver.error_name(status)
            if still := still or self._problem():
                self._unusable = (
                    f"the device is unusable since {item.nodeid} ({problem}): resetting its context failed ({still}). "
                    "A GPU stays unusable for the process: run these tests again without that one, or on the CPU device"
                )
            elif self._devices is not None:
                self._devices[0].set_current()
        return True

    def _release(self, item: pytest.Item) -> None:
        """Frees what is known to belong to a context that will be reset."""
        with _silent_cuda_errors():
            if error := item.stash.get(REPORTED, None):
                traceback.clear_frames(error.__traceback__)
            item.stash[REPORTED] = error = None
            # Fixtures of all scopes that depend on these are torn down with them, and set up again for the next test.
            for definition, request in self._fixtures.values():
                try:
                    definition.finish(request)
                except BaseException as problem:
                    if not _is_cuda_error(problem):
                        raise
            self._fixtures.clear()
            gc.collect()

    def _memory(self) -> int | None:
        return self.driver.memory_in_use(len(self._ordinals()))

    def _memory_after_collection(self) -> int | None:
        """As `_memory`, after everything that is freed late is freed."""
        gc.collect()
        return None if self._problem() else self._memory()

    def _action(self, item: pytest.Item, name: str, default: str) -> str:
        mark = item.get_closest_marker(name)
        return default if mark is None else needed_action(mark)


def environment_for(device: str) -> dict[str, str]:
    """The environment of a process that uses the device."""
    environment = {**os.environ, "CUPYRITE_DEVICE": device}
    if device == "gpu":
        environment.pop("LD_LIBRARY_PATH", None)
        if path := run.library_path():
            environment["LD_LIBRARY_PATH"] = path
        for name in run.triton_variables("gpu"):
            environment.pop(name, None)
    return environment


def needed_devices(mark: pytest.Mark) -> int:
    """The argument of `multi_gpu`."""
    count = _argument(mark, "count", 2)
    if isinstance(count, bool) or not isinstance(count, int) or count < 2:
        raise ValueError(f"{count!r}: expected an integer from 2")
    return count


def needed_version(mark: pytest.Mark) -> tuple[int, int]:
    """The argument of `min_arch`."""
    version = _argument(mark, "version", None)
    text = ".".join(map(str, version)) if isinstance(version, tuple) else str(version)
    if found := re.fullmatch(r"(\d+)\.(\d)|sm_(\d+)(\d)[af]?", text):
        major, minor = (part for part in found.groups() if part is not None)
        return int(major), int(minor)
    raise ValueError(f'{version!r}: expected a compute capability, such as "9.0", (9, 0) or "sm_90"')


def needed_action(mark: pytest.Mark) -> str:
    """The argument of `cuda_errors` and `cuda_leaks`."""
    action = _argument(mark, "action", None)
    if action not in ACTIONS:
        raise ValueError(f"{action!r}: expected error, warn or ignore")
    return str(action)


def _no_argument(mark: pytest.Mark) -> None:
    if mark.args or mark.kwargs:
        raise ValueError("expected no arguments")


MARKS = {
    "gpu": _no_argument,
    "cpu_device": _no_argument,
    "multi_gpu": needed_devices,
    "min_arch": needed_version,
    "cuda_errors": needed_action,
    "cuda_leaks": needed_action,
}


def _argument(mark: pytest.Mark, name: str, default: object) -> Any:
    if len(mark.args) + len(mark.kwargs) > 1 or set(mark.kwargs) - {name}:
        raise ValueError(f"expected one argument: {name}")
    return mark.args[0] if mark.args else mark.kwargs.get(name, default)


def _uses(item: pytest.Item) -> bool:
    """Whether `prepare` found that the test uses CUDA."""
    return CHECKS in getattr(item, "fixturenames", ())


def _place(item: pytest.Item, names: list[str]) -> int:
    """The index of the first function-scoped fixture. pytest sets fixtures up in the order of the list."""
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for index, name in enumerate(names):
        if (found := definitions.get(name)) and found[-1].scope == "function":
            return index
    return len(names)


def _act(item: pytest.Item, action: str, text: str, category: type[Warning]) -> None:
    if action == "error":
        pytest.fail(text, pytrace=False)
    if action == "warn":
        warnings.warn_explicit(category(text), None, *_where(item))


def _is_cuda_error(error: BaseException) -> bool:
    """Whether the exception is that of `cuda.core`, or a group of these."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_cuda_error, error.exceptions))
    return type(error).__name__ == "CUDAError"


def _where(item: pytest.Item) -> tuple[str, int]:
    """File and line of a test, for a warning."""
    path, line, _ = item.location
    return str(item.config.rootpath / path), (line or 0) + 1


def _skip(reason: str) -> NoReturn:
    # With the test's place in the report, not this one.
    raise pytest.skip.Exception(reason, _use_item_location=True)


def _set(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


@contextlib.contextmanager
def _silent_cuda_errors() -> Iterator[None]:
    """Objects of a context after a fault cannot be freed; that they say so would hide the fault."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not _is_cuda_error(unraisable.exc_value):
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
