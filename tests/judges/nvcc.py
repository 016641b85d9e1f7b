"""`nvcc` for the builds of outside programs: PTX for one architecture, and the shared CUDA runtime.

`toolkit.py` writes a program `nvcc` that calls `main`. Build files name the architectures of GPUs, link the static
runtime, and ask for older C++ than CCCL accepts; this changes these options and passes all others on.
"""

import os
import re

# Options with a value, in the next word or after `=`, that are removed.
REMOVED = (
    "-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code", "-cudart", "--cudart",
)  # fmt: skip
STATIC_RUNTIME = ("-lcudart_static", "-lcudart_static.a", "cudart_static")
STANDARDS = ("-std", "--std")
OLDEST_STANDARD = 17
# The architectures whose instructions need their exact name.
SPECIFIC = re.compile(r"(?:compute|sm)_(90a|100a|100f|120a|120f)\b")


def changed(words, capability):
    """The words for the real `nvcc`: for the compute capability, such as "8.9", with the shared runtime.

    A program that asks for the specific architecture of that capability, such as `sm_90a`, is compiled for it.
    """
    number = capability.replace(".", "")
    kept, architecture, words = [], number, list(words)
    while words:
        word = words.pop(0)
        name, separator, value = word.partition("=")
        if name in (*REMOVED, *STANDARDS) and not separator:
            value = words.pop(0) if words else ""
        if name in REMOVED:
            found = SPECIFIC.search(value)
            if found and found[1].startswith(number):
                architecture = found[1]
        elif name in STANDARDS:
            digits = value.removeprefix("c++").removeprefix("gnu++")
            # c++98 is older than c++11.
            old = digits in ("98", "03") or (digits.isdigit() and int(digits) < OLDEST_STANDARD)
            kept.append(f"-std=c++{OLDEST_STANDARD}" if old else f"-std={value}")
        else:
            kept.append("-lcudart" if word in STATIC_RUNTIME else word)
    return [f"-arch=compute_{architecture}", "-cudart", "shared", *kept]


def main(settings, words):
    """Replaces this process with the real `nvcc`. `settings` has its path, the capability, and folders of libraries."""
    libraries = [f"-L{folder}" for folder in settings["libraries"]]
    words = [*changed(words, settings["capability"]), *libraries]
    os.execv(settings["nvcc"], [settings["nvcc"], *words])
