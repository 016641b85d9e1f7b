//! CUDA major of an installed toolkit.

use std::path::Path;

use crate::files::{FileEntry, FileSystem};
use crate::platform::Platform;

/// Bytes read of a file; the version is near the beginning.
const HEAD: usize = 64 * 1024;

/// The CUDA major of the toolkit (or conda environment) with this root, from `cuda.h`, else from `version.json`.
pub(crate) fn major(files: &dyn FileSystem, platform: Platform, root: &Path) -> Option<u32> {
    let below_targets = platform
        .targets()
        .iter()
        .map(|target| root.join("targets").join(target).join("include"));
    std::iter::once(root.join("include"))
        .chain(below_targets)
        .find_map(|include| from_header(&head(files, &include.join("cuda.h"))?))
        .or_else(|| from_json(&head(files, &root.join("version.json"))?))
}

/// The beginning of a regular file.
fn head(files: &dyn FileSystem, path: &Path) -> Option<String> {
    let FileEntry::File(_) = files.entry(path) else {
        return None;
    };
    let bytes = files.read(path, 0, HEAD).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// `#define CUDA_VERSION 13050` in `cuda.h` is CUDA 13.5.
fn from_header(text: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let version: u32 = match (words.next()?, words.next()?) {
            ("#define", "CUDA_VERSION") => words.next()?.parse().ok()?,
            _ => return None,
        };
        Some(version / 1000)
    })
}

/// `"cuda" : { "name" : "CUDA SDK", "version" : "13.0.0" }` in `version.json`: the first version after that key.
fn from_json(text: &str) -> Option<u32> {
    let (_, after) = text.split_once("\"cuda\"")?;
    let (_, after) = after.split_once("\"version\"")?;
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let (number, _) = value.strip_prefix('"')?.split_once('.')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::InMemoryFiles;
    use crate::platform::{Arch, Os};

    const LINUX: Platform = Platform {
        os: Os::Linux,
        arch: Arch::Aarch64,
    };

    fn of(files: &InMemoryFiles) -> Option<u32> {
        major(files, LINUX, Path::new("/cuda"))
    }

    #[test]
    fn reads_headers_and_json() {
        let header = b"/* CUDA_VERSION 11000 */\n# if 0\n#define  CUDA_VERSION\t12090\n";
        let json =
            br#"{ "cuda" : { "name" : "CUDA SDK", "version" : "13.0.1" }, "cuda_nvcc": {} }"#;
        let plain = InMemoryFiles::new().file("/cuda/include/cuda.h", header);
        assert_eq!(of(&plain), Some(12));
        let target = InMemoryFiles::new().file("/cuda/targets/sbsa-linux/include/cuda.h", header);
        assert_eq!(of(&target), Some(12));
        let both = plain.file("/cuda/version.json", json);
        assert_eq!(of(&both), Some(12));
        let json = InMemoryFiles::new().file("/cuda/version.json", json);
        assert_eq!(of(&json), Some(13));
    }

    #[test]
    fn malformed_files_have_no_major() {
        for text in [
            &b""[..],
            b"#define CUDA_VERSION",
            b"#define CUDA_VERSION CUDART_VERSION",
            b"\xff\xfe",
        ] {
            let files = InMemoryFiles::new().file("/cuda/include/cuda.h", text);
            assert_eq!(of(&files), None);
        }
        for text in [
            "{}",
            r#"{"cuda": 13}"#,
            r#"{"cuda": {"version": 13}}"#,
            r#"{"cuda": {"version": "x.1"}}"#,
        ] {
            let files = InMemoryFiles::new().file("/cuda/version.json", text.as_bytes());
            assert_eq!(of(&files), None, "{text}");
        }
        let folder = InMemoryFiles::new().folder("/cuda/include/cuda.h");
        assert_eq!(of(&folder), None);
    }
}
