"""The cost of importing `cuda.pathfinder`, and the folders that count as site-packages."""

import os
import subprocess
import sys
import textwrap

import cuda.pathfinder as pathfinder
import pytest

from helpers.pathfinder import alone, bare, clean_environment, installed, run, shared_object, touch

# Import ---------------------------------------------------------------------------------------------------------------


def test_modules_that_an_import_loads():
    code = """
        import sys
        before = set(sys.modules)
        import cuda.pathfinder
        print(*sorted(set(sys.modules) - before))
    """
    brought = set(run(code, options=["-X", "frozen_modules=on"]).split())
    assert "cuda.pathfinder" in brought
    heavy = {"dataclasses", "inspect", "functools", "ctypes", "subprocess", "re", "pathlib", "typing", "platform"}
    assert not brought & (heavy | {"importlib.metadata", "sysconfig", "warnings", "logging", "tempfile"})
    assert not [m for m in brought if m.startswith(("cuda.bindings", "cuda.pathfinder."))]


def test_import_reads_no_other_folder(tmp_path):
    # Besides its own files and those of the standard library, whose folders importing lists.
    code = """
        import sys
        seen = []
        def watch(event, arguments):
            if event in ("open", "os.listdir", "os.scandir", "subprocess.Popen", "os.posix_spawn", "os.fork"):
                seen.append((event, str(arguments[0])))
        sys.addaudithook(watch)
        import cuda.pathfinder
        import cupyrite, os
        own = [os.path.dirname(os.__file__), *cupyrite.__path__, *cuda.__path__]
        own += [os.path.dirname(path) for path in own]
        print(*(f"{e} {p}" for e, p in seen if not p.startswith(tuple(own))))
    """
    assert run(code, options=["-P"], cwd=tmp_path) == ""


# Folders of installed packages -----------------------------------------------------------------------------------------


def archive(root):
    """A made-up wheel with one archive."""
    return touch(root / "nvidia/cu13/lib/libcudadevrt.a", b"!<arch>\n")


ASK = """
    from cuda import pathfinder
    try:
        print(pathfinder.find_static_lib("cudadevrt"))
    except pathfinder.StaticLibNotFoundError:
        print("no")
"""


@bare
@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_folders_added_by_a_program(tmp_path, folder):
    path = archive(tmp_path / folder)
    code = f"import sys\nsys.path.append({str(tmp_path / folder)!r})\n" + textwrap.dedent(ASK)
    assert run(code, options=["-S"]) == str(path)
    code = f"import sys\nsys.path.append({str(tmp_path / folder)!r}.encode())\n" + textwrap.dedent(ASK)
    assert run(code, options=["-S"]) == "no"


@bare
def test_other_folder_names_count_only_if_named_by_pythonpath(tmp_path):
    path = archive(tmp_path / "libs")
    code = f"import sys\nsys.path.append({str(tmp_path / 'libs')!r})\n" + textwrap.dedent(ASK)
    assert run(code, options=["-S"]) == "no"
    assert run(ASK, options=["-S"], PYTHONPATH=str(tmp_path / "libs")) == str(path)
    assert run(ASK, options=["-S"], PYTHONPATH=f"{tmp_path}/nowhere/..//libs/") == str(path)
    assert run(ASK, options=["-S"], PYTHONPATH="libs", cwd=tmp_path) == "no"


def test_folder_of_the_package_itself(tmp_path):
    # `pip install --target`, and programs that bundle their interpreter.
    path = archive(tmp_path / "bundle")
    for package in installed():
        (tmp_path / "bundle" / package.name).symlink_to(package)
    code = f"import sys\nsys.path[:0] = [{str(tmp_path / 'bundle')!r}]\n" + textwrap.dedent(ASK)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == str(path), done


def test_first_folder_on_the_path_wins(tmp_path):
    first, second = tmp_path / "a/site-packages", tmp_path / "b/site-packages"
    archive(first), archive(second)
    for order in ([first, second], [second, first]):
        code = f"import sys\nsys.path += {[str(p) for p in order]!r}\n" + textwrap.dedent(ASK)
        assert run(code, options=["-S"]).startswith(str(order[0]))
        assert run(ASK, options=["-S"], PYTHONPATH=os.pathsep.join(map(str, order))).startswith(str(order[0]))


@bare
def test_zipapp(tmp_path):
    # The first entry of sys.path is a file.
    import zipfile

    with zipfile.ZipFile(tmp_path / "program.pyz", "w") as program:
        program.writestr("__main__.py", textwrap.dedent(ASK))
        program.writestr("nvidia/cu13/lib/libcudadevrt.a", "!<arch>\n")
    path = archive(tmp_path / "site-packages")
    for extra, expected in (("", "no"), (str(tmp_path / "site-packages"), str(path))):
        root = os.pathsep.join(filter(None, (alone(), extra)))
        command = [sys.executable, "-S", tmp_path / "program.pyz"]
        done = subprocess.run(
            command, env=clean_environment(PYTHONPATH=root), capture_output=True, text=True, cwd=tmp_path, timeout=60
        )
        assert done.stdout.strip() == expected, done


@bare
@pytest.mark.parametrize(
    "change",
    [
        "sys.path = tuple(sys.path)",
        "sys.path = None",
        "del sys.path",
        "sys.path[:] = [None, 1, b'/x/site-packages', object(), '\\ud800/site-packages', 'x\\0y/site-packages', '/' * 10**6]",
        "sys.path.append(type('S', (str,), {'__fspath__': 1, '__eq__': None, '__hash__': None})('/x/site-packages'))",
        "import site; del site.getsitepackages",
        "import site; site.getsitepackages = lambda: 1 / 0",
        "import site; site.getsitepackages = lambda: [None, 3, '/x']; site.ENABLE_USER_SITE = site.getusersitepackages = 7",
        "sys.modules['site'] = None",
        "del sys.flags",
        "sys.modules['cupyrite'].__path__ = None",
        "import os; os.environ['PYTHONPATH'] = ':'.join(['', '.', '..', '/', '//x', 'x' * 5000, '/\\udcff'])",
    ],
)
def test_modified_module_paths_do_not_break_a_search(tmp_path, change):
    code = "import sys\nfrom cuda import pathfinder\n" + change
    code += """
try:
    pathfinder.find_bitcode_lib("nvshmem_device")
except pathfinder.BitcodeLibNotFoundError as e:
    print("no")
"""
    assert run(code) == "no"


def test_concurrent_searches_for_different_names(tmp_path):
    root = tmp_path / "site-packages/nvidia/cu13/lib"
    names = {"nvfatbin": "libnvfatbin.so.13", "nvJitLink": "libnvJitLink.so.13", "curand": "libcurand.so.10"}
    for soname in names.values():
        shared_object(root / soname, soname)
    code = f"""
        import threading
        from cuda import pathfinder
        got = {{}}
        def ask(name):
            got[name] = pathfinder.load_nvidia_dynamic_lib(name).abs_path
        threads = [threading.Thread(target=ask, args=(n,)) for n in {list(names)!r}]
        [t.start() for t in threads], [t.join() for t in threads]
        print(*(got[n] for n in {list(names)!r}))
    """
    text = run(code, PYTHONPATH=str(tmp_path / "site-packages"))
    assert text.split() == [str(root / soname) for soname in names.values()]


def test_name_lookup_runs_no_python_code():
    # A str with its own hash and equality never reaches the cache's dict.
    class Name(str):
        def __hash__(self):
            raise RuntimeError("never asked")

    with pytest.raises(pathfinder.DynamicLibUnknownError):
        pathfinder.load_nvidia_dynamic_lib(Name("nothing"))
