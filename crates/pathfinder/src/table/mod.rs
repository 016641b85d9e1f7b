//! Descriptors of every library, header set, tool, static library and bitcode library. Data, no code.

mod binaries;
mod headers;
mod libraries;
mod linkable_files;
mod products;
mod toolkit;

use crate::platform::{Arch, Os, Platform};

pub use binaries::BINARIES;
pub use headers::HEADERS;
pub use libraries::LIBRARIES;
pub use linkable_files::{BITCODE_LIBRARIES, STATIC_LIBRARIES};

/// Who installs an item; determines the searched locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The CUDA toolkit: wheels, conda packages, or a toolkit folder.
    Toolkit,
    /// The GPU driver: system folders only. (A toolkit's `stubs/libcuda.so` is for linking and cannot be loaded.)
    Driver,
    /// An NVIDIA product outside the toolkit: cuDNN, NCCL, cuTENSOR, ...
    Product,
}

/// Package names for the advice in an error; empty if no package exists.
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
    /// In no package.
    pub const NONE: Packages = Packages::new("", "", "");

    /// Package names for pip with CUDA 13, for pip with CUDA 12, and for conda.
    pub const fn new(pip: &'static str, pip_cuda12: &'static str, conda: &'static str) -> Packages {
        Packages {
            pip,
            pip_cuda12,
            conda,
        }
    }
}

/// Describes one dynamic library. Lists are in order of preference: the newest CUDA major first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryDescriptor {
    /// Name without `lib` and `.so`, as in `libnvrtc.so.13`: `nvrtc`.
    pub name: &'static str,
    /// Who installs it.
    pub origin: Origin,
    /// File names on Linux.
    pub linux_sonames: &'static [&'static str],
    /// The CUDA major of each name, in the same order; empty if the names do not imply one.
    pub linux_majors: &'static [u32],
    /// File names on Windows; empty if the library does not exist there.
    pub windows_dlls: &'static [&'static str],
    /// The CUDA major of each name, in the same order; empty if the names do not imply one.
    pub windows_majors: &'static [u32],
    /// The Windows architectures it exists for.
    pub windows_archs: &'static [Arch],
    /// Folders below a site-packages root, on Linux.
    pub linux_wheel_dirs: &'static [&'static str],
    /// Folders below a site-packages root, on Windows. Here and in the lists below, a folder named after an
    /// architecture applies to that one only.
    pub windows_wheel_dirs: &'static [&'static str],
    /// Folders below the root of a toolkit, on Linux; `targets/<target>/lib` follows.
    pub linux_root_dirs: &'static [&'static str],
    /// Folders below the root of a toolkit, on Windows.
    pub windows_root_dirs: &'static [&'static str],
    /// Folders below Windows' `ProgramFiles`; `*` matches any part of a name, and the newest version wins.
    pub program_files_dirs: &'static [&'static str],
    /// Libraries to load before it, by [`LibraryDescriptor::name`].
    pub dependencies: &'static [&'static str],
    /// Libraries to load before it if they are found.
    pub optional_dependencies: &'static [&'static str],
    /// File name prefixes of libraries beside it that it opens itself later. They are loaded with it, so that they
    /// are found even if the library has no run path.
    pub companions: &'static [&'static str],
    /// Whether it needs `RTLD_DEEPBIND`: its own symbols before the process's.
    pub deep_bind: bool,
    /// On Windows: whether its folder must stay on the DLL search path.
    pub add_dll_directory: bool,
    /// Whether the toolkit of the system's CUDA runtime is searched too.
    pub canary: bool,
    /// Its own variables that name an installation root.
    pub root_variables: &'static [&'static str],
    /// Folders below such a root, on Linux.
    pub linux_variable_dirs: &'static [&'static str],
    /// The same on Windows.
    pub windows_variable_dirs: &'static [&'static str],
    /// The packages that contain it.
    pub packages: Packages,
}

impl LibraryDescriptor {
    /// Its file names on a platform; empty if it does not exist there.
    pub fn names(&self, platform: Platform) -> &'static [&'static str] {
        match platform.os {
            Os::Linux => self.linux_sonames,
            Os::Windows if self.windows_archs.contains(&platform.arch) => self.windows_dlls,
            Os::Windows => &[],
        }
    }

    /// The CUDA major of each of [`LibraryDescriptor::names`]; empty if the names do not imply one.
    pub fn majors(&self, platform: Platform) -> &'static [u32] {
        match platform.os {
            Os::Linux => self.linux_majors,
            Os::Windows => self.windows_majors,
        }
    }

    /// Its file names, each with the CUDA major it implies, if any. With `major`, only names of that major and names
    /// that imply none.
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

/// The CUDA major of a wheel's folder. Wheels of CUDA 13 share `nvidia/cu13`; toolkit wheels of CUDA 12 have a folder
/// each. `None` if the folder is the same for both.
pub fn wheel_major(origin: Origin, dir: &str) -> Option<u32> {
    if dir.split('/').any(|part| part == "cu13") {
        Some(13)
    } else if origin == Origin::Toolkit || dir.split('/').any(|part| part == "cu12") {
        Some(12)
    } else {
        None
    }
}

/// Describes one header set, identified by one header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderSet {
    /// Name: `cudart`.
    pub name: &'static str,
    /// Who installs it.
    pub origin: Origin,
    /// The header that identifies it, as a program includes it.
    pub header: &'static str,
    /// Whether it exists for Windows.
    pub on_windows: bool,
    /// Folders below a site-packages root.
    pub wheel_dirs: &'static [&'static str],
    /// Folders below the root of a toolkit or of a product's variable.
    pub root_dirs: &'static [&'static str],
    /// Subfolders searched before the folder itself, on Linux.
    pub linux_subdirs: &'static [&'static str],
    /// The same on Windows.
    pub windows_subdirs: &'static [&'static str],
    /// The product's variables that name an installation root.
    pub root_variables: &'static [&'static str],
    /// System folders on Linux; `*` matches any part of a name, and the highest version wins.
    pub linux_system_dirs: &'static [&'static str],
    /// The same on Windows; `${NAME}` is a variable.
    pub windows_system_dirs: &'static [&'static str],
    /// Whether Debian's multiarch include folder is searched too.
    pub multiarch: bool,
    /// The packages that contain it.
    pub packages: Packages,
}

impl HeaderSet {
    /// Whether it exists for a platform.
    pub fn exists_on(&self, platform: Platform) -> bool {
        !platform.is_windows() || self.on_windows
    }

    /// The subfolders of an include folder to search; the folder itself (empty) is last.
    pub fn subdirs(&self, platform: Platform) -> Vec<&'static str> {
        let mut dirs = platform.choose(self.linux_subdirs, self.windows_subdirs);
        dirs.push("");
        dirs
    }

    /// The system folders to search.
    pub fn system_dirs(&self, platform: Platform) -> Vec<&'static str> {
        platform.choose(self.linux_system_dirs, self.windows_system_dirs)
    }
}

/// Describes one command-line tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binary {
    /// Name without `.exe`.
    pub name: &'static str,
    /// Who installs it. Nsight's tools come with toolkits and separately.
    pub origin: Origin,
    /// Folders below a site-packages root.
    pub wheel_dirs: &'static [&'static str],
    /// Wheel folders that `cuda.pathfinder` does not search.
    pub further_wheel_dirs: &'static [&'static str],
    /// Folders below an Nsight product on Windows; empty if it is not part of one. `*` matches any part of a name.
    pub nsight_dirs: &'static [&'static str],
    /// The packages that contain it.
    pub packages: Packages,
}

impl Binary {
    /// Its file names on a platform, the preferred one first.
    pub fn names(&self, platform: Platform) -> Vec<String> {
        if platform.is_windows() {
            // A batch file starts some tools of the toolkit and of Nsight.
            vec![format!("{}.exe", self.name), format!("{}.bat", self.name)]
        } else {
            vec![self.name.to_owned()]
        }
    }
}

/// Describes one static library or one LLVM bitcode library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkableFile {
    /// Name: `cudadevrt`, `device`.
    pub name: &'static str,
    /// Who installs it.
    pub origin: Origin,
    /// File name on Linux.
    pub linux_file: &'static str,
    /// File name on Windows; empty if it does not exist there.
    pub windows_file: &'static str,
    /// Folders below a site-packages root, on Linux.
    pub linux_wheel_dirs: &'static [&'static str],
    /// The same on Windows.
    pub windows_wheel_dirs: &'static [&'static str],
    /// Folders below `CONDA_PREFIX` (on Windows: below its `Library`), and on Linux also below `targets/<target>`.
    pub conda_dirs: &'static [&'static str],
    /// Folders below the root of a toolkit, on Linux.
    pub linux_root_dirs: &'static [&'static str],
    /// The same on Windows.
    pub windows_root_dirs: &'static [&'static str],
    /// The packages that contain it.
    pub packages: Packages,
}

impl LinkableFile {
    /// Its file name on a platform; empty if it does not exist there.
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

/// The header set called `name`.
pub fn find_header_set(name: &str) -> Option<&'static HeaderSet> {
    HEADERS.iter().find(|row| row.name == name)
}

/// The tool called `name`.
pub fn find_binary(name: &str) -> Option<&'static Binary> {
    BINARIES.iter().find(|row| row.name == name)
}

/// The static library called `name`.
pub fn find_static_library(name: &str) -> Option<&'static LinkableFile> {
    STATIC_LIBRARIES.iter().find(|row| row.name == name)
}

/// The bitcode library called `name`.
pub fn find_bitcode_library(name: &str) -> Option<&'static LinkableFile> {
    BITCODE_LIBRARIES.iter().find(|row| row.name == name)
}

/// Toolkit roots searched last, on Linux.
pub const TOOLKIT_ROOTS: &[&str] = &["/usr/local/cuda", "/opt/cuda"];

/// Driver folders that may be missing from the loader's configuration: WSL, container runtimes, NixOS.
pub const DRIVER_DIRS: &[&str] = &[
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
];
