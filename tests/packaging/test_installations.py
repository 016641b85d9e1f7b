"""Cupyrite beside real clients from PyPI, in fresh environments of pip and uv, and in solutions of a conda solver.

Slow, and needs a network: `cargo xtask installations` runs the quick ones, `--full` all of them.
"""

import asyncio
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

from helpers.installations import ROOT, FreshEnvironment, call, native_wheel, uv, wheels

if not (ROOT / "distributions").is_dir():
    pytest.skip("needs the whole repository", allow_module_level=True)
sys.path.insert(0, str(ROOT / "distributions"))

import stand_in

pytestmark = [pytest.mark.installation, pytest.mark.cpu]
slow = pytest.mark.installation_full

# A kernel in Python. It needs NVVM, libdevice, and the CPU device as libcuda.so.1.
NUMBA = """
import numpy as np
from numba import cuda
@cuda.jit
def add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]
x = np.arange(100, dtype=np.float32)
out = cuda.device_array_like(x)
add[4, 32](cuda.to_device(x), cuda.to_device(2 * x), out)
assert (out.copy_to_host() == 3 * x).all()
"""
#: Client -> its first program.
CLIENTS = {
    "numba-cuda": NUMBA,
    "nvmath-python": "import nvmath, cuda.core; print(nvmath.__version__)",
    "cuda-cccl": "import cuda.cccl.headers as h, cuda.core; assert h.get_include_paths()",
}
QUICK = "numba-cuda"
LARGE_CLIENTS = (
    "torch",
    "jax[cuda13]",
    "cupy-cuda13x",
    "numba-cuda[cu13]",
    "nvmath-python[cu13]",
    "cuda-cccl[cu13]",
    "cuquantum-python-cu13",
    "nvshmem4py-cu13",
    "kvikio-cu13",
)
EACH_CLIENT = [name if name == QUICK else pytest.param(name, marks=slow) for name in CLIENTS]
TOOLS = ("pip", "uv")


@pytest.fixture(params=TOOLS)
def environment(request, tmp_path):
    return FreshEnvironment(tmp_path / "env", request.param)


def run_client(environment, client):
    environment.lend_toolkit()
    # Clients load the driver themselves.
    environment.run("-W", "ignore", "-m", "cupyrite", "run", "--device", "cpu", "-c", CLIENTS[client])


@pytest.mark.parametrize("client", EACH_CLIENT)
def test_a_client_installed_after_cupyrite(environment, client):
    environment.install("cupyrite", ours=True)
    environment.install(client)
    environment.assert_cupyrite()
    run_client(environment, client)


@pytest.mark.parametrize("client", EACH_CLIENT)
def test_cupyrite_installed_after_a_client(environment, client):
    environment.install(client)
    assert "+cupyrite" not in environment.describe()["versions"]["cuda-core"]
    environment.install("cupyrite", ours=True)
    environment.assert_cupyrite()
    run_client(environment, client)


@slow
def test_cupyrite_and_its_clients_in_one_command(environment):
    environment.install("cupyrite", *CLIENTS, ours=True)
    environment.assert_cupyrite()


def test_large_clients_resolve_beside_cupyrite(tmp_path):
    """Resolutions only: their wheels are too large to install."""
    environment = FreshEnvironment(tmp_path / "env", "uv")
    environment.install("cupyrite", ours=True)
    for client in LARGE_CLIENTS:
        planned = environment.install("--dry-run", client).stderr
        assert "Would install" in planned, planned
        assert not re.search(r"^ - ", planned, re.MULTILINE), f"{client} replaces packages: {planned}"
        assert not re.search(r"cuda-(bindings|core|pathfinder|python)==", planned), planned


def test_eager_upgrade_keeps_cupyrite(environment):
    environment.install("cupyrite", ours=True)
    environment.install("numba-cuda")
    eager = ["--upgrade-strategy", "eager"] if environment.tool == "pip" else []
    environment.install("--upgrade", *eager, "numba-cuda", "cuda-pathfinder>=1.4,<2", "cuda-bindings>=13.0,<14")
    environment.assert_cupyrite()


@pytest.fixture
def newer(tmp_path):
    """A folder with made-up later versions of NVIDIA's packages."""
    for name, version in (("cuda_bindings", "13.99.0"), ("cuda_core", "1.99.0"), ("cuda_pathfinder", "1.99.0")):
        info = f"{name}-{version}.dist-info"
        files = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        stand_in.write_wheel(tmp_path / "newer" / f"{name}-{version}-py3-none-any.whl", files, info)
    return tmp_path / "newer"


def test_later_versions_of_nvidias_packages(environment, newer):
    environment.install("cupyrite", ours=True)
    # Not an upgrade.
    environment.install("--find-links", newer, "numba-cuda")
    environment.assert_cupyrite()
    # With Cupyrite's requirements in the same resolution.
    eager = ["--upgrade-strategy", "eager"] if environment.tool == "pip" else []
    environment.install("--find-links", newer, "--upgrade", *eager, "numba-cuda", "cupyrite", ours=True)
    environment.assert_cupyrite()
    # By name: the tool and the doctor report it.
    environment.install("--find-links", newer, "--upgrade", "cuda-bindings")
    assert environment.describe()["versions"]["cuda-bindings"] == "13.99.0"
    assert "13.5.0+cupyrite" in environment.conflicts()
    assert "peer-mixed" in [problem["code"] for problem in environment.doctor()["problems"]]


def test_installers_refuse_what_cupyrite_does_not_satisfy(environment):
    refused = environment.install("cuda-python==13.0", "cupyrite", check=False, ours=True)
    assert refused.returncode != 0 and "cupyrite" in refused.stdout + refused.stderr
    assert environment.describe()["owners"] == {}


@slow
@pytest.mark.parametrize("major", [12, 13])
def test_extras_that_clients_name_install_the_toolkit_only(environment, major):
    environment.install("cupyrite", ours=True)
    environment.install(f"cuda-core[cu{major}]", "cuda-python")
    if major == 13:
        environment.install("cuda-bindings[all]", "cuda-python[all]")
    environment.assert_cupyrite()
    assert f"nvidia-cuda-nvrtc{'-cu12' if major == 12 else ''}" in environment.describe()["versions"]


def replace_bindings(environment):
    """Installs Cupyrite, and then a package that its versions do not satisfy."""
    environment.install("cupyrite", "numpy", ours=True)
    environment.install("cuda-python==13.0")
    assert environment.describe()["versions"]["cuda-bindings"].startswith("13.0.")
    assert "cuda-bindings" in environment.conflicts()
    environment.lend_toolkit()
    report = environment.doctor()
    assert not report["ok"]
    (problem,) = [problem for problem in report["problems"] if problem["code"] == "peer-mixed"]
    return [fix["command"] for fix in problem["fix"]]


def test_the_doctors_advice_brings_cupyrite_back(environment):
    first, *_ = replace_bindings(environment)
    environment.shell(first)
    environment.assert_cupyrite()


def test_the_doctors_advice_leaves_nvidias_packages_alone(environment):
    _, *commands = replace_bindings(environment)
    for command in commands:
        environment.shell(command)
    found = environment.describe()
    assert found["broken"] == [] and "cupyrite" not in found["versions"]
    assert "+cupyrite" not in "".join(found["versions"].values())
    assert environment.conflicts() == ""
    environment.run("-c", "import cuda.bindings.driver as d, cuda.core; assert d.__file__.endswith('.so')")


def test_only_the_native_package_is_published(environment):
    """Indexes refuse versions with a local label: the stand-ins come from the wheel of cupyrite."""
    # An index that has the native package only, as PyPI would.
    refused = environment.install(native_wheel(), check=False)
    assert refused.returncode != 0 and "cuda-" in refused.stderr
    environment.install("--no-deps", native_wheel())
    environment.install("numpy")
    environment.lend_toolkit()
    report = environment.doctor()
    (problem,) = [problem for problem in report["problems"] if problem["code"] == "stand-in-missing"]
    environment.shell(problem["fix"][0]["command"])
    environment.assert_cupyrite()
    environment.install(QUICK)
    environment.assert_cupyrite()


def test_a_damaged_installation_is_repaired_by_the_doctors_advice(environment):
    environment.install("--no-deps", native_wheel())
    environment.run("-m", "cupyrite", "stand-in")
    environment.install("numpy")
    environment.lend_toolkit()
    (site,) = environment.folder.glob("lib/python*/site-packages")
    (site / "cuda" / "core" / "_device.py").unlink()
    (site / "cupyrite" / "demo.py").write_text("damaged")
    (problem,) = [p for p in environment.doctor()["problems"] if p["code"] == "files-damaged"]
    for fix in problem["fix"]:
        environment.shell(fix["command"])
    environment.assert_cupyrite()


def test_uv_locks_and_syncs_a_project(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "client"\nversion = "1"\nrequires-python = ">=3.11"\n'
        'dependencies = ["numba-cuda", "cupyrite"]\n'
        f'[tool.uv]\nfind-links = ["{wheels()}"]\nenvironments = ["sys_platform == \'linux\'"]\n'
    )
    call(uv(), "sync", "--python", FreshEnvironment(tmp_path / "python", "uv").python, cwd=tmp_path)
    lock = tomllib.loads((tmp_path / "uv.lock").read_text())
    versions = {package["name"]: package["version"] for package in lock["package"]}
    for name in ("cuda-bindings", "cuda-core", "cuda-pathfinder", "cuda-python"):
        assert "+cupyrite." in versions[name]
    call(uv(), "sync", "--locked", cwd=tmp_path)
    call(uv(), "run", "--locked", "python", "-c", "import cuda.core, cuda.bindings.driver", cwd=tmp_path)


@slow
@pytest.mark.parametrize("editable", [(), ("--editable",)], ids=["plain", "editable"])
def test_a_clone_installs_all(environment, editable):
    """`pip install '.[all]'`, and then a client."""
    environment.install(*editable, f"{ROOT}[all]")
    if editable:
        assert environment.conflicts() == ""
        place = environment.run("-c", "import cuda.core; print(cuda.core.__file__)").stdout
        assert pathlib.Path(place.strip()).is_relative_to(ROOT / "python")
    else:
        environment.assert_cupyrite()
    environment.install(QUICK)
    assert "+cupyrite." in environment.describe()["versions"]["cuda-core"]
    assert environment.conflicts() == ""


# ---------------------------------------------------------------------------------------------------------
# conda: a solver (py-rattler) on made-up channel data of the form that conda-forge has


def solve(channel, *specs, installed=()):
    """Names and builds that the solver chooses; raises its error."""
    rattler = pytest.importorskip("rattler")
    glibc = rattler.GenericVirtualPackage(
        rattler.PackageName("__glibc"), rattler.Version("2.39"), rattler.BuildString("0")
    )

    async def run():
        return await rattler.solve(
            sources=[str(channel)],
            specs=list(specs),
            platforms=["linux-64", "noarch"],
            locked_packages=list(installed),
            virtual_packages=[glibc],
        )

    records = asyncio.run(run())
    return {record.name.normalized: f"{record.version} {record.build}" for record in records}, records


@pytest.fixture
def channel(tmp_path):
    """A local channel with NVIDIA's packages, two clients, and those of the recipe."""
    from helpers.conda import write_channel

    return write_channel(tmp_path / "channel")


def test_conda_installs_cupyrite_with_its_clients(channel):
    found, _ = solve(channel, "cupyrite", "numba-cuda")
    for name in ("cuda-bindings", "cuda-core", "cuda-pathfinder", "cuda-python"):
        assert found[name].split()[1].startswith("cupyrite_"), found
    assert found["cuda-python-impl"].endswith("cupyrite")


def test_conda_keeps_cupyrite_when_a_client_is_added_and_reverses_on_request(channel):
    _, installed = solve(channel, "cupyrite")
    found, installed = solve(channel, "cupyrite", "numba-cuda", installed=installed)
    assert found["cuda-core"].split()[1].startswith("cupyrite_")
    found, _ = solve(channel, "numba-cuda", "cuda-python-impl * nvidia", installed=installed)
    assert "cupyrite" not in found and "cupyrite" not in "".join(found.values())


def test_conda_refuses_both(channel):
    errors = pytest.importorskip("rattler.exceptions")
    for specs in (["cupyrite", "cuda-bindings=12"], ["cupyrite", "cuda-python-impl * nvidia"]):
        with pytest.raises(errors.SolverError):
            solve(channel, *specs)


def test_conda_without_cupyrite_is_unchanged(channel):
    found, _ = solve(channel, "numba-cuda")
    assert "cupyrite" not in found and found["cuda-bindings"].split()[1] == "py311_0"


def test_the_wheels_of_a_build_pass_a_strict_reader():
    """uv refuses wheels whose RECORD, names and metadata disagree."""
    for wheel in wheels().glob("*.whl"):
        done = subprocess.run([uv(), "pip", "install", "--dry-run", "--no-deps", "--target", "/nonexistent", wheel])
        assert done.returncode == 0
