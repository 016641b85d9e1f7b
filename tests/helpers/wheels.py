"""Unpacks Cupyrite's wheel into a folder for `PYTHONPATH`, where nothing can be installed. Standard library only.

python tests/helpers/wheels.py cupyrite-...whl FOLDER
"""

import pathlib
import zipfile


def find_wheel(path):
    """The wheel of `cupyrite`: `path`, or the only one in the folder `path`. Raises ValueError."""
    path = pathlib.Path(path)
    found = sorted(path.glob("cupyrite-*.whl")) if path.is_dir() else [path]
    if len(found) != 1 or not found[0].is_file():
        raise ValueError(
            f"{path}: expected a wheel, or a folder with one; found {len(found) if path.is_dir() else 'none'}"
        )
    if not found[0].name.startswith("cupyrite-"):
        raise ValueError(f"{found[0]}: expected cupyrite-*.whl, which carries the others")
    return found[0]


def unpack(path, folder):
    """Unpacks the wheel that `find_wheel(path)` returns, and the wheels of the stand-ins that it carries."""
    folder = pathlib.Path(folder)
    with zipfile.ZipFile(find_wheel(path)) as wheel:
        wheel.extractall(folder)
    carried = sorted((folder / "cupyrite" / "_stand_ins").glob("*.whl"))
    if not carried:
        raise ValueError(f"{path}: carries no stand-ins; build it with cargo xtask wheel")
    for path in carried:
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder)


def main():
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", help="the wheel of cupyrite, or a folder with it")
    parser.add_argument("folder", help="where to, for PYTHONPATH")
    options = parser.parse_args()
    try:
        unpack(options.wheel, options.folder)
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
