"""The pytest plugin: tests of CUDA programs on a GPU or on the CPU device.

Belongs here: what pytest sees (options, settings, markers, fixtures, hooks of collection). The plugin is inert until a run uses
one of them: this module imports pytest and nothing else, and neither loads the native module nor changes the environment.
The other modules of the package are imported when the plugin starts.

`-p no:cupyrite` turns the plugin off. Users' documentation: docs/testing.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cuda.core import Device, Stream

    from ._session import CudaSession

#: The values of `--cuda-device`.
DEVICES = ("auto", "gpu", "cpu", "both")
#: What is done about an error or memory that a test left behind.
ACTIONS = ("error", "warn", "ignore")
#: Fixtures of this module: a test that requests one of them uses CUDA.
FIXTURES = frozenset({"cuda_device", "cuda_stream", "cuda_devices"})
#: The markers, as `pytest --markers` shows them.
MARKERS = {
    "gpu": "gpu: needs an NVIDIA GPU; skipped on the CPU device",
    "cpu_device": "cpu_device: needs Cupyrite's CPU device; skipped on a GPU",
    "multi_gpu": "multi_gpu(count=2): needs several CUDA devices; on the CPU device see --cuda-devices",
    "min_arch": 'min_arch(version): needs a compute capability, such as min_arch("9.0"); on the CPU device see --cuda-arch',
    "cuda_errors": "cuda_errors(action): error, warn or ignore, instead of the setting cuda_errors, for one test",
    "cuda_leaks": "cuda_leaks(action): error, warn or ignore, instead of the setting cuda_leaks, for one test",
}
#: Name of the fixture that surrounds the function-scoped fixtures of a test that uses CUDA.
CHECKS = "_cuda_checks"

SESSION = pytest.StashKey["CudaSession"]()


class CudaLeakWarning(UserWarning):
    """Device memory that a test allocated is still in use after it."""


class CudaErrorWarning(UserWarning):
    """A test left a CUDA error behind, and the setting `cuda_errors` is `warn`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cuda", "CUDA devices (Cupyrite)")
    group.addoption(
        "--cuda-device",
        choices=DEVICES,
        help="device of the tests. auto: NVIDIA's driver if it is installed, else the CPU device; gpu: an error without a GPU; "
        "cpu: the CPU device, also where there is a GPU; both: the whole run once on each. "
        "Default: CUPYRITE_DEVICE, else the setting cuda_device",
    )
    group.addoption(
        "--cuda-devices",
        metavar="N",
        help="number of CPU devices, from 1 to 16 (CUPYRITE_CPU_DEVICES); without effect on a GPU",
    )
    group.addoption(
        "--cuda-arch",
        metavar="VERSION",
        help="compute capability of the CPU device, such as 9.0 (CUPYRITE_CPU_COMPUTE_CAPABILITY); without effect on a GPU",
    )
    parser.addini("cuda_device", "as --cuda-device: auto, gpu, cpu or both")
    parser.addini("cuda_devices", "as --cuda-devices")
    parser.addini("cuda_arch", "as --cuda-arch")
    parser.addini("cuda_errors", "a CUDA error that a test leaves behind: error (default), warn or ignore")
    parser.addini("cuda_leaks", "device memory that a test leaves behind: warn (default), error or ignore")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before conftest.py files are imported: they may load the driver.
    _start_if_requested(early_config, early_config.known_args_namespace)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    session = config.stash.get(SESSION, None)
    if session is None or session.settings.device != "both":
        return None
    from . import _both

    return _both.run(config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)
    # Not started yet if a conftest.py names the plugin in `pytest_plugins`.
    _start_if_requested(config, config.option)
    if session := config.stash.get(SESSION, None):
        session.configure()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    started = config.stash.get(SESSION, None)
    own = set(MARKERS)
    if started is None:
        # A project that registers a marker of the same name has its own meaning of it.
        lines = [line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")]
        own = {name for name in MARKERS if lines.count(name) == 1}
    users = [item for item in items if _uses_cuda(item, own)]
    if users:
        (started or _start(config)).prepare(users)


def _uses_cuda(item: pytest.Item, markers: set[str]) -> bool:
    names = getattr(item, "fixturenames", ())
    if not FIXTURES.isdisjoint(names):
        definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        # A project's own fixture of the same name is not one of these.
        if any(is_own(found[-1]) for name in FIXTURES if (found := definitions.get(name))):
            return True
    return any(mark.name in markers for mark in item.iter_markers())


def is_own(definition: pytest.FixtureDef[object]) -> bool:
    """Whether a fixture is one of this module."""
    return getattr(definition.func, "__module__", None) == __name__


def _start_if_requested(config: pytest.Config, options: object) -> None:
    if SESSION in config.stash or getattr(options, "help", False) or getattr(options, "version", False):
        return
    names = ("cuda_device", "cuda_devices", "cuda_arch")
    if any(getattr(options, name, None) is not None or config.getini(name) for name in names) or _is_child():
        _start(config)


def _is_child() -> bool:
    import os

    return "PYTEST_CUPYRITE_SESSION" in os.environ


def _start(config: pytest.Config) -> CudaSession:
    from ._session import CudaSession

    session = config.stash[SESSION] = CudaSession(config)
    session.start()
    return session


def _current(config: pytest.Config) -> CudaSession:
    # Not started before a test that calls `request.getfixturevalue`.
    return config.stash.get(SESSION, None) or _start(config)


@pytest.fixture(scope="session")
def cuda_device(request: pytest.FixtureRequest) -> Device:
    """The device of the tests, as a `cuda.core.Device`; it is current before each test that uses it."""
    return _current(request.config).devices()[0]


@pytest.fixture(scope="session")
def cuda_devices(request: pytest.FixtureRequest) -> tuple[Device, ...]:
    """All devices, as `cuda.core.Device` objects; the first is that of `cuda_device`."""
    return _current(request.config).devices()


@pytest.fixture
def cuda_stream(cuda_device: Device, request: pytest.FixtureRequest) -> Iterator[Stream]:
    """A new stream of `cuda_device`; closed after the test."""
    stream = cuda_device.create_stream()
    yield stream
    _current(request.config).close(stream)


@pytest.fixture(name=CHECKS)
def _checks(request: pytest.FixtureRequest) -> Iterator[None]:
    session = _current(request.config)
    session.begin(request.node)
    yield
    session.end(request.node)
