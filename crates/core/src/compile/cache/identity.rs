//! Identifies builds of compiler libraries: a toolkit has several builds of one version.

use std::ffi::c_int;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::error::{Result, nvrtc, nvvm};

/// NVRTC: version, and builds of the library and of its built-in headers.
pub(super) fn of_nvrtc() -> Result<String> {
    static KNOWN: OnceLock<String> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(known.clone());
    }
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: both results are valid for writes.
    unsafe { nvrtc!(nvrtcVersion(&mut major, &mut minor))? };
    let files = files("nvrtc", &["nvrtc-builtins"]);
    Ok(KNOWN
        .get_or_init(|| format!("nvrtc {major}.{minor} {files}"))
        .clone())
}

/// libNVVM: version, version of its IR, build of the library.
pub(super) fn of_nvvm() -> Result<String> {
    static KNOWN: OnceLock<String> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Ok(known.clone());
    }
    let mut v: [c_int; 6] = [0; 6];
    let [major, minor, ir_major, ir_minor, debug_major, debug_minor] = &mut v;
    // SAFETY: all results are valid for writes.
    unsafe {
        nvvm!(nvvmVersion(major, minor))?;
        nvvm!(nvvmIRVersion(ir_major, ir_minor, debug_major, debug_minor))?;
    }
    let files = files("nvvm", &[]);
    Ok(KNOWN.get_or_init(|| format!("nvvm {v:?} {files}")).clone())
}

/// The driver: its version and the text of its release.
pub(super) fn of_driver() -> Result<String> {
    let mut version = 0;
    // SAFETY: the result is valid for writes.
    unsafe { crate::error::driver!(cuDriverGetVersion(&mut version))? };
    let release = fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    Ok(format!("driver {version} {}", release.trim()))
}

/// nvJitLink: the build of the library.
pub(super) fn of_nvjitlink() -> String {
    static KNOWN: OnceLock<String> = OnceLock::new();
    KNOWN
        .get_or_init(|| format!("nvjitlink {}", files("nvJitLink", &[])))
        .clone()
}

/// The builds of a loaded library, and of libraries beside it with these name parts.
fn files(library: &str, beside: &[&str]) -> String {
    let Ok(loaded) = cupyrite_pathfinder::load(library) else {
        return "?".into();
    };
    let mut known = build(&loaded.path);
    let mut others: Vec<_> = loaded
        .path
        .parent()
        .and_then(|directory| fs::read_dir(directory).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            beside.iter().any(|part| name.contains(part))
        })
        .map(|entry| build(&entry.path()))
        .collect();
    others.sort();
    others.dedup();
    for other in others {
        known.push(' ');
        known.push_str(&other);
    }
    known
}

/// Identifies a build of a library file: its build ID, else size and time.
fn build(path: &Path) -> String {
    if let Some(id) = build_id(path) {
        return id;
    }
    match fs::metadata(path) {
        Ok(data) => {
            let time = data
                .modified()
                .ok()
                .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
                .unwrap_or_default();
            format!("{}+{}", data.len(), time.as_nanos())
        }
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// The GNU build id of a 64-bit little-endian ELF file, as hexadecimal digits.
fn build_id(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut header = [0u8; 64];
    file.read_exact(&mut header).ok()?;
    if &header[..6] != b"\x7fELF\x02\x01" {
        return None;
    }
    let number = |bytes: &[u8], at: usize, size: usize| -> Option<u64> {
        let field = bytes.get(at..at + size)?;
        Some(field.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    };
    let (table, size, count) = (
        number(&header, 32, 8)?,
        number(&header, 54, 2)?,
        number(&header, 56, 2)?,
    );
    for index in 0..count.min(256) {
        let mut segment = [0u8; 56];
        file.seek(SeekFrom::Start(table.checked_add(index * size)?))
            .ok()?;
        file.read_exact(&mut segment).ok()?;
        // PT_NOTE
        if number(&segment, 0, 4)? != 4 {
            continue;
        }
        let (offset, length) = (number(&segment, 8, 8)?, number(&segment, 32, 8)?);
        let mut notes = vec![0u8; usize::try_from(length.min(1 << 16)).ok()?];
        file.seek(SeekFrom::Start(offset)).ok()?;
        file.read_exact(&mut notes).ok()?;
        let mut at = 0usize;
        while let (Some(name), Some(data), Some(kind)) = (
            number(&notes, at, 4),
            number(&notes, at + 4, 4),
            number(&notes, at + 8, 4),
        ) {
            let name_at = at + 12;
            let data_at = name_at.checked_add(usize::try_from(name).ok()?.next_multiple_of(4))?;
            let data_end = data_at.checked_add(usize::try_from(data).ok()?)?;
            // NT_GNU_BUILD_ID
            if kind == 3 && notes.get(name_at..name_at + 4) == Some(b"GNU\0") {
                let id = notes.get(data_at..data_end)?;
                return Some(id.iter().map(|byte| format!("{byte:02x}")).collect());
            }
            at = data_end.next_multiple_of(4);
        }
    }
    None
}

/// The SHA-256 of a file, where a name is not reliable enough.
pub(super) fn of_file(path: &Path) -> std::io::Result<[u8; 32]> {
    Ok(Sha256::digest(fs::read(path)?).into())
}
