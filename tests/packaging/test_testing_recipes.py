"""The recipes of docs/testing.md and action.yml: their commands are executed, except those that install packages.

What is installed instead is this environment. Clients that it lacks are skipped.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from cupyrite.run import FOLDER

from helpers import TESTS

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.cpu

ROOT = TESTS.parent
PAGE = (ROOT / "docs" / "testing.md").read_text("utf-8")
#: What recipes may install: the extra is this project's, the others are clients and tools of those names.
PACKAGES = {"cupyrite", "cupyrite[all]", "pytest", "numba-cuda", "numba-cuda-mlir", "'numpy<2.5'"}
INSTALLS = re.compile(r"(?:python -m )?pip install |python -m cupyrite stand-in$")


def file(name):
    """The text of a file that the page shows below its name."""
    found = re.findall(
        rf"^`{re.escape(name)}`:\n\n(?:<!-- .*? -->\n)?```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    assert len(found) == 1, name
    return found[0]


def steps(heading):
    """The commands of the steps below a heading of the page."""
    section = re.split(r"^#+ ", PAGE.partition(f"\n### {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    block = re.search(r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]
    return [step["run"] for step in yaml.safe_load(block)]


def without_installation(commands):
    """The commands that do not install packages; the packages of the others are checked."""
    rest = []
    for command in "\n".join(commands).splitlines():
        if not INSTALLS.match(command):
            rest.append(command)
            continue
        words = command.partition("pip install ")[2].replace('"', "").split()
        assert {word for word in words if not word.startswith("-")} <= PACKAGES | {"$PACKAGE"}, command
    return rest


@pytest.fixture
def environment(tmp_path):
    """The environment of a step: `python` and `pytest` are this interpreter's, and nothing is prepared."""
    (tmp_path / "bin").mkdir()
    # A virtual environment's interpreter is found by its path, so that no link to it would do.
    for name, words in {"python": "", "pytest": "-m pytest -p no:cacheprovider"}.items():
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        script.chmod(0o755)
    dropped = ("CUPYRITE_DEVICE", "LD_LIBRARY_PATH", "PYTEST_ADDOPTS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and "XDIST" not in name}
    return {**kept, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def execute(commands, folder, environment):
    """Runs the commands as a runner does, and returns what they print."""
    script = ["bash", "-e", "-o", "pipefail", "-c", "\n".join(commands)]
    done = subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def action(environment, tmp_path, **inputs):
    """Executes the action, and returns the environment of the steps after it."""
    description = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    assert description["runs"]["using"] == "composite" and not set(inputs) - set(description["inputs"])
    (step,) = (step for step in description["runs"]["steps"] if "run" in step)
    given = {name: inputs.get(name, entry["default"]) for name, entry in description["inputs"].items()}
    variables = {}
    for variable, value in step["env"].items():
        variables[variable] = re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], value)
    written = tmp_path / "environment"
    written.write_text("")
    commands = without_installation([step["run"]])
    execute(commands, tmp_path, {**environment, **variables, "GITHUB_ENV": str(written)})
    return {**environment, **dict(line.split("=", 1) for line in written.read_text().splitlines())}


def test_the_action_prepares_the_later_steps(environment, tmp_path):
    prepared = action({**environment, "LD_LIBRARY_PATH": "/nowhere"}, tmp_path, devices="3", arch="9.0")
    assert prepared["CUPYRITE_DEVICE"] == "cpu" and prepared["LD_LIBRARY_PATH"] == f"{FOLDER}:/nowhere"
    code = "import ctypes; c = ctypes.c_int(); d = ctypes.CDLL('libcuda.so.1'); d.cuInit(0); d.cuDeviceGetCount(ctypes.byref(c)); print(c.value)"
    assert execute([f'python -c "{code}"'], tmp_path, prepared) == "3\n"


def test_github_workflow(environment, project, tmp_path):
    text = file("test.yml")
    assert len(text.splitlines()) <= 10
    workflow = yaml.safe_load(text)
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == ["push", "pull_request"]
    (job,) = workflow["jobs"].values()
    assert [step["uses"].rpartition("@")[0] for step in job["steps"] if "uses" in step] == [
        "actions/checkout",
        "OWNER/cupyrite",
    ]
    (project / "test_saxpy.py").write_text(file("test_saxpy.py"))
    prepared = action(environment, tmp_path)
    printed = execute(without_installation(step["run"] for step in job["steps"] if "run" in step), project, prepared)
    assert "cuda: CPU device: " in printed and "3 passed, 2 skipped" in printed


def test_gitlab_job(environment, project):
    (job,) = yaml.safe_load(file(".gitlab-ci.yml")).values()
    (project / "test_saxpy.py").write_text(file("test_saxpy.py"))
    assert "3 passed, 2 skipped" in execute(without_installation(job["script"]), project, environment)


def test_container(environment, project, tmp_path):
    lines = [line.partition(" ")[::2] for line in file("Dockerfile").splitlines()]
    assert [word for word, _ in lines] == ["FROM", *["RUN"] * 4, "ENV", "WORKDIR", "COPY", "CMD"]
    link = str(tmp_path / "opt")
    commands = [rest for word, rest in lines if word == "RUN"]
    execute(
        [command.replace("/opt/cupyrite", link) for command in without_installation(commands)], project, environment
    )
    variables = dict(lines)["ENV"].replace("/opt/cupyrite", link)
    prepared = {**environment, **dict(entry.split("=") for entry in variables.split())}
    (project / "test_saxpy.py").write_text(file("test_saxpy.py"))
    command = " ".join(yaml.safe_load(dict(lines)["CMD"]))
    assert "3 passed, 2 skipped" in execute([command], project, prepared)
    code = "import ctypes; print(hasattr(ctypes.CDLL('libcuda.so.1'), 'cupyrite_cpu_device'))"
    assert execute([f'python -c "{code}"'], project, prepared) == "True\n"


@pytest.mark.parametrize("client", ["numba-cuda", "numba-cuda-mlir"])
def test_numba(environment, project, client):
    module = client.replace("-", "_")
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {client}")
    (project / f"test_{module}.py").write_text(file(f"test_{module}.py"))
    assert "1 passed" in execute(without_installation(steps(client)), project, environment)


def test_c_program(environment, project, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    (project / "devices.c").write_text(file("devices.c"))
    prepared = action(environment, tmp_path, devices="2")
    assert execute(without_installation(steps("C")), project, prepared) == "2 CUDA device(s)\n"


def test_cudarc(environment, project, tmp_path):
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    (project / "src").mkdir()
    for name in ("Cargo.toml", "src/lib.rs"):
        (project / name).write_text(file(name))
    resolved = subprocess.run(["cargo", "generate-lockfile", "--offline"], cwd=project, capture_output=True)
    if resolved.returncode:
        pytest.skip("needs cudarc in cargo's cache (cargo xtask clients cudarc)")
    prepared = {**action(environment, tmp_path), "CARGO_NET_OFFLINE": "true"}
    assert "1 passed" in execute(steps("cudarc"), project, prepared)


def test_the_page_names_every_option_setting_fixture_and_marker():
    from cupyrite import pytest_plugin

    source = pathlib.Path(pytest_plugin.__file__).read_text("utf-8")
    names = [*re.findall(r'addoption\(\s*"(--[\w-]+)', source), *re.findall(r'addini\("(\w+)', source)]
    names += [*pytest_plugin.FIXTURES, *pytest_plugin.MARKERS]
    assert len(names) > 15
    missing = [name for name in names if not re.search(rf"`{re.escape(name)}[`=(]", PAGE)]
    assert not missing
