"""The distributions: who owns which module, their metadata, `python -m cupyrite stand-in`. No network.

test_installations.py installs them beside real clients.
"""

import base64
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import zipfile

import cupyrite
import pytest

from helpers import TESTS
from helpers.wheels import unpack

ROOT = TESTS.parent
if not (ROOT / "distributions").is_dir():
    pytest.skip("needs the whole repository", allow_module_level=True)
sys.path.insert(0, str(ROOT / "distributions"))

import assemble  # noqa: E402
import stand_in  # noqa: E402

VERSIONS = {
    name: f"{interface}+cupyrite.{cupyrite.__version__}"
    for name, interface in {
        "cuda-bindings": "13.5.0",
        "cuda-core": "1.2.2",
        "cuda-pathfinder": "1.9.1",
        "cuda-python": "13.5.0",
    }.items()
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Path of each stand-in's wheel, built from the sources."""
    paths = assemble.build_stand_ins(tmp_path_factory.mktemp("wheels"))
    return dict(zip(stand_in.NAMES, paths))


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(path):
    """Name, version, requirements, extras of a wheel."""
    (text,) = (data.decode() for name, data in contents(path).items() if name.endswith(".dist-info/METADATA"))
    fields = [line.partition(": ")[::2] for line in text.partition("\n\n")[0].splitlines()]
    return {name: [value for key, value in fields if key == name] for name, _ in fields}


def test_every_module_below_cuda_has_one_owner(wheels):
    owned = [name for path in wheels.values() for name in contents(path) if name.startswith("cuda/")]
    assert len(owned) == len(set(owned))
    python = ROOT / "python"
    ours = {
        str(p.relative_to(python))
        for p in (python / "cuda").rglob("*")
        if p.suffix in (".py", ".pyi", ".pxd", ".typed")
    }
    assert set(owned) == ours
    assert "cuda/__init__.py" not in owned
    assert {name.split("/")[1] for name in contents(wheels["cuda-core"]) if name.startswith("cuda/")} == {"core"}
    assert "cuda/cudart.py" in contents(wheels["cuda-bindings"])


@pytest.mark.parametrize("name", stand_in.NAMES)
def test_names_versions_and_requirements(wheels, name):
    fields = metadata(wheels[name])
    assert (fields["Name"], fields["Version"]) == ([name], [VERSIONS[name]])
    assert wheels[name].name == f"{name.replace('-', '_')}-{VERSIONS[name]}-py3-none-any.whl"
    required = [line for line in fields["Requires-Dist"] if "extra ==" not in line]
    assert f"cupyrite=={cupyrite.__version__}" in required
    for line in required:
        other, version = line.split("==")
        assert version == VERSIONS.get(other, cupyrite.__version__)


def test_extras_that_clients_name_exist(wheels):
    assert metadata(wheels["cuda-core"])["Provides-Extra"] == ["cu12", "cu13"]
    assert metadata(wheels["cuda-bindings"])["Provides-Extra"] == ["all"]
    assert metadata(wheels["cuda-python"])["Provides-Extra"] == ["all"]
    # cu12 must not require other bindings: they would replace these.
    lines = [line for line in metadata(wheels["cuda-core"])["Requires-Dist"] if "cu12" in line]
    assert lines and not any(line.startswith("cuda-bindings") for line in lines)


def test_records_match_the_contents_and_builds_are_reproducible(wheels, tmp_path):
    for name, path in wheels.items():
        files = contents(path)
        (record,) = (data.decode() for file, data in files.items() if file.endswith("/RECORD"))
        listed = {}
        for line in record.splitlines():
            file, digest, size = line.rsplit(",", 2)
            listed[file] = digest, size
        assert set(listed) == set(files)
        for file, (digest, size) in listed.items():
            if digest:
                expected = base64.urlsafe_b64encode(hashlib.sha256(files[file]).digest()).rstrip(b"=").decode()
                assert digest == f"sha256={expected}" and int(size) == len(files[file])
        assert stand_in.StandIn(name).build(tmp_path).read_bytes() == path.read_bytes()


def native_wheel(folder):
    """A wheel of cupyrite as maturin makes it, with a made-up native module."""
    info = f"cupyrite-{cupyrite.__version__}.dist-info"
    files = {
        "cupyrite/__init__.py": b"",
        f"{info}/METADATA": f"Metadata-Version: 2.4\nName: cupyrite\nVersion: {cupyrite.__version__}\n\n# Title\n\nText\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp311-abi3-linux_x86_64\n",
    }
    name = f"cupyrite-{cupyrite.__version__}-cp311-abi3-linux_x86_64.whl"
    return stand_in.write_wheel(folder / name, files, info)


def test_the_native_wheel_requires_and_carries_the_stand_ins(wheels, tmp_path):
    made = assemble.complete(native_wheel(tmp_path / "maturin"), tmp_path, assemble.pins(), wheels.values())
    assert sorted(metadata(made)["Requires-Dist"]) == sorted(f"{name}=={version}" for name, version in VERSIONS.items())
    text = contents(made)[f"cupyrite-{cupyrite.__version__}.dist-info/METADATA"].decode()
    assert text.endswith("\n\n# Title\n\nText\n")
    for name in stand_in.NAMES:
        assert contents(made)[f"cupyrite/_stand_ins/{wheels[name].name}"] == wheels[name].read_bytes()
    unpack(tmp_path, tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "cuda" / "core" / "__init__.py").is_file()


def test_unpack_refuses_what_is_no_wheel_of_cupyrite(wheels, tmp_path):
    for path in (tmp_path, tmp_path / "missing.whl", wheels["cuda-core"]):
        with pytest.raises(ValueError, match="expected"):
            unpack(path, tmp_path / "out")
    with pytest.raises(ValueError, match="carries no stand-ins"):
        unpack(native_wheel(tmp_path), tmp_path / "out")


def test_installers_of_a_clone_get_stand_ins_that_do_not_lead_back_to_its_folders(tmp_path):
    """`cupyrite` of a clone requires folders; a client's installation must not resolve them again."""
    for name in stand_in.NAMES:
        hooks = stand_in.hooks(name)
        wheel = tmp_path / hooks["build_wheel"](tmp_path)
        assert not any(line.startswith("cupyrite") for line in metadata(wheel).get("Requires-Dist", []))
        info = tmp_path / "info" / hooks["prepare_metadata_for_build_wheel"](tmp_path / "info")
        prepared = (info / "METADATA").read_bytes()
        assert prepared == contents(wheel)[f"{info.name}/METADATA"]


def test_the_recipe_has_the_versions_of_the_sources():
    text = (ROOT / "distributions" / "conda" / "recipe.yaml").read_text()
    context = dict(re.findall(r'^  (\w+): "([0-9.]+)"$', text.partition("\nrecipe:")[0], re.MULTILINE))
    assert context == {
        "version": cupyrite.__version__,
        "bindings": VERSIONS["cuda-bindings"].partition("+")[0],
        "core": VERSIONS["cuda-core"].partition("+")[0],
        "pathfinder": VERSIONS["cuda-pathfinder"].partition("+")[0],
    }


def test_one_version_in_all_places():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert workspace == cupyrite.__version__ == stand_in.cupyrite_version()


# ---------------------------------------------------------------------------------------------------------
# As installed


def installed():
    """Whether the running Cupyrite has metadata: a source tree on the path has none."""
    try:
        return importlib.metadata.version("cupyrite") == cupyrite.__version__ and all(
            "+cupyrite" in importlib.metadata.version(name) for name in VERSIONS
        )
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.skipif(not installed(), reason="Cupyrite runs from a source tree, without metadata")
def test_clients_read_versions_from_the_metadata():
    import cuda.bindings
    import cuda.core
    import cuda.pathfinder

    for name, module in (("bindings", cuda.bindings), ("core", cuda.core), ("pathfinder", cuda.pathfinder)):
        version = importlib.metadata.version(f"cuda-{name}")
        assert version == VERSIONS[f"cuda-{name}"]
        # Clients compare the first numbers.
        assert version.split("+")[0] == module.__version__
        assert tuple(map(int, version.split(".")[:2])) == tuple(map(int, module.__version__.split(".")[:2]))
    assert "cuda-bindings" in importlib.metadata.packages_distributions()["cuda"]


def run(*words, python=(sys.executable,), **variables):
    return subprocess.run(
        [*python, "-m", "cupyrite", *words],
        env={**os.environ, **variables},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def package(wheels, tmp_path):
    """A folder for PYTHONPATH with the package `cupyrite`, its native module left out, and the stand-ins' wheels."""
    target = tmp_path / "site" / "cupyrite"
    target.mkdir(parents=True)
    for file in pathlib.Path(cupyrite.__file__).parent.glob("*.py"):
        (target / file.name).write_bytes(file.read_bytes())
    (target / "_stand_ins").mkdir()
    for path in wheels.values():
        (target / "_stand_ins" / path.name).write_bytes(path.read_bytes())
    return target


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="needs pip")
def test_stand_in_installs_the_wheels_that_it_carries(package, tmp_path):
    done = run("stand-in", "--quiet", "--target", str(tmp_path / "out"), PYTHONPATH=str(package.parent))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "cuda" / "core" / "__init__.py").is_file()
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions(path=[str(tmp_path / "out")])}
    assert found == VERSIONS


def test_stand_in_prints_its_folder(package):
    done = run("stand-in", "--print-folder", PYTHONPATH=str(package.parent))
    assert done.returncode == 0 and done.stdout.strip() == str(package / "_stand_ins")
    done = run("stand-in", "--print-folder", "--user", PYTHONPATH=str(package.parent))
    assert done.returncode == 2 and "--user" in done.stderr


@pytest.mark.parametrize("damage", ["no folder", "one is missing", "one is there twice"])
def test_stand_in_names_what_is_missing(package, damage):
    folder = package / "_stand_ins"
    (wheel,) = folder.glob("cuda_core-*.whl")
    if damage == "no folder":
        folder.rename(package / "elsewhere")
    elif damage == "one is missing":
        wheel.unlink()
    else:
        (folder / "cuda_core-9-py3-none-any.whl").write_bytes(b"")
    done = run("stand-in", PYTHONPATH=str(package.parent))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert str(folder) in done.stderr
    assert ("pip install '.[all]'" if damage == "no folder" else "cuda_core") in done.stderr


def test_stand_in_without_pip_and_uv_says_so(package, tmp_path):
    """An isolated interpreter without site-packages."""
    done = run("stand-in", python=(sys.executable, "-S"), PYTHONPATH=str(package.parent), PATH=str(tmp_path))
    assert done.returncode == 1
    assert "has no pip, and PATH has no uv" in done.stderr and str(package / "_stand_ins") in done.stderr


def test_stand_in_uses_uv_where_pip_is_missing(package, tmp_path):
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport json, sys; print(json.dumps(sys.argv[1:]))\n")
    program.chmod(0o755)
    done = run("stand-in", python=(sys.executable, "-S"), PYTHONPATH=str(package.parent), PATH=str(program.parent))
    assert done.returncode == 0, done.stderr
    words = json.loads(done.stdout)
    assert words[:4] == ["pip", "install", "--python", sys.executable]
    assert [word for word in words if word.endswith(".whl")]
    assert {"--no-index", "--no-deps", "--force-reinstall"} <= set(words)
