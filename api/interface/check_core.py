#!/usr/bin/env python3
"""Compare `cuda.core` with the interface manifest, without the names in `NOT_IMPLEMENTED`.

Runs `check_api.py` from this folder. Exit status 1 if anything else is missing or different.
"""

import json
import pathlib
import subprocess
import sys

CHECKER = pathlib.Path(__file__).with_name("check_api.py")
MODULES = ("cuda.core", "cuda.core.typing", "cuda.core.utils")

# Names, and members as Class.member, that `cuda.core` does not have yet: graphs, textures, tensor maps,
# green contexts, graphics, the system.
NOT_IMPLEMENTED = {
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
    command = [sys.executable, str(CHECKER), "--json", "--tier", "public"]
    for module in MODULES:
        command += ["--module", module]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    differences = []
    for name in MODULES:
        module = report["modules"][name]
        if module["import_error"]:
            differences.append(f"{name}: {module['import_error']}")
        for entry in module["missing"]:
            parts = entry["item"].split("(")[0].split(".")
            if parts[0] not in NOT_IMPLEMENTED and ".".join(parts[:2]) not in NOT_IMPLEMENTED:
                differences.append(f"{name}: {entry['category']}: {entry['item']}: {entry['why']}")
        counts = module["counts"].values()
        present, total = (sum(count[key] for count in counts) for key in ("present", "total"))
        print(f"{name}: {present} of {total}")
    print("\n".join(differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
