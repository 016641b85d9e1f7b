//! Writes generated files, or compares them with the committed ones.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Formats Rust source with rustfmt, so that generated files pass `cargo fmt --check`.
///
/// # Errors
///
/// rustfmt is missing or does not accept the source.
pub fn rustfmt(source: &str) -> Result<String, String> {
    let rustfmt = std::env::var("RUSTFMT").unwrap_or_else(|_| "rustfmt".to_owned());
    let mut child = Command::new(&rustfmt)
        .args(["--edition", "2024", "--emit", "stdout", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run {rustfmt}: {e}"))?;
    let mut stdin = child.stdin.take().ok_or("rustfmt: no stdin")?;
    let text = source.to_owned();
    // A separate thread, because rustfmt may write output before it has read all input.
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let _ = writer.join();
    if !output.status.success() {
        return Err(format!(
            "rustfmt: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

/// Formats and writes the files. With `check`, writes nothing and returns those that differ.
///
/// # Errors
///
/// A file cannot be formatted, read or written.
pub fn emit(
    root: &Path,
    files: Vec<(PathBuf, String)>,
    check: bool,
) -> Result<Vec<PathBuf>, String> {
    let mut differing = Vec::new();
    for (path, text) in files {
        let text = if path.extension().is_some_and(|e| e == "rs") {
            rustfmt(&text).map_err(|e| format!("{}: {e}", path.display()))?
        } else {
            text
        };
        let full = root.join(&path);
        if fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        if !check {
            if let Some(dir) = full.parent() {
                fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
            }
            fs::write(&full, text).map_err(|e| format!("{}: {e}", full.display()))?;
        }
        differing.push(path);
    }
    Ok(differing)
}
