"""Runs the checks of Cupyrite's clients, and prints a table of counts.

    python tests/clients/run.py --wheels FOLDER [--environments FOLDER] [--libcuda FOLDER] [--full] [NAME ...]
    python tests/clients/run.py --installed [--wheel FILE] [--full] [NAME ...]

The first form installs each client in an environment of its own, in the versions of clients.toml, beside the wheels in
FOLDER; `cargo xtask clients` calls it. The second uses this interpreter and the clients that it has, without a network:
with the wheel unpacked in front of all other modules, or with whatever `cuda.bindings` this interpreter has (NVIDIA's, to
compare). Needs Python 3.11 and, for the first form, pip.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from helpers.wheels import unpack  # noqa: E402

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)
SECONDS, SECONDS_FULL = 480, 3600


def counts(output):
    """Passed, failed and skipped in the last line of counts, or None."""
    found = COUNTS.findall(output)
    return tuple(map(int, found[-1])) if found else None


def selection(clients, names, full, cpu):
    """The clients to run, in the order of the file. Raises ValueError for an unknown name."""
    unknown = [name for name in names if name not in clients]
    if unknown:
        raise ValueError(f"unknown client {unknown[0]!r}; expected some of: {', '.join(clients)}")
    wanted = {"ci", "full"} if full else {"ci"}
    return [name for name in clients if name in names or (not names and (not cpu or clients[name]["cpu"] in wanted))]


def interpreter(name, clients, wheels, folder):
    """The interpreter of the client's environment, which is created and filled when its requirements change."""
    environment = clients[name]["environment"]
    place = folder / environment
    python = place / "bin" / "python"
    # Only what this client needs: an environment that several share grows with the clients that are run.
    requirements = clients[name]["requirements"]
    stamp = place / f".{name}"
    files = sorted(wheels.glob("*.whl"))
    mark = json.dumps([requirements, [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files]])
    if stamp.exists() and stamp.read_text() == mark:
        return python
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--force-reinstall", *files], check=True)
    # In one command with the wheels, so that pip keeps them.
    subprocess.run([*pip, "--find-links", wheels, *files, *requirements], check=True)
    stamp.write_text(mark)
    return python


def run(name, client, python, environment, full, words=()):
    """Runs the script of one client, with these words before its path. Returns counts and seconds."""
    command = [str(python), *words, str(HERE / client["script"])]
    if full and name == "numba-cuda":
        command.append("--full")
    print(f"== {name}", flush=True)
    begun, output = time.monotonic(), []
    limit = SECONDS_FULL if full else SECONDS
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    timer = threading.Timer(limit, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            output.append(line)
            print(line, end="", flush=True)
        status = process.wait()
    finally:
        timer.cancel()
    seconds = time.monotonic() - begun
    found = counts("".join(output))
    if found is None:
        print(f"FAILED  {name}: no counts; exit status {status} after {seconds:.0f} s", flush=True)
        found = (0, 1, 0)
    elif status and not found[1]:
        print(f"FAILED  {name}: exit status {status} after its counts", flush=True)
        found = (found[0], 1, found[2])
    return found, seconds


def environment_for(options, folder):
    """Variables of the client's processes."""
    variables = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    path = [str(folder)] if folder else []
    path += [variables["PYTHONPATH"]] if variables.get("PYTHONPATH") else []
    if path:
        variables["PYTHONPATH"] = os.pathsep.join(path)
    if options.libcuda:
        path = [str(options.libcuda.absolute()), variables.get("LD_LIBRARY_PATH", "")]
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, path))
    return variables


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="clients (all that run on this device)")
    parser.add_argument("--full", action="store_true", help="whole test suites, and clients that CI leaves out")
    parser.add_argument("--list", action="store_true", help="print the clients and their versions")
    parser.add_argument("--installed", action="store_true", help="use the clients of this interpreter")
    parser.add_argument("--wheel", type=pathlib.Path, help="with --installed: the wheel of cupyrite, or its folder")
    parser.add_argument("--wheels", type=pathlib.Path, help="folder of the wheels of cupyrite and the stand-ins")
    parser.add_argument("--environments", type=pathlib.Path, default=pathlib.Path("target/clients"))
    parser.add_argument(
        "--libcuda", type=pathlib.Path, help="folder with a libcuda.so.1 to use instead of the installed Cupyrite's"
    )
    parser.add_argument("--json", type=pathlib.Path, help="write the counts there")
    options = parser.parse_args(words)
    clients = tomllib.loads((HERE / "clients.toml").read_text())
    if options.list:
        for name, client in clients.items():
            print(f"{name:16} {client['cpu'] or 'GPU only':9} {' '.join(client['requirements'])}")
        return 0
    cpu = os.environ.get("CUPYRITE_DEVICE") == "cpu"
    try:
        names = selection(clients, options.names, options.full, cpu)
    except ValueError as error:
        parser.error(str(error))
    if options.installed == bool(options.wheels):
        parser.error("expected either --installed or --wheels FOLDER")
    if options.wheel and not options.installed:
        parser.error("--wheel needs --installed")
    table = {}
    with tempfile.TemporaryDirectory(prefix="cupyrite-clients-") as folder:
        if options.wheel:
            try:
                unpack(options.wheel, folder)
            except ValueError as error:
                parser.error(f"--wheel {error}")
        variables = environment_for(options, folder if options.wheel else None)
        # Clients load the driver themselves.
        ours = cpu and (options.wheels or options.wheel) and not options.libcuda
        words = ["-m", "cupyrite", "run"] if ours else []
        for name in names:
            python = sys.executable
            if options.wheels:
                python = interpreter(name, clients, options.wheels.absolute(), options.environments.absolute())
            table[name] = run(name, clients[name], python, variables, options.full, words)
    print(f"\n{'client':16} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    for name, (found, seconds) in table.items():
        print(f"{name:16} {found[0]:7} {found[1]:7} {found[2]:8} {seconds:8.0f}")
    total = [sum(found[i] for found, _ in table.values()) for i in range(3)]
    if options.json:
        options.json.write_text(json.dumps({name: [*found, round(s)] for name, (found, s) in table.items()}))
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
