//! What there is to find: one row for each library, set of headers, tool and archive. Data, no code.

mod headers;
mod libraries;
mod others;
mod products;
mod toolkit;

use crate::platform::{Arch, Os, Platform};

pub use headers::HEADERS;
pub use libraries::LIBRARIES;
pub use others::{BINARIES, BITCODE_LIBRARIES, STATIC_LIBRARIES};

/// Who installs something, and with that where it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The CUDA toolkit: wheels, conda packages, or a toolkit folder.
    Toolkit,
    /// The GPU driver: only ever the system's own folders. (A toolkit's `stubs/libcuda.so` is for linking
    /// and must never be loaded.)
    Driver,
    /// A product of NVIDIA's that is installed beside the toolkit: cuDNN, NCCL, cuTENSOR, ...
    Product,
}

/// Package names for the advice in an error; empty where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packages {
    /// For `pip install`, with CUDA 13.
    pub pip: &'static str,
    /// For `pip install`, with CUDA 12.
    pub pip_cuda12: &'static str,
    /// For `conda install -c conda-forge`.
    pub conda: &'static str,
}

impl Packages {
    /// No package holds it.
    pub const NONE: Packages = Packages::new("", "", "");

    /// The names for pip with CUDA 13, for pip with CUDA 12, and for conda.
    pub const fn new(pip: &'static str, pip_cuda12: &'static str, conda: &'static str) -> Packages {
        Packages {
            pip,
            pip_cuda12,
            conda,
        }
    }
}

/// What is known about one dynamic library. Lists are in the order of preference: the newest CUDA major first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryDescriptor {
    /// Name without `lib` and `.so`, as in `libnvrtc.so.13`: `nvrtc`.
    pub name: &'static str,
    /// Who installs it.
    pub origin: Origin,
    /// Names to ask the loader of Linux for.
    pub linux_sonames: &'static [&'static str],
    /// The CUDA major of each of them, in the same order; empty where the name does not tell it.
    pub linux_majors: &'static [u32],
    /// Names of the file on Windows; empty where the library does not exist for Windows.
    pub windows_dlls: &'static [&'static str],
    /// The CUDA major of each of them, in the same order; empty where the name does not tell it.
    pub windows_majors: &'static [u32],
    /// The architectures on which it exists for Windows.
    pub windows_archs: &'static [Arch],
    /// Folders below a site-packages root, on Linux.
    pub linux_wheel_dirs: &'static [&'static str],
    /// Folders below a site-packages root, on Windows. Here and in the lists below, a folder named after an
    /// architecture counts on that one only.
    pub windows_wheel_dirs: &'static [&'static str],
    /// Folders below the root of a toolkit, on Linux; `targets/<target>/lib` is tried after them.
    pub linux_root_dirs: &'static [&'static str],
    /// Folders below the root of a toolkit, on Windows.
    pub windows_root_dirs: &'static [&'static str],
    /// Folders below Windows' `ProgramFiles`; `*` stands for any part of a name, the newest version wins.
    pub program_files_dirs: &'static [&'static str],
    /// Libraries that are loaded before it, by [`LibraryDescriptor::name`].
    pub dependencies: &'static [&'static str],
    /// The same, where they are there.
    pub optional_dependencies: &'static [&'static str],
    /// Starts of names of libraries beside it which it opens itself when it is used. They are loaded with
    /// it, so that they are found even where the library carries no run path.
    pub companions: &'static [&'static str],
    /// It wants its own symbols before the process's: `RTLD_DEEPBIND`.
    pub deep_bind: bool,
    /// On Windows: its folder must be on the search path while it works.
    pub add_dll_directory: bool,
    /// Where nothing else helps: look below the toolkit that the system's CUDA runtime belongs to.
    pub canary: bool,
    /// Variables of its own that name an installation root.
    pub root_variables: &'static [&'static str],
    /// Folders below such a root, on Linux.
    pub linux_variable_dirs: &'static [&'static str],
    /// The same on Windows.
    pub windows_variable_dirs: &'static [&'static str],
    /// What to install where it is missing.
    pub packages: Packages,
}

impl LibraryDescriptor {
    /// The names of its file on a platform; empty where it does not exist there.
    pub fn names(&self, platform: Platform) -> &'static [&'static str] {
        match platform.os {
            Os::Linux => self.linux_sonames,
            Os::Windows if self.windows_archs.contains(&platform.arch) => self.windows_dlls,
            Os::Windows => &[],
        }
    }

    /// The CUDA major of each of [`LibraryDescriptor::names`]; empty where the names do not tell it.
    pub fn majors(&self, platform: Platform) -> &'static [u32] {
        match platform.os {
            Os::Linux => self.linux_majors,
            Os::Windows => self.windows_majors,
        }
    }

    /// The names of its file, each with the CUDA major it tells: those of one major, where that is all that
    /// counts, and those that tell none.
    pub(crate) fn names_for(
        &self,
        platform: Platform,
        major: Option<u32>,
    ) -> impl Iterator<Item = (&'static str, Option<u32>)> + use<> {
        let majors = self.majors(platform);
        let names = self.names(platform).iter().enumerate();
        names
            .map(|(index, name)| (*name, majors.get(index).copied()))
            .filter(move |(_, of_name)| match (of_name, major) {
                (Some(of_name), Some(major)) => *of_name == major,
                _ => true,
            })
    }

    /// Its folders below a site-packages root.
    pub fn wheel_dirs(&self, platform: Platform) -> Vec<&'static str> {
        platform.choose(self.linux_wheel_dirs, self.windows_wheel_dirs)
    }

    /// Its folders below the root of a toolkit.
    pub fn root_dirs(&self, platform: Platform) -> Vec<&'static str> {
        platform.choose(self.linux_root_dirs, self.windows_root_dirs)
    }

    /// Its folders below the root in one of [`LibraryDescriptor::root_variables`].
    pub fn variable_dirs(&self, platform: Platform) -> Vec<&'static str> {
        platform.choose(self.linux_variable_dirs, self.windows_variable_dirs)
    }

    /// Its folders below Windows' `ProgramFiles`.
    pub fn program_files_dirs(&self, platform: Platform) -> Vec<&'static str> {
        platform.choose(&[], self.program_files_dirs)
    }
}

/// The CUDA major of what lies in a wheel's folder: wheels of CUDA 13 share `nvidia/cu13`, those of CUDA 12 for
/// the toolkit have a folder each. `None` where the folder is the same for both.
pub fn wheel_major(origin: Origin, dir: &str) -> Option<u32> {
    if dir.split('/').any(|part| part == "cu13") {
        Some(13)
    } else if origin == Origin::Toolkit || dir.split('/').any(|part| part == "cu12") {
        Some(12)
    } else {
        None
    }
}

/// One set of headers, known by the file that shows where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderSet {
    /// Name: `cudart`.
    pub name: &'static str,
    /// Who installs it.
    pub origin: Origin,
    /// The header that must be there, as a program would include it.
    pub header: &'static str,
    /// Whether it exists for Windows.
    pub on_windows: bool,
    /// Folders below a site-packages root.
    pub wheel_dirs: &'static [&'static str],
    /// Folders below the root of a toolkit or of the product's own variables.
    pub root_dirs: &'static [&'static str],
    /// Folders below those in which it may lie, before the folder itself, on Linux.
    pub linux_subdirs: &'static [&'static str],
    /// The same on Windows.
    pub windows_subdirs: &'static [&'static str],
    /// Variables of the product's own that name an installation root.
    pub root_variables: &'static [&'static str],
    /// Folders of the system, on Linux; `*` stands for any part of a name, the last in order wins.
    pub linux_system_dirs: &'static [&'static str],
    /// The same on Windows; `${NAME}` is a variable.
    pub windows_system_dirs: &'static [&'static str],
    /// Debian's multiarch folder of headers is searched too.
    pub multiarch: bool,
    /// What to install where it is missing.
    pub packages: Packages,
}

impl HeaderSet {
    /// Whether it exists for a platform.
    pub fn exists_on(&self, platform: Platform) -> bool {
        !platform.is_windows() || self.on_windows
    }

    /// The folders below a folder of headers in which it may lie, that folder itself last (empty).
    pub fn subdirs(&self, platform: Platform) -> Vec<&'static str> {
        let mut dirs = platform.choose(self.linux_subdirs, self.windows_subdirs);
        dirs.push("");
        dirs
    }

    /// Folders of the system in which it may be installed.
    pub fn system_dirs(&self, platform: Platform) -> Vec<&'static str> {
        platform.choose(self.linux_system_dirs, self.windows_system_dirs)
    }
}

/// One command-line tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binary {
    /// Name without `.exe`.
    pub name: &'static str,
    /// Who installs it. Nsight's tools come with toolkits and by themselves.
    pub origin: Origin,
    /// Folders below a site-packages root.
    pub wheel_dirs: &'static [&'static str],
    /// Folders of wheels that `cuda.pathfinder` does not know.
    pub further_wheel_dirs: &'static [&'static str],
    /// Where it lies below the folder of an Nsight product on Windows; empty where it is no part of one. `*`
    /// stands for any part of a name.
    pub nsight_dirs: &'static [&'static str],
    /// What to install where it is missing.
    pub packages: Packages,
}

impl Binary {
    /// The names of its file on a platform, the one to prefer first.
    pub fn names(&self, platform: Platform) -> Vec<String> {
        if platform.is_windows() {
            // Some tools of the toolkit and of Nsight are started by a batch file.
            vec![format!("{}.exe", self.name), format!("{}.bat", self.name)]
        } else {
            vec![self.name.to_owned()]
        }
    }
}

/// One archive for linking, or one library in LLVM bitcode: a file with a known name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkableFile {
    /// Name: `cudadevrt`, `device`.
    pub name: &'static str,
    /// Who installs it.
    pub origin: Origin,
    /// The file's name on Linux.
    pub linux_file: &'static str,
    /// The file's name on Windows; empty where it does not exist there.
    pub windows_file: &'static str,
    /// Folders below a site-packages root, on Linux.
    pub linux_wheel_dirs: &'static [&'static str],
    /// The same on Windows.
    pub windows_wheel_dirs: &'static [&'static str],
    /// Folders below `CONDA_PREFIX` (on Windows: below its `Library`). On Linux `targets/<target>` is searched
    /// for the same folders.
    pub conda_dirs: &'static [&'static str],
    /// Folders below the root of a toolkit, on Linux.
    pub linux_root_dirs: &'static [&'static str],
    /// The same on Windows.
    pub windows_root_dirs: &'static [&'static str],
    /// What to install where it is missing.
    pub packages: Packages,
}

impl LinkableFile {
    /// The name of its file on a platform; empty where it does not exist there.
    pub fn file(&self, platform: Platform) -> &'static str {
        match platform.os {
            Os::Linux => self.linux_file,
            Os::Windows => self.windows_file,
        }
    }

    /// Its folders below a site-packages root.
    pub fn wheel_dirs(&self, platform: Platform) -> Vec<&'static str> {
        platform.choose(self.linux_wheel_dirs, self.windows_wheel_dirs)
    }

    /// Its folders below the root of a toolkit.
    pub fn root_dirs(&self, platform: Platform) -> Vec<&'static str> {
        platform.choose(self.linux_root_dirs, self.windows_root_dirs)
    }
}

/// The library called `name`.
pub fn find_library(name: &str) -> Option<&'static LibraryDescriptor> {
    LIBRARIES.iter().find(|row| row.name == name)
}

/// The set of headers called `name`.
pub fn find_header_set(name: &str) -> Option<&'static HeaderSet> {
    HEADERS.iter().find(|row| row.name == name)
}

/// The tool called `name`.
pub fn find_binary(name: &str) -> Option<&'static Binary> {
    BINARIES.iter().find(|row| row.name == name)
}

/// The archive called `name`.
pub fn find_static_library(name: &str) -> Option<&'static LinkableFile> {
    STATIC_LIBRARIES.iter().find(|row| row.name == name)
}

/// The bitcode library called `name`.
pub fn find_bitcode_library(name: &str) -> Option<&'static LinkableFile> {
    BITCODE_LIBRARIES.iter().find(|row| row.name == name)
}

/// Toolkit roots that are tried last, on Linux.
pub const TOOLKIT_ROOTS: &[&str] = &["/usr/local/cuda", "/opt/cuda"];

/// Folders that hold the driver where the loader's own list does not name them: WSL, container runtimes,
/// NixOS. The usual multiarch folder and `/usr/lib64` follow.
pub const DRIVER_DIRS: &[&str] = &[
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
];
