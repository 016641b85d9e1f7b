//! Headers that a source includes and the compiler does not find: those of the installed CUDA toolkit, and advice about
//! the others.
//!
//! NVRTC searches no folders of its own. A compilation that lacks a CUDA header is repeated with the folders of the
//! installed headers behind the program's own. What compiles without them is compiled without them, so that they affect
//! neither its code nor `__has_include`.

use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};

use cupyrite_pathfinder::{Environment, Finder};
use cupyrite_sys::nvrtc::nvrtcBundledHeadersInfo;

use crate::error::nvrtc;

/// The sets of CUDA headers for kernels, as `cupyrite_pathfinder` names them.
const SETS: [&str; 4] = ["cudart", "cccl", "nvcc", "curand"];

/// The C++ headers with a counterpart in `cuda/std`, which also declares the names of C.
const IN_CUDA_STD: &[&str] = &[
    "algorithm",
    "array",
    "atomic",
    "barrier",
    "bit",
    "bitset",
    "cfloat",
    "charconv",
    "chrono",
    "climits",
    "cmath",
    "complex",
    "concepts",
    "cstddef",
    "cstdint",
    "cstdlib",
    "cstring",
    "ctime",
    "expected",
    "functional",
    "initializer_list",
    "iterator",
    "latch",
    "limits",
    "linalg",
    "mdspan",
    "memory",
    "numbers",
    "numeric",
    "optional",
    "random",
    "ranges",
    "ratio",
    "semaphore",
    "source_location",
    "span",
    "string_view",
    "tuple",
    "type_traits",
    "utility",
    "variant",
    "version",
];

/// Other C and C++ headers, which only host code can use.
const OF_THE_HOST: &[&str] = &[
    "deque",
    "exception",
    "fstream",
    "future",
    "iomanip",
    "ios",
    "iostream",
    "istream",
    "list",
    "locale",
    "map",
    "mutex",
    "new",
    "ostream",
    "queue",
    "regex",
    "set",
    "sstream",
    "stack",
    "stdexcept",
    "string",
    "strings.h",
    "sys/types.h",
    "thread",
    "typeinfo",
    "unistd.h",
    "unordered_map",
    "unordered_set",
    "vector",
    "errno.h",
    "cerrno",
    "signal.h",
    "inttypes.h",
    "cinttypes",
    "ctype.h",
    "cctype",
    "stdarg.h",
    "cstdarg",
    "stdbool.h",
];

/// The environment of a search that takes only headers of NVRTC's CUDA major.
fn environment() -> Environment {
    let mut environment = Environment::current();
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: both results are valid for writes.
    let version = unsafe { nvrtc!(nvrtcVersion(&mut major, &mut minor)) };
    if version.is_ok() && environment.rejected_major.is_none() {
        environment.major = u32::try_from(major).ok();
    }
    environment
}

/// The folders of the installed CUDA headers, without duplicates.
pub(crate) fn directories() -> Vec<PathBuf> {
    let environment = environment();
    let finder = Finder::new(&environment);
    let mut found = Vec::new();
    for set in SETS {
        if let Ok(Some(located)) = finder.find_header_directory(set)
            && !found.contains(&located.path)
        {
            found.push(located.path);
        }
    }
    found
}

/// A file that the compiler could not open.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MissingFile<'a> {
    /// Its name as the `#include` has it.
    pub(super) name: &'a str,
    /// The file with the `#include`, as the log names it; empty if an option includes it.
    includer: &'a str,
}

impl<'a> MissingFile<'a> {
    /// The file whose absence ended a compilation, from NVRTC's log.
    pub(super) fn in_log(log: &'a str) -> Option<MissingFile<'a>> {
        const TEXT: &str = "open source file \"";
        let line = log.lines().rfind(|line| line.contains(TEXT))?;
        let (before, after) = line.split_once(TEXT)?;
        let name = after.split('"').next().filter(|name| !name.is_empty())?;
        let position = before
            .rsplit_once("): ")
            .map_or("", |(position, _)| position);
        let includer = position.rsplit_once('(').map_or("", |(file, _)| file);
        Some(MissingFile { name, includer })
    }

    /// What to do about it.
    ///
    /// `program` is the source's name, `installed` the folders that were searched. `bundled` says whether NVRTC's own headers
    /// were searched.
    pub(super) fn advice(&self, program: &str, installed: &[PathBuf], bundled: bool) -> String {
        let name = self.name;
        let host = if self.includer.is_empty() || self.includer == program {
            String::new()
        } else {
            let includer = Path::new(self.includer).file_name().unwrap_or_default();
            format!("`{}` includes `{name}`. ", includer.to_string_lossy())
        };
        if let Some(built_in) = built_in(name) {
            return format!(
                "{host}`{name}` is a header of the host's library, and NVRTC has none: {built_in}; remove the #include"
            );
        }
        let standard = cxx_name(name);
        if IN_CUDA_STD.contains(&standard) {
            let install = match installed
                .iter()
                .any(|path| path.join("cuda/std/version").is_file())
            {
                true => String::new(),
                false => format!("\n{}", obtain("cccl", bundled)),
            };
            return format!(
                "{host}`{name}` is a header of the host's library, and NVRTC has none: write #include \
                 <cuda/std/{standard}>, whose names are in `cuda::std`{install}"
            );
        }
        if OF_THE_HOST.contains(&name) {
            return format!(
                "{host}`{name}` is a header of the host's library, which kernels cannot use: remove the #include"
            );
        }
        match set_of(name) {
            Some(set) => format!(
                "`{name}` is a header of CUDA. These headers are not installed where Cupyrite searches, or lack it:\n{}",
                obtain(set, bundled)
            ),
            None => format!(
                "`{name}` is in no folder of include_path (ProgramOptions), and is no header of CUDA that is installed"
            ),
        }
    }
}

/// The name in C++ of a header of C; other names are returned unchanged.
fn cxx_name(name: &str) -> &str {
    match name {
        "float.h" => "cfloat",
        "limits.h" => "climits",
        "stddef.h" => "cstddef",
        "stdint.h" => "cstdint",
        "complex.h" => "complex",
        _ => name,
    }
}

/// What NVRTC declares by itself of a standard header, where that is what kernels include it for.
fn built_in(name: &str) -> Option<&'static str> {
    Some(match name {
        "cstdio" | "stdio.h" => "`printf` is built in",
        "cassert" | "assert.h" => "`assert` is built in",
        "stdlib.h" => "`malloc`, `free` and `abs` are built in",
        "string.h" => "`memcpy` and `memset` are built in",
        "math.h" => {
            "the mathematical functions are built in (<cuda/std/cmath> has constants such as `INFINITY`)"
        }
        "time.h" => "`clock` is built in",
        _ => return None,
    })
}

/// The set of CUDA headers that has a name.
fn set_of(name: &str) -> Option<&'static str> {
    const OF_CUDART: [&str; 22] = [
        "builtin_types.h",
        "cooperative_groups",
        "cuComplex.h",
        "cuda.h",
        "cudaGL.h",
        "cudaTypedefs.h",
        "cuda_",
        "cudart_",
        "device_",
        "driver_",
        "library_types.h",
        "math_constants.h",
        "math_functions.h",
        "mma.h",
        "sm_",
        "surface_",
        "texture_",
        "vector_",
        "channel_descriptor.h",
        "common_functions.h",
        "host_config.h",
        "host_defines.h",
    ];
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if starts(&["cuda/", "cub/", "thrust/", "nv/"]) {
        Some("cccl")
    } else if starts(&["crt/"]) {
        Some("nvcc")
    } else if starts(&["curand"]) {
        Some("curand")
    } else if starts(&OF_CUDART) {
        Some("cudart")
    } else {
        None
    }
}

/// The ways to get a set of headers, one a line.
fn obtain(set: &str, bundled: bool) -> String {
    let environment = environment();
    let mut lines = match Finder::new(&environment).locate_header_directory(set) {
        Ok(located) => vec![format!("installed: {}", located.path.display())],
        Err(error) => error.advice(),
    };
    if set == "nvcc" && environment.major != Some(12) {
        // From CUDA 13 on, these headers are a wheel of their own.
        lines.insert(0, "pip install nvidia-cuda-crt".to_owned());
    }
    if matches!(set, "cudart" | "cccl") && !bundled && has_bundled_headers() {
        lines.push("or set use_bundled_headers (ProgramOptions): NVRTC unpacks a copy into the user's cache folder".to_owned());
    }
    lines
        .iter()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether NVRTC contains CUDA headers, as newer versions do.
fn has_bundled_headers() -> bool {
    let mut info = nvrtcBundledHeadersInfo::default();
    let mut log: *const c_char = std::ptr::null();
    // SAFETY: both results are valid for writes.
    let asked = unsafe { nvrtc!(nvrtcGetBundledHeadersInfo(&mut info, &mut log)) };
    asked.is_ok() && info.available != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_file_is_read_from_the_log() {
        let log = "a (1).cu(3): catastrophic error: could not open source file \"cuda_fp16.h\" (no directories in search \
                   list)\n  #include <cuda_fp16.h>\n                        ^\n\n1 catastrophic error detected in the \
                   compilation of \"a (1).cu\".\nCompilation terminated.\n";
        let expected = MissingFile {
            name: "cuda_fp16.h",
            includer: "a (1).cu",
        };
        assert_eq!(MissingFile::in_log(log), Some(expected));
        let log = "Command-line error: cannot open source file \"before.h\"\n\n1 catastrophic error detected\n";
        let expected = MissingFile {
            name: "before.h",
            includer: "",
        };
        assert_eq!(MissingFile::in_log(log), Some(expected));
        for log in [
            "",
            "a.cu(1): error: identifier \"x\" is undefined",
            "cannot open source file \"\"",
        ] {
            assert_eq!(MissingFile::in_log(log), None, "{log}");
        }
    }

    #[test]
    fn advice_about_standard_headers() {
        let advice =
            |name: &str, includer: &str| MissingFile { name, includer }.advice("a.cu", &[], true);
        assert!(advice("cstdio", "a.cu").contains("`printf` is built in; remove the #include"));
        assert!(advice("stdint.h", "a.cu").contains("#include <cuda/std/cstdint>"));
        assert!(advice("type_traits", "").contains("#include <cuda/std/type_traits>"));
        assert!(advice("vector", "a.cu").starts_with("`vector` is a header of the host's library"));
        assert!(
            advice("stdlib.h", "/opt/include/cuda.h").starts_with("`cuda.h` includes `stdlib.h`. ")
        );
        assert!(advice("mine.h", "a.cu").contains("include_path"));
    }

    #[test]
    fn cuda_headers_have_a_set() {
        for (name, set) in [
            ("cooperative_groups.h", "cudart"),
            ("cooperative_groups/reduce.h", "cudart"),
            ("cuda_fp16.h", "cudart"),
            ("mma.h", "cudart"),
            ("cuda/std/atomic", "cccl"),
            ("cub/block/block_reduce.cuh", "cccl"),
            ("curand_kernel.h", "curand"),
            ("crt/mma.h", "nvcc"),
        ] {
            assert_eq!(set_of(name), Some(set), "{name}");
        }
        assert_eq!(set_of("mine.h"), None);
    }
}
