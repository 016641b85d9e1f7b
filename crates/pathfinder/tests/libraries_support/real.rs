//! Real folders, libraries compiled from C, and tests that run in their own process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A temporary folder, removed on drop.
pub struct Tree(pub PathBuf);

impl Tree {
    pub fn new() -> Tree {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cupyrite-pathfinder-{}-{next}", std::process::id());
        let root = std::env::temp_dir().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(&root).unwrap();
        Tree(root)
    }

    /// A path below it; creates the parent folders.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Creates a file below it.
    pub fn file(&self, path: impl AsRef<Path>, bytes: &[u8]) -> PathBuf {
        let path = self.at(path);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Creates a symbolic link below it.
    pub fn link(&self, path: impl AsRef<Path>, target: impl AsRef<Path>) -> PathBuf {
        let path = self.at(path);
        std::os::unix::fs::symlink(target, &path).unwrap();
        path
    }

    /// Creates a named pipe below it: opening it for reading blocks until a writer opens it.
    pub fn pipe(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.at(path);
        let status = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(status.success());
        path
    }

    /// Compiles a library below it from C, named like its file, with dependencies.
    pub fn library(&self, path: impl AsRef<Path>, code: &str, needed: &[&Path]) -> PathBuf {
        let soname = path
            .as_ref()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        self.named(path, &soname, code, needed, &[])
    }

    /// The same with a given name and additional compiler arguments.
    pub fn named(
        &self,
        path: impl AsRef<Path>,
        soname: &str,
        code: &str,
        needed: &[&Path],
        words: &[&str],
    ) -> PathBuf {
        let path = self.at(path);
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let source = self
            .0
            .join(format!("{}.c", NEXT.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&source, code).unwrap();
        let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let output = Command::new(&cc)
            .args(["-shared", "-fPIC", "-o"])
            .arg(&path)
            .arg(&source)
            .arg(format!("-Wl,-soname,{soname}"))
            // Dependencies are resolved at load time, not at link time.
            .args(["-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"])
            .args(needed)
            .args(words)
            .output()
            .unwrap_or_else(|error| panic!("{cc}: {error}"));
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        path
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a test again in a child process with these variables and this working directory; fails if the child fails or
/// hangs. The variables tell the test that it is the child.
pub fn in_child(test: &str, variables: &[(&str, &str)], folder: &Path) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in [
        "LD_LIBRARY_PATH",
        "CONDA_PREFIX",
        "CUDA_PATH",
        "CUDA_HOME",
        "VIRTUAL_ENV",
    ] {
        command.env_remove(name);
    }
    let mut child = command.envs(variables.iter().copied()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{test} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let mut text = String::new();
    for part in [&output.stdout, &output.stderr] {
        write!(text, "{}", String::from_utf8_lossy(part)).unwrap();
    }
    assert!(
        output.status.success(),
        "{test} in its own process:\n{text}"
    );
    assert!(text.contains("1 passed"), "{text}");
}
