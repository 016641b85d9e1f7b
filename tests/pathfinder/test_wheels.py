"""`cuda.pathfinder` over NVIDIA's real wheels: CUDA 12, CUDA 13, and both in one environment.

CUPYRITE_TEST_ALL_WHEELS=1 includes the large libraries (several gigabytes).
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from helpers.nvidia_wheels import CACHE, downloaded
from helpers.pathfinder import OURS, Place, ours, path_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

SMALL = {
    12: [
        *(f"nvidia-{n}-cu12>=12,<13" for n in ("cuda-nvrtc", "cuda-runtime", "nvjitlink", "nvfatbin", "cuda-nvcc")),
        *(f"nvidia-{n}-cu12>=12,<13" for n in ("cuda-cupti", "cuda-cccl", "cuda-profiler-api")),
        "nvidia-cufile-cu12",
    ],
    13: [
        *(f"nvidia-{n}>=13,<14" for n in ("cuda-nvrtc", "cuda-runtime", "nvjitlink", "nvfatbin", "nvvm")),
        *(f"nvidia-{n}>=13,<14" for n in ("cuda-nvcc", "cuda-crt", "cuda-cupti", "cuda-cccl", "cuda-profiler-api")),
        "nvidia-cufile",
    ],
}
LARGE = {
    12: [f"nvidia-{n}-cu12" for n in "cublas cusparse cusolver cufft curand npp nvjpeg cudnn nccl".split()],
    13: [
        *(f"nvidia-{n}" for n in "cublas cusparse cusolver cufft curand npp nvjpeg".split()),
        *(f"nvidia-{n}-cu13" for n in ("cudnn", "nccl")),
    ],
}

# library: its file in the wheels of each major.
SMALL_LIBRARIES = {
    "cudart": {12: "cuda_runtime/lib/libcudart.so.12", 13: "cu13/lib/libcudart.so.13"},
    "cufile": {12: "cufile/lib/libcufile.so.0", 13: "cu13/lib/libcufile.so.0"},
    "cupti": {12: "cuda_cupti/lib/libcupti.so.12", 13: "cu13/lib/libcupti.so.13"},
    "nvJitLink": {12: "nvjitlink/lib/libnvJitLink.so.12", 13: "cu13/lib/libnvJitLink.so.13"},
    "nvfatbin": {12: "nvfatbin/lib/libnvfatbin.so.12", 13: "cu13/lib/libnvfatbin.so.13"},
    "nvrtc": {12: "cuda_nvrtc/lib/libnvrtc.so.12", 13: "cu13/lib/libnvrtc.so.13"},
    "nvvm": {12: "cuda_nvcc/nvvm/lib64/libnvvm.so", 13: "cu13/lib/libnvvm.so.4"},
}
# Libraries of the same major that it must have loaded.
LARGE_LIBRARIES = {
    "cublas": ({12: "cublas/lib/libcublas.so.12", 13: "cu13/lib/libcublas.so.13"}, ["cublasLt"]),
    "cublasLt": ({12: "cublas/lib/libcublasLt.so.12", 13: "cu13/lib/libcublasLt.so.13"}, []),
    "cudnn": ({12: "cudnn/lib/libcudnn.so.9", 13: "cudnn/lib/libcudnn.so.9"}, ["cublasLt"]),
    "cufft": ({12: "cufft/lib/libcufft.so.11", 13: "cu13/lib/libcufft.so.12"}, []),
    "cufftw": ({12: "cufft/lib/libcufftw.so.11", 13: "cu13/lib/libcufftw.so.12"}, ["cufft"]),
    "curand": ({12: "curand/lib/libcurand.so.10", 13: "cu13/lib/libcurand.so.10"}, []),
    "cusolver": (
        {12: "cusolver/lib/libcusolver.so.11", 13: "cu13/lib/libcusolver.so.12"},
        ["nvJitLink", "cusparse", "cublas", "cublasLt"],
    ),
    "cusolverMg": (
        {12: "cusolver/lib/libcusolverMg.so.11", 13: "cu13/lib/libcusolverMg.so.12"},
        ["nvJitLink", "cublas", "cublasLt"],
    ),
    "cusparse": ({12: "cusparse/lib/libcusparse.so.12", 13: "cu13/lib/libcusparse.so.12"}, ["nvJitLink"]),
    "nccl": ({12: "nccl/lib/libnccl.so.2", 13: "nccl/lib/libnccl.so.2"}, []),
    "nvblas": ({12: "cublas/lib/libnvblas.so.12", 13: "cu13/lib/libnvblas.so.13"}, ["cublas", "cublasLt"]),
    "nvjpeg": ({12: "nvjpeg/lib/libnvjpeg.so.12", 13: "cu13/lib/libnvjpeg.so.13"}, []),
    **{
        f"npp{n}": ({12: f"npp/lib/libnpp{n}.so.12", 13: f"cu13/lib/libnpp{n}.so.13"}, [] if n == "c" else ["nppc"])
        for n in "c ial icc idei if ig im ist isu itc s".split()
    },
}
HEADERS = {
    "cccl": {12: "cuda_cccl/include", 13: "cu13/include/cccl"},
    "cudart": {12: "cuda_runtime/include", 13: "cu13/include"},
    "cufile": {12: "cufile/include", 13: "cu13/include"},
    "nvcc": {12: "cuda_nvcc/include", 13: "cu13/include"},
    "nvfatbin": {12: "nvfatbin/include", 13: "cu13/include"},
    "nvjitlink": {12: "nvjitlink/include", 13: "cu13/include"},
    "nvrtc": {12: "cuda_nvrtc/include", 13: "cu13/include"},
    "nvvm": {12: "cuda_nvcc/nvvm/include", 13: "cu13/include"},
    "profiler": {12: "cuda_profiler_api/include", 13: "cu13/include"},
}
BINARIES = {
    "ptxas": {12: "cuda_nvcc/bin/ptxas", 13: "cu13/bin/ptxas"},
    "nvcc": {12: None, 13: "cu13/bin/nvcc"},
    "bin2c": {12: None, 13: "cu13/bin/bin2c"},
    "fatbinary": {12: None, 13: "cu13/bin/fatbinary"},
    "nvlink": {12: None, 13: "cu13/bin/nvlink"},
    "nsys": {12: None, 13: None},
}
ARCHIVES = {12: "cuda_runtime/lib/libcudadevrt.a", 13: "cu13/lib/libcudadevrt.a"}
BITCODE = {12: "cuda_nvcc/nvvm/libdevice/libdevice.10.bc", 13: "cu13/nvvm/libdevice/libdevice.10.bc"}

# A version function, and the major in its result.
VERSIONS = {
    "cudart": ("cudaRuntimeGetVersion", lambda v: v[0] // 1000),
    "nvJitLink": ("nvJitLinkVersion", lambda v: v[0]),
    "nvfatbin": ("nvFatbinVersion", lambda v: v[0]),
    "nvrtc": ("nvrtcVersion", lambda v: v[0]),
}

ENVIRONMENTS = {"12": (12,), "13": (13,), "12 and 13": (12, 13)}


def environment_of(folder, majors, large):
    """A fresh virtual environment with the wheels of `majors`, as hard links to the download."""
    wheels = [downloaded(names) for m in majors for names in (SMALL[m], *([LARGE[m]] if large else []))]
    place = Place(folder)
    for unpacked in wheels:
        shutil.copytree(unpacked / "nvidia", place.site / "nvidia", copy_function=link, dirs_exist_ok=True)
    return place


def link(source, target):
    """Copies a file as a hard link. If two wheels contain the same file the last one wins, as with pip."""
    pathlib.Path(target).unlink(missing_ok=True)
    os.link(source, target)


@pytest.fixture(scope="module")
def places():
    """The three environments, each created on first use."""
    large = os.environ.get("CUPYRITE_TEST_ALL_WHEELS") == "1"
    made = {}
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as work:

        def place(name):
            if name not in made:
                made[name] = environment_of(pathlib.Path(work) / name.replace(" ", "-"), ENVIRONMENTS[name], large)
            return made[name]

        yield place


def majors_of(maps, site):
    """The CUDA majors of the mapped files below `site`, with the files."""
    found = {}
    for path in maps:
        if path.startswith(str(site / "nvidia")):
            part = pathlib.Path(path).relative_to(site / "nvidia").parts[0]
            shared = part in ("cudnn", "nccl")  # Both majors share this folder.
            found.setdefault(None if shared else 13 if part == "cu13" else 12, []).append(path)
    return found


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("name", SMALL_LIBRARIES)
def test_loads_from_the_right_wheel(places, environment, name):
    place, major = places(environment), max(ENVIRONMENTS[environment])
    questions = [("load_nvidia_dynamic_lib", name), ("maps",), ("load_nvidia_dynamic_lib", name)]
    if name in VERSIONS:
        questions.append(("number", name, VERSIONS[name][0]))
    first, maps, again, *version = place.ask(*questions)
    expected = place.site / "nvidia" / SMALL_LIBRARIES[name][major]
    assert first["value"] == {
        "abs_path": str(expected), "found_via": "site-packages", "was_already_loaded_from_elsewhere": False,
    }  # fmt: skip
    assert again["value"] == first["value"]
    assert str(expected) in maps["value"]
    assert set(majors_of(maps["value"], place.site)) == {major}, maps
    if version:
        status, *numbers = version[0]["value"]
        assert status == 0 and VERSIONS[name][1](numbers) == major


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_nvrtc_finds_its_builtins(places, environment):
    place, major = places(environment), max(ENVIRONMENTS[environment])
    compiled, maps = place.ask(("compiled", "nvrtc"), ("maps",))
    assert compiled["value"] == [0, 0, True]
    assert set(majors_of(maps["value"], place.site)) == {major}
    assert any(f"libnvrtc-builtins.so.{major}." in path for path in maps["value"])


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_everything_in_one_process(places, environment):
    place, major = places(environment), max(ENVIRONMENTS[environment])
    *loaded, maps = place.ask(*(("load_nvidia_dynamic_lib", name) for name in SMALL_LIBRARIES), ("maps",))
    for name, answer in zip(SMALL_LIBRARIES, loaded):
        assert path_of(answer) == str(place.site / "nvidia" / SMALL_LIBRARIES[name][major])
    assert set(majors_of(maps["value"], place.site)) == {major}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_headers(places, environment):
    place, major = places(environment), max(ENVIRONMENTS[environment])
    for name, where in HEADERS.items():
        located, found = place.ask(("locate_nvidia_header_directory", name), ("find_nvidia_header_directory", name))
        expected = str(place.site / "nvidia" / where[major])
        assert located["value"] == {"abs_path": expected, "found_via": "site-packages"}, name
        assert found["value"] == expected, name


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_binaries_start(places, environment):
    place, majors = places(environment), ENVIRONMENTS[environment]
    for name, where in BINARIES.items():
        (answer,) = place.ask(("find_nvidia_binary_utility", name))
        # The newest major that has it: only CUDA 13 includes nvcc.
        expected = next((where[m] for m in sorted(majors, reverse=True) if where[m]), None)
        assert answer["value"] == (expected and str(place.site / "nvidia" / expected)), name
    ptxas = place.ask(("find_nvidia_binary_utility", "ptxas"))[0]["value"]
    text = subprocess.run([ptxas, "--version"], capture_output=True, text=True)
    assert text.returncode == 0 and f"release {max(majors)}." in text.stdout


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_archives(places, environment):
    place, major = places(environment), max(ENVIRONMENTS[environment])
    questions = [("locate_static_lib", "cudadevrt"), ("find_static_lib", "cudadevrt")]
    questions += [("locate_bitcode_lib", "device"), ("find_bitcode_lib", "device")]
    static, static_path, bitcode, bitcode_path = (a["value"] for a in place.ask(*questions))
    where = {"found_via": "site-packages"}
    archive, device = (str(place.site / "nvidia" / table[major]) for table in (ARCHIVES, BITCODE))
    assert static == {"name": "cudadevrt", "abs_path": archive, "filename": "libcudadevrt.a"} | where
    assert bitcode == {"name": "device", "abs_path": device, "filename": "libdevice.10.bc"} | where
    assert (static_path, bitcode_path) == (archive, device)


@pytest.mark.parametrize("environment", ["12", "13"])
def test_items_in_no_wheel_are_not_found(places, environment):
    (answer,) = places(environment).ask(("load_nvidia_dynamic_lib", "mathdx"))
    assert answer["error"] == "DynamicLibNotFoundError" and "libmathdx.so.0" in answer["text"]
    if OURS:
        assert "pip install" in answer["text"] and "conda install" in answer["text"]


@ours
@pytest.mark.parametrize("major", [12, 13])
@pytest.mark.parametrize("name", SMALL_LIBRARIES)
def test_major_can_be_selected(places, name, major):
    place = places("12 and 13")
    env = {"CUPYRITE_CUDA_MAJOR": str(major)}
    first, maps = place.ask(("load_nvidia_dynamic_lib", name), ("maps",), env=env)
    assert path_of(first) == str(place.site / "nvidia" / SMALL_LIBRARIES[name][major])
    assert set(majors_of(maps["value"], place.site)) == {major}


@ours
@pytest.mark.parametrize("major", [12, 13])
def test_selected_major_applies_to_headers_binaries_and_archives(places, major):
    place = places("12 and 13")
    expected = [HEADERS["nvrtc"][major], HEADERS["cccl"][major], BINARIES["ptxas"][major]]
    expected += [ARCHIVES[major], BITCODE[major]]
    questions = [("find_nvidia_header_directory", "nvrtc"), ("find_nvidia_header_directory", "cccl")]
    questions += [("find_nvidia_binary_utility", "ptxas"), ("find_static_lib", "cudadevrt")]
    questions += [("find_bitcode_lib", "device")]
    got = place.ask(*questions, env={"CUPYRITE_CUDA_MAJOR": str(major)})
    assert [path_of(a) for a in got] == [str(place.site / "nvidia" / e) for e in expected]


@ours
@pytest.mark.parametrize("installed, requested", [(12, 13), (13, 12)])
def test_only_the_other_major_is_installed(places, installed, requested):
    answer = places(str(installed)).load("nvrtc", env={"CUPYRITE_CUDA_MAJOR": str(requested)})
    assert answer["error"] == "DynamicLibNotFoundError", answer
    assert f"CUDA {installed}" in answer["text"] and "CUPYRITE_CUDA_MAJOR" in answer["text"]
    assert f"libnvrtc.so.{requested}" in answer["text"]


@ours
def test_override_beats_the_newer_wheel(places):
    place = places("12 and 13")
    path = place.site / "nvidia" / SMALL_LIBRARIES["nvrtc"][12]
    first, compiled, maps = place.ask(
        ("load_nvidia_dynamic_lib", "nvrtc"), ("compiled", "nvrtc"), ("maps",), env={"CUPYRITE_LIB_NVRTC": path}
    )
    assert path_of(first) == str(path)
    assert compiled["value"] == [0, 0, True]
    assert set(majors_of(maps["value"], place.site)) == {12}


large = pytest.mark.skipif(
    os.environ.get("CUPYRITE_TEST_ALL_WHEELS") != "1", reason="CUPYRITE_TEST_ALL_WHEELS=1 downloads the large wheels"
)


@large
@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("name", LARGE_LIBRARIES)
def test_loads_from_the_right_large_wheel(places, environment, name):
    place, major = places(environment), max(ENVIRONMENTS[environment])
    where, needs = LARGE_LIBRARIES[name]
    check_large(place, name, major, where, needs, {})


@ours
@large
@pytest.mark.parametrize("major", [12, 13])
@pytest.mark.parametrize("name", sorted(set(LARGE_LIBRARIES) - {"cudnn", "nccl"}))
def test_major_can_be_selected_for_large_wheels(places, name, major):
    where, needs = LARGE_LIBRARIES[name]
    check_large(places("12 and 13"), name, major, where, needs, {"CUPYRITE_CUDA_MAJOR": str(major)})


def check_large(place, name, major, where, needs, env):
    """Asserts that the library and its dependencies are of `major`."""
    first, maps = place.ask(("load_nvidia_dynamic_lib", name), ("maps",), env=env, timeout=300)
    assert path_of(first) == str(place.site / "nvidia" / where[major])
    assert first["value"]["found_via"] == "site-packages"
    found = majors_of(maps["value"], place.site)
    assert set(found) <= {major, None}, maps
    files = " ".join(maps["value"])
    assert all(f"lib{need}.so" in files for need in needs), maps
