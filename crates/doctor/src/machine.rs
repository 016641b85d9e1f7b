//! The machine, as described by files: GPUs on the PCI bus, device files, the kernel module, WSL, containers.

use std::path::Path;

use cupyrite_pathfinder::Platform;
use cupyrite_pathfinder::files::{FileEntry, FileSystem};

use super::report::Machine;

/// NVIDIA's PCI vendor ID.
const NVIDIA: &str = "0x10de";
/// PCI class prefix of display controllers; excludes the audio functions of the same card.
const DISPLAY: &str = "0x03";

/// Reads a small text file; invalid UTF-8 is replaced.
pub(crate) fn text(files: &dyn FileSystem, path: impl AsRef<Path>) -> Option<String> {
    let path = path.as_ref();
    // Files below /proc and /sys report a length of 0.
    if !matches!(files.entry(path), FileEntry::File(_)) {
        return None;
    }
    let bytes = files.read(path, 0, 1 << 16).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Examines the machine; opens nothing that could block.
pub(crate) fn look(platform: Platform, files: &dyn FileSystem) -> Machine {
    let there = |path: &str| files.entry(Path::new(path)) != FileEntry::Absent;
    let kernel = text(files, "/proc/version").unwrap_or_default();
    Machine {
        name: platform.to_string(),
        wsl: kernel.to_ascii_lowercase().contains("microsoft") || there("/dev/dxg"),
        container: there("/.dockerenv") || there("/run/.containerenv"),
        pci_gpus: pci_gpus(files),
        device_files: device_files(files),
    }
}

fn pci_gpus(files: &dyn FileSystem) -> Vec<String> {
    let root = Path::new("/sys/bus/pci/devices");
    let mut found: Vec<String> = files
        .list(root)
        .unwrap_or_default()
        .into_iter()
        .filter(|name| {
            let says = |file: &str, begin: &str| {
                text(files, root.join(name).join(file))
                    .is_some_and(|value| value.trim().to_ascii_lowercase().starts_with(begin))
            };
            says("vendor", NVIDIA) && says("class", DISPLAY)
        })
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

fn device_files(files: &dyn FileSystem) -> Vec<String> {
    let mut found: Vec<String> = files
        .list(Path::new("/dev"))
        .unwrap_or_default()
        .into_iter()
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with("nvidia"))
        .map(|name| format!("/dev/{name}"))
        .collect();
    found.sort();
    found
}

/// The version of NVIDIA's kernel module: `580.65.06`.
pub(crate) fn kernel_module(files: &dyn FileSystem) -> Option<String> {
    let text = text(files, "/proc/driver/nvidia/version")?;
    let line = text.lines().find(|line| line.contains("NVRM"))?;
    line.split_whitespace()
        .find(|word| is_version(word))
        .map(str::to_owned)
}

/// `580.65.06`: numbers separated by dots.
fn is_version(word: &str) -> bool {
    word.contains('.')
        && word
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// The version in the name of the driver library's file: `libcuda.so.580.65.06` gives `580.65.06`.
pub(crate) fn library_version(path: &Path, files: &dyn FileSystem) -> Option<String> {
    let file = files.resolve(path)?;
    let name = file.file_name()?.to_str()?;
    let version = name.strip_prefix("libcuda.so.")?;
    is_version(version).then(|| version.to_owned())
}
