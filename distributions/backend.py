"""Build backend (PEP 517, PEP 660) of `cupyrite`: maturin's, with the requirements of this build.

The stand-ins of a clone are on no index, so what an installer builds from a clone names their folders
(`cuda-bindings @ file:///...`) beside their exact versions: `pip install .` installs all of them. An editable installation
takes all modules from `python/`, so its stand-ins have metadata only. `assemble.py` makes the wheels that can be passed on.
"""

import pathlib
import tempfile

import assemble
import maturin
import stand_in

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
build_sdist = maturin.build_sdist


def requirements(editable):
    """The stand-ins by exact version, and where they are."""
    if editable:
        folder = stand_in.ROOT / "target" / "stand-ins" / "metadata"
        places = dict(zip(stand_in.NAMES, assemble.build_stand_ins(folder, modules=False, native=False)))
    else:
        places = {name: stand_in.HERE / name for name in stand_in.NAMES}
    # pip looks a version up on an index unless it knows the place by then.
    return [*(f"{name} @ {place.as_uri()}" for name, place in places.items()), *assemble.pins()]


def prepare(maturins, metadata_directory, config_settings, editable):
    """Lets maturin write the metadata, and adds the requirements."""
    name = maturins(metadata_directory, config_settings)
    path = pathlib.Path(metadata_directory) / name / "METADATA"
    path.write_text(assemble.with_requirements(path.read_text("utf-8"), requirements(editable)), "utf-8")
    return name


def finish(maturins, wheel_directory, config_settings, editable):
    """Lets maturin build the wheel, and completes it."""
    with tempfile.TemporaryDirectory(prefix="cupyrite-build-") as folder:
        built = pathlib.Path(folder) / maturins(folder, config_settings)
        stand_ins = [] if editable else assemble.build_stand_ins(pathlib.Path(folder) / "stand-ins", native=False)
        return assemble.complete(built, wheel_directory, requirements(editable), stand_ins).name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return prepare(maturin.prepare_metadata_for_build_wheel, metadata_directory, config_settings, editable=False)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    return prepare(maturin.prepare_metadata_for_build_editable, metadata_directory, config_settings, editable=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return finish(maturin.build_wheel, wheel_directory, config_settings, editable=False)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return finish(maturin.build_editable, wheel_directory, config_settings, editable=True)
