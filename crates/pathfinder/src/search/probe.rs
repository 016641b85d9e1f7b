//! How every search walks: what lies at a place, what was looked at, folders whose names are not all known.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::{FileDefect, SearchOutcome, SearchedLocation};
use crate::files::{FileEntry, FileSystem};
use crate::platform::Platform;

/// Similar names that are told for one folder.
const SIMILAR_TOLD: usize = 6;

/// Whether a path means the same from every working directory. Windows' rules hold on any platform: a drive
/// without a root (`C:x`) and a root without a drive (`\x`) both depend on what is current.
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

/// What lies at a path where a file is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Nothing.
    Absent,
    /// A regular file, perhaps of no bytes.
    File,
    /// Something that is no file.
    FileDefect(FileDefect),
}

/// Looks where a file is wanted: one question to the file system.
pub(crate) fn probe_file(files: &dyn FileSystem, path: &Path) -> Probe {
    Probe::FileDefect(match files.entry(path) {
        FileEntry::Absent => return Probe::Absent,
        FileEntry::File(_) => return Probe::File,
        FileEntry::Folder => FileDefect::Folder,
        FileEntry::Dangling(target) => FileDefect::DanglingLink(target),
        FileEntry::LinkCycle => FileDefect::LinkCycle,
        FileEntry::Denied(message) => FileDefect::Denied(message),
        FileEntry::Special => FileDefect::Special,
    })
}

/// What was looked at, in order. What lies in the folders that hold nothing is only looked up when somebody
/// wants to read it.
#[derive(Debug, Default)]
pub(crate) struct SearchLog {
    notes: Vec<Note>,
}

#[derive(Debug)]
enum Note {
    SearchedLocation(SearchedLocation),
    Folder(&'static str, PathBuf),
}

/// What a file in a folder has to do with what is looked for.
pub(crate) enum Relation {
    /// Nothing.
    None,
    /// Its name is alike.
    Similar,
    /// It is the very thing, for another CUDA major: its own, and the one that counts.
    OtherMajor(u32, u32),
}

impl SearchLog {
    /// Notes what was at a place.
    pub(crate) fn note(
        &mut self,
        step: &'static str,
        place: impl Into<String>,
        outcome: SearchOutcome,
    ) {
        self.notes.push(Note::SearchedLocation(SearchedLocation {
            step,
            place: place.into(),
            outcome,
        }));
    }

    /// Notes what was at a path.
    pub(crate) fn note_path(&mut self, step: &'static str, path: &Path, outcome: SearchOutcome) {
        self.note(step, path.display().to_string(), outcome);
    }

    /// Notes a folder, there or not, in which what is looked for is not.
    pub(crate) fn note_folder(&mut self, step: &'static str, folder: impl Into<PathBuf>) {
        self.notes.push(Note::Folder(step, folder.into()));
    }

    /// The root that a variable names, if it names one; notes why not.
    pub(crate) fn root<'p>(
        &mut self,
        platform: Platform,
        step: &'static str,
        variable: &'static str,
        value: Option<&'p Path>,
    ) -> Option<&'p Path> {
        let Some(root) = value else {
            self.note(step, variable, SearchOutcome::NotSet);
            return None;
        };
        if !is_absolute(platform, root) {
            let place = format!("{variable}={}", root.display());
            self.note(step, place, SearchOutcome::Relative);
            return None;
        }
        Some(root)
    }

    /// Everything that was looked at. `kin` tells which files of a folder are worth naming.
    pub(crate) fn finish(
        self,
        files: &dyn FileSystem,
        mut kin: impl FnMut(&Path, &OsStr) -> Relation,
    ) -> Vec<SearchedLocation> {
        let mut looked = Vec::new();
        let mut told: HashSet<PathBuf> = HashSet::new();
        for note in self.notes {
            let (step, folder) = match note {
                Note::SearchedLocation(one) => {
                    looked.push(one);
                    continue;
                }
                Note::Folder(step, folder) => (step, folder),
            };
            // A folder may have been looked at for several names.
            if told.contains(&folder) {
                continue;
            }
            let outcome = match files.entry(&folder) {
                FileEntry::Absent => SearchOutcome::Absent,
                FileEntry::Folder => match files.list(&folder) {
                    Ok(names) => {
                        let mut similar = Vec::new();
                        for name in names {
                            match kin(&folder, &name) {
                                Relation::None => {}
                                Relation::Similar => {
                                    similar.push(name.to_string_lossy().into_owned())
                                }
                                Relation::OtherMajor(found, wanted) => {
                                    looked.push(SearchedLocation {
                                        step,
                                        place: folder.join(&name).display().to_string(),
                                        outcome: SearchOutcome::OtherMajor { found, wanted },
                                    })
                                }
                            }
                        }
                        similar.sort();
                        if similar.len() > SIMILAR_TOLD {
                            let more = similar.len() - SIMILAR_TOLD;
                            similar.truncate(SIMILAR_TOLD);
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
            looked.push(SearchedLocation {
                step,
                place: folder.display().to_string(),
                outcome,
            });
            told.insert(folder);
        }
        looked
    }
}

/// The folders below `base` that fit a pattern such as `NVIDIA/CUDNN/v9.*/bin`, in which `*` stands for any
/// part of a name; the highest version first. Only folders with a `*` to match are listed, and the parts
/// without one are not checked.
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
            names.sort_by(|a, b| natural(b).cmp(&natural(a)).then_with(|| b.cmp(a)));
            next.extend(names.into_iter().map(|name| path.join(name)));
        }
        found = next;
    }
    found
}

/// A name as text and numbers in turn, so that `v9.10` comes after `v9.9`.
pub(crate) fn natural(name: &OsStr) -> Vec<(Vec<u8>, u64)> {
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
    fn the_highest_version_first() {
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
