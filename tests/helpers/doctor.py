"""Runs of the doctor in separate interpreters, and made-up package installations for it."""

import base64
import hashlib
import json
import os
import pathlib
import subprocess
import sys

import cupyrite

PACKAGE = pathlib.Path(cupyrite.__file__).parent
DROPPED = ("CUDA_", "CUPYRITE_", "CONDA_", "NVIDIA_", "COLUMNS", "NO_COLOR", "TERM", "LD_PRELOAD")


def environment(**changes):
    """This process's environment on the CPU device, without the variables that the report shows."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    kept["CUPYRITE_DEVICE"] = "cpu"
    # Tests of these variables set them explicitly.
    for name in ("PYTHONWARNINGS", "PYTHONIOENCODING"):
        kept.pop(name, None)
    for name, value in changes.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = value
    return kept


def doctor(*words, options=(), cwd="/", timeout=120, **changes):
    """The completed process of `python OPTIONS -m cupyrite WORDS`."""
    return subprocess.run(
        [sys.executable, *options, "-m", "cupyrite", *words],
        env=environment(**changes),
        cwd=cwd,
        capture_output=True,
        timeout=timeout,
    )


def examine(*words, **more):
    """(exit status, report); asserts that nothing was written to standard error."""
    done = doctor("--json", *words, **more)
    assert done.stderr == b"", done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


def codes(report):
    return [problem["code"] for problem in report["problems"]]


def problem(report, code):
    found = [problem for problem in report["problems"] if problem["code"] == code]
    assert found, f"no {code} among {codes(report)}"
    return found[0]


def commands(report, code):
    return [fix["command"] for fix in problem(report, code)["fix"] if fix["command"]]


def errors(report):
    return [problem["code"] for problem in report["problems"] if problem["severity"] == "error"]


def install(root, name, version, files):
    """Writes files with the RECORD that pip writes."""
    lines = []
    for relative, content in files.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pathlib.Path):
            if not path.exists():
                path.symlink_to(content)
            content = content.read_bytes()
        else:
            path.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{relative},sha256={digest},{len(content)}\n")
    info = root / f"{name}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "RECORD").write_text("".join(lines) + f"{info.name}/RECORD,,\n")


#: The start of a file's path -> name and version of the package of Cupyrite that owns it.
OWNERS = {
    "cupyrite/": ("cupyrite", cupyrite.__version__),
    "cuda/pathfinder/": ("cuda_pathfinder", f"1.9.1+cupyrite.{cupyrite.__version__}"),
    "cuda/bindings/": ("cuda_bindings", f"13.5.0+cupyrite.{cupyrite.__version__}"),
    "cuda/core/": ("cuda_core", f"1.2.2+cupyrite.{cupyrite.__version__}"),
    "no modules": ("cuda_python", f"13.5.0+cupyrite.{cupyrite.__version__}"),
}


def install_cupyrite(root, files, left_out=()):
    """Installs Cupyrite's packages, but those whose names are in `left_out`, with the RECORDs that pip writes."""
    for top, (name, version) in OWNERS.items():
        if name not in left_out:
            install(root, name, version, {file: text for file, text in files.items() if file.startswith(top)})


def own_files():
    """Cupyrite's own files; the native module as a symbolic link."""
    found = {}
    for top in ("cupyrite", "cuda/bindings", "cuda/pathfinder"):
        for file in sorted((PACKAGE.parent / top).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and file.suffix in (".py", ".so"):
                relative = str(file.relative_to(PACKAGE.parent))
                if file.suffix == ".so" and "cupyrite" not in file.parts:
                    continue
                found[relative] = file if file.suffix == ".so" else file.read_bytes()
    return found
