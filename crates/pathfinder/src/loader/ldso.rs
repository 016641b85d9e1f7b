//! The search of Linux's loader for a name, reproduced by reading files.
//!
//! The order is that of ld.so(8): the program's run path (conda's Python has one), `LD_LIBRARY_PATH` as of process
//! start, `/etc/ld.so.cache`, the default folders. `glibc-hwcaps` folders are omitted, because NVIDIA installs
//! nothing there. Relative entries are ignored.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::files::{FileEntry, FileSystem, HostFiles};
use crate::loader::elf;
use crate::platform::{Arch, Platform};

/// The loader's cache.
const CACHE: &str = "/etc/ld.so.cache";
/// Longest accepted cache; large systems have a few hundred kilobytes.
const CACHE_LIMIT: usize = 16 << 20;
/// Magic of the format (glibc 2.2 and later).
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// `FLAG_ELF_LIBC6` with the architecture's bits, from glibc's documentation of the cache format.
const fn flags(arch: Arch) -> u32 {
    match arch {
        Arch::X86_64 => 0x0303,
        Arch::Aarch64 => 0x0a03,
    }
}

/// The folders of `LD_LIBRARY_PATH` as of process start, when the loader reads the variable; later changes have no
/// effect.
pub fn library_path() -> Vec<PathBuf> {
    let value = match std::fs::read("/proc/self/environ") {
        Ok(bytes) => bytes
            .split(|byte| *byte == 0)
            .find_map(|pair| pair.strip_prefix(b"LD_LIBRARY_PATH=").map(<[u8]>::to_owned)),
        Err(_) => std::env::var_os("LD_LIBRARY_PATH").map(OsString::into_vec),
    };
    value.map_or_else(Vec::new, |value| split(&value))
}

/// The program's `DT_RPATH` folders. They precede all others, also for libraries loaded later. `DT_RUNPATH` disables
/// them.
pub fn program_path() -> Vec<PathBuf> {
    let Ok(program) = std::fs::read_link("/proc/self/exe") else {
        return Vec::new();
    };
    let run_path = elf::run_path_of_program(&HostFiles, &program);
    let origin = program.parent().unwrap_or(Path::new("/"));
    run_path.map_or_else(Vec::new, |run_path| expand_origin(&run_path, origin))
}

/// Replaces `$ORIGIN` by the program's folder; drops entries with the loader's other variables.
fn expand_origin(run_path: &str, origin: &Path) -> Vec<PathBuf> {
    run_path
        .split(':')
        .filter_map(|entry| {
            let rest = ["$ORIGIN", "${ORIGIN}"]
                .iter()
                .find_map(|name| entry.strip_prefix(name));
            match rest {
                Some(rest) => Some(origin.join(rest.trim_start_matches('/'))),
                None if entry.contains('$') => None,
                None => Some(entry.into()),
            }
        })
        .collect()
}

/// Splits at both separators; an empty entry is the working directory.
fn split(value: &[u8]) -> Vec<PathBuf> {
    if value.is_empty() {
        return Vec::new();
    }
    value
        .split(|byte| matches!(byte, b':' | b';'))
        .map(|entry| PathBuf::from(OsStr::from_bytes(entry)))
        .collect()
}

/// Every file called `soname` that the loader's search finds, in its order.
pub fn resolve(
    files: &dyn FileSystem,
    platform: Platform,
    library_path: &[PathBuf],
    soname: &str,
) -> Vec<PathBuf> {
    if platform.is_windows() || soname.contains('/') {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut add = |path: PathBuf| {
        if !found.contains(&path) && files.entry(&path) != FileEntry::Absent {
            found.push(path);
        }
    };
    for folder in library_path.iter().filter(|folder| folder.is_absolute()) {
        add(folder.join(soname));
    }
    if let Ok(cache) = files.read(Path::new(CACHE), 0, CACHE_LIMIT) {
        in_cache(&cache, flags(platform.arch), soname.as_bytes())
            .into_iter()
            .for_each(&mut add);
    }
    let multiarch = platform.multiarch();
    for folder in ["/lib", "/usr/lib"] {
        add(Path::new(folder).join(multiarch).join(soname));
    }
    for folder in ["/lib64", "/usr/lib64", "/lib", "/usr/lib"] {
        add(Path::new(folder).join(soname));
    }
    found
}

/// The paths that a cache holds for a name. Malformed data ends the reading without an error.
fn in_cache(cache: &[u8], flags: u32, soname: &[u8]) -> Vec<PathBuf> {
    // The old format may precede the new one; offsets are relative to the new one.
    let Some(start) = cache
        .windows(MAGIC.len())
        .position(|window| window == MAGIC)
    else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let number = |at: usize| {
        let bytes = cache.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let text = |at: u32| {
        let bytes = cache.get(at as usize..)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(&bytes[..end])
    };
    let mut found = Vec::new();
    let count = number(MAGIC.len()).unwrap_or(0) as usize;
    for index in 0..count {
        let at = HEADER + index * ENTRY;
        let (Some(kind), Some(key), Some(value)) = (number(at), number(at + 4), number(at + 8))
        else {
            break;
        };
        if kind == flags && text(key) == Some(soname) {
            found.extend(text(value).map(|path| PathBuf::from(OsStr::from_bytes(path))));
        }
    }
    found.retain(|path| path.is_absolute());
    found
}

/// The length of the cache's header: the magic, two counts, flags, reserved words.
const HEADER: usize = 48;
/// The length of an entry: flags, key, value, system version, processor features.
const ENTRY: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::InMemoryFiles;
    use crate::platform::Os;

    const LINUX: Platform = Platform {
        os: Os::Linux,
        arch: Arch::X86_64,
    };

    /// A cache as `ldconfig` writes it, preceded by `before`.
    fn cache(before: &[u8], entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let mut table = Vec::new();
        let base = HEADER + entries.len() * ENTRY;
        for (flags, key, value) in entries {
            table.extend(flags.to_ne_bytes());
            for word in [key, value] {
                table.extend(((base + strings.len()) as u32).to_ne_bytes());
                strings.extend(word.as_bytes());
                strings.push(0);
            }
            table.extend([0; 12]);
        }
        let mut bytes = before.to_vec();
        bytes.extend(MAGIC);
        bytes.extend((entries.len() as u32).to_ne_bytes());
        bytes.extend((strings.len() as u32).to_ne_bytes());
        bytes.extend([0; HEADER - 28]);
        bytes.extend(table);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn resolve_follows_the_loaders_order() {
        let bytes = cache(
            b"ld.so-1.7.0 and what follows",
            &[
                (0x0003, "libx.so.1", "/lib32/libx.so.1"),
                (0x0303, "libx.so.10", "/cuda/libx.so.10"),
                (0x0303, "libx.so.1", "/gone/libx.so.1"),
                (0x0303, "libx.so.1", "/cuda/libx.so.1"),
                (0x0a03, "libx.so.1", "/arm/libx.so.1"),
            ],
        );
        let files = InMemoryFiles::new()
            .file(CACHE, &bytes)
            .file("/lib32/libx.so.1", b"")
            .file("/cuda/libx.so.1", b"")
            .file("/arm/libx.so.1", b"")
            .file("/own/libx.so.1", b"")
            .file("/usr/lib/x86_64-linux-gnu/libx.so.1", b"");
        let path = split(b"relative::/own;/nowhere");
        assert_eq!(path.len(), 4);
        assert_eq!(
            resolve(&files, LINUX, &path, "libx.so.1"),
            [
                "/own/libx.so.1",
                "/cuda/libx.so.1",
                "/usr/lib/x86_64-linux-gnu/libx.so.1"
            ]
            .map(PathBuf::from)
        );
        assert!(resolve(&files, LINUX, &path, "../own/libx.so.1").is_empty());
    }

    #[test]
    fn expands_origin_in_run_paths() {
        let path = expand_origin(
            "$ORIGIN/../lib:/opt/lib:${ORIGIN}:$LIB/x:relative",
            Path::new("/conda/bin"),
        );
        let expected = ["/conda/bin/../lib", "/opt/lib", "/conda/bin/", "relative"];
        assert_eq!(path, expected.map(PathBuf::from));
    }

    #[test]
    fn a_corrupt_cache_yields_nothing_and_does_not_panic() {
        let whole = cache(b"", &[(0x0303, "libx.so.1", "/cuda/libx.so.1")]);
        assert_eq!(in_cache(&whole, 0x0303, b"libx.so.1").len(), 1);
        for length in 0..whole.len() {
            assert!(in_cache(&whole[..length], 0x0303, b"libx.so.1").is_empty());
        }
        let mut corrupt = whole;
        corrupt[MAGIC.len()..MAGIC.len() + 4].fill(0xff);
        assert!(in_cache(&corrupt, 0x0303, b"libx.so.1").len() <= 2);
    }

    /// Compares the cache of this machine with the loader's own result.
    #[test]
    fn agrees_with_the_loader() {
        use crate::loader::{DynamicLoader, SystemLoader};
        let handle = SystemLoader
            .find_loaded("libc.so.6")
            .expect("glibc is loaded");
        let path = SystemLoader.path(handle).expect("it has a file");
        let found = SystemLoader.resolve("libc.so.6");
        assert_eq!(
            found.first().and_then(|path| path.canonicalize().ok()),
            path.canonicalize().ok()
        );
    }
}
