"""Build backend (PEP 517, PEP 660) of `cupyrite`: maturin's, with the CPU device and the requirements of this build.

The stand-ins of a clone are on no index, so what an installer builds from a clone names their folders
(`cuda-bindings @ file:///...`) beside their exact versions: `pip install .` installs all of them. An editable installation
takes all modules
and the CPU device from `python/`, so its stand-ins have metadata only. `assemble.py` makes the wheels that can be passed on; what is
built from a source distribution is like those.
"""

import os
import pathlib
import shlex
import tempfile

import assemble
import cpu_device
import maturin
import stand_in

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist


#: Whether these are the sources of a source distribution. Its folder is temporary, while installers keep the wheel that they
#: build from it: it must not name folders.
IN_SDIST = (stand_in.ROOT / "PKG-INFO").is_file()


def requirements(editable):
    """The stand-ins by exact version, and where they are."""
    if IN_SDIST:
        return assemble.pins()
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


def arguments(config_settings):
    """The user's arguments for maturin's build command, where maturin looks for them."""
    settings = config_settings or {}
    given = settings.get("maturin.build-args", settings.get("build-args"))
    if given is None:
        given = os.environ.get("MATURIN_PEP517_ARGS", "")
    return shlex.split(given) if isinstance(given, str) else list(given)


def libraries(words):
    """The CPU device, built with the arguments that maturin gets too. As maturin does here, optimised by default."""
    words = cpu_device.cargo_words(words)
    if not any(word.startswith(("--profile", "--release", "-r")) for word in words):
        words.append("--release")
    return cpu_device.build(words)


def finish(maturins, wheel_directory, config_settings, editable):
    """Lets maturin build the wheel, and completes it."""
    words = arguments(config_settings)
    with tempfile.TemporaryDirectory(prefix="cupyrite-build-") as folder:
        folder = pathlib.Path(folder)
        settings = dict(config_settings or {})
        if not any(word.startswith(("--out", "-o")) for word in words):
            # By default maturin leaves its wheel in target/wheels: one without the CPU device and with the final name.
            settings["maturin.build-args"] = [*words, "--out", str(folder / "maturin")]
        built = folder / maturins(str(folder), settings)
        files = libraries(words)
        if editable:
            cpu_device.put(files, stand_in.ROOT / "python")
            return assemble.complete(built, wheel_directory, requirements(editable)).name
        stand_ins = assemble.build_stand_ins(folder / "stand-ins", native=IN_SDIST)
        return assemble.complete(built, wheel_directory, requirements(editable), stand_ins, files).name


def build_sdist(sdist_directory, config_settings=None):
    """Lets maturin build it, and adds the crates that it leaves out: the native module does not depend on them."""
    path = pathlib.Path(sdist_directory) / maturin.build_sdist(sdist_directory, config_settings)
    cpu_device.add_sources(path, assemble.description)
    return path.name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return prepare(maturin.prepare_metadata_for_build_wheel, metadata_directory, config_settings, editable=False)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    return prepare(maturin.prepare_metadata_for_build_editable, metadata_directory, config_settings, editable=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return finish(maturin.build_wheel, wheel_directory, config_settings, editable=False)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return finish(maturin.build_editable, wheel_directory, config_settings, editable=True)
