"""`cupyrite coredump FILE`: prints a core dump of the CPU device (docs/cpu-device.md, "Core dumps").

The file is an ELF core file with a note of the owner CUPYRITE, which holds a JSON text, and a segment for each range of device
memory. The reader trusts nothing in it.
"""

import argparse
import gzip
import json
import struct
import sys
import zlib

_MACHINE = 190
_NOTE, _LOAD = 4, 1
_NOTE_TYPE = 0x43555059


class DamagedFile(ValueError):
    """The file is no core dump of the CPU device."""


#: What reading a damaged file raises; ValueError includes wrong JSON and UTF-8.
_DAMAGES = (EOFError, OSError, OverflowError, RecursionError, ValueError, struct.error, zlib.error)


class CoreDump:
    """A core dump.

    `facts` is the JSON text of the note. `segments` lists address, size and position in the file of each range of memory.
    """

    def __init__(self, path):
        with open(path, "rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        # `close` closes it.
        self._file = gzip.open(path) if compressed else open(path, "rb")  # noqa: SIM115
        try:
            self.facts, self.segments = self._headers()
        except DamagedFile as error:
            self.close()
            raise DamagedFile(f"'{path}' {error}") from None
        except _DAMAGES as error:
            self.close()
            raise DamagedFile(f"'{path}' is damaged: {error}") from None

    def close(self):
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self, at, size):
        self._file.seek(at)
        data = self._file.read(size)
        if len(data) != size:
            raise EOFError(f"it ends before byte {at + size}")
        return data

    def _headers(self):
        header = self._read(0, 64)
        kind, machine = struct.unpack_from("<HH", header, 16)
        if header[:7] != b"\x7fELF\x02\x01\x01" or (kind, machine) != (4, _MACHINE):
            raise DamagedFile("is not a core dump of a CUDA device")
        (offset,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        if size != 56:
            raise DamagedFile("is not a core dump of the CPU device; cuda-gdb reads those of GPUs")
        facts, segments = None, []
        table = self._read(offset, 56 * count)
        for n in range(count):
            kind, _, at, address, _, length, _, _ = struct.unpack_from("<IIQQQQQQ", table, 56 * n)
            if kind == _NOTE:
                facts = self._note(at, length) or facts
            elif kind == _LOAD:
                segments.append((address, length, at))
        if facts is None:
            raise DamagedFile("is not a core dump of the CPU device; cuda-gdb reads those of GPUs")
        return facts, segments

    def _note(self, at, length):
        owner, size, kind = struct.unpack("<III", self._read(at, 12))
        name = self._read(at + 12, 12)
        if (owner, kind, name.rstrip(b"\0")) != (9, _NOTE_TYPE, b"CUPYRITE") or size > length:
            return None
        facts = json.loads(self._read(at + 24, size).decode())
        if not isinstance(facts, dict) or not isinstance(facts.get("memory", []), list):
            raise DamagedFile("is damaged: its text has another form")
        parts = [*(facts.get(key, {}) for key in ("device", "fault", "launch")), *facts.get("memory", [])]
        if not all(isinstance(part, dict) for part in parts):
            raise DamagedFile("is damaged: its text has another form")
        return facts

    def memory(self, address, size):
        """The bytes from `address` on, as many of `size` as the range in the dump has; None if no range contains it."""
        for base, length, at in self.segments:
            if base <= address < base + length:
                return self._read(at + address - base, min(size, base + length - address))
        return None


def _number(text):
    return int(text, 0)


def _lines(dump):
    facts = dump.facts
    device, fault, launch = (facts.get(key, {}) for key in ("device", "fault", "launch"))
    yield f"core dump of process {facts.get('pid')} on {facts.get('host')}, reason: {facts.get('reason')}"
    yield f"device {device.get('ordinal')}: {device.get('name')}"
    if fault:
        yield f"status: {fault.get('name')} ({fault.get('status')})"
        yield from str(fault.get("report", "")).splitlines()
    if launch:
        yield f"launch of '{launch.get('kernel')}': grid {launch.get('grid')}, block {launch.get('block')}"
        if launch.get("parameters"):
            yield f"parameters: {launch['parameters']}"
    kinds = {str(entry.get("address")): entry for entry in facts.get("memory", [])}
    yield f"device memory: {len(dump.segments)} ranges, {sum(size for _, size, _ in dump.segments)} bytes"
    for address, size, _ in dump.segments:
        entry = kinds.get(str(address), {})
        yield f"  {address:#x} {size} bytes, {entry.get('kind')}, device {entry.get('device')}"


def _hex_lines(address, data):
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        yield f"{address + at:#x}  {row.hex(' '):<47}  {text}"


def main(argv=None):
    """Entry point; returns the exit status."""
    from .command_line import program

    parser = argparse.ArgumentParser(prog=f"{program()} coredump", description="Prints a core dump of the CPU device.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print the facts as JSON")
    parser.add_argument(
        "--memory",
        nargs="+",
        type=_number,
        metavar=("ADDRESS", "BYTES"),
        help="print BYTES bytes (64 by default) of device memory from ADDRESS on",
    )
    options = parser.parse_args(argv)
    if options.memory and len(options.memory) > 2:
        parser.error("argument --memory: expected ADDRESS and BYTES")
    try:
        with CoreDump(options.file) as dump:
            if options.memory:
                address, size = [*options.memory, 64][:2]
                data = dump.memory(address, size)
                if data is None:
                    print(f"{parser.prog}: error: {address:#x} is not in the dump", file=sys.stderr)
                    return 1
                lines = _hex_lines(address, data)
            elif options.json:
                lines = [json.dumps(dump.facts, indent=2)]
            else:
                lines = _lines(dump)
            for line in lines:
                print(line)
    except (DamagedFile, *_DAMAGES) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 1
    return 0
