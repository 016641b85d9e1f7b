"""`cuda.pathfinder` in malicious or broken environments: the right answer or an error, never a crash, a hang or a
planted file.

Every question goes to a fresh process with a time limit. The libraries are made up (see `shared_object`), so that tests
need nothing of NVIDIA's and can use foreign architectures.
"""

import os
import pathlib
import stat
import sys

import pytest

from helpers.pathfinder import MACHINE, OURS, Place, answers, bare, ours, path_of, shared_object, touch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

NEW, OLD = "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
FOREIGN = 183 if MACHINE == 62 else 62
# Every function, with a known name.
EVERYTHING = [
    ("get_cuda_path_or_home",),
    ("load_nvidia_dynamic_lib", "nvrtc"),
    ("load_nvidia_dynamic_lib", "nvvm"),
    ("load_nvidia_dynamic_lib", "cudnn"),
    ("load_nvidia_dynamic_lib", "nccl"),
    ("load_nvidia_dynamic_lib", "cuda"),
    ("find_nvidia_header_directory", "cccl"),
    ("locate_nvidia_header_directory", "cudnn"),
    ("locate_nvidia_header_directory", "nvshmem"),
    ("find_nvidia_binary_utility", "nvcc"),
    ("find_nvidia_binary_utility", "ncu"),
    ("find_static_lib", "cudadevrt"),
    ("locate_static_lib", "cudadevrt"),
    ("find_bitcode_lib", "device"),
    ("locate_bitcode_lib", "nccl_device"),
]
NOT_FOUND = {"DynamicLibNotFoundError", "StaticLibNotFoundError", "BitcodeLibNotFoundError", "RuntimeError"}
VARIABLES = ["CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "CUDNN_PATH", "NCCL_HOME", "VIRTUAL_ENV"]
OUR_VARIABLES = ["CUPYRITE_LIB_NVRTC", "CUPYRITE_LIB_CUDA", "CUPYRITE_CUDA_MAJOR"] if OURS else []
# Root can read everything; without these two capabilities it is an ordinary user.
NO_PRIVILEGES = """
import ctypes
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
libc = ctypes.CDLL(None, use_errno=True)
assert libc.capget(header, data) == 0
for i in (0, 1):
    data[i] &= ~((1 << 1) | (1 << 2))
assert libc.capset(header, data) == 0
"""


@pytest.fixture
def place(tmp_path):
    """A fresh environment without libraries."""
    return Place(tmp_path / "environment")


def not_from(answer, folder):
    """Asserts that the answer is an error, nothing, or a path outside `folder`: the machine may have a toolkit."""
    if "error" in answer:
        assert answer["error"] in NOT_FOUND, answer
    elif answer["value"] is not None:
        assert not path_of(answer).startswith(str(folder)), answer


def toolkit(folder, major=13):
    """A made-up toolkit with one item of each kind; returns its folder."""
    folder = pathlib.Path(folder)
    for name in ("nvrtc", "cudart", "cublasLt"):
        shared_object(folder / f"lib64/lib{name}.so.{major}", f"lib{name}.so.{major}")
    shared_object(folder / "lib/libcudnn.so.9", "libcudnn.so.9")
    shared_object(folder / "lib/libnccl.so.2", "libnccl.so.2")
    shared_object(folder / "lib/libnvrtc.so.13", "libnvrtc.so.13")
    shared_object(folder / "nvvm/lib64/libnvvm.so.4", "libnvvm.so.4")
    shared_object(folder / "libcuda.so.1", "libcuda.so.1")
    for file in ("include/cudnn.h", "include/cccl/cuda/std/version"):
        touch(folder / file)
    touch(folder / "nvvm/libdevice/libdevice.10.bc", b"BC\xc0\xde")
    for file in ("lib64/libcudadevrt.a", "lib/libcudadevrt.a", "lib/libnccl_device.bc"):
        touch(folder / file, b"!<arch>\n")
    touch(folder / "bin/nvcc", b"#!/bin/sh\n", 0o755)
    return folder


# Files in place of the library ------------------------------------------------------------------------


def elf(path, **how):
    return shared_object(path, "libnvrtc.so.13", **how)


def truncated(path):
    elf(path)
    path.write_bytes(path.read_bytes()[:100])


def dangling(path):
    path.symlink_to("nowhere/at/all")


def cycle(path):
    path.symlink_to(path.name + ".2")
    (path.parent / (path.name + ".2")).symlink_to(path.name)


# Not a regular file: skipped. The words must appear in our message.
PASSED_OVER = {
    "dangling link": (dangling, "nowhere/at/all"),
    "link cycle": (cycle, "link"),
    "folder": (lambda path: path.mkdir(), "folder|directory"),
    "FIFO": (lambda path: os.mknod(path, stat.S_IFIFO | 0o644), "FIFO|pipe"),
    "socket": (lambda path: os.mknod(path, stat.S_IFSOCK | 0o644), "socket"),
    "link to /dev/zero": (lambda path: path.symlink_to("/dev/zero"), "device|regular"),
    "link to a folder": (lambda path: path.symlink_to("/usr"), "folder|directory"),
}
# A regular file that cannot be loaded: the search ends there, so that a broken installation is reported.
REFUSED = {
    "empty": (lambda path: touch(path), "empty"),
    "text": (lambda path: touch(path, b"this is no library, whatever its name says\n" * 9), "text|ELF"),
    "one byte": (lambda path: touch(path, b"\x7f"), "ELF|not a library"),
    "Git LFS pointer": (
        lambda path: touch(path, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
        "LFS",
    ),
    "archive": (lambda path: touch(path, b"!<arch>\n" + bytes(200)), "static library"),
    "foreign architecture": (lambda path: elf(path, machine=FOREIGN), "aarch64|ARM|x86"),
    "only a foreign header": (lambda path: touch(path, foreign_header()), "aarch64|ARM|x86|short|truncated"),
    "32-bit": (lambda path: elf(path, bits=32), "32"),
    "truncated": (truncated, "."),
    "zeros": (lambda path: touch(path, bytes(4096)), "ELF|not a library"),
}


def foreign_header():
    """64 bytes: the header of a shared object for another architecture."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0" + FOREIGN.to_bytes(2, "little") + b"\x01" + bytes(43)


def matches(words, text):
    return any(word.lower() in text.lower() for word in words.split("|")) if words != "." else True


@pytest.mark.parametrize("kind", PASSED_OVER)
def test_non_files_are_skipped(place, kind):
    make, words = PASSED_OVER[kind]
    path = place.site / NEW
    path.parent.mkdir(parents=True)
    make(path)
    answer = place.load("nvrtc", timeout=60)
    not_from(answer, place.folder)
    if OURS and "error" in answer:
        assert answer["error"] == "DynamicLibNotFoundError"
        assert str(path) in answer["text"] and matches(words, answer["text"]), answer["text"]
    shared_object(place.site / OLD, "libnvrtc.so.12")
    assert path_of(place.load("nvrtc", timeout=60)) == str(place.site / OLD)


@pytest.mark.parametrize("second", [False, True], ids=["alone", "with a good one behind"])
@pytest.mark.parametrize("kind", REFUSED)
def test_file_that_is_not_a_library_is_an_error(place, kind, second):
    make, words = REFUSED[kind]
    path = place.site / NEW
    path.parent.mkdir(parents=True)
    make(path)
    if second:
        shared_object(place.site / OLD, "libnvrtc.so.12")
    first, again = place.ask(*[("load_nvidia_dynamic_lib", "nvrtc")] * 2, timeout=60)
    assert "RuntimeError" in first["bases"] and str(path) in first["text"], first
    assert again == first
    if OURS:
        assert matches(words, first["text"].replace(str(path), "")), first["text"]


@pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "LD_LIBRARY_PATH"])
@pytest.mark.parametrize("kind", [*PASSED_OVER, *REFUSED])
def test_broken_files_in_every_location(place, tmp_path, variable, kind):
    path = tmp_path / "other" / "lib" / "libnvrtc.so.13"
    path.parent.mkdir(parents=True)
    (PASSED_OVER | REFUSED)[kind][0](path)
    value = path.parent if variable == "LD_LIBRARY_PATH" else path.parents[1]
    if kind == "FIFO" and variable == "LD_LIBRARY_PATH" and not OURS:
        pytest.skip("the system's loader opens it and waits")
    answer = place.load("nvrtc", env={variable: value}, timeout=60)
    assert "value" not in answer or not path_of(answer).startswith(str(tmp_path)), answer


@pytest.mark.parametrize("kind", PASSED_OVER)
def test_non_files_in_place_of_headers_binaries_and_archives(place, kind):
    root = place.site / "nvidia/cu13"
    wanted = {
        "include/nvrtc.h": ("find_nvidia_header_directory", "nvrtc"),
        "bin/ptxas": ("find_nvidia_binary_utility", "ptxas"),
        "lib/libcudadevrt.a": ("find_static_lib", "cudadevrt"),
        "nvvm/libdevice/libdevice.10.bc": ("find_bitcode_lib", "device"),
    }
    for file in wanted:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        PASSED_OVER[kind][0](root / file)
    for answer in place.ask(*wanted.values(), timeout=60):
        not_from(answer, place.folder)


def test_binary_must_be_executable(place):
    plain = touch(place.site / "nvidia/cu13/bin/ptxas", b"#!/bin/sh\n", 0o644)
    not_from(place.ask(("find_nvidia_binary_utility", "ptxas"))[0], place.folder)
    second = touch(place.site / "nvidia/cuda_nvcc/bin/ptxas", b"#!/bin/sh\n", 0o755)
    assert place.ask(("find_nvidia_binary_utility", "ptxas"))[0]["value"] == str(second)
    plain.chmod(0o755)
    assert place.ask(("find_nvidia_binary_utility", "ptxas"))[0]["value"] == str(plain)


def test_sonames_of_other_versions_do_not_match(place):
    for name in ("libnvrtc.so", "libnvrtc.so.13.1.80", "libnvrtc.so.11", "libnvrtc.so.130", "xlibnvrtc.so.13"):
        shared_object(place.site / "nvidia/cu13/lib" / name, "libnvrtc.so.13")
    answer = place.load("nvrtc")
    not_from(answer, place.folder)


# Folders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("denied", ["nvidia", "nvidia/cu13", pytest.param("nvidia/cu13/lib", marks=ours), NEW])
def test_unreadable_folders(place, denied):
    shared_object(place.site / NEW, "libnvrtc.so.13")
    path = place.site / denied
    path.chmod(0)
    try:
        done = place.start(("run", NO_PRIVILEGES), ("load_nvidia_dynamic_lib", "nvrtc"), *EVERYTHING)
    finally:
        path.chmod(0o755)
    answer = answers(done)
    assert answer[0] == {"value": None, "warnings": []}
    if denied == NEW:  # Found, but unreadable.
        assert "RuntimeError" in answer[1]["bases"], answer[1]
    not_from(answer[1], place.folder)
    if OURS and "error" in answer[1]:
        assert "permission" in answer[1]["text"].lower(), answer[1]["text"]


def test_read_only_environment(place):
    for path in NEW, OLD:
        shared_object(place.site / path, path.rsplit("/", 1)[1])
    for path in [place.folder, *place.folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    try:
        env = {"HOME": "/nonexistent", "TMPDIR": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"}
        got = place.ask(("run", NO_PRIVILEGES), ("load_nvidia_dynamic_lib", "nvrtc"), env=env)
    finally:
        for path in [place.folder, *place.folder.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o700)
    assert path_of(got[1]) == str(place.site / NEW)


@pytest.mark.parametrize("where", ["nvidia", "nvidia/cu13", "nvidia/cu13/lib"])
def test_folder_cycles(place, where):
    path = place.site / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path)
    for answer in place.ask(*EVERYTHING, timeout=60):
        assert "value" in answer or answer["error"] in NOT_FOUND
        if answer.get("value"):
            not_from(answer, place.folder)
    path.unlink()
    path.symlink_to(".")  # Endless, not circular: nvidia/nvidia/nvidia/...
    shared_object(place.site / "elsewhere" / "libnvrtc.so.13", "libnvrtc.so.13")
    assert all("value" in a or a["error"] in NOT_FOUND for a in place.ask(*EVERYTHING, timeout=60))


def test_symbolic_links_to_folders(place, tmp_path):
    shared_object(tmp_path / "store/libnvrtc.so.13", "libnvrtc.so.13")
    path = place.site / NEW
    path.parent.parent.mkdir(parents=True)
    path.parent.symlink_to(tmp_path / "store")
    assert path_of(place.load("nvrtc")) == str(path)


def test_folders_with_many_entries(place):
    folder = place.site / "nvidia/cu13/lib"
    folder.mkdir(parents=True)
    for i in range(10_000):
        (folder / f"libnvrtc-builtins.so.{i}").touch()
    for i in range(2_000):
        (place.site / f"nvidia_{i}.dist-info").mkdir()
    path = shared_object(place.site / NEW, "libnvrtc.so.13")
    assert path_of(place.load("nvrtc", timeout=120)) == str(path)


def test_ten_thousand_entries_on_the_path(place):
    path = shared_object(place.site / NEW, "libnvrtc.so.13")
    code = "import sys; sys.path[:0] = ['/nowhere/%d/site-packages' % i for i in range(10_000)]"
    got = place.ask(("run", code), ("load_nvidia_dynamic_lib", "nvrtc"), timeout=120)
    assert path_of(got[1]) == str(path)
    path.unlink()
    got = place.ask(("run", code), *EVERYTHING, timeout=120)
    assert all("value" in a or a["error"] in NOT_FOUND for a in got[1:])
    # As long as the system allows for one variable (128 KiB).
    entries = ":".join(f"/n/{i}" for i in range(14_000))
    env = {"LD_LIBRARY_PATH": entries, "PATH": entries, "PYTHONPATH": entries}
    got = place.ask(*EVERYTHING, env=env, timeout=120)
    assert all("value" in a or a["error"] in NOT_FOUND for a in got)


@bare
@pytest.mark.parametrize("name", [b"caf\xe9 \xff", "ünïcödé 库".encode(), b"new\nline", b"quote'\"%s{}\\", b" "])
def test_unusual_folder_names(place, tmp_path, name):
    odd = pathlib.Path(os.path.join(os.fsencode(tmp_path), name).decode("utf-8", "surrogateescape"))
    tools = toolkit(odd / "toolkit")
    questions = [("load_nvidia_dynamic_lib", "nvrtc"), ("find_static_lib", "cudadevrt"), ("get_cuda_path_or_home",)]
    questions += [("find_nvidia_binary_utility", "nvcc"), ("find_nvidia_header_directory", "cccl")]
    files = ["lib64/libnvrtc.so.13", "lib64/libcudadevrt.a", "", "bin/nvcc", "include/cccl"]
    shared_object(odd / "conda/lib/libnvrtc.so.13", "libnvrtc.so.13")
    shared_object(odd / "wheels" / NEW, "libnvrtc.so.13")
    shared_object(odd / "mine.so", "libnvrtc.so.13")
    for locale in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        # Not every locale can represent all bytes as text; the right file must be found all the same.
        got = [os.fsencode(path_of(a)) for a in place.ask(*questions, env={"CUDA_PATH": tools, **locale})]
        assert got == [os.fsencode(tools / file) for file in files]
        others = {"CONDA_PREFIX": "conda/lib/libnvrtc.so.13", "LD_LIBRARY_PATH": "conda/lib/libnvrtc.so.13"}
        others |= {"CUPYRITE_LIB_NVRTC": "mine.so", "PYTHONPATH": f"wheels/{NEW}"} if OURS else {}
        values = {"CONDA_PREFIX": "conda", "LD_LIBRARY_PATH": "conda/lib", "PYTHONPATH": "wheels"}
        for variable, file in others.items():
            answer = place.load("nvrtc", env={variable: odd / values.get(variable, file), **locale})
            assert os.fsencode(path_of(answer)) == os.fsencode(odd / file), variable


# Planted files --------------------------------------------------------------------------------------------------------


def lures(folder):
    """Plants libraries in every form that a careless search could take from a working directory."""
    for path in (NEW, OLD, "lib/libnvrtc.so.13", "lib64/libnvrtc.so.13", "libnvrtc.so.13", "nvrtc"):
        shared_object(folder / path, "libnvrtc.so.13")
    for path in ("nvidia/cu13/include/nvrtc.h", "include/nvrtc.h", "nvidia/cu13/lib/libcudadevrt.a", "libcudadevrt.a"):
        touch(folder / path)
    for path in ("nvidia/cu13/bin/ptxas", "bin/ptxas", "ptxas", "nvcc", "ldconfig", "python3", "python", "gcc"):
        touch(folder / path, b"#!/bin/sh\ntouch %b/started\n" % os.fsencode(folder), 0o755)
    touch(folder / "nvidia/cu13/nvvm/libdevice/libdevice.10.bc")
    return folder


LURED = [
    ("load_nvidia_dynamic_lib", "nvrtc"),
    ("find_nvidia_header_directory", "nvrtc"),
    ("find_nvidia_binary_utility", "ptxas"),
    ("find_nvidia_binary_utility", "nvcc"),
    ("find_static_lib", "cudadevrt"),
    ("find_bitcode_lib", "device"),
]


@pytest.mark.parametrize("options", [(), ("-I",), ("-S",), ("-E",), ("-s",), ("-P",), ("-O",)], ids=str)
def test_working_directory_is_not_searched(place, options):
    folder = lures(place.folder / "working")
    env = {"PATH": f"{folder}:/usr/bin:/bin"}
    if "-S" in options:  # Without site the package itself must come from somewhere.
        env["PYTHONPATH"] = str(place.site)
    for answer in place.ask(*LURED, cwd=folder, env=env, options=options):
        not_from(answer, folder)
    assert not (folder / "started").exists()


def test_script_folder_is_not_searched(place):
    folder = lures(place.folder / "script")
    for answer in place.ask(*LURED):
        not_from(answer, folder)
    assert not (folder / "started").exists()


def test_module_folder_is_not_searched(place):
    folder = lures(place.folder / "working")
    code = f"import sys; sys.path[:0] = ['', '.', 'nvidia', {str(folder)!r}]"
    for answer in place.ask(("run", code), *LURED, cwd=folder)[1:]:
        not_from(answer, folder)


@ours
@pytest.mark.parametrize("variable", [*VARIABLES, "CUPYRITE_LIB_NVRTC", "LD_LIBRARY_PATH", "PYTHONPATH"])
@pytest.mark.parametrize("value", [".", "lib", "./lib", "../working", "", "lib/libnvrtc.so.13", "libnvrtc.so.13", ":"])
def test_relative_values_find_nothing(place, variable, value):
    folder = lures(place.folder / "working")
    (folder / "site-packages").symlink_to(".")
    for answer in place.ask(*LURED, cwd=folder, env={variable: value}):
        not_from(answer, folder)


@ours
@pytest.mark.parametrize("variable", ["CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "CUPYRITE_LIB_NVRTC"])
def test_relative_values_are_reported(place, variable):
    answer = place.load("nvrtc", env={variable: "some/folder"})
    if "error" in answer:
        assert variable in answer["text"] and "some/folder" in answer["text"], answer["text"]
        assert "absolute" in answer["text"] or "relative" in answer["text"], answer["text"]


@ours
def test_relative_search_path_entries_are_ignored(place):
    folder = place.folder / "working"
    shared_object(folder / "site-packages" / NEW, "libnvrtc.so.13")
    code = "import sys; sys.path[:0] = ['site-packages', './site-packages', 'working/../site-packages']"
    env = {"PYTHONPATH": "site-packages:./site-packages"}
    not_from(place.ask(("run", code), ("load_nvidia_dynamic_lib", "nvrtc"), cwd=folder, env=env)[1], folder)


# Values of variables ------------------------------------------------------------------------------------------

GARBAGE = {
    "newlines": "/opt\n/cuda\r\n",
    "escapes": "\x1b[31m/opt/\x07\x01",
    "very long": "/" + "x" * 100_000,
    "long and deep": "/x" * 30_000,
    "not UTF-8": "/opt/\udcff\udc80",
    "tilde": "~/cuda",
    "a variable": "$HOME/cuda",
    "an address": "file:///opt/cuda",
    "a list": "/a:/b:/c",
    "root": "/",
    "slashes": "////",
    "dots": "/../../../..",
    "blank": " ",
    "a file": "/etc/passwd",
    "a device": "/dev/zero",
    "proc": "/proc/self/root",
    "format": "%s%n{}{0}",
}


TOO_LONG = ("very long", "long and deep")


@pytest.mark.parametrize("garbage", [pytest.param(g, marks=ours if g in TOO_LONG else ()) for g in GARBAGE])
def test_garbage_in_variables(place, garbage):
    value = GARBAGE[garbage]
    for variables in ([v] for v in [*VARIABLES, *OUR_VARIABLES, "LD_LIBRARY_PATH", "HOME", "ProgramFiles"]):
        got = place.ask(*EVERYTHING, env={v: value for v in variables}, timeout=60)
        assert all("value" in a or a["error"] in NOT_FOUND for a in got), (variables, got)
    everything = {v: value for v in VARIABLES} if len(value) < 10_000 else {}
    got = place.ask(*EVERYTHING, env=everything, timeout=60)
    assert all("value" in a or a["error"] in NOT_FOUND for a in got), got


@ours
@pytest.mark.parametrize("value", ["0", "-1", "13.0", "thirteen", "99999999999999999999", "14", " 13", "\uff11\uff13"])
def test_invalid_cuda_major(place, value):
    shared_object(place.site / NEW, "libnvrtc.so.13")
    (answer,) = place.ask(("load_nvidia_dynamic_lib", "nvrtc"), env={"CUPYRITE_CUDA_MAJOR": value})
    if "error" in answer:
        assert "CUPYRITE_CUDA_MAJOR" in answer["text"], answer
    else:  # Surrounding whitespace may be ignored; another number may not be accepted.
        assert value.strip() in ("13", "\uff11\uff13"), answer


@ours
def test_home_variable_is_not_used(place):
    path = shared_object(place.site / NEW, "libnvrtc.so.13")
    for home in (None, "", "relative", "/nonexistent", "/dev/null"):
        assert path_of(place.load("nvrtc", env={"HOME": home, "PYTHONNOUSERSITE": None})) == str(path)
