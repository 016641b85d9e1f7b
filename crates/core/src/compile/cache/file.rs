//! A cache on disk, shared by concurrent processes.
//!
//! Each entry is a file, `entries/XX/REST.code`, named by the SHA-256 of its key. Entries are written to `tmp` and renamed,
//! so that no reader sees a partial entry, and reading and writing need no lock. The files in `locks` are for compilations
//! only.
//!
//! The directory may be on NFS, with writers on several hosts: a file that another host removed is a stale handle
//! (ESTALE), which counts as missing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::entry::LINE;
use super::lock::lock_file;
use super::{CompileLock, Counts, EntryName, ProgramCache};

/// The suffix of entries: other files in the directory are ignored.
const SUFFIX: &str = ".code";
/// Age after which files of dead processes in `tmp` are removed.
const STALE: Duration = Duration::from_secs(3600);

/// A cache of compiled programs in a directory, shared by all processes that use it.
///
/// A full cache evicts the least recently used entries. A damaged entry counts as missing and is removed.
#[derive(Debug)]
pub struct FileCache {
    root: PathBuf,
    limit: Option<NonZeroU64>,
    counts: Counts,
}

/// Adds the path to an error.
fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| {
        io::Error::new(
            error.kind(),
            PathError {
                error,
                path: path.into(),
            },
        )
    }
}

/// A file system error with its path: the value of [`io::Error::get_ref`] for errors of this module.
#[derive(Debug)]
pub struct PathError {
    error: io::Error,
    path: PathBuf,
}

impl PathError {
    /// The system's error.
    pub fn error(&self) -> &io::Error {
        &self.error
    }

    /// The file or directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl std::fmt::Display for PathError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for PathError {}

fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(at(path))
}

/// Whether the error means that a path does not exist, or no longer on another host's file system.
fn absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::StaleNetworkFileHandle
    )
}

impl FileCache {
    /// Opens the cache in a directory, creating it (for this user only) if necessary; `limit` is the size of all code
    /// in bytes.
    ///
    /// # Errors
    ///
    /// The directory cannot be created.
    pub fn open(root: impl Into<PathBuf>, limit: Option<NonZeroU64>) -> io::Result<FileCache> {
        let root = std::path::absolute(root.into())?;
        for directory in [root.clone(), root.join("entries"), root.join("tmp")] {
            make_directory(&directory)?;
        }
        let cache = FileCache {
            root,
            limit,
            counts: Counts::default(),
        };
        cache.sweep();
        Ok(cache)
    }

    /// The default directory: `program-cache` in [`crate::user_cache_directory`].
    ///
    /// # Errors
    ///
    /// Same as [`crate::user_cache_directory`].
    pub fn default_directory() -> crate::Result<PathBuf> {
        Ok(crate::user_cache_directory()?.join("program-cache"))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.root
    }

    fn path(&self, name: &EntryName) -> PathBuf {
        let (folder, rest) = name.digits().split_at(2);
        let mut path = self.root.join("entries");
        path.push(folder);
        path.push(format!("{rest}{SUFFIX}"));
        path
    }

    /// Opens the lock file of an entry; `None` if this process cannot create it.
    ///
    /// Entries share 4096 lock files, which are never removed: if they were, a process could lock a removed file while
    /// another locks its successor.
    fn lock_file(&self, name: &EntryName) -> Option<File> {
        let directory = self.root.join("locks");
        let path = directory.join(&name.digits()[..3]);
        let mut options = OpenOptions::new();
        // NFS locks files that are open for writing.
        options.read(true).write(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        }
        let opened = match options.open(&path) {
            Err(error) if absent(&error) => {
                make_directory(&directory).and_then(|()| options.open(&path))
            }
            opened => opened,
        };
        if let Err(error) = &opened {
            log::debug!("no lock file {}: {error}", path.display());
        }
        opened.ok()
    }

    /// Removes files of dead processes. Errors are ignored: nothing depends on it.
    fn sweep(&self) {
        let Ok(left) = fs::read_dir(self.root.join("tmp")) else {
            return;
        };
        for entry in left.flatten() {
            let old = entry
                .metadata()
                .and_then(|data| data.modified())
                .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE));
            if old {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn read(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let name = EntryName::of(key);
        let path = self.path(&name);
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        // Follows no link out of the directory, and does not block on a pipe.
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            libc::O_NOFOLLOW | libc::O_NONBLOCK,
        );
        let mut file = match options.open(&path) {
            Ok(file) => file,
            Err(error) if absent(&error) => return Ok(None),
            #[cfg(unix)]
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Ok(None),
            Err(error) => return Err(at(&path)(error)),
        };
        let mut bytes = Vec::new();
        let read = file.metadata().and_then(|size| {
            if size.is_file() {
                bytes.reserve_exact(usize::try_from(size.len()).unwrap_or(0) + 1);
                file.read_to_end(&mut bytes)?;
            }
            Ok(size.is_file())
        });
        match read {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) if absent(&error) => return Ok(None),
            Err(error) => return Err(at(&path)(error)),
        }
        let code = name.unseal(bytes);
        if code.is_some() {
            touch(&file);
        } else {
            // Another process may have just replaced it: that entry is lost, and compiled again.
            let _ = fs::remove_file(&path);
        }
        Ok(code)
    }

    /// Every entry: path, size of the code in bytes, time of the last use.
    fn entries(&self) -> io::Result<Vec<(PathBuf, u64, SystemTime)>> {
        let top = self.root.join("entries");
        let mut found = Vec::new();
        let directories = match fs::read_dir(&top) {
            Ok(directories) => directories,
            Err(error) if absent(&error) => return Ok(found),
            Err(error) => return Err(at(&top)(error)),
        };
        for directory in directories {
            let directory = match directory {
                Ok(directory) => directory.path(),
                Err(error) if absent(&error) => break,
                Err(error) => return Err(at(&top)(error)),
            };
            // Other processes may remove entries meanwhile; files of other programs are ignored.
            let Ok(files) = fs::read_dir(&directory) else {
                continue;
            };
            for file in files.flatten() {
                let ours = file
                    .file_name()
                    .to_str()
                    .is_some_and(|name| name.ends_with(SUFFIX));
                if ours && let Ok(data) = file.metadata() {
                    let used = data.accessed().or_else(|_| data.modified());
                    let used = used.unwrap_or(SystemTime::UNIX_EPOCH);
                    found.push((file.path(), data.len().saturating_sub(LINE as u64), used));
                }
            }
        }
        Ok(found)
    }

    /// Evicts the least recently used entries until the rest fits.
    fn evict(&self) -> io::Result<()> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let mut entries = self.entries()?;
        let mut total: u64 = entries.iter().map(|entry| entry.1).sum();
        if total <= limit.get() {
            return Ok(());
        }
        entries.sort_by_key(|entry| entry.2);
        for (path, bytes, _) in entries {
            if total <= limit.get() {
                break;
            }
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if absent(&error) => {}
                Err(error) => return Err(at(&path)(error)),
            }
            total -= bytes;
        }
        Ok(())
    }

    /// A new file in `tmp`.
    fn temporary(&self) -> io::Result<(PathBuf, File)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = self.root.join("tmp");
        for _ in 0..1000 {
            // Containers may share the directory and have equal process IDs.
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let time = time.unwrap_or_default().subsec_nanos();
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{}-{count}-{time:x}", std::process::id()));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // The whole cache was removed.
                Err(error) if absent(&error) => make_directory(&directory)?,
                Err(error) => return Err(at(&path)(error)),
            }
        }
        Err(at(&directory)(ErrorKind::AlreadyExists.into()))
    }
}

/// Sets the time of the last use. Explicitly: file systems update it once a day. Failure only affects the eviction
/// order.
fn touch(file: &File) {
    let _ = file.set_times(fs::FileTimes::new().set_accessed(SystemTime::now()));
}

/// Renames, also while another process has the target open (which fails briefly on Windows).
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    let mut pause = Duration::from_millis(1);
    loop {
        match fs::rename(from, to) {
            Err(error)
                if cfg!(windows)
                    && error.kind() == ErrorKind::PermissionDenied
                    && pause < Duration::from_millis(200) =>
            {
                std::thread::sleep(pause);
                pause *= 2;
            }
            done => return done,
        }
    }
}

/// Renames into a directory that is created if necessary. Retries: other processes remove empty directories at any
/// time.
fn place(from: &Path, to: &Path) -> io::Result<()> {
    let directory = to.parent().unwrap_or(to);
    let mut tries = 100;
    loop {
        match replace(from, to) {
            // NFS repeats a request whose answer was lost: the second finds that the first has moved the file.
            Err(error) if absent(&error) && !from.exists() => {
                return if to.exists() { Ok(()) } else { Err(error) };
            }
            Err(error) if absent(&error) && tries > 0 => tries -= 1,
            done => return done,
        }
        match make_directory(directory) {
            // It existed at the creation and was removed before the check.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) if absent(&error) => {}
            done => done?,
        }
    }
}

impl ProgramCache for FileCache {
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let found = self.read(key)?;
        self.counts.count(found.is_some());
        Ok(found)
    }

    fn put(&self, key: &[u8], bytes: &[u8]) -> io::Result<()> {
        let name = EntryName::of(key);
        let path = self.path(&name);
        if self
            .limit
            .is_some_and(|limit| bytes.len() as u64 > limit.get())
        {
            return self.remove(key).map(drop);
        }
        let (temporary, mut file) = self.temporary()?;
        // Not synced: after a power failure the checksum detects missing data.
        let written = file
            .write_all(bytes)
            .and_then(|()| file.write_all(&name.line(bytes)));
        touch(&file);
        drop(file);
        let written = written.and_then(|()| place(&temporary, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(at(&path)(error));
        }
        self.evict()
    }

    fn remove(&self, key: &[u8]) -> io::Result<bool> {
        let path = self.path(&EntryName::of(key));
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if absent(&error) => Ok(false),
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn len(&self) -> io::Result<usize> {
        Ok(self.entries()?.len())
    }

    fn clear(&self) -> io::Result<()> {
        for (path, _, _) in self.entries()? {
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if absent(&error) => {}
                Err(error) => return Err(at(&path)(error)),
            }
        }
        self.sweep();
        // Removes empty directories; others remain.
        for directory in fs::read_dir(self.root.join("entries"))
            .into_iter()
            .flatten()
        {
            let _ = directory.map(|directory| fs::remove_dir(directory.path()));
        }
        Ok(())
    }

    fn compile_lock(
        &self,
        key: &[u8],
        timeout: Duration,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> CompileLock {
        let name = EntryName::of(key);
        let Some(file) = self.lock_file(&name) else {
            return CompileLock::not_held();
        };
        let path = self.path(&name);
        let lock = lock_file(file, timeout, || path.exists(), cancelled);
        // The next lookup must find what the previous holder stored. An NFS client caches for up to a minute that a
        // name does not exist. Opening a directory revalidates the cache.
        if let Some(directory) = path.parent() {
            let _ = fs::read_dir(self.root.join("entries"));
            let _ = fs::read_dir(directory);
        }
        lock
    }

    fn hits(&self) -> u64 {
        self.counts.hits()
    }

    fn misses(&self) -> u64 {
        self.counts.misses()
    }

    fn uncount_miss(&self) {
        self.counts.uncount_miss();
    }
}
