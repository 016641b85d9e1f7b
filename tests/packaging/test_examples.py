"""Every example, copied alone to an empty folder, runs there and confirms its result, or says why this machine cannot run
it."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from helpers.device import on_cpu_device

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples"
SEVERAL = sorted(f"multi_device/{p.stem}" for p in FOLDER.glob("multi_device/*.py"))
EXAMPLES = sorted(p.stem for p in FOLDER.glob("*.py")) + SEVERAL
# With files of their own: test_mpi_examples.py, test_dask_examples.py, test_ray_examples.py, test_nccl_examples.py.
OTHERS = sorted(
    f"{folder}/{p.stem}" for folder in ("mpi", "dask", "ray", "nccl", "nvshmem") for p in (FOLDER / folder).glob("*.py")
)
STAGED = [name for name in SEVERAL if '"--staged"' in (FOLDER / f"{name}.py").read_text()]
VISUAL = [name for name in EXAMPLES if '"--save"' in (FOLDER / f"{name}.py").read_text()]
SKIPPED = 77


def run(name, *arguments, folder, **more):
    """Runs a copy of the example in the folder."""
    shutil.copy(FOLDER / f"{name}.py", folder)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **more)
    command = [sys.executable, pathlib.Path(name).name + ".py", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def confirm(done):
    if done.returncode == SKIPPED:
        assert "skipped: " in done.stdout
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("on ") and done.stdout.endswith("done: the results are right\n"), done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_alone_confirms_its_result(name, tmp_path):
    several = {"CUPYRITE_CPU_DEVICES": "4"} if name in (*SEVERAL, "peer_to_peer") and on_cpu_device() else {}
    confirm(run(name, folder=tmp_path, **several))
    expected = [pathlib.Path(name).name + ".py"]
    assert [file.name for file in tmp_path.iterdir()] == expected, "the example wrote an unrequested file"


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", SEVERAL)
def test_example_runs_on_so_many_devices(name, count, tmp_path):
    several = {"CUPYRITE_CPU_DEVICES": "4"} if on_cpu_device() else {}
    confirm(run(name, "--devices", str(count), folder=tmp_path, **several))


@pytest.mark.parametrize("name", STAGED)
def test_example_runs_without_peer_access(name, tmp_path):
    done = run(name, "--staged", folder=tmp_path, **({"CUPYRITE_CPU_DEVICES": "4"} if on_cpu_device() else {}))
    confirm(done)
    if on_cpu_device():
        assert " 0 " in done.stdout.splitlines()[-2], "nothing is copied directly"


@pytest.mark.skipif(not pathlib.Path("/proc/self/cwd").exists(), reason="needs /proc")
def test_workers_start_again_after_a_crash_and_none_is_left(tmp_path):
    several = {"CUPYRITE_CPU_DEVICES": "2"} if on_cpu_device() else {}
    # Rows of this size are still being sent when the worker is killed.
    done = run("multi_device/halo_processes", "--workers", "4", "--size", "1024", folder=tmp_path, **several)
    confirm(done)
    assert "-9" in done.stdout and "started 2 times" in done.stdout, done.stdout
    left = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == tmp_path:
                left.append((process / "cmdline").read_bytes())
    assert not left, "a worker outlives the program"


@pytest.mark.cpu
@pytest.mark.parametrize("name", SEVERAL)
def test_example_is_skipped_with_fewer_devices(name, tmp_path):
    done = run(name, "--devices", "3", folder=tmp_path, CUPYRITE_CPU_DEVICES="2")
    assert done.returncode == SKIPPED and "3 devices are needed, and there are 2" in done.stdout, (
        done.stdout + done.stderr
    )


@pytest.mark.cpu
@pytest.mark.parametrize(
    "name, arguments, expected",
    [
        ("halo_exchange", ["--size", "5"], "--size 5: expected at least 6, a row for each device and two edges"),
        ("halo_processes", ["--workers", "0"], "--workers 0: expected at least 1"),
        ("halo_processes", ["--size", "4"], "--size 4: expected at least 5, a row for each worker and two edges"),
        ("halo_exchange", ["--steps", "0"], "--steps 0: expected at least 1"),
        ("matrix_product", ["--size", "3"], "--size 3: expected at least 4, a row for each device"),
        ("pipeline", ["--batches", "0"], "--batches 0: expected at least 1"),
        ("reduction", ["--numbers", "-1"], "--numbers -1: expected 0 or more"),
    ],
)
def test_example_refuses_sizes_that_cannot_be_divided(name, arguments, expected, tmp_path):
    done = run(f"multi_device/{name}", *arguments, folder=tmp_path, CUPYRITE_CPU_DEVICES="4")
    assert done.returncode == 2 and expected in done.stderr, done.stdout + done.stderr


@pytest.mark.parametrize("name", VISUAL)
def test_example_saves_a_picture(name, tmp_path):
    image = pytest.importorskip("PIL.Image")
    confirm(run(name, "--save", "picture.png", folder=tmp_path))
    with image.open(tmp_path / "picture.png") as picture:
        width, height = picture.size
        assert min(width, height) >= 128
        colours = picture.convert("RGB").getcolors(width * height)
    assert len(colours) >= 4 and max(count for count, _ in colours) < 0.99 * width * height


def test_there_are_pictures():
    assert len(VISUAL) >= 7


def test_game_of_life_saves_a_film(tmp_path):
    image = pytest.importorskip("PIL.Image")
    confirm(run("game_of_life", "--save", "life.gif", "--generations", "5", folder=tmp_path))
    with image.open(tmp_path / "life.gif") as film:
        assert film.n_frames == 6


@pytest.mark.parametrize("name", VISUAL)
def test_picture_without_pillow_is_refused_before_the_work(name, tmp_path):
    (tmp_path / "PIL.py").write_text("raise ImportError('hidden')")
    done = run(name, "--save", "picture.png", folder=tmp_path)
    assert done.returncode == 2 and not done.stdout, done.stdout
    assert "--save: needs Pillow: pip install pillow" in done.stderr


@pytest.mark.parametrize("file, reason", [("mandelbrot", "not the name of a picture"), ("no/m.png", "no folder 'no'")])
def test_unusable_picture_name_is_refused_before_the_work(file, reason, tmp_path):
    pytest.importorskip("PIL")
    done = run("mandelbrot", "--save", file, folder=tmp_path)
    assert done.returncode == 2 and not done.stdout and reason in done.stderr, done.stdout + done.stderr


def test_simulation_runs_without_tqdm(tmp_path):
    (tmp_path / "tqdm.py").write_text("raise ImportError('hidden')")
    done = run("heat_equation", "--steps", "10", "--size", "33", folder=tmp_path)
    assert done.stdout.endswith("done: the results are right\n") and not done.stderr, done.stdout + done.stderr


@pytest.mark.cpu
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_skipped_without_a_device(name, tmp_path):
    done = run(name, folder=tmp_path, CUPYRITE_DEVICE="gpu", CUPYRITE_LIB_CUDA="/no/libcuda.so.1")
    assert done.returncode == SKIPPED and "skipped: no device: " in done.stdout, done.stdout + done.stderr


@pytest.mark.cpu
def test_peer_example_is_skipped_with_one_device(tmp_path):
    done = run("peer_to_peer", folder=tmp_path, CUPYRITE_CPU_DEVICES="1")
    assert done.returncode == SKIPPED and "two devices are needed" in done.stdout, done.stdout + done.stderr


def test_readme_lists_every_example():
    text = (FOLDER / "README.md").read_text()
    for name in EXAMPLES + OTHERS:
        assert f"`{name}.py`" in text, f"{name} is not in examples/README.md"
    assert text.count(".py` |") == len(EXAMPLES + OTHERS), "examples/README.md lists a program that does not exist"
