"""A Debian 11 in a folder, with glibc 2.31 and a Python of its own: proof that the wheel runs with an older C library.

Debian 11's Python is older than 3.11. So Debian 12's source package of Python is compiled there. Needs root, debootstrap and Debian's
package archive; the folder is kept, so that a later rehearsal does not make it again.
"""

import os
import pathlib
import shutil
import subprocess
import sys
from platform import machine

SUITE = "bullseye"
NAME = "Debian 11, glibc 2.31"
#: The package archive; DEBIAN_MIRROR names another.
ARCHIVE = "http://deb.debian.org/debian"
#: What Python's modules need: ctypes, zlib, ssl for pip.
PACKAGES = ("build-essential", "ca-certificates", "libffi-dev", "libssl-dev", "zlib1g-dev")
PYTHON = "/opt/python/bin/python3"
#: Seconds for one command.
LIMIT = 3600

#: Downloads and compiles Python. Without the optimisations that take most of the time.
COMPILE = """
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends {packages}
echo "deb-src {archive} bookworm main" > /etc/apt/sources.list.d/bookworm-src.list
apt-get update -q
rm -rf /usr/src/python && mkdir -p /usr/src/python && cd /usr/src/python
apt-get source -q --download-only python3.11
tar --strip-components=1 -xf python3.11_*.orig.tar.*
./configure --quiet --prefix=/opt/python --disable-test-modules
make -s -j"$(nproc)"
make -s install
"""


class Missing(Exception):
    """Such a system cannot be made on this machine; the message says why."""


class System:
    """The folder of the system."""

    def __init__(self, folder, call):
        self.folder, self._call = folder, call

    def shell(self, script, **variables):
        """Runs a script in the system and returns its output."""
        # Nothing of this machine's environment applies there.
        words = [f"{name}={value}" for name, value in variables.items()]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        done = self._call(
            "chroot", self.folder, "/usr/bin/env", "-i", path, "HOME=/root", *words, "/bin/sh", "-c", script
        )
        return done.stdout

    def rehearse(self, dist, elements):
        """Installs the wheels of the folder `dist`, runs the demo, and says with what."""
        target = self.folder / "dist"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(dist, target)
        # The packages of others are downloaded outside, where the network is set up, for that system's tags.
        wheels = self.folder / "wheels"
        platforms = [f"--platform=manylinux{tag}_{machine()}" for tag in ("_2_28", "_2_27", "2014")]
        tags = [*platforms, "--only-binary=:all:", "--python-version=3.11"]
        words = ["-m", "pip", "download", "--quiet", "--dest", wheels, *tags, "numpy", "nvidia-cuda-nvrtc>=13,<14"]
        self._call(sys.executable, *words)
        self.shell(f"rm -rf /env && {PYTHON} -m venv /env")
        self.shell(
            "/env/bin/python -m pip install --quiet --disable-pip-version-check --no-index --find-links /dist --find-links /wheels "
            "numpy nvidia-cuda-nvrtc cupyrite"
        )
        shown = self.shell(f"/env/bin/cupyrite demo --elements {elements}", CUPYRITE_DEVICE="cpu")
        if ": correct" not in shown:
            raise RuntimeError(f"the demo's result is not correct:\n{shown}")
        version = self.shell("ldd --version | head -n 1").split()[-1]
        python = self.shell(f"{PYTHON} --version").split()[-1]
        self.shell(
            "/env/bin/python -m pip uninstall --quiet --yes cupyrite cuda-bindings cuda-core cuda-pathfinder cuda-python"
        )
        return f"CPython {python} with glibc {version}: installed; demo correct; uninstalled"


def ready(folder, call):
    """The system in this folder, made if it is not there; raises Missing. `call` runs a command and raises if it fails."""
    folder = pathlib.Path(folder)
    system = System(folder, call)
    if os.geteuid() != 0:
        raise Missing("chroot needs root")
    if (folder / PYTHON.lstrip("/")).exists():
        return system
    program = shutil.which("debootstrap") or shutil.which("debootstrap", path="/usr/sbin")
    if program is None:
        raise Missing("debootstrap is not installed")
    archive = os.environ.get("DEBIAN_MIRROR", ARCHIVE)
    if not (folder / "etc" / "debian_version").exists():
        done = subprocess.run(
            [program, "--variant=minbase", SUITE, str(folder), archive], capture_output=True, text=True, timeout=LIMIT
        )
        if done.returncode:
            raise Missing(f"debootstrap {SUITE} failed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    # The network's settings, without which apt finds no archive.
    for name in ("etc/resolv.conf", "etc/hosts"):
        if pathlib.Path("/", name).is_file():
            shutil.copyfile(pathlib.Path("/", name), folder / name)
    proxies = {
        name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy", "no_proxy")
    }
    system.shell(COMPILE.format(packages=" ".join(PACKAGES), archive=archive), **proxies)
    return system
