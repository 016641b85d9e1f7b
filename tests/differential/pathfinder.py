"""Asks Cupyrite's `cuda.pathfinder` and NVIDIA's the same questions on this machine, and counts the differences.

    python tests/differential/pathfinder.py --ours cupyrite-...whl [--peer FOLDER] [--toolkit FOLDER ...] [--json FILE]

Both run under this interpreter, with a fresh process per library: as installed (with the installed wheels), and in an
empty environment where only variables and the system lead to a library. `--peer` is a folder with NVIDIA's
`cuda/pathfinder` (default: the installed one). Toolkits are taken from the variables and /usr/local/cuda*, and one is
made of links to the installed wheels. Needs no network and no GPU; only pytest besides.

A difference is accepted for a known reason or unexplained: then the exit status is 1.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from helpers.pathfinder import ASK, Place, answers, clean_environment, touch
from helpers.wheels import unpack

LIBRARIES = (
    "cudart nvfatbin nvJitLink nvrtc nvvm cublas cublasLt cufft cufftw curand cusolver cusolverMg cusparse nppc nppial "
    "nppicc nppidei nppif nppig nppim nppist nppisu nppitc npps nvblas nvjpeg cupti cudla cufile cuda nvml nvcudla "
    "cublasmp cudensitymat cudnn cudss cufftMp cupauliprop cusolverMp cusparseLt custabilizer custatevec cutensor "
    "cutensorMg cutensorMp cutensornet mathdx nccl nvpl_fftw nvshmem_host"
).split()
HEADERS = (
    "cccl cublas cudart cudla cufft cufile curand cusolver cusparse npp nvcc nvfatbin nvjitlink nvjpeg nvrtc nvvm "
    "profiler cudensitymat cudnn cupauliprop cusolverMp cusparseLt custabilizer custatevec cute cutensor cutensornet "
    "cutlass mathdx nccl nvshmem"
).split()
BINARIES = (
    "nvcc ptxas nvdisasm cuobjdump nvprune fatbinary bin2c nvlink cuda-gdb cuda-gdbserver compute-sanitizer nvprof "
    "nsys nsight-sys ncu nsight-compute"
).split()
REST = [("get_cuda_path_or_home",), ("locate_static_lib", "cudadevrt")]
REST += [("locate_bitcode_lib", name) for name in ("device", "nccl_device", "nvshmem_device")]
REST += [("locate_nvidia_header_directory", name) for name in HEADERS]
REST += [("find_nvidia_binary_utility", name) for name in BINARIES]

# The locations that Cupyrite searches in addition, at the very end.
WELL_KNOWN = ("/usr/local/cuda", "/opt/cuda")


def steering():
    """The machine's own variables that influence a search."""
    names = ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "CUDNN_PATH", "NCCL_HOME", "LD_LIBRARY_PATH", "HOME")
    return {n: os.environ[n] for n in names if n in os.environ}


class Side:
    """One implementation: how its processes are started, as installed and in an empty environment."""

    def __init__(self, name, folder, root, script):
        self.name, self.root, self.script = name, root, script
        self.empty = Place(folder, packages=[p for p in (root / "cuda", root / "cupyrite") if p.is_dir()])

    def ask(self, questions, installed, env, cwd):
        if not installed:
            return self.empty.ask(*questions, env=env, cwd=cwd)
        path = {"PYTHONPATH": self.root, "PYTHONNOUSERSITE": None}
        done = subprocess.run(
            [sys.executable, self.script, json.dumps(questions)],
            env=clean_environment(**path, **env), cwd=cwd, capture_output=True, timeout=300,
        )  # fmt: skip
        return answers(done)

    def where(self):
        """The file of the imported package, to verify which one it is."""
        code = "import cuda.pathfinder as p; raise OSError(p.__file__ + ' ' + p.__version__)"
        return self.ask([("run", code)], True, {}, "/")[0]["text"]


def toolkits(work, given):
    """Toolkit folders: given, from the variables, of the system, and one made of the installed wheels."""
    found = list(given) or [pathlib.Path(v) for n, v in steering().items() if n in ("CUDA_PATH", "CUDA_HOME")]
    if not given:
        found += [*sorted(pathlib.Path("/usr/local").glob("cuda*")), pathlib.Path("/opt/cuda")]
    made = work / "made-toolkit"
    for site in {p for p in map(pathlib.Path, sys.path) if p.name in ("site-packages", "dist-packages")}:
        wheels = site / "nvidia" / "cu13"
        if wheels.is_dir() and not made.exists():
            made.mkdir()
            for name, target in {"lib64": "lib", "include": "include", "bin": "bin", "nvvm": "nvvm"}.items():
                if (wheels / target).is_dir():
                    (made / name).symlink_to(wheels / target)
            found.append(made)
    kept = {}
    for folder in found:
        if folder.is_dir():
            kept.setdefault(os.path.realpath(folder), folder)
    return list(kept.values())


def conda_of(toolkit, folder):
    """A conda environment of links to the libraries, headers and tools of a toolkit."""
    (folder / "targets/x86_64-linux").mkdir(parents=True)
    links = {"lib": "lib64", "nvvm": "nvvm", "bin": "bin", "targets/x86_64-linux/include": "include"}
    for name, source in links.items():
        if (toolkit / source).is_dir():
            (folder / name).symlink_to(toolkit / source)
    return folder


def environments(work, folders):
    """(title, as installed?, variables, working directory) of all environments."""
    own = steering()
    yield "as it is", True, own, None
    yield "no variables, wheels as installed", True, {}, None
    yield "empty", False, {}, None
    yield "empty, the machine's variables", False, own, None
    nowhere = work / "nowhere"
    for i, folder in enumerate(folders):
        link = work / f"link{i}"
        link.symlink_to(folder)
        libraries = next((folder / n for n in ("lib64", "lib") if (folder / n).is_dir()), folder / "lib64")
        canary = work / f"canary{i}"
        canary.mkdir()
        for file in libraries.glob("libcudart.so.*"):
            (canary / file.name).symlink_to(file)
        name = f"{folder}"
        yield f"wheels, CUDA_PATH={name}", True, {"CUDA_PATH": folder}, None
        yield f"CUDA_PATH={name}", False, {"CUDA_PATH": folder}, None
        yield f"CUDA_HOME={name}", False, {"CUDA_HOME": folder}, None
        yield f"CUDA_PATH=a link to {name}", False, {"CUDA_PATH": f"{link}/"}, None
        yield f"CUDA_PATH nowhere, CUDA_HOME={name}", False, {"CUDA_PATH": nowhere, "CUDA_HOME": folder}, None
        yield f"CUDA_PATH={name}, CUDA_HOME nowhere", False, {"CUDA_PATH": folder, "CUDA_HOME": nowhere}, None
        yield f"CUDA_PATH relative to {name}", False, {"CUDA_PATH": folder.name}, folder.parent
        yield f"LD_LIBRARY_PATH={libraries}", False, {"LD_LIBRARY_PATH": libraries}, None
        yield f"LD_LIBRARY_PATH=a link to the cudart of {name}", False, {"LD_LIBRARY_PATH": canary}, None
        yield f"CONDA_PREFIX of {name}", False, {"CONDA_PREFIX": conda_of(folder, work / f"conda{i}")}, None
        yield f"CUDNN_PATH, NCCL_HOME={name}", False, {"CUDNN_PATH": folder, "NCCL_HOME": folder}, None


def real(path):
    return path and os.path.realpath(path)


def told(answer):
    """(path, found_via) of an answer, or (None, class of the error)."""
    if "error" in answer:
        return None, answer["error"]
    value = answer["value"]
    if isinstance(value, dict):
        return value["abs_path"], value["found_via"]
    return value, "" if value else "None"


def reason(question, env, ours, peer):
    """The reason for accepting a difference of two answers, or None."""
    (path, via), (peer_path, peer_via) = told(ours), told(peer)
    relative = [n for n, v in env.items() if n in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX") and not os.path.isabs(v)]
    text = ours.get("text", "")
    if peer_via in ("DynamicLibUnknownError", "UnsupportedBinaryError") or "UNKNOWN" in peer.get("text", ""):
        return "this version of the peer does not know the name"
    if path and peer_path and real(path) == real(peer_path):
        if via == peer_via:
            return "the same file, its path spelled otherwise"
        return f"the same file, found by {via or 'path'} instead of {peer_via}"
    second = os.path.isdir(env.get("CUDA_HOME", "")) and not os.path.isdir(env.get("CUDA_PATH", ""))
    # Skipped, or in its place: the last locations that both search.
    if relative and peer_path and (not path or via == "system-ctk-root"):
        return "a relative variable is refused"
    if second and path and via == "CUDA_PATH" and peer_via in ("system-ctk-root", "DynamicLibNotFoundError", "None"):
        return "CUDA_HOME counts after a CUDA_PATH that leads nowhere"
    if path and not peer_path:
        if second:
            return "CUDA_HOME counts after a CUDA_PATH that leads nowhere"
        if any(real(path).startswith(real(root) + "/") for root in WELL_KNOWN if os.path.isdir(root)):
            return "the well-known places count at the end"
        if via == "system-ctk-root" or (question[0] == "find_nvidia_binary_utility" and "LD_LIBRARY_PATH" in env):
            return "the toolkit of the system's libcudart counts for everything (and through links)"
        if via == "conda" and question[0] != "load_nvidia_dynamic_lib":
            return "conda: include/ and targets/*/lib count too"
        if "Failed to dlopen" in peer.get("text", ""):
            return "the peer takes a dependency of the other major and fails"
    if peer_path and not path and "stub" in text:
        return "a stub of the driver's library is no driver"
    return None


def nvidias(answer):
    """NVIDIA's libraries among the files of a process."""
    names = ("libcu", "libnv", "libnpp", "libnccl", "libmathdx")
    return {real(p) for p in answer["value"] if pathlib.Path(p).name.startswith(names)}


def compare(title, question, env, ours, peer):
    """("same", "") or ("accepted"/"unexplained", why) for both answers."""
    if question[0] == "load_nvidia_dynamic_lib":
        (before, ours, after), (peer_before, peer, peer_after) = ours, peer
        mapped, peer_mapped = nvidias(after) - nvidias(before), nvidias(peer_after) - nvidias(peer_before)
    else:
        mapped = peer_mapped = set()
    if told(ours) != told(peer):
        why = reason(question, env, ours, peer)
        return ("accepted", why) if why else ("unexplained", f"ours {brief(ours)}, peer {brief(peer)}")
    if told(ours)[0] and mapped != peer_mapped:
        if all("libnvrtc-builtins" in p for p in mapped ^ peer_mapped):
            return "accepted", "NVRTC's builtins are loaded beforehand, so that a compilation finds them"
        only, peer_only = sorted(mapped - peer_mapped), sorted(peer_mapped - mapped)
        return "unexplained", f"loaded with it by ours only: {only}, by the peer only: {peer_only}"
    return "same", ""


def brief(answer):
    path, via = told(answer)
    return f"{path} ({via})" if path else f"{via}: {' '.join(answer.get('text', '').split())[:300]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", type=pathlib.Path, required=True, help="a wheel, or a folder with cupyrite/")
    parser.add_argument("--peer", type=pathlib.Path, help="a folder with NVIDIA's cuda/pathfinder")
    parser.add_argument("--toolkit", type=pathlib.Path, action="append", default=[], help="one to try (all found)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all answers that differ")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pathfinder-") as temporary:
        work = pathlib.Path(temporary).resolve()
        root = options.ours
        if root.is_file():
            root = work / "wheel"
            unpack(options.ours, root)
        script = touch(work / "script" / "ask.py", ASK.encode())
        peer = options.peer or installed_peer(parser)
        roots = {"ours": root.resolve(), "peer": peer.resolve()}
        sides = [Side(name, work / name, folder, script) for name, folder in roots.items()]
        for side in sides:
            said = side.where()
            print(f"{side.name}: {said}")
            if not said.startswith(str(side.root)):
                parser.error(f"{side.name} is not the package that is imported")
        return differ(sides, list(environments(work, toolkits(work, options.toolkit))), options)


def installed_peer(parser):
    """The folder of the installed `cuda.pathfinder`."""
    code = "import cuda.pathfinder as p, importlib.util as u; print('' if u.find_spec('cupyrite') else p.__file__)"
    env = clean_environment(PYTHONNOUSERSITE=None)
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd="/", capture_output=True, text=True)
    if done.returncode or not done.stdout.strip():
        parser.error("this interpreter has no cuda.pathfinder of NVIDIA's: name one with --peer")
    return pathlib.Path(done.stdout.strip()).parents[2]


def differ(sides, places, options):
    """Asks every question in every environment and prints the differences; returns the exit status."""
    totals, details = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for title, installed, env, cwd in places:
            env = {n: str(v) for n, v in env.items()}
            tasks = [[("maps",), ("load_nvidia_dynamic_lib", name), ("maps",)] for name in LIBRARIES] + [REST]
            jobs = [[pool.submit(s.ask, t, installed, env, cwd or "/") for s in sides] for t in tasks]
            counts = collections.Counter()
            for task, pair in zip(tasks, jobs):
                try:
                    ours, peer = (job.result() for job in pair)
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    outcomes = [(task[1], ("unexplained", f"a process died or hung: {error}"))]
                else:
                    if task is REST:
                        outcomes = [(q, compare(title, q, env, o, p)) for q, o, p in zip(REST, ours, peer)]
                    else:
                        outcomes = [(task[1], compare(title, task[1], env, ours, peer))]
                for question, (kind, why) in outcomes:
                    counts[kind] += 1
                    totals[kind, why if kind == "accepted" else ""] += 1
                    if kind != "same":
                        details.append({"where": title, "question": question, "kind": kind, "why": why})
                    if kind == "unexplained":
                        print(f"  ! {title}: {' '.join(question)}: {why}")
            found = f"{counts['same']} the same, {counts['accepted']} accepted, {counts['unexplained']} unexplained"
            print(f"{title}: {found}", flush=True)
    print(f"\n{len(places)} environments, {sum(totals.values())} questions to both:")
    for (kind, why), count in totals.most_common():
        print(f"{count:6} {kind}{': ' if why else ''}{why}")
    if options.json:
        options.json.write_text(json.dumps(details, indent=1))
    return 1 if any(kind == "unexplained" for kind, _ in totals) else 0


if __name__ == "__main__":
    sys.exit(main())
