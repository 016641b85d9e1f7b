//! Shared defaults of the library descriptors, and the complete list.

use super::{Arch, LibraryDescriptor, Origin, Packages, products, toolkit};

/// Defaults of toolkit libraries.
pub(super) const TOOLKIT: LibraryDescriptor = LibraryDescriptor {
    name: "",
    origin: Origin::Toolkit,
    linux_sonames: &[],
    linux_majors: &[],
    windows_dlls: &[],
    windows_majors: &[],
    windows_archs: &[Arch::X86_64, Arch::Aarch64],
    linux_wheel_dirs: &[],
    windows_wheel_dirs: &[],
    linux_root_dirs: &["lib64", "lib"],
    windows_root_dirs: &["bin/x64", "bin/arm64", "bin"],
    program_files_dirs: &[
        "NVIDIA GPU Computing Toolkit/CUDA/v*/bin/x64",
        "NVIDIA GPU Computing Toolkit/CUDA/v*/bin/arm64",
        "NVIDIA GPU Computing Toolkit/CUDA/v*/bin",
    ],
    dependencies: &[],
    optional_dependencies: &[],
    companions: &[],
    deep_bind: false,
    add_dll_directory: false,
    canary: false,
    root_variables: &[],
    linux_variable_dirs: &[],
    windows_variable_dirs: &[],
    packages: Packages::NONE,
};

/// Libraries of the toolkit with one name for CUDA 13 and one for CUDA 12.
pub(super) const VERSIONED: LibraryDescriptor = LibraryDescriptor {
    linux_majors: &[13, 12],
    windows_majors: &[13, 12],
    ..TOOLKIT
};

pub(super) const PRODUCT: LibraryDescriptor = LibraryDescriptor {
    origin: Origin::Product,
    program_files_dirs: &[],
    ..TOOLKIT
};

pub(super) const DRIVER: LibraryDescriptor = LibraryDescriptor {
    origin: Origin::Driver,
    ..PRODUCT
};

static ALL: [LibraryDescriptor; toolkit::ROWS.len() + products::ROWS.len()] = {
    let mut all = [TOOLKIT; toolkit::ROWS.len() + products::ROWS.len()];
    let mut at = 0;
    while at < toolkit::ROWS.len() {
        all[at] = toolkit::ROWS[at];
        at += 1;
    }
    while at < all.len() {
        all[at] = products::ROWS[at - toolkit::ROWS.len()];
        at += 1;
    }
    all
};

/// Every known dynamic library; those of the toolkit first.
pub const LIBRARIES: &[LibraryDescriptor] = &ALL;
