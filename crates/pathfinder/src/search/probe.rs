//! Building blocks of the searches: probing a path, the log of searched locations, folder patterns.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::{FileDefect, SearchOutcome, SearchedLocation};
use crate::files::{FileEntry, FileSystem};
use crate::platform::Platform;

/// Similar names that a message lists per folder.
const SIMILAR_LISTED: usize = 6;

/// Whether a path is independent of the working directory. For Windows, a drive without a root (`C:x`) and a root
/// without a drive (`\x`) are relative.
pub(crate) fn is_absolute(platform: Platform, path: &Path) -> bool {
    if !platform.is_windows() {
        return path.is_absolute();
    }
    let slash = |byte: u8| matches!(byte, b'/' | b'\\');
    match path.as_os_str().as_encoded_bytes() {
        [letter, b':', after, ..] => letter.is_ascii_alphabetic() && slash(*after),
        [first, second, _, ..] => slash(*first) && slash(*second),
        _ => false,
    }
}

/// What exists at a path where a file is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Nothing.
    Absent,
    /// A regular file, possibly empty.
    File,
    /// Something other than a regular file.
    Defect(FileDefect),
}

/// Probes a path where a file is expected: one file system query.
pub(crate) fn probe_file(files: &dyn FileSystem, path: &Path) -> Probe {
    Probe::Defect(match files.entry(path) {
        FileEntry::Absent => return Probe::Absent,
        FileEntry::File(_) => return Probe::File,
        FileEntry::Folder => FileDefect::Folder,
        FileEntry::Dangling(target) => FileDefect::DanglingLink(target),
        FileEntry::LinkCycle => FileDefect::LinkCycle,
        FileEntry::Denied(message) => FileDefect::Denied(message),
        FileEntry::Special => FileDefect::Special,
    })
}

/// The searched locations, in order. Folders are listed only in [`SearchLog::finish`].
#[derive(Debug, Default)]
pub(crate) struct SearchLog {
    records: Vec<Record>,
}

#[derive(Debug)]
enum Record {
    SearchedLocation(SearchedLocation),
    Folder(&'static str, PathBuf),
}

/// How a file in a searched folder relates to the missing one.
pub(crate) enum Relation {
    /// Nothing.
    None,
    /// It has a similar name.
    Similar,
    /// It is the same library for another CUDA major: its own, and the required one.
    OtherMajor(u32, u32),
}

impl SearchLog {
    /// Records the outcome at a location.
    pub(crate) fn record(
        &mut self,
        step: &'static str,
        location: impl Into<String>,
        outcome: SearchOutcome,
    ) {
        self.records
            .push(Record::SearchedLocation(SearchedLocation {
                step,
                location: location.into(),
                outcome,
            }));
    }

    /// Records the outcome at a path.
    pub(crate) fn record_path(&mut self, step: &'static str, path: &Path, outcome: SearchOutcome) {
        self.record(step, path.display().to_string(), outcome);
    }

    /// Records a folder, existing or not, without the file.
    pub(crate) fn record_folder(&mut self, step: &'static str, folder: impl Into<PathBuf>) {
        self.records.push(Record::Folder(step, folder.into()));
    }

    /// The root that a variable names; `None`, with the reason recorded, if it is unset or relative.
    pub(crate) fn root<'p>(
        &mut self,
        platform: Platform,
        step: &'static str,
        variable: &'static str,
        value: Option<&'p Path>,
    ) -> Option<&'p Path> {
        let Some(root) = value else {
            self.record(step, variable, SearchOutcome::NotSet);
            return None;
        };
        if !is_absolute(platform, root) {
            let location = format!("{variable}={}", root.display());
            self.record(step, location, SearchOutcome::Relative);
            return None;
        }
        Some(root)
    }

    /// Every searched location. `relation` selects the files of a folder that are worth naming.
    pub(crate) fn finish(
        self,
        files: &dyn FileSystem,
        mut relation: impl FnMut(&Path, &OsStr) -> Relation,
    ) -> Vec<SearchedLocation> {
        let mut searched = Vec::new();
        let mut done: HashSet<PathBuf> = HashSet::new();
        for record in self.records {
            let (step, folder) = match record {
                Record::SearchedLocation(one) => {
                    searched.push(one);
                    continue;
                }
                Record::Folder(step, folder) => (step, folder),
            };
            // A folder may be recorded for several names.
            if done.contains(&folder) {
                continue;
            }
            let outcome = match files.entry(&folder) {
                FileEntry::Absent => SearchOutcome::Absent,
                FileEntry::Folder => match files.list(&folder) {
                    Ok(names) => {
                        let mut similar = Vec::new();
                        for name in names {
                            match relation(&folder, &name) {
                                Relation::None => {}
                                Relation::Similar => {
                                    similar.push(name.to_string_lossy().into_owned())
                                }
                                Relation::OtherMajor(found, wanted) => {
                                    searched.push(SearchedLocation {
                                        step,
                                        location: folder.join(&name).display().to_string(),
                                        outcome: SearchOutcome::OtherMajor { found, wanted },
                                    })
                                }
                            }
                        }
                        similar.sort();
                        if similar.len() > SIMILAR_LISTED {
                            let more = similar.len() - SIMILAR_LISTED;
                            similar.truncate(SIMILAR_LISTED);
                            similar.push(format!("{more} more"));
                        }
                        SearchOutcome::Other(similar)
                    }
                    Err(error) => SearchOutcome::Broken(FileDefect::Unreadable(error.to_string())),
                },
                FileEntry::File(_) => SearchOutcome::Broken(FileDefect::File),
                FileEntry::Dangling(target) => {
                    SearchOutcome::Broken(FileDefect::DanglingLink(target))
                }
                FileEntry::LinkCycle => SearchOutcome::Broken(FileDefect::LinkCycle),
                FileEntry::Denied(message) => SearchOutcome::Broken(FileDefect::Denied(message)),
                FileEntry::Special => SearchOutcome::Broken(FileDefect::Special),
            };
            searched.push(SearchedLocation {
                step,
                location: folder.display().to_string(),
                outcome,
            });
            done.insert(folder);
        }
        searched
    }
}

/// The folders below `base` that match a pattern such as `NVIDIA/CUDNN/v9.*/bin`, in which `*` matches any part of a
/// name; the highest version first. Lists only folders with a `*` to match; does not check the parts without one.
pub(crate) fn expand(files: &dyn FileSystem, base: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![base.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let Some((before, after)) = part.split_once('*') else {
            for path in &mut found {
                path.push(part);
            }
            continue;
        };
        let mut next = Vec::new();
        for path in found {
            let mut names: Vec<_> = files
                .list(&path)
                .unwrap_or_default()
                .into_iter()
                .filter(|name| {
                    let name = name.as_encoded_bytes();
                    name.len() >= before.len() + after.len()
                        && name.starts_with(before.as_bytes())
                        && name.ends_with(after.as_bytes())
                })
                .collect();
            names.sort_by(|a, b| natural_key(b).cmp(&natural_key(a)).then_with(|| b.cmp(a)));
            next.extend(names.into_iter().map(|name| path.join(name)));
        }
        found = next;
    }
    found
}

/// Sort key that splits a name into text and numbers, so that `v9.10` follows `v9.9`.
pub(crate) fn natural_key(name: &OsStr) -> Vec<(Vec<u8>, u64)> {
    let bytes = name.as_encoded_bytes();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let text = at;
        while at < bytes.len() && !bytes[at].is_ascii_digit() {
            at += 1;
        }
        let mut number = 0_u64;
        let digits = at;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            number = number
                .saturating_mul(10)
                .saturating_add(u64::from(bytes[at] - b'0'));
            at += 1;
        }
        parts.push((bytes[text..digits].to_owned(), number));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::InMemoryFiles;
    use crate::platform::{Arch, Os};

    const fn on(os: Os) -> Platform {
        Platform {
            os,
            arch: Arch::X86_64,
        }
    }

    #[test]
    fn absolute_paths_of_both_systems() {
        for (path, linux, windows) in [
            ("/usr", true, false),
            ("usr", false, false),
            ("", false, false),
            ("~/cuda", false, false),
            ("C:/CUDA", false, true),
            ("C:\\CUDA", false, true),
            ("C:CUDA", false, false),
            ("\\CUDA", false, false),
            ("\\\\server\\share", false, true),
            ("1:/CUDA", false, false),
        ] {
            assert_eq!(is_absolute(on(Os::Linux), path.as_ref()), linux, "{path}");
            assert_eq!(
                is_absolute(on(Os::Windows), path.as_ref()),
                windows,
                "{path}"
            );
        }
    }

    #[test]
    fn expansion_sorts_the_highest_version_first() {
        let files = InMemoryFiles::new()
            .folder("/p/v9.9/bin")
            .folder("/p/v9.10/bin")
            .folder("/p/v8.1/bin")
            .folder("/p/v9")
            .file("/p/v9.11", b"");
        let paths = |pattern| -> Vec<String> {
            expand(&files, Path::new("/p"), pattern)
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        assert_eq!(
            paths("v9.*/bin"),
            ["/p/v9.11/bin", "/p/v9.10/bin", "/p/v9.9/bin"]
        );
        assert_eq!(paths("x/y"), ["/p/x/y"]);
        assert!(paths("nothing/*").is_empty());
        assert_eq!(paths("v*1/*"), ["/p/v8.1/bin"]);
    }
}
