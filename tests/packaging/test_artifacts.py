"""The build backend, and what shared libraries need. No network.

`cargo xtask release --dry-run` makes the real artifacts and installs them.
"""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import types
import zipfile

import cupyrite
import pytest

from helpers import TESTS

ROOT = TESTS.parent
if not (ROOT / "distributions").is_dir():
    pytest.skip("needs the whole repository", allow_module_level=True)
sys.path.insert(0, str(ROOT / "distributions"))

import assemble  # noqa: E402
import cpu_device  # noqa: E402
import elf  # noqa: E402
import stand_in  # noqa: E402

INFO = f"cupyrite-{cupyrite.__version__}.dist-info"
TAG = "cp311-abi3-linux_x86_64"


def maturins_wheel(folder, extra=(), tag=TAG):
    """A wheel as maturin makes it, without a native module."""
    files = {
        "cupyrite/__init__.py": b"",
        f"{INFO}/METADATA": f"Metadata-Version: 2.4\nName: cupyrite\nVersion: {cupyrite.__version__}\n\n# Title\n".encode(),
        f"{INFO}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    } | dict(extra)
    return stand_in.write_wheel(pathlib.Path(folder) / f"cupyrite-{cupyrite.__version__}-{tag}.whl", files, INFO)


# ---------------------------------------------------------------------------------------------------------
# The build backend


@pytest.fixture
def backend(monkeypatch):
    """The backend with a fake maturin, which records its settings and writes an empty wheel to the given folder."""
    calls = []

    def build(folder, settings=None, metadata_directory=None):
        settings = settings or {}
        words = settings.get("maturin.build-args", settings.get("build-args", []))
        words = words.split() if isinstance(words, str) else list(words)
        calls.append(words)
        # As maturin: it builds into --out, and copies the wheel to `folder`.
        out = words[words.index("--out") + 1] if "--out" in words else ROOT / "target" / "wheels"
        built = maturins_wheel(out)
        return pathlib.Path(shutil.copy2(built, folder)).name

    fake = types.ModuleType("maturin")
    for name in ("get_requires_for_build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist"):
        setattr(fake, name, lambda settings=None: [])
    fake.build_wheel = fake.build_editable = build
    monkeypatch.setitem(sys.modules, "maturin", fake)
    monkeypatch.delenv("MATURIN_PEP517_ARGS", raising=False)
    spec = importlib.util.spec_from_file_location("backend_under_test", ROOT / "distributions" / "backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.cpu_device, "build", lambda words: calls.append(words) or {})
    module.calls = calls
    return module


def test_the_intermediate_wheel_lies_outside_of_the_clone(backend, tmp_path):
    """It has the name of the real one, and lacks the CPU device."""
    name = backend.build_wheel(str(tmp_path))
    maturins, cargos = backend.calls
    out = pathlib.Path(maturins[maturins.index("--out") + 1])
    assert not out.is_relative_to(ROOT) and not out.exists()
    assert cargos == ["--release"]
    with zipfile.ZipFile(tmp_path / name) as archive:
        names = archive.namelist()
    assert sum(file.startswith("cupyrite/_stand_ins/") for file in names) == len(stand_in.NAMES)
    assert "cupyrite/_pages/doctor.md" in names


@pytest.mark.parametrize("settings", [{"build-args": "--profile dev"}, {"maturin.build-args": ["--profile", "dev"]}])
def test_the_users_arguments_reach_maturin_and_cargo(backend, tmp_path, settings):
    backend.build_wheel(str(tmp_path), settings)
    maturins, cargos = backend.calls
    assert maturins[:2] == ["--profile", "dev"] and cargos == ["--profile", "dev"]


def test_arguments_of_the_environment_are_kept(backend, tmp_path, monkeypatch):
    monkeypatch.setenv("MATURIN_PEP517_ARGS", "--locked --profile=dev")
    backend.build_wheel(str(tmp_path))
    assert backend.calls[0][:2] == ["--locked", "--profile=dev"]
    assert backend.calls[1] == ["--locked", "--profile=dev"]


def test_a_chosen_output_folder_is_kept(backend, tmp_path):
    (tmp_path / "a").mkdir()
    backend.build_wheel(str(tmp_path / "a"), {"build-args": f"--out {tmp_path / 'b'}"})
    assert backend.calls[0].count("--out") == 1 and list((tmp_path / "b").glob("*.whl"))


def requirements(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"{INFO}/METADATA").decode()
    return re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)


def test_a_wheel_from_an_sdist_names_no_folders(backend, tmp_path, monkeypatch):
    """pip keeps that wheel, and removes the folder that it was built in."""
    clone = requirements(tmp_path / backend.build_wheel(str(tmp_path)))
    assert any("file://" in line for line in clone)
    monkeypatch.setattr(backend, "IN_SDIST", True)
    built = requirements(tmp_path / backend.build_wheel(str(tmp_path)))
    assert sorted(built) == sorted(assemble.pins())


def test_the_sdist_gets_the_crates_of_the_cpu_device(tmp_path):
    name = "cupyrite-1"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/python"]\n')
    (folder / "PKG-INFO").write_text("Name: cupyrite\n\nsee [here](docs/x.md)\n")
    path = tmp_path / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, name)
    cpu_device.add_sources(path, assemble.description)
    with tarfile.open(path) as archive:
        manifest = archive.extractfile(f"{name}/Cargo.toml").read().decode()
        assert archive.extractfile(f"{name}/PKG-INFO").read().decode() == "Name: cupyrite\n\nsee here\n"
        names = {entry.name.removeprefix(f"{name}/") for entry in archive}
    members = tomllib.loads(manifest)["workspace"]["members"]
    names_of_crates = ("cpu-driver", "libcuda", "libcudart", "libcudart12", "libnvml", "ptxas", "python")
    assert {f"crates/{name}" for name in names_of_crates} == set(members)
    assert {"crates/libcuda/Cargo.toml", "crates/cpu-driver/src/lib.rs"} <= names


# ---------------------------------------------------------------------------------------------------------
# What shared libraries need

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


def compile_library(folder, name, source, *options):
    (folder / f"{name}.c").write_text(source)
    path = folder / name
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", path, folder / f"{name}.c", *options], check=True)
    return path


@pytest.fixture
def library(tmp_path):
    """A library that needs a function of glibc 2.34's libc.so.6, where it is built with that or a later one."""
    return compile_library(
        tmp_path,
        "libnew.so",
        "#include <pthread.h>\nvoid *f(void) { pthread_t t; pthread_create(&t, 0, 0, 0); return 0; }\n",
    )


@needs_compiler
def test_needs_of_a_library_are_those_that_binutils_prints(library):
    data = library.read_bytes()
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    shown = subprocess.run(["readelf", "-V", "-d", library], capture_output=True, text=True, check=True).stdout
    assert elf.Elf(data).needed() == re.findall(r"\(NEEDED\).*\[(.*)\]", shown)
    assert elf.Elf(data).versions() == set(re.findall(r"Name: (\w+[\d.]+)\s+Flags: none", shown))


@needs_compiler
def test_newer_versions_and_foreign_libraries_are_named(tmp_path, library):
    data = library.read_bytes()
    newest = elf.glibc(data)
    assert newest >= (2, 2) and elf.complaints("libnew.so", data, newest) == []
    assert elf.complaints("libnew.so", data, (2, 1)) == [
        f"libnew.so needs glibc {newest[0]}.{newest[1]}; expected at most 2.1"
    ]
    compile_library(tmp_path, "libodd.so", "int odd(void) { return 1; }\n", "-Wl,-soname,libodd.so")
    user = compile_library(
        tmp_path, "libuser.so", "int odd(void); int f(void) { return odd(); }\n", f"-L{tmp_path}", "-lodd"
    )
    assert elf.complaints("libuser.so", user.read_bytes(), (9, 0)) == [
        "libuser.so needs libodd.so, which no manylinux system promises"
    ]


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" + bytes(200), b"\x7fELF\x02\x01" + b"\xff" * 80])
def test_other_files_are_refused(data):
    with pytest.raises(ValueError, match="ELF"):
        elf.Elf(data)


@needs_compiler
def test_a_wheel_for_manylinux_is_checked(tmp_path, library):
    good = "cp311-abi3-manylinux_2_28_x86_64"
    assemble.check(maturins_wheel(tmp_path, tag=good))
    newest = elf.glibc(library.read_bytes())
    files = {"cupyrite/lib/cpu/libcuda.so.1": library.read_bytes()}
    with pytest.raises(RuntimeError, match=r"libcuda\.so\.1 needs glibc"):
        assemble.check(maturins_wheel(tmp_path, files, good), limit=(2, 1))
    with pytest.raises(RuntimeError, match="lacks manylinux_2_28_"):
        assemble.check(maturins_wheel(tmp_path))
    assert cpu_device.platform("manylinux_2_1_x86_64", files) == f"manylinux_{newest[0]}_{newest[1]}_x86_64"


def test_zig_gets_the_version_of_the_c_library(monkeypatch, tmp_path):
    words = cpu_device.cargo_words(["--release", "--interpreter", "python", "--target", "x86_64-unknown-linux-gnu"])
    assert cpu_device.with_glibc(words, (2, 28)) == ["--release", "--target", "x86_64-unknown-linux-gnu.2.28"]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(RuntimeError, match="pip install cargo-zigbuild ziglang"):
        cpu_device.build(words, glibc=(2, 28))
