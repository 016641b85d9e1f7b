//! Simulated machines for searches of headers, tools and libraries.

#![allow(dead_code)] // Each test file uses its part.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::InMemoryFiles;
use cupyrite_pathfinder::loader::{DynamicLoader, LibraryHandle, OpenMode};
use cupyrite_pathfinder::{
    Arch, Environment, FindError, Finder, FoundVia, LocatedPath, Os, Platform, SearchOutcome,
};

pub const LINUX: Platform = on(Os::Linux, Arch::X86_64);
pub const LINUX_ARM: Platform = on(Os::Linux, Arch::Aarch64);
pub const WINDOWS: Platform = on(Os::Windows, Arch::X86_64);
pub const WINDOWS_ARM: Platform = on(Os::Windows, Arch::Aarch64);
pub const PLATFORMS: [Platform; 4] = [LINUX, LINUX_ARM, WINDOWS, WINDOWS_ARM];

const fn on(os: Os, arch: Arch) -> Platform {
    Platform { os, arch }
}

/// A loader that loads nothing and resolves the system's CUDA runtime.
#[derive(Default)]
pub struct Runtime(pub Vec<PathBuf>);

impl DynamicLoader for Runtime {
    fn find_loaded(&self, _: &str) -> Option<LibraryHandle> {
        None
    }

    fn open(&self, path: &OsStr, _: OpenMode) -> Result<LibraryHandle, String> {
        panic!("nothing is loaded to find a file, and {path:?} was");
    }

    fn path(&self, _: LibraryHandle) -> Option<PathBuf> {
        None
    }

    fn resolve(&self, soname: &str) -> Vec<PathBuf> {
        let named = |path: &&PathBuf| path.file_name() == Some(OsStr::new(soname));
        self.0.iter().filter(named).cloned().collect()
    }
}

/// A machine with every searchable root; the roots are empty folders.
pub struct Machine {
    pub platform: Platform,
    pub environment: Environment,
    pub files: InMemoryFiles,
    pub loader: Runtime,
}

impl Machine {
    /// A machine without variables and files.
    pub fn bare(platform: Platform) -> Machine {
        Machine {
            platform,
            environment: Environment::default(),
            files: InMemoryFiles::new(),
            loader: Runtime::default(),
        }
    }

    /// A machine on which every root is set and exists: two site-packages, conda, the products' variables,
    /// `CUDA_PATH`, `CUDA_HOME`, Windows' program files, a toolkit of the system and two in well-known folders.
    pub fn full(platform: Platform) -> Machine {
        let c = drive(platform);
        let path = |text: &str| PathBuf::from(format!("{c}{text}"));
        let environment = Environment {
            site_packages: vec![path("/site1"), path("/site2")],
            conda_prefix: Some(path("/conda")),
            cuda_path: Some(path("/cudapath")),
            cuda_home: Some(path("/cudahome")),
            variables: BTreeMap::from([
                ("CUDNN_PATH", path("/cudnn")),
                ("NCCL_HOME", path("/nccl")),
                ("ProgramFiles", path("/Program Files")),
            ]),
            toolkit_roots: vec![path("/usr/local/cuda"), path("/opt/cuda")],
            nsight_folders: vec![
                path("/Nsight Systems 2026.3"),
                path("/Nsight Compute 2026.3"),
            ],
            ..Environment::default()
        };
        let runtime = match platform.os {
            Os::Linux => path("/canary/lib64/libcudart.so.13"),
            Os::Windows => path("/canary/bin/cudart64_13.dll"),
        };
        let mut files = InMemoryFiles::new().file(&runtime, b"\x7fELF");
        let roots = [
            "/conda",
            "/conda/Library",
            "/cudapath",
            "/cudahome",
            "/cudnn",
            "/nccl",
        ];
        let roots = roots.into_iter().map(path);
        for root in roots
            .chain(environment.site_packages.iter().cloned())
            .chain(environment.toolkit_roots.iter().cloned())
            .chain(environment.nsight_folders.iter().cloned())
            .chain([path("/Program Files")])
        {
            files = files.folder(root);
        }
        Machine {
            platform,
            environment,
            files,
            loader: Runtime(vec![runtime]),
        }
    }

    /// The same machine with additional files.
    pub fn with(&self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Machine {
        let mut files = self.files.clone();
        for path in paths {
            files = files.program(path, b"something");
        }
        Machine {
            platform: self.platform,
            environment: self.environment.clone(),
            files,
            loader: Runtime(self.loader.0.clone()),
        }
    }

    pub fn finder(&self) -> Finder<'_> {
        Finder {
            platform: self.platform,
            environment: &self.environment,
            files: &self.files,
            loader: &self.loader,
        }
    }
}

/// Prefix of absolute paths.
pub fn drive(platform: Platform) -> &'static str {
    if platform.is_windows() { "C:" } else { "" }
}

/// A location: the file that identifies it, the expected result, and the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedLocation {
    pub file: String,
    pub answer: String,
    pub via: FoundVia,
}

/// `dir` below `root`; an empty one is the root itself.
pub fn below(root: &str, dir: &str) -> String {
    if dir.is_empty() {
        root.to_owned()
    } else {
        format!("{root}/{dir}")
    }
}

/// The folders of this platform below `targets/`, repeated independently of the crate.
pub fn targets(platform: Platform) -> &'static [&'static str] {
    match (platform.os, platform.arch) {
        (Os::Linux, Arch::X86_64) => &["x86_64-linux"],
        (Os::Linux, Arch::Aarch64) => &["sbsa-linux", "aarch64-linux"],
        (Os::Windows, _) => &[],
    }
}

/// The path of a successful search.
pub fn path(found: Result<LocatedPath, FindError>) -> String {
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    found.path.display().to_string()
}

/// The outcome that an error reports for a location.
pub fn outcome<'e>(error: &'e FindError, place: &str) -> &'e SearchOutcome {
    let searched = error.searched.iter().find(|one| one.location == place);
    let searched = searched.unwrap_or_else(|| panic!("nothing about {place}: {error}"));
    &searched.outcome
}
