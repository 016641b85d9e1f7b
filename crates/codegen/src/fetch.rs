//! The pinned packages: installed with pip below `target/`, once per content of `api/headers.lock`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the pieces of the installed packages lie.
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
        vec![self.root.join("nvidia/cu13/include")]
    }

    /// Include directories of CUDA 12 (its profiler header never changed and is taken from 13).
    pub fn cuda12(&self) -> Vec<PathBuf> {
        vec![
            self.root.join("nvidia/cuda_runtime/include"),
            self.root.join("nvidia/cuda_nvrtc/include"),
            self.root.join("profiler"),
        ]
    }
}

/// Installs what `lock` names into `target`, unless that was done already.
///
/// # Errors
///
/// No Python with pip, a package or hash that is not there, or a file error: with what to do about it.
pub fn packages(lock: &Path, target: &Path) -> Result<Packages, String> {
    let text = fs::read_to_string(lock).map_err(|e| format!("{}: {e}", lock.display()))?;
    let packages = Packages {
        root: target.join("packages"),
    };
    let stamp = packages.root.join("headers.lock");
    if fs::read_to_string(&stamp).is_ok_and(|s| s == text) {
        return Ok(packages);
    }
    // Installed under a name of its own and renamed when complete: two runs at once cannot see each other's half.
    let fresh = target.join(format!("packages-{}", std::process::id()));
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    eprintln!(
        "codegen: installing the packages of {} with {python} -m pip (once)",
        lock.display()
    );
    let status = Command::new(&python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
        ])
        .args([
            "--require-hashes",
            "--disable-pip-version-check",
            "--no-compile",
        ])
        .arg("--target")
        .arg(&fresh)
        .arg("-r")
        .arg(lock)
        .status()
        .map_err(|e| {
            format!("cannot run {python} ({e}); codegen needs Python 3 with pip, or set PYTHON")
        })?;
    if !status.success() {
        return Err(format!(
            "pip could not install the packages of {}; codegen needs a package index with them and x86-64 Linux",
            lock.display()
        ));
    }
    let profiler = fresh.join("profiler");
    fs::create_dir_all(&profiler)
        .and_then(|()| {
            fs::copy(
                fresh.join("nvidia/cu13/include/cudaProfiler.h"),
                profiler.join("cudaProfiler.h"),
            )
        })
        .map_err(|e| format!("cudaProfiler.h: {e}"))?;
    drop_libraries(&fresh.join("nvidia"));
    let io = |e: std::io::Error| format!("{}: {e}", packages.root.display());
    fs::write(fresh.join("headers.lock"), &text).map_err(io)?;
    if packages.root.exists() {
        fs::remove_dir_all(&packages.root).map_err(io)?;
    }
    match fs::rename(&fresh, &packages.root) {
        Ok(()) => Ok(packages),
        // Another run was faster with the same packages.
        Err(_) if fs::read_to_string(&stamp).is_ok_and(|s| s == text) => {
            fs::remove_dir_all(&fresh).map_err(io)?;
            Ok(packages)
        }
        Err(e) => Err(io(e)),
    }
}

/// NVIDIA's wheels carry hundreds of megabytes of libraries that reading headers does not need.
fn drop_libraries(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|n| n == "lib") {
            // Nothing depends on it: what cannot be removed only takes space.
            let _ = fs::remove_dir_all(&path);
        } else if path.is_dir() {
            drop_libraries(&path);
        }
    }
}
