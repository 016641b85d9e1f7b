"""Dumps a device's results of texture fetches and surface accesses, and compares two dumps bit by bit.

    python tests/differential/textures.py --out gpu.npz             # on a GPU
    CUPYRITE_DEVICE=cpu python tests/differential/textures.py --out cpu.npz
    python tests/differential/textures.py --compare gpu.npz cpu.npz

The dump needs only `cuda.bindings` (this project's or NVIDIA's) and NVRTC; ``numpy.load`` reads it. An entry holds four
words per coordinate (uint32, shape (4, n)) and is named after its fetch; "coordinates:" entries hold the columns of
texture_kernels.COLUMNS (float32). ``index.json`` in the archive holds the statuses of failures and traps. The cases are
in texture_cases.py.
"""

import argparse
import array
import ctypes
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import texture_cases as cases
import texture_kernels as kernels

THREADS = 128


class Failed(Exception):
    """A status other than success: (name of the call, status)."""


class Device:
    """The first device: modules, memory, launches."""

    def __init__(self):
        from cuda.bindings import driver, nvrtc

        self.driver, self.nvrtc = driver, nvrtc
        self.modules, self.functions, self.inputs, self.resources = {}, {}, {}, {}
        self.call("cuInit", 0)
        self.device = self.call("cuDeviceGet", 0)
        self.context = self.call("cuDevicePrimaryCtxRetain", self.device)
        self.call("cuCtxSetCurrent", self.context)
        attribute = driver.CUdevice_attribute
        self.capability = tuple(
            self.call("cuDeviceGetAttribute", a, self.device)
            for a in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        self.name = self.call("cuDeviceGetName", 256, self.device).split(b"\0")[0].decode()
        self.output = self.call("cuMemAlloc", 1 << 20)

    def call(self, name, *arguments):
        """The outputs of a driver call; raises Failed."""
        status, *outputs = getattr(self.driver, name)(*arguments)
        if int(status):
            raise Failed(name, int(status))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def compile(self, source):
        """The module of a source; its code is cached for the processes that dump a part."""
        digest = hashlib.sha256(f"{self.capability} {source}".encode()).hexdigest()
        kept = pathlib.Path(os.environ["TEXTURES_CODE"]) / digest if "TEXTURES_CODE" in os.environ else None
        if kept and kept.exists():
            return self.call("cuModuleLoadData", kept.read_bytes())
        module, code = self.compile_anew(source)
        if kept:
            kept.write_bytes(code)
        return module

    def compile_anew(self, source):
        """(module, code) of a source: PTX, or CUBIN where the driver is older than the compiler."""
        nvrtc = self.nvrtc
        major, minor = self.capability
        number = f"{major}{minor}"
        for arch, get in ((b"compute_", "PTX"), (b"sm_", "CUBIN")):
            options = [b"-arch=" + arch + number.encode()]
            _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"textures.cu", 0, None, None)
            (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
            if int(status):
                _, size = nvrtc.nvrtcGetProgramLogSize(program)
                log = bytearray(size)
                nvrtc.nvrtcGetProgramLog(program, log)
                raise SystemExit(f"NVRTC: {log.decode()}")
            _, size = getattr(nvrtc, f"nvrtcGet{get}Size")(program)
            code = bytearray(size)
            getattr(nvrtc, f"nvrtcGet{get}")(program, code)
            nvrtc.nvrtcDestroyProgram(program)
            try:
                return self.call("cuModuleLoadData", bytes(code)), bytes(code)
            except Failed as failure:
                if failure.args[1] != 222 or get == "CUBIN":  # CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                    raise
        raise AssertionError

    def function(self, kernel):
        """The CUfunction of a kernel; its module is compiled on first use."""
        if kernel not in self.functions:
            name = kernels.module_of(kernel)
            if name not in self.modules:
                try:
                    self.modules[name] = self.compile(kernels.modules()[name])
                except Failed as failure:
                    self.modules[name] = failure
            if isinstance(self.modules[name], Failed):
                raise self.modules[name]
            self.functions[kernel] = self.call("cuModuleGetFunction", self.modules[name], kernel.encode())
        return self.functions[kernel]

    def upload(self, data):
        """Device memory with these bytes."""
        memory = self.call("cuMemAlloc", len(data))
        host = ctypes.create_string_buffer(data, len(data))
        self.call("cuMemcpyHtoD", memory, ctypes.addressof(host), len(data))
        return memory

    def columns(self, name, factor=1):
        """(device address, number) of a set of coordinates; the first column multiplied by `factor`."""
        if (name, factor) not in self.inputs:
            columns = [list(c) for c in cases.coordinates(name)]
            # An out-of-range byte offset must stay a multiple of the element size.
            columns[0] = [max(-(2.0**31), min(2.0**30, v * factor)) for v in columns[0]] if factor != 1 else columns[0]
            data = b"".join(array.array("f", c).tobytes() for c in columns)
            self.inputs[name, factor] = (self.upload(data), len(columns[0]))
        return self.inputs[name, factor]

    def launch(self, kernel, handle, name, factor=1):
        """Runs a kernel on a set of coordinates; returns four words per coordinate, as bytes."""
        function = self.function(kernel)
        memory, n = self.columns(name, factor)
        self.call("cuMemsetD32", self.output, 0xDEADBEEF, 4 * n)
        alone = kernel.startswith(("sust", "sured"))
        blocks, threads = (1, 1) if alone else ((n + THREADS - 1) // THREADS, THREADS)
        values = (int(handle), int(memory), int(self.output), n)
        types = (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, 0, (values, types), 0)
        self.call("cuCtxSynchronize")
        out = ctypes.create_string_buffer(16 * n)
        self.call("cuMemcpyDtoH", ctypes.addressof(out), self.output, 16 * n)
        return out.raw

    # ------------------------------------------------------------------------------------------------------
    # Resources

    def array_copy(self, target, resource, level, data=None):
        """Writes an array (a level of one) with `data`, or reads it."""
        d = self.driver
        w, h, depth = resource.extent(level)
        host = (
            ctypes.create_string_buffer(data, len(data))
            if data
            else ctypes.create_string_buffer(w * h * depth * resource.element)
        )
        copy = d.CUDA_MEMCPY3D()
        copy.WidthInBytes, copy.Height, copy.Depth = w * resource.element, h, depth
        end = "src" if data else "dst"
        setattr(copy, end + "MemoryType", d.CUmemorytype.CU_MEMORYTYPE_HOST)
        setattr(copy, end + "Host", ctypes.addressof(host))
        setattr(copy, end + "Pitch", w * resource.element)
        setattr(copy, end + "Height", h)
        other = "dst" if data else "src"
        setattr(copy, other + "MemoryType", d.CUmemorytype.CU_MEMORYTYPE_ARRAY)
        setattr(copy, other + "Array", target)
        self.call("cuMemcpy3D", copy)
        return host.raw

    def make(self, resource):
        """(CUDA_RESOURCE_DESC, array or None) of a resource, with its contents; cached."""
        if resource in self.resources:
            return self.resources[resource]
        d = self.driver
        out, first = d.CUDA_RESOURCE_DESC(), None
        code, channels = resource.code
        if resource.kind in ("array", "mipmap"):
            desc = d.CUDA_ARRAY3D_DESCRIPTOR()
            desc.Width, desc.Height, desc.Depth = resource.size
            desc.Format, desc.NumChannels, desc.Flags = d.CUarray_format(code), channels, resource.flags
        if resource.kind == "array":
            first = self.call("cuArray3DCreate", desc)
            self.array_copy(first, resource, 0, resource.data())
            out.resType = d.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
            out.res.array.hArray = first
        elif resource.kind == "mipmap":
            mipmap = self.call("cuMipmappedArrayCreate", desc, resource.levels)
            for level in range(resource.levels):
                self.array_copy(
                    self.call("cuMipmappedArrayGetLevel", mipmap, level), resource, level, resource.data(level)
                )
            out.resType = d.CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
            out.res.mipmap.hMipmappedArray = mipmap
        elif resource.kind == "linear":
            out.resType = d.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
            out.res.linear.devPtr = self.upload(resource.data())
            out.res.linear.format, out.res.linear.numChannels = d.CUarray_format(code), channels
            out.res.linear.sizeInBytes = resource.size[0] * resource.element
        else:
            w, h, _ = resource.extent(0)
            row = w * resource.element
            memory, pitch = self.call("cuMemAllocPitch", row, h, 16)
            data = resource.data()
            for y in range(h):
                line = ctypes.create_string_buffer(data[y * row : (y + 1) * row], row)
                self.call("cuMemcpyHtoD", int(memory) + y * pitch, ctypes.addressof(line), row)
            out.resType = d.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
            out.res.pitch2D.devPtr = memory
            out.res.pitch2D.format, out.res.pitch2D.numChannels = d.CUarray_format(code), channels
            out.res.pitch2D.width, out.res.pitch2D.height, out.res.pitch2D.pitchInBytes = w, h, pitch
        self.resources[resource] = out, first
        return out, first

    def texture(self, resource, texture, view):
        """A texture object."""
        d = self.driver
        desc = d.CUDA_TEXTURE_DESC()
        desc.addressMode = [d.CUaddress_mode(a) for a in texture.address]
        desc.filterMode = d.CUfilter_mode(texture.filter)
        desc.flags, desc.maxAnisotropy = texture.flags, texture.anisotropy
        desc.mipmapFilterMode = d.CUfilter_mode(texture.mip_filter)
        desc.mipmapLevelBias, (desc.minMipmapLevelClamp, desc.maxMipmapLevelClamp) = texture.bias, texture.clamp
        desc.borderColor = list(texture.border)
        shown = None
        if view:
            shown = d.CUDA_RESOURCE_VIEW_DESC()
            shown.format = d.CUresourceViewFormat(view[0])
            shown.width, shown.height, shown.depth = view[1:4]
            shown.firstMipmapLevel, shown.lastMipmapLevel, shown.firstLayer, shown.lastLayer = view[4:]
        return self.call("cuTexObjectCreate", self.make(resource)[0], desc, shown)


class Dump:
    """The archive: an .npz with an index, written without NumPy."""

    def __init__(self, path):
        self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.names = set()
        self.failures = {}

    def add(self, name, data, kind, shape):
        """An entry: little-endian words of `kind` (NumPy's name)."""
        if name in self.names:
            return
        self.names.add(name)
        header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}"
        header += " " * (-(len(header) + 11) % 64) + "\n"
        self.file.writestr(
            f"{name}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data
        )

    def coordinates(self, name):
        columns = cases.coordinates(name)
        data = b"".join(array.array("f", c).tobytes() for c in columns)
        self.add(f"coordinates:{name}", data, "<f4", (len(columns), len(columns[0])))

    def close(self, **facts):
        self.file.writestr("index.json", json.dumps({**facts, "failures": self.failures}, indent=1))
        self.file.close()


def dump_group(device, dump, group):
    for case in cases.GROUPS[group]():
        try:
            handle = device.texture(case.resource, case.texture, case.view)
        except Failed as failure:
            for kernel in case.kernels:
                dump.failures[case.key(kernel)] = list(failure.args)
            continue
        for kernel in case.kernels:
            try:
                data = device.launch(kernel, handle, case.coordinates)
                dump.coordinates(case.coordinates)
                dump.add(case.key(kernel), data, "<u4", (4, len(data) // 16))
            except Failed as failure:
                dump.failures[case.key(kernel)] = list(failure.args)
        device.call("cuTexObjectDestroy", handle)


def dump_surfaces(dump):
    """The surfaces, in separate processes: an access that faults destroys the context, and the next process continues
    after it.
    """
    position, total, faulted = 0, len(list(cases.surfaces())), {}
    while position < total:
        with tempfile.TemporaryDirectory() as folder:
            part = pathlib.Path(folder) / "part.json"
            skip = [kernel for kernel, n in faulted.items() if n >= 2]
            command = [sys.executable, __file__, "--surfaces", str(position), "--out", str(part), "--groups", *skip]
            subprocess.run(command, check=True)
            done = json.loads(part.read_text())
        position = done["next"]
        if done["faulted"]:
            faulted[done["faulted"]] = faulted.get(done["faulted"], 0) + 1
        for name, kind, shape, data in done["entries"]:
            dump.add(name, bytes.fromhex(data), kind, tuple(shape))
        for name in done["coordinates"]:
            dump.coordinates(name)
        dump.failures.update(done["failures"])


def surfaces_from(position, path, skip):
    """Runs the surfaces from one on, up to one that faults; writes the results."""
    out = {"entries": [], "coordinates": [], "failures": {}, "faulted": None, "next": position}
    device = Device()
    for case in list(cases.surfaces())[position:]:
        out["next"] += 1
        if case.kernel in skip:
            out["failures"][case.key()] = ["left out, because others of this kernel faulted", -1]
            continue
        try:
            desc, target = device.make(case.resource)
            writes = case.kernel.startswith(("sust", "sured"))
            if writes:
                device.array_copy(target, case.resource, 0, case.resource.data())
            handle = device.call("cuSurfObjectCreate", desc)
            data = device.launch(case.kernel, handle, case.coordinates, case.bytes_)
            device.call("cuSurfObjectDestroy", handle)
            out["coordinates"].append(case.coordinates)
            if writes:
                after = device.array_copy(target, case.resource, 0)
                out["entries"].append((case.key(), "|u1", (len(after),), after.hex()))
                device.array_copy(target, case.resource, 0, case.resource.data())
            else:
                out["entries"].append((case.key(), "<u4", (4, len(data) // 16), data.hex()))
        except Failed as failure:
            out["failures"][case.key()] = list(failure.args)
            if failure.args[0] == "cuCtxSynchronize":
                out["faulted"] = case.kernel
                break
    path.write_text(json.dumps(out))
    return 0


# ----------------------------------------------------------------------------------------------------------
# Traps: each in its own process, because the context is lost

FAULTS = {
    "surface 1d trap, in range": ("1d", "suld_1d_4_trap", "1d:13 within", 4),
    "surface 1d trap, out of range": ("1d", "suld_1d_4_trap", "1d:13 grid", 4),
    "surface 2d trap, out of range": ("2d", "suld_2d_4_trap", "2d:9x7 grid", 4),
    "surface 2d write trap, out of range": ("2d", "sust_2d_4_trap", "2d:9x7 grid", 4),
    "surface 1d formatted write trap, out of range": ("1d", "sustp_1d_f_trap", "1d:13 grid", 1),
    "surface 1d reduction trap, out of range": ("1d", "sured_1d_add_u32_trap", "1d:13 grid", 4),
    "surface 1d zero, misaligned": ("1d", "suld_1d_4_zero", "1d:13 grid", 3),
    "surface 1d clamp, misaligned": ("1d", "suld_1d_4_clamp", "1d:13 grid", 3),
    "surface 1d trap, misaligned": ("1d", "suld_1d_4_trap", "1d:13 within", 3),
    "surface layer trap, out of range": ("a1d", "suld_a1d_4_trap", "1d:11 grid layers3", 4),
    "surface handle 0": (None, "suld_1d_4_zero", "1d:13 grid", 4),
    "texture handle 0": (None, "tex1D_f", "1d:13 few", 1),
    "texture handle of nothing": ("nothing", "tex1D_f", "1d:13 few", 1),
    "texture handle destroyed": ("destroyed", "tex1D_f", "1d:13 few", 1),
    "surface as texture": ("1d", "tex1D_f", "1d:13 few", 1),
    "array without the surface flag": ("plain", "suld_1d_4_zero", "1d:13 grid", 4),
    "1d texture fetched as 2d": ("texture", "tex2D_f", "2d:13x1 few", 1),
    "1d texture fetched as 3d": ("texture", "tex3D_f", "3d:13x1x1 few", 1),
    "1d texture fetched as layered": ("texture", "tex1DLayered_f", "1d:13 few layers3", 1),
    "1d texture fetched as a cubemap": ("texture", "texCubemap_f", "cube few", 1),
}


def fault(name):
    """Runs one of FAULTS; prints the outcome as JSON."""
    what, kernel, coordinates, factor = FAULTS[name]
    device = Device()
    try:
        if what is None:
            handle = 0
        elif what == "nothing":
            handle = 0x12345
        elif what in ("texture", "destroyed"):
            handle = device.texture(cases.Resource("array", (13, 0, 0), "f32", 1), cases.Texture(), ())
            if what == "destroyed":
                device.call("cuTexObjectDestroy", handle)
        else:
            size, flags, _ = cases.SURFACE_SHAPES["1d" if what == "plain" else what]
            flags |= 0 if what == "plain" else cases.SURFACE
            desc, _ = device.make(cases.Resource("array", size, "f32", 1, flags))
            handle = device.call("cuSurfObjectCreate", desc)
        print(json.dumps({"words": device.launch(kernel, handle, coordinates, factor).hex()}))
    except Failed as failure:
        print(json.dumps({"failed": list(failure.args)}))


def dump_faults():
    out = {}
    for name in FAULTS:
        try:
            done = subprocess.run(
                [sys.executable, __file__, "--fault", name], capture_output=True, text=True, timeout=60
            )
            out[name] = (
                json.loads(done.stdout.splitlines()[-1])
                if done.stdout.strip()
                else {"ended": done.returncode, "said": done.stderr[-500:]}
            )
        except subprocess.TimeoutExpired:
            out[name] = {"hangs": True}
    return out


def dump(path, groups):
    """Writes the archive."""
    if "TEXTURES_CODE" not in os.environ:
        os.environ["TEXTURES_CODE"] = tempfile.mkdtemp(prefix="cupyrite-textures-")
    device = Device()
    print(f"{device.name}, compute capability {device.capability}", flush=True)
    archive = Dump(path)
    for group in groups:
        start = time.monotonic()
        try:
            if group == "surfaces":
                dump_surfaces(archive)
            elif group != "faults":
                dump_group(device, archive, group)
        except Failed as failure:
            archive.failures[f"the group {group}"] = list(failure.args)
        print(
            f"{group}: {time.monotonic() - start:.1f} s; {len(archive.names)} entries, {len(archive.failures)} failures so far",
            flush=True,
        )
    facts = {"device": device.name, "capability": list(device.capability), "driver": device.call("cuDriverGetVersion")}
    archive.close(**facts, faults=dump_faults() if "faults" in groups else {})


# ----------------------------------------------------------------------------------------------------------
# Comparing


def compare(one, two, show, only):
    """Prints how far two dumps agree; returns the number of entries that differ by more than rounding."""
    import re

    import numpy as np

    a, b = np.load(one), np.load(two)
    ia, ib = (json.loads(zipfile.ZipFile(p).read("index.json")) for p in (one, two))
    print(f"{ia['device']} and {ib['device']}")
    names = [n for n in a.files if not n.startswith(("coordinates:", "index"))]
    groups, worst = {}, []
    for name in names:
        if only and not re.search(only, name):
            continue
        _resource, _, rest = name.partition(" | ")
        kernel = rest.rpartition(" | ")[2].split()[0]
        key = (kernel, "linear" if "| linear" in name else "point")
        total = groups.setdefault(key, [0, 0, 0, 0, 0.0])
        total[0] += 1
        if name not in b.files:
            total[3] += 1
            continue
        x, y = a[name], b[name]
        if x.shape != y.shape:
            worst.append((float("inf"), name, 0))
            continue
        if x.dtype == np.uint32 and rest.rpartition(" | ")[2].split()[0].endswith("_f") and not kernel.startswith("su"):
            f, g = x.view("<f4"), y.view("<f4")
            same = (x == y) | (np.isnan(f) & np.isnan(g))
            with np.errstate(all="ignore"):
                distance = np.abs(f.astype("f8") - g.astype("f8"))
            distance = np.where(same, 0, np.where(np.isfinite(distance), distance, np.inf))
        else:
            same = x == y
            distance = np.where(same, 0, np.inf)
        total[1] += same.size
        total[2] += int(same.sum())
        if not same.all():
            total[4] = max(total[4], float(distance.max()))
            worst.append((float((~same).mean()), name, float(distance.max())))
    print(f"{'kernel':28} filter  entries  missing        values     equal      %   largest difference")
    for (kernel, how), (entries, values, equal, missing, largest) in sorted(groups.items()):
        percent = 100 * equal / values if values else 0
        print(f"{kernel:28} {how:6} {entries:8} {missing:8} {values:13} {equal:9} {percent:6.2f}   {largest:g}")
    values, equal = sum(g[1] for g in groups.values()), sum(g[2] for g in groups.values())
    print(
        f"{equal} of {values} values equal bit by bit; {sum(g[3] for g in groups.values())} entries missing in the second"
    )
    for share, name, largest in sorted(worst, reverse=True)[:show]:
        print(f"  {100 * share:6.2f} % differ, by up to {largest:g}: {name}")
        if share != float("inf") and "|" in name and a[name].ndim == 2:
            x, y = a[name], b[name]
            coordinates = next(
                (a[n] for n in a.files if n.startswith("coordinates:") and name.endswith(" " + n[12:])), None
            )
            bad = np.argwhere((x != y).any(0))[:3, 0]
            for i in bad:
                where = coordinates[:, i].tolist() if coordinates is not None else ""
                print(
                    f"      at {where}: {[hex(v) for v in x[:, i]]} {x[:, i].view('<f4')} and {[hex(v) for v in y[:, i]]} {y[:, i].view('<f4')}"
                )
    failures = {
        k
        for k in ia["failures"].keys() | ib["failures"].keys()
        if ia["failures"].get(k, [0, 0])[1] != ib["failures"].get(k, [0, 0])[1]
    }
    failures = {k for k in failures if not only or re.search(only, k)}
    print(f"{len(failures)} statuses differ")
    for k in sorted(failures)[:show]:
        print(f"  {k}: {ia['failures'].get(k)} and {ib['failures'].get(k)}")
    for k in ia.get("faults", {}):
        if ia["faults"][k] != ib.get("faults", {}).get(k):
            print(f"  {k}: {str(ia['faults'][k])[:200]} and {str(ib.get('faults', {}).get(k))[:200]}")
    return len(worst) + len(failures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE.npz")
    parser.add_argument(
        "--groups", nargs="*", default=[*cases.GROUPS, "surfaces", "faults"], help="all but what is named is left out"
    )
    parser.add_argument("--compare", nargs=2, metavar="FILE.npz")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="entries shown that differ most (20)")
    parser.add_argument("--only", metavar="PATTERN", help="compare the entries whose names match")
    parser.add_argument("--fault", help=argparse.SUPPRESS)
    parser.add_argument("--surfaces", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fault:
        return fault(options.fault)
    if options.surfaces is not None:
        return surfaces_from(options.surfaces, options.out, options.groups)
    if options.compare:
        return 1 if compare(*options.compare, options.show, options.only) else 0
    dump(options.out or pathlib.Path(tempfile.gettempdir()) / "textures.npz", options.groups)
    return 0


if __name__ == "__main__":
    sys.exit(main())
