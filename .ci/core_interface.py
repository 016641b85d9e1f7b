#!/usr/bin/env python3
"""Holds `cuda.core` against the interface manifest, except for what this project does not have yet.

    core_interface.py CHECK_API.py

Exit status 1 if anything else is missing or different.
"""

import json
import subprocess
import sys

MODULES = ("cuda.core", "cuda.core.typing", "cuda.core.utils")

# Names, and members as Class.member, that are still to come.
LATER = {
    # graphs, textures, tensor maps, green contexts, graphics, the system
    "Context.resources",
    "Device.create_graph_builder",
    "Device.create_mipmapped_array",
    "Device.create_opaque_array",
    "Device.create_surface_object",
    "Device.create_texture_object",
    "Device.resources",
    "Device.to_system_device",
    "DeviceResources",
    "GraphMemoryResource",
    "GraphicsResource",
    "SMResource",
    "SMResourceOptions",
    "Stream.create_graph_builder",
    "Stream.resources",
    "StridedMemoryView.as_tensor_map",
    "TensorMapDescriptor",
    "TensorMapDescriptorOptions",
    "WorkqueueResource",
    "WorkqueueResourceOptions",
    "checkpoint",
    "graph",
    "system",
    "texture",
}


def main():
    command = [sys.executable, sys.argv[1], "--json", "--tier", "public"]
    for module in MODULES:
        command += ["--module", module]
    answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    wrong = []
    for name in MODULES:
        module = answer["modules"][name]
        if module["import_error"]:
            wrong.append(f"{name}: {module['import_error']}")
        for entry in module["missing"]:
            parts = entry["item"].split("(")[0].split(".")
            if parts[0] not in LATER and ".".join(parts[:2]) not in LATER:
                wrong.append(f"{name}: {entry['category']}: {entry['item']}: {entry['why']}")
        counts = module["counts"].values()
        have, total = (sum(count[key] for count in counts) for key in ("present", "total"))
        print(f"{name}: {have} of {total}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
