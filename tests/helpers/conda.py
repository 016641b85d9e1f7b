"""A local conda channel: the recipe as rattler-build renders it, beside made-up entries of the form that conda-forge has.

Only what a solver reads: names, versions, builds, requirements.
"""

import json

import pytest

from helpers.installations import ROOT

RECIPE = ROOT / "distributions" / "conda" / "recipe.yaml"

#: (name, version, build, requirements) of packages that a channel has besides the recipe's.
OTHERS = [
    ("python", "3.11.9", "h0_0", []),
    ("numpy", "2.4.0", "py311_0", ["python 3.11.*"]),
    ("cuda-pathfinder", "1.9.1", "pyh0_0", ["python >=3.10"]),
    ("cuda-bindings", "12.9.4", "py311_0", ["python 3.11.*", "cuda-pathfinder >=1.1"]),
    ("cuda-bindings", "13.5.0", "py311_0", ["python 3.11.*", "cuda-pathfinder >=1.4.2"]),
    ("cuda-core", "1.2.2", "py311_0", ["python 3.11.*", "cuda-bindings", "cuda-pathfinder >=1.4.2", "numpy"]),
    ("cuda-python", "13.5.0", "pyh0_0", ["cuda-bindings 13.5.*", "cuda-core", "cuda-pathfinder >=1.1,<2"]),
    (
        "numba-cuda",
        "0.30.4",
        "py311_0",
        ["python 3.11.*", "numpy", "cuda-bindings >=12.9.1,<14", "cuda-core >=0.5.1,<2", "cuda-pathfinder >=1.4,<2"],
    ),
]


def rendered():
    """The packages of the recipe, as dictionaries."""
    build = pytest.importorskip("rattler_build")
    variants = build.Stage0Recipe.from_file(str(RECIPE)).render(build.VariantConfig())
    recipes = [variant.recipe if not callable(variant.recipe) else variant.recipe() for variant in variants]
    return [recipe.to_dict() for recipe in recipes]


def write_channel(folder):
    """Writes the channel's index, and returns its folder."""
    subdirs = {"linux-64": {}, "noarch": {}}
    for name, version, build, depends in OTHERS:
        add(subdirs["linux-64"], name, version, build, 0, depends)
    for package in rendered():
        made, requirements = package["build"], package.get("requirements", {})
        subdir = "noarch" if "noarch" in made else "linux-64"
        name, version = package["package"]["name"], package["package"]["version"]
        entry = add(
            subdirs[subdir], name, version, made["string"], int(made.get("number", 0)), requirements.get("run", [])
        )
        entry["constrains"] = requirements.get("run_constraints", [])
        if made.get("variant", {}).get("down_prioritize_variant"):
            entry["track_features"] = f"{name}-p-0"
    for subdir, packages in subdirs.items():
        path = folder / subdir / "repodata.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages}))
    return folder


def add(packages, name, version, build, number, depends):
    entry = {"name": name, "version": version, "build": build, "build_number": number, "depends": list(depends)}
    entry |= {"md5": "0" * 32, "sha256": "0" * 64, "size": 1, "timestamp": 1700000000000}
    packages[f"{name}-{version}-{build}.conda"] = entry
    return entry
