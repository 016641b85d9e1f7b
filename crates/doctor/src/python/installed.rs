//! Installed packages, as installers list them in `.dist-info` folders, and whether their files are still the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::{FileEntry, FileSystem};
use sha2::{Digest, Sha256};

use super::{OURS, SHARED_NAMES, stand_in_of};

/// Larger lists of installed files are not read.
const LONGEST_LIST: usize = 16 << 20;

/// Larger files are compared by size only.
const LONGEST_FILE: u64 = 64 << 20;

/// An installed package, known from its `.dist-info` folder.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its path entry.
    pub(crate) root: PathBuf,
    /// Its files, by path below `root`; `None` if the list cannot be read.
    pub(crate) files: Option<BTreeMap<String, Listed>>,
    /// What it was installed from, if that was no package index (PEP 610).
    pub(crate) source: Option<String>,
}

/// A file's entry in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    sha256: Option<String>,
    size: Option<u64>,
}

/// The current state of an installed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The same file.
    Kept,
    /// Missing.
    Gone,
    /// Different content.
    Changed,
}

impl Installed {
    /// The installed packages with these names, in pip's spelling, and their locations.
    pub(crate) fn all(path: &[PathBuf], names: &[&str], files: &dyn FileSystem) -> Vec<Installed> {
        let mut found: Vec<Installed> = Vec::new();
        let mut seen: Vec<PathBuf> = Vec::new();
        for root in path {
            let real = files.resolve(root).unwrap_or_else(|| root.clone());
            if seen.contains(&real) {
                continue;
            }
            seen.push(real);
            let Ok(mut entries) = files.list(root) else {
                continue;
            };
            entries.sort();
            for entry in entries {
                let Some(stem) = entry.to_str().and_then(|e| e.strip_suffix(".dist-info")) else {
                    continue;
                };
                let (name, version) = stem.rsplit_once('-').unwrap_or((stem, ""));
                let name = normal(name);
                if !names.contains(&name.as_str()) {
                    continue;
                }
                let info = root.join(&entry);
                found.push(Installed {
                    version: version.to_owned(),
                    files: read_list(&info.join("RECORD"), files),
                    source: read_source(&info.join("direct_url.json"), files),
                    root: root.clone(),
                    name,
                });
            }
        }
        found
    }

    /// Whether it is Cupyrite's native package or one of the stand-ins.
    pub(super) fn is_ours(&self) -> bool {
        self.name == OURS || stand_in_of(&self.version).is_some()
    }

    /// Whether it is one of NVIDIA's packages.
    pub(super) fn is_peer(&self) -> bool {
        SHARED_NAMES.contains(&self.name.as_str()) && !self.is_ours()
    }

    /// The current state of one of its files. Only files that several packages claim are read, others are compared by
    /// size.
    pub(crate) fn fate(&self, relative: &str, contested: bool, files: &dyn FileSystem) -> Fate {
        let Some(listed) = self.files.as_ref().and_then(|list| list.get(relative)) else {
            return Fate::Changed;
        };
        let path = self.root.join(relative);
        let FileEntry::File(size) = files.entry(&path) else {
            return Fate::Gone;
        };
        if listed.size.is_some_and(|listed| listed != size) {
            return Fate::Changed;
        }
        if contested
            && size <= LONGEST_FILE
            && let Some(expected) = &listed.sha256
            && let Ok(bytes) = files.read(&path, 0, size as usize + 1)
            && *expected != base64(&Sha256::digest(&bytes))
        {
            return Fate::Changed;
        }
        Fate::Kept
    }
}

/// A package's name as pip compares it.
fn normal(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '-' | '_' | '.' => {
                if !out.ends_with('-') {
                    out.push('-');
                }
            }
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// Parses a `RECORD`: lines of path, `sha256=digest`, size (Python Packaging User Guide, "Recording installed
/// projects"). Other lines are skipped.
fn read_list(path: &Path, files: &dyn FileSystem) -> Option<BTreeMap<String, Listed>> {
    if !matches!(files.entry(path), FileEntry::File(size) if size <= LONGEST_LIST as u64) {
        return None;
    }
    let bytes = files.read(path, 0, LONGEST_LIST).ok()?;
    let mut list = BTreeMap::new();
    for line in String::from_utf8_lossy(&bytes).lines() {
        let mut fields = line.trim_end().rsplitn(3, ',');
        let (Some(size), Some(digest), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let path = match path.strip_prefix('"').and_then(|p| p.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => path.to_owned(),
        };
        list.insert(
            path,
            Listed {
                sha256: digest.strip_prefix("sha256=").map(str::to_owned),
                size: size.parse().ok(),
            },
        );
    }
    Some(list)
}

/// The path or URL in a `direct_url.json`, if it still exists as far as that can be seen.
fn read_source(path: &Path, files: &dyn FileSystem) -> Option<String> {
    if !matches!(files.entry(path), FileEntry::File(size) if size <= LONGEST_LIST as u64) {
        return None;
    }
    let bytes = files.read(path, 0, LONGEST_LIST).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let url = text
        .split_once("\"url\"")?
        .1
        .split('"')
        .nth(1)
        .filter(|url| !url.contains('\\'))?;
    let Some(local) = url.strip_prefix("file://") else {
        return Some(url.to_owned());
    };
    let local = decoded(local)?;
    (files.entry(Path::new(&local)) != FileEntry::Absent).then_some(local)
}

/// A URL's path without percent-encoding.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// URL-safe base64 without padding, as in lists of installed files.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut number = 0u32;
        for place in 0..3 {
            number = number << 8 | u32::from(chunk.get(place).copied().unwrap_or(0));
        }
        for place in 0..=chunk.len() {
            let digit = number >> (18 - 6 * place) & 63;
            out.push(DIGITS[digit as usize] as char);
        }
    }
    out
}
