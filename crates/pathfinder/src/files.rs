//! The file system behind a small trait: the host's, and one in memory for tests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// `errno` of a symbolic link cycle on Linux, whose `ErrorKind` is not stable.
const ELOOP: i32 = 40;

/// The entry at a path, after following links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEntry {
    /// Nothing.
    Absent,
    /// A regular file of this many bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A dangling symbolic link, with its target.
    Dangling(PathBuf),
    /// A symbolic link cycle.
    LinkCycle,
    /// Access is denied: the system's message.
    Denied(String),
    /// A socket, device or pipe, which could block when opened.
    Special,
}

/// The file system operations that the search uses. No method modifies anything, blocks on a pipe, or starts a
/// process.
pub trait FileSystem: Sync {
    /// What exists at `path`.
    fn entry(&self, path: &Path) -> FileEntry;

    /// Reads at most `limit` bytes from `offset`; fewer at the end of the file.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn read(&self, path: &Path, offset: u64, limit: usize) -> io::Result<Vec<u8>>;

    /// The names in a folder, unsorted. The search lists folders only where it matches a pattern or reports an error.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>>;

    /// The path with links resolved, if it exists.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;

    /// Whether this process may execute a file.
    fn is_executable(&self, path: &Path) -> bool;
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy)]
pub struct HostFiles;

impl FileSystem for HostFiles {
    fn entry(&self, path: &Path) -> FileEntry {
        match std::fs::metadata(path) {
            Ok(data) if data.is_dir() => FileEntry::Folder,
            Ok(data) if data.is_file() => FileEntry::File(data.len()),
            Ok(_) => FileEntry::Special,
            Err(error) => self.without(path, &error),
        }
    }

    fn read(&self, path: &Path, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = std::fs::File::open(path)?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))?;
        }
        let mut bytes = Vec::new();
        file.take(limit as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect()
    }

    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let path = path.canonicalize().ok()?;
        // Windows returns `\\?\C:\x`, which many programs do not accept.
        let plain = path.to_str().and_then(|text| text.strip_prefix(r"\\?\"));
        match plain {
            Some(plain) if plain.as_bytes().get(1) == Some(&b':') => Some(PathBuf::from(plain)),
            _ => Some(path),
        }
    }

    fn is_executable(&self, path: &Path) -> bool {
        #[cfg(unix)]
        {
            use std::ffi::CString;
            use std::os::unix::ffi::OsStrExt;
            let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
                return false;
            };
            // SAFETY: the argument is a C string, which access() does not retain.
            unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
        }
        #[cfg(not(unix))]
        {
            // Windows decides by the name, and the search passes only `.exe` and `.bat` files.
            path.is_file()
        }
    }
}

impl HostFiles {
    /// Why `metadata` failed.
    fn without(self, path: &Path, error: &io::Error) -> FileEntry {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                match std::fs::read_link(path) {
                    Ok(target) => FileEntry::Dangling(target),
                    Err(_) => FileEntry::Absent,
                }
            }
            // A name that is not valid for a file.
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => FileEntry::Absent,
            _ if error.raw_os_error() == Some(ELOOP) => FileEntry::LinkCycle,
            _ => FileEntry::Denied(error.to_string()),
        }
    }
}

/// An in-memory file system, for tests of layouts that this machine does not have. Windows paths use slashes:
/// `C:/CUDA/bin`.
#[derive(Debug, Clone, Default)]
pub struct InMemoryFiles {
    entries: BTreeMap<PathBuf, InMemoryEntry>,
}

#[derive(Debug, Clone)]
enum InMemoryEntry {
    File(Vec<u8>),
    Program(Vec<u8>),
    Folder,
    Link(PathBuf),
    Denied,
}

impl InMemoryFiles {
    /// An empty file system.
    pub fn new() -> InMemoryFiles {
        InMemoryFiles::default()
    }

    fn put(&mut self, path: &Path, entry: InMemoryEntry) {
        for parent in path.ancestors().skip(1) {
            self.entries
                .entry(parent.to_owned())
                .or_insert(InMemoryEntry::Folder);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// Adds a file and its parent folders.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>, bytes: &[u8]) -> InMemoryFiles {
        self.put(path.as_ref(), InMemoryEntry::File(bytes.to_owned()));
        self
    }

    /// Adds an executable file.
    #[must_use]
    pub fn program(mut self, path: impl AsRef<Path>, bytes: &[u8]) -> InMemoryFiles {
        self.put(path.as_ref(), InMemoryEntry::Program(bytes.to_owned()));
        self
    }

    /// Adds a folder and its parents.
    #[must_use]
    pub fn folder(mut self, path: impl AsRef<Path>) -> InMemoryFiles {
        self.put(path.as_ref(), InMemoryEntry::Folder);
        self
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) -> InMemoryFiles {
        self.put(path.as_ref(), InMemoryEntry::Link(target.into()));
        self
    }

    /// Adds an entry to which access is denied.
    #[must_use]
    pub fn denied(mut self, path: impl AsRef<Path>) -> InMemoryFiles {
        self.put(path.as_ref(), InMemoryEntry::Denied);
        self
    }

    /// Follows links as the system does, those of parent folders included, at most 40.
    fn follow(&self, path: &Path) -> Result<PathBuf, FileEntry> {
        let mut left: Vec<PathBuf> = path
            .components()
            .rev()
            .map(|part| PathBuf::from(part.as_os_str()))
            .collect();
        let mut at = PathBuf::new();
        let mut links = 0;
        while let Some(part) = left.pop() {
            match part.components().next() {
                Some(Component::ParentDir) => {
                    at.pop();
                    continue;
                }
                Some(Component::CurDir) | None => continue,
                Some(_) => {}
            }
            let next = at.join(&part);
            match self.entries.get(&next) {
                None => return Err(FileEntry::Absent),
                Some(InMemoryEntry::Denied) => {
                    return Err(FileEntry::Denied(
                        "Permission denied (os error 13)".to_owned(),
                    ));
                }
                Some(InMemoryEntry::Link(target)) => {
                    links += 1;
                    if links > 40 {
                        return Err(FileEntry::LinkCycle);
                    }
                    if target.is_absolute() {
                        at = PathBuf::new();
                    }
                    left.extend(
                        target
                            .components()
                            .rev()
                            .map(|part| PathBuf::from(part.as_os_str())),
                    );
                }
                Some(InMemoryEntry::File(_) | InMemoryEntry::Program(_)) if !left.is_empty() => {
                    return Err(FileEntry::Absent);
                }
                Some(_) => at = next,
            }
        }
        Ok(at)
    }
}

impl FileSystem for InMemoryFiles {
    fn entry(&self, path: &Path) -> FileEntry {
        match self.follow(path) {
            Ok(end) => match self.entries.get(&end) {
                Some(InMemoryEntry::File(bytes) | InMemoryEntry::Program(bytes)) => {
                    FileEntry::File(bytes.len() as u64)
                }
                _ => FileEntry::Folder,
            },
            Err(FileEntry::Absent) => match self.entries.get(path) {
                Some(InMemoryEntry::Link(target)) => FileEntry::Dangling(target.clone()),
                _ => FileEntry::Absent,
            },
            Err(other) => other,
        }
    }

    fn read(&self, path: &Path, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        let end = self.resolve(path).ok_or(io::ErrorKind::NotFound)?;
        match self.entries.get(&end) {
            Some(InMemoryEntry::File(bytes) | InMemoryEntry::Program(bytes)) => {
                let from = usize::try_from(offset).map_or(bytes.len(), |o| o.min(bytes.len()));
                let to = from.saturating_add(limit).min(bytes.len());
                Ok(bytes[from..to].to_owned())
            }
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let end = self.resolve(folder).ok_or(io::ErrorKind::NotFound)?;
        Ok(self
            .entries
            .keys()
            .filter(|path| path.parent() == Some(&end))
            .filter_map(|path| path.file_name())
            .map(OsString::from)
            .collect())
    }

    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        self.follow(path).ok()
    }

    fn is_executable(&self, path: &Path) -> bool {
        self.resolve(path)
            .is_some_and(|end| matches!(self.entries.get(&end), Some(InMemoryEntry::Program(_))))
    }
}
