"""cudarc, CUDA for Rust: builds its examples, unchanged, and runs them with `python -m cupyrite run`. Needs cargo."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

from checks import Skip, check, finish

HERE = pathlib.Path(__file__).resolve().parent
# In the client's environment, so that a second run builds nothing.
FOLDER = pathlib.Path(os.environ.get("CUPYRITE_CUDARC_FOLDER", pathlib.Path(sys.prefix) / "cudarc"))
FEATURES = "driver,runtime,nvrtc,std,dynamic-loading,cuda-13000"
# Those of libraries that the driver alone does not replace are left out: 08-cupti, cufile-copy.
EXAMPLES = [
    "01-allocate",
    "02-copy",
    "03-launch-kernel",
    "04-streams",
    "05-device-repr",
    "06-threading",
    "09-constant-memory",
    "10-function-attributes",
    "12-context-config",
    "13-copy-multi-gpu",
    "matmul-kernel",
    "nvrtc-compile",
]
MANIFEST = '[package]\nname = "client"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\ncudarc = "={}"\n'


def cargo(*words, **more):
    if shutil.which("cargo") is None:
        raise Skip("cargo is not installed")
    done = subprocess.run(["cargo", *words], capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"cargo {words[0]}: {done.stderr[-2000:]}")
    return done.stdout


def built():
    """The folder of the examples' programs. Fetches and builds them on the first call."""
    if built.folder:
        return built.folder
    version = tomllib.loads((HERE / "clients.toml").read_text())["cudarc"]["crate"]
    project, source = FOLDER / "project", FOLDER / f"cudarc-{version}"
    if not source.exists():
        project.mkdir(parents=True, exist_ok=True)
        (project / "Cargo.toml").write_text(MANIFEST.format(version))
        (project / "lib.rs").write_text("")
        packages = json.loads(cargo("metadata", "--format-version=1", cwd=project))["packages"]
        found = next(pathlib.Path(p["manifest_path"]).parent for p in packages if p["name"] == "cudarc")
        # Cargo's own copy stays as it is.
        partial = FOLDER / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(found, partial)
        partial.rename(source)
    words = ["build", "--quiet", "--no-default-features", f"--features={FEATURES}", f"--target-dir={FOLDER / 'target'}"]
    cargo(*words, *(f"--example={name}" for name in EXAMPLES), cwd=source)
    built.folder = FOLDER / "target" / "debug" / "examples"
    return built.folder


built.folder = None


def environment():
    """The environment of a program: NVRTC where the loader finds it, and two CPU devices."""
    from cuda.pathfinder import load_nvidia_dynamic_lib

    nvrtc = pathlib.Path(load_nvidia_dynamic_lib("nvrtc").abs_path).parent
    paths = [str(nvrtc), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"CUPYRITE_CPU_DEVICES": "2", **os.environ, "LD_LIBRARY_PATH": os.pathsep.join(paths)}


def add(name):
    def example():
        program = built() / name
        words = [sys.executable, "-m", "cupyrite", "run", str(program)]
        # The examples read files next to them.
        folder = next(FOLDER.glob("cudarc-*"))
        done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]

    example.__name__ = f"example_{name.replace('-', '_')}"
    check(example)


for name in EXAMPLES:
    add(name)

finish()
