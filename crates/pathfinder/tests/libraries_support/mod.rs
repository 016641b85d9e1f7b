//! A simulated machine: files, an environment, and a loader that behaves like the system's.
#![allow(dead_code)] // Each test program uses its own part.

pub mod expected;
pub mod real;

use std::collections::BTreeMap;
use std::ffi::{OsStr, c_void};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cupyrite_pathfinder::files::{FileEntry, FileSystem, InMemoryFiles};
use cupyrite_pathfinder::loader::{DynamicLoader, LibraryHandle, OpenMode};
use cupyrite_pathfinder::{
    Arch, Environment, Finder, FoundVia, LoadError, LoadedLibrary, LocatedLibrary, Os, Platform,
};

pub const LINUX: Platform = Platform {
    os: Os::Linux,
    arch: Arch::X86_64,
};
pub const LINUX_ARM: Platform = Platform {
    os: Os::Linux,
    arch: Arch::Aarch64,
};
pub const WINDOWS: Platform = Platform {
    os: Os::Windows,
    arch: Arch::X86_64,
};
pub const WINDOWS_ARM: Platform = Platform {
    os: Os::Windows,
    arch: Arch::Aarch64,
};
pub const PLATFORMS: [Platform; 4] = [LINUX, LINUX_ARM, WINDOWS, WINDOWS_ARM];

/// A minimal ELF library with a name and dependencies: header, one load segment over the whole file, one dynamic
/// segment.
pub fn elf(arch: Arch, soname: &str, needed: &[&str]) -> Vec<u8> {
    let mut strings = vec![0_u8];
    let mut add = |text: &str| {
        let at = strings.len() as u64;
        strings.extend(text.as_bytes());
        strings.push(0);
        at
    };
    let mut entries: Vec<[u64; 2]> = needed.iter().map(|name| [1, add(name)]).collect();
    if !soname.is_empty() {
        entries.push([14, add(soname)]);
    }
    let (headers, base) = (64 + 2 * 56, 0x10000_u64);
    let at_strings = headers + 16 * (entries.len() as u64 + 3);
    entries.push([5, base + at_strings]);
    entries.push([10, strings.len() as u64]);
    entries.push([0, 0]);
    let total = at_strings + strings.len() as u64;

    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let machine: u16 = match arch {
        Arch::X86_64 => 62,
        Arch::Aarch64 => 183,
    };
    bytes.extend(3_u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    for word in [0_u64, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 2, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    let dynamic = 16 * entries.len() as u64;
    for (kind, offset, size) in [(1_u32, 0, total), (2, headers, dynamic)] {
        bytes.extend(kind.to_le_bytes());
        bytes.extend(6_u32.to_le_bytes());
        for word in [offset, base + offset, base + offset, size, size, 8] {
            bytes.extend(word.to_le_bytes());
        }
    }
    for word in entries.into_iter().flatten() {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(strings);
    bytes
}

/// A minimal Windows library.
pub fn dll(arch: Arch) -> Vec<u8> {
    let mut bytes = b"MZ".to_vec();
    bytes.resize(60, 0);
    bytes.extend([64, 0, 0, 0]);
    bytes.extend(b"PE\0\0");
    bytes.extend(match arch {
        Arch::X86_64 => [0x64, 0x86],
        Arch::Aarch64 => [0x64, 0xaa],
    });
    bytes
}

/// A library of the simulated loader.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SimulatedLibrary {
    soname: String,
    needed: Vec<String>,
}

/// A machine.
pub struct World {
    pub platform: Platform,
    pub environment: Environment,
    pub files: InMemoryFiles,
    simulated: BTreeMap<PathBuf, SimulatedLibrary>,
    /// Folders that the system loader searches.
    pub system: Vec<PathBuf>,
    /// Files that fail to load.
    pub refused: Vec<PathBuf>,
    /// Loaded libraries: name, file.
    process: Mutex<Vec<(String, PathBuf)>>,
    /// Opened files, in order.
    opened: Mutex<Vec<(PathBuf, OpenMode)>>,
    recorded: Mutex<Vec<(usize, FoundVia)>>,
}

impl World {
    pub fn new(platform: Platform) -> World {
        World {
            platform,
            environment: Environment::default(),
            files: InMemoryFiles::new(),
            simulated: BTreeMap::new(),
            system: Vec::new(),
            refused: Vec::new(),
            process: Mutex::default(),
            opened: Mutex::default(),
            recorded: Mutex::default(),
        }
    }

    /// Adds a library named like its file.
    pub fn library(self, path: &str, needed: &[&str]) -> World {
        let name = path.rsplit('/').next().unwrap().to_owned();
        self.named(path, &name, needed)
    }

    /// Adds a library with a given name.
    pub fn named(mut self, path: &str, soname: &str, needed: &[&str]) -> World {
        let bytes = match self.platform.os {
            Os::Linux => elf(self.platform.arch, soname, needed),
            Os::Windows => dll(self.platform.arch),
        };
        self.files = self.files.file(path, &bytes);
        let simulated = SimulatedLibrary {
            soname: soname.to_owned(),
            needed: needed.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.simulated.insert(path.into(), simulated);
        self
    }

    /// Adds any file.
    pub fn file(mut self, path: &str, bytes: &[u8]) -> World {
        self.files = self.files.file(path, bytes);
        self
    }

    /// Adds a symbolic link.
    pub fn link(mut self, path: &str, target: &str) -> World {
        self.files = self.files.link(path, target);
        self
    }

    /// Changes the environment.
    pub fn with(mut self, change: impl FnOnce(&mut Environment)) -> World {
        change(&mut self.environment);
        self
    }

    /// Adds a folder that the system loader searches.
    pub fn system(mut self, folder: &str) -> World {
        self.system.push(folder.into());
        self
    }

    /// Loads a library as another part of the program does.
    pub fn in_process(self, path: &str) -> World {
        self.put_into_process(Path::new(path)).unwrap();
        self
    }

    pub fn finder(&self) -> Finder<'_> {
        Finder {
            platform: self.platform,
            environment: &self.environment,
            files: &self.files,
            loader: self,
        }
    }

    pub fn load(&self, name: &str) -> Result<LoadedLibrary, LoadError> {
        self.finder().load(name)
    }

    pub fn locate(&self, name: &str) -> Result<LocatedLibrary, LoadError> {
        let before = self.opened().len();
        let located = self.finder().locate(name);
        assert_eq!(
            self.opened().len(),
            before,
            "locating {name} loaded something"
        );
        located
    }

    /// The opened files, in order.
    pub fn opened(&self) -> Vec<String> {
        let modes = self.modes().into_iter();
        modes.map(|(path, _)| path.display().to_string()).collect()
    }

    /// The opened files and their modes.
    pub fn modes(&self) -> Vec<(PathBuf, OpenMode)> {
        self.opened.lock().unwrap().clone()
    }

    /// Loads a file and its dependencies: from the process by name, else from the system folders.
    fn put_into_process(&self, path: &Path) -> Result<usize, String> {
        let place = path.display();
        if let Some(at) = self.position(|(_, file)| file == path) {
            return Ok(at);
        }
        let real = self.files.resolve(path).ok_or("no such file")?;
        let simulated = self
            .simulated
            .get(&real)
            .ok_or(format!("{place}: invalid ELF header"))?;
        if self.refused.iter().any(|refused| refused == path) {
            return Err(format!("{place}: undefined symbol: x"));
        }
        // Registered first, so that cycles terminate; removed again if a dependency is missing.
        let at = {
            let mut process = self.process.lock().unwrap();
            process.push((simulated.soname.clone(), path.to_owned()));
            process.len() - 1
        };
        for needed in &simulated.needed {
            if self.position(|(soname, _)| soname == needed).is_none() {
                let found = self.resolve(needed).into_iter().next();
                let missing = || format!("{needed}: cannot open shared object file");
                let result = found.ok_or_else(missing);
                if let Err(message) = result.and_then(|found| self.put_into_process(&found)) {
                    self.process.lock().unwrap().truncate(at);
                    return Err(message);
                }
            }
        }
        Ok(at)
    }

    fn position(&self, of: impl FnMut(&(String, PathBuf)) -> bool) -> Option<usize> {
        self.process.lock().unwrap().iter().position(of)
    }
}

/// A handle is the index in the list of loaded libraries, counted from 1.
fn handle(at: usize) -> LibraryHandle {
    LibraryHandle((at + 1) as *mut c_void)
}

impl DynamicLoader for World {
    fn find_loaded(&self, soname: &str) -> Option<LibraryHandle> {
        self.position(|(name, path)| name == soname || path.file_name() == Some(OsStr::new(soname)))
            .map(handle)
    }

    fn open(&self, path: &OsStr, mode: OpenMode) -> Result<LibraryHandle, String> {
        let text = path.to_string_lossy();
        let file = if text.contains('/') {
            PathBuf::from(path)
        } else {
            // A bare name: loaded libraries first, then the system folders.
            if let Some(at) = self.position(|(name, _)| *name == *text) {
                return Ok(handle(at));
            }
            let found = self.resolve(&text).into_iter().next();
            found.ok_or(format!("{text}: cannot open shared object file"))?
        };
        assert!(
            matches!(self.files.entry(&file), FileEntry::File(_)),
            "{} was opened",
            file.display()
        );
        let at = self.put_into_process(&file)?;
        self.opened.lock().unwrap().push((file, mode));
        Ok(handle(at))
    }

    fn path(&self, handle: LibraryHandle) -> Option<PathBuf> {
        let process = self.process.lock().unwrap();
        Some(process.get(handle.0 as usize - 1)?.1.clone())
    }

    fn resolve(&self, soname: &str) -> Vec<PathBuf> {
        self.system
            .iter()
            .map(|folder| folder.join(soname))
            .filter(|path| self.files.entry(path) != FileEntry::Absent)
            .collect()
    }

    fn record_found_via(&self, handle: LibraryHandle, found_via: FoundVia) {
        if self.recorded_found_via(handle).is_none() {
            let mut recorded = self.recorded.lock().unwrap();
            recorded.push((handle.0 as usize, found_via));
        }
    }

    fn recorded_found_via(&self, handle: LibraryHandle) -> Option<FoundVia> {
        let recorded = self.recorded.lock().unwrap();
        let mut entries = recorded.iter();
        entries.find_map(|(at, via)| (*at == handle.0 as usize).then_some(*via))
    }
}
