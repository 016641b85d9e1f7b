//! The pinned packages: installed with pip below `target/`, once per content of `api/headers*.lock`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The locks in `api/`: file, target folder, and pip's platform tag if the packages are for another machine (cuDLA's
/// header is in the library's package, which exists for NVIDIA's SoCs only).
const LOCKS: &[(&str, &str, Option<&str>)] = &[
    ("headers.lock", "", None),
    (
        "headers-aarch64.lock",
        "aarch64",
        Some("manylinux2014_aarch64"),
    ),
];

/// Locations in the installed packages.
#[derive(Clone, Debug)]
pub struct Packages {
    root: PathBuf,
}

impl Packages {
    /// `libclang.so` of the `libclang` package.
    pub fn libclang(&self) -> PathBuf {
        self.root.join("clang/native/libclang.so")
    }

    /// Include directories of CUDA 13.
    pub fn cuda13(&self) -> Vec<PathBuf> {
        vec![
            self.root.join("nvidia/cu13/include"),
            self.root.join("aarch64/nvidia/cu13/include"),
        ]
    }

    /// Include directories of CUDA 12. The profiler headers come from CUDA 13; they are the same.
    pub fn cuda12(&self) -> Vec<PathBuf> {
        [
            "nvidia/cuda_runtime/include",
            "nvidia/cuda_nvrtc/include",
            "nvidia/nvjitlink/include",
            "nvidia/cuda_nvcc/nvvm/include",
            "nvidia/nvfatbin/include",
            "nvidia/nvml_dev/include",
            "nvidia/cufile/include",
            "profiler",
        ]
        .map(|dir| self.root.join(dir))
        .to_vec()
    }
}

/// Installs the packages of the locks in `api` into `target`, unless they are installed.
///
/// # Errors
///
/// Python with pip is missing, a package or hash does not exist, or a file operation fails. The message says what to
/// do.
pub fn packages(api: &Path, target: &Path) -> Result<Packages, String> {
    let mut text = String::new();
    for (name, ..) in LOCKS {
        let lock = api.join(name);
        text += &fs::read_to_string(&lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    }
    let packages = Packages {
        root: target.join("packages"),
    };
    let stamp = packages.root.join("headers.lock");
    if fs::read_to_string(&stamp).is_ok_and(|s| s == text) {
        profiler_headers(&packages.root)?;
        return Ok(packages);
    }
    // Installs into a unique folder and renames it when complete, so that concurrent runs do not see partial results.
    let fresh = target.join(format!("packages-{}", std::process::id()));
    for (name, folder, platform) in LOCKS {
        install(&api.join(name), &fresh.join(folder), *platform)?;
    }
    profiler_headers(&fresh)?;
    keep_headers(&fresh.join("nvidia"));
    keep_headers(&fresh.join("aarch64/nvidia"));
    let io = |e: std::io::Error| format!("{}: {e}", packages.root.display());
    fs::write(fresh.join("headers.lock"), &text).map_err(io)?;
    if packages.root.exists() {
        fs::remove_dir_all(&packages.root).map_err(io)?;
    }
    match fs::rename(&fresh, &packages.root) {
        Ok(()) => Ok(packages),
        // A concurrent run installed the same packages first.
        Err(_) if fs::read_to_string(&stamp).is_ok_and(|s| s == text) => {
            fs::remove_dir_all(&fresh).map_err(io)?;
            Ok(packages)
        }
        Err(e) => Err(io(e)),
    }
}

/// Copies the profiler headers to the include folder of CUDA 12, unless they exist.
fn profiler_headers(root: &Path) -> Result<(), String> {
    let profiler = root.join("profiler");
    for name in ["cudaProfiler.h", "cuda_profiler_api.h"] {
        let to = profiler.join(name);
        if !to.exists() {
            fs::create_dir_all(&profiler)
                .and_then(|()| fs::copy(root.join("nvidia/cu13/include").join(name), &to))
                .map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(())
}

fn install(lock: &Path, folder: &Path, platform: Option<&str>) -> Result<(), String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    eprintln!(
        "codegen: installing the packages of {} with {python} -m pip (once)",
        lock.display()
    );
    let mut command = Command::new(&python);
    command
        .args(["-m", "pip", "install", "--quiet", "--no-deps"])
        .args(["--only-binary=:all:", "--require-hashes", "--no-compile"])
        .arg("--disable-pip-version-check")
        .arg("--target")
        .arg(folder)
        .arg("-r")
        .arg(lock);
    if let Some(platform) = platform {
        command.args(["--platform", platform]);
    }
    let status = command.status().map_err(|e| {
        format!("cannot run {python} ({e}); codegen needs Python 3 with pip, or set PYTHON")
    })?;
    if !status.success() {
        return Err(format!(
            "pip could not install the packages of {}; codegen needs a package index with them and x86-64 Linux",
            lock.display()
        ));
    }
    Ok(())
}

/// Removes everything but the headers from NVIDIA's wheels: hundreds of megabytes.
fn keep_headers(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        match path.file_name().and_then(|n| n.to_str()) {
            Some("include") => {}
            Some("lib" | "lib64" | "bin" | "libdevice" | "man" | "gds") => {
                // A failure only costs disk space.
                let _ = fs::remove_dir_all(&path);
            }
            _ => keep_headers(&path),
        }
    }
}
