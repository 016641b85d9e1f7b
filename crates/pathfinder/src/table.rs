//! The libraries: one row each, no code.

/// What is known about one library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// Name without `lib` and `.so`, as in `libnvrtc.so.13`: `nvrtc`.
    pub name: &'static str,
    /// Names to ask the loader for, the newest major first.
    pub sonames: &'static [&'static str],
    /// Who installs it, and with that where it is looked for.
    pub origin: Origin,
    /// Folders below a site-packages root, the newest major first.
    pub wheel_dirs: &'static [&'static str],
    /// Starts of names of libraries beside it which it opens itself when it is used. They are loaded with
    /// it, so that they are found even where the library carries no run path.
    pub companions: &'static [&'static str],
    /// What to install where it is missing.
    pub packages: Packages,
}

/// Who installs a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The CUDA toolkit: wheels, conda packages, or a toolkit folder.
    Toolkit,
    /// The GPU driver: only ever the system's own folders. (A toolkit's `stubs/libcuda.so` is for linking
    /// and must never be loaded.)
    Driver,
}

/// Package names for the advice in an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packages {
    /// For `pip install`.
    pub pip: &'static str,
    /// For `conda install -c conda-forge`.
    pub conda: &'static str,
}

/// Every library this crate knows.
pub const LIBRARIES: &[Library] = &[
    Library {
        name: "cuda",
        sonames: &["libcuda.so.1"],
        origin: Origin::Driver,
        wheel_dirs: &[],
        companions: &[],
        packages: Packages { pip: "", conda: "" },
    },
    Library {
        name: "nvrtc",
        sonames: &["libnvrtc.so.13", "libnvrtc.so.12"],
        origin: Origin::Toolkit,
        wheel_dirs: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
        companions: &["libnvrtc-builtins.so."],
        packages: Packages {
            pip: "nvidia-cuda-nvrtc",
            conda: "cuda-nvrtc",
        },
    },
];

/// The row called `name`.
pub fn find(name: &str) -> Option<&'static Library> {
    LIBRARIES.iter().find(|library| library.name == name)
}

/// Folders of a toolkit (below `CUDA_PATH`, `CUDA_HOME`, `/usr/local/cuda`) that hold libraries.
pub const TOOLKIT_DIRS: &[&str] = &["lib64", "lib", TARGET_DIR];
/// Folders of a conda environment that hold libraries.
pub const CONDA_DIRS: &[&str] = &["lib", TARGET_DIR];
/// The folder of this machine's architecture in a toolkit.
pub const TARGET_DIR: &str = if cfg!(target_arch = "aarch64") {
    "targets/sbsa-linux/lib"
} else {
    "targets/x86_64-linux/lib"
};
/// Toolkit roots to try last.
pub const TOOLKIT_ROOTS: &[&str] = &["/usr/local/cuda", "/opt/cuda"];
/// Folders that hold the driver where the loader's own list does not name them: WSL, container runtimes,
/// NixOS, and the usual multiarch folders.
pub const DRIVER_DIRS: &[&str] = &[
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
    if cfg!(target_arch = "aarch64") {
        "/usr/lib/aarch64-linux-gnu"
    } else {
        "/usr/lib/x86_64-linux-gnu"
    },
    "/usr/lib64",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_complete() {
        for row in LIBRARIES {
            assert!(!row.sonames.is_empty(), "{}", row.name);
            for soname in row.sonames {
                assert!(
                    soname.starts_with(&format!("lib{}.so.", row.name)),
                    "{soname}"
                );
            }
            let toolkit = row.origin == Origin::Toolkit;
            assert_eq!(toolkit, !row.wheel_dirs.is_empty(), "{}", row.name);
            assert_eq!(toolkit, !row.packages.pip.is_empty(), "{}", row.name);
            assert_eq!(find(row.name), Some(row));
        }
    }
}
