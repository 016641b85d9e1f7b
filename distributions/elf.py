"""What a shared library needs: its libraries, and the newest version of the C library. Reads ELF files of 64 bits.

Standard library only: isolated build environments import it.
"""

import struct

SECTION = struct.Struct("<IIQQQQIIQQ")
DYNAMIC, VERSIONS_NEEDED = 6, 0x6FFFFFFE
TAG_NEEDED = 1
FLAG_WEAK = 2
#: Libraries that every wheel with a manylinux tag may need (PEP 600), as far as these are concerned.
ALLOWED = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
}


class Elf:
    """A shared library; raises ValueError for other data."""

    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not an ELF file of 64 bits, little-endian")
        self.data = data
        try:
            start, size, count = struct.unpack_from("<Q10xHH", data, 0x28)[0], *struct.unpack_from("<HH", data, 0x3A)
            self.sections = [SECTION.unpack_from(data, start + size * index) for index in range(count)]
        except (struct.error, OverflowError) as error:
            raise ValueError(f"the ELF file is truncated: {error}") from None

    def _of(self, kind):
        """Contents of the sections of this kind, each with its strings."""
        for _, found, _, _, offset, size, link, *_ in self.sections:
            if found == kind:
                strings = self.sections[link]
                yield self.data[offset : offset + size], self.data[strings[4] : strings[4] + strings[5]]

    def needed(self):
        """Names of the libraries that the loader loads with it."""
        return [
            text(strings, value)
            for data, strings in self._of(DYNAMIC)
            for tag, value in struct.iter_unpack("<qQ", data)
            if tag == TAG_NEEDED
        ]

    def versions(self):
        """Versions that it needs of other libraries, such as "GLIBC_2.17". Weak ones may be absent, and are left out."""
        found = set()
        for data, strings in self._of(VERSIONS_NEEDED):
            at = 0
            while True:
                _, count, _, first, following = struct.unpack_from("<HHIII", data, at)
                entry = at + first
                for _ in range(count):
                    _, flags, _, name, step = struct.unpack_from("<IHHII", data, entry)
                    if not flags & FLAG_WEAK:
                        found.add(text(strings, name))
                    entry += step
                if not following:
                    break
                at += following
        return found


def text(strings, offset):
    return strings[offset : strings.index(b"\0", offset)].decode()


def glibc(data):
    """The newest version of the C library that a shared library needs, such as (2, 34); (0, 0) if it names none."""
    numbers = [version.removeprefix("GLIBC_") for version in Elf(data).versions() if version.startswith("GLIBC_2.")]
    return max((tuple(map(int, number.split(".")[:2])) for number in numbers), default=(0, 0))


def complaints(name, data, limit):
    """Reasons why the library does not run on a system with this version of the C library; empty if it does."""
    needed = glibc(data)
    found = []
    if needed > limit:
        found.append(f"{name} needs glibc {needed[0]}.{needed[1]}; expected at most {limit[0]}.{limit[1]}")
    found += [
        f"{name} needs {library}, which no manylinux system promises"
        for library in Elf(data).needed()
        if library not in ALLOWED
    ]
    return found
