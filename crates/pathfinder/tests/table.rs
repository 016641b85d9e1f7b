//! Internal consistency of the tables. The generator compares them with the manifest.

use std::collections::BTreeSet;

use cupyrite_pathfinder::environment::path_override_variable;
use cupyrite_pathfinder::table::{
    self, BINARIES, BITCODE_LIBRARIES, HEADERS, LIBRARIES, Origin, Packages, STATIC_LIBRARIES,
    wheel_major,
};
use cupyrite_pathfinder::{Arch, LibraryDescriptor, Os, Platform};

const LINUX: Platform = Platform {
    os: Os::Linux,
    arch: Arch::X86_64,
};
const WINDOWS: Platform = Platform {
    os: Os::Windows,
    arch: Arch::X86_64,
};
const WINDOWS_ARM: Platform = Platform {
    os: Os::Windows,
    arch: Arch::Aarch64,
};

#[test]
fn counts_and_unique_names() {
    let names = |names: Vec<&str>| {
        let count = names.len();
        assert_eq!(names.into_iter().collect::<BTreeSet<_>>().len(), count);
        count
    };
    assert_eq!(names(LIBRARIES.iter().map(|row| row.name).collect()), 50);
    assert_eq!(names(HEADERS.iter().map(|row| row.name).collect()), 31);
    assert_eq!(names(BINARIES.iter().map(|row| row.name).collect()), 16);
    assert_eq!(
        names(STATIC_LIBRARIES.iter().map(|row| row.name).collect()),
        1
    );
    assert_eq!(
        names(BITCODE_LIBRARIES.iter().map(|row| row.name).collect()),
        3
    );
    let variables: Vec<String> = LIBRARIES
        .iter()
        .map(|row| path_override_variable(row.name))
        .collect();
    names(variables.iter().map(String::as_str).collect());
    // A file belongs to one descriptor.
    let files = LIBRARIES
        .iter()
        .flat_map(|row| row.linux_sonames.iter().chain(row.windows_dlls));
    names(files.copied().collect());
}

#[test]
fn find_functions_return_the_named_descriptor() {
    for row in LIBRARIES {
        assert_eq!(table::find_library(row.name), Some(row));
    }
    for row in HEADERS {
        assert_eq!(table::find_header_set(row.name), Some(row));
    }
    for row in BINARIES {
        assert_eq!(table::find_binary(row.name), Some(row));
    }
    assert_eq!(
        table::find_static_library("cudadevrt"),
        STATIC_LIBRARIES.first()
    );
    assert_eq!(
        table::find_bitcode_library("device"),
        BITCODE_LIBRARIES.first()
    );
    for name in ["", "NVRTC", "nvrtc ", "libnvrtc.so.13"] {
        assert_eq!(table::find_library(name), None);
        assert_eq!(table::find_header_set(name), None);
        assert_eq!(table::find_binary(name), None);
        assert_eq!(table::find_static_library(name), None);
        assert_eq!(table::find_bitcode_library(name), None);
    }
}

#[test]
fn toolkit_libraries_come_first() {
    let toolkit = |row: &LibraryDescriptor| row.origin == Origin::Toolkit;
    let count = LIBRARIES.iter().take_while(|row| toolkit(row)).count();
    assert_eq!(count, 29);
    assert!(!LIBRARIES[count..].iter().any(toolkit));
}

#[test]
fn dependencies_exist_and_are_acyclic() {
    fn depth(row: &LibraryDescriptor, above: &[&str]) -> usize {
        assert!(!above.contains(&row.name), "{above:?} -> {}", row.name);
        let above = [above, &[row.name]].concat();
        let all = row.dependencies.iter().chain(row.optional_dependencies);
        all.map(|name| {
            let needed = table::find_library(name).unwrap_or_else(|| panic!("{name} is no row"));
            // A library for Windows cannot depend on one without Windows support.
            assert!(
                row.windows_dlls.is_empty() || !needed.windows_dlls.is_empty(),
                "{}",
                row.name
            );
            1 + depth(needed, &above)
        })
        .max()
        .unwrap_or(0)
    }
    let deepest = LIBRARIES.iter().map(|row| depth(row, &[])).max();
    // cudensitymat, cutensornet, cusolver, cusparse, nvJitLink
    assert_eq!(deepest, Some(4));
}

#[test]
fn majors_match_names() {
    for row in LIBRARIES {
        for (names, majors) in [
            (row.linux_sonames, row.linux_majors),
            (row.windows_dlls, row.windows_majors),
        ] {
            if majors.is_empty() {
                continue;
            }
            // The shared defaults also apply to libraries that do not exist for Windows.
            if !names.is_empty() {
                assert_eq!(names.len(), majors.len(), "{}", row.name);
            }
            assert!(
                majors.is_sorted_by(|a, b| a >= b),
                "{}: the newest first",
                row.name
            );
        }
        // A name that ends with the toolkit's major implies that major.
        for (soname, major) in row.linux_sonames.iter().zip(row.linux_majors) {
            if row.name != "cufft" && row.name != "cufftw" && !row.name.starts_with("cusolver") {
                assert!(
                    soname.ends_with(&format!(".so.{major}")),
                    "{soname}: {major}"
                );
            }
        }
    }
    let majors = |name| table::find_library(name).unwrap().majors(LINUX);
    assert_eq!(majors("cufft"), [13, 12]);
    assert_eq!(majors("cusolver"), [13, 12]);
    for name in ["cusparse", "nvvm", "curand", "nccl", "cudnn", "cuda"] {
        assert_eq!(majors(name), [], "{name}");
    }
    let cupti = table::find_library("cupti").unwrap();
    let of = |dll| {
        let at = cupti
            .windows_dlls
            .iter()
            .position(|name| *name == dll)
            .unwrap();
        cupti.majors(WINDOWS)[at]
    };
    assert_eq!(of("cupti64_13.dll"), 13);
    assert_eq!(of("cupti64_2025.3.1.dll"), 13);
    assert_eq!(of("cupti64_2025.2.1.dll"), 12);
}

#[test]
fn wheel_folders_imply_majors() {
    assert_eq!(wheel_major(Origin::Toolkit, "nvidia/cu13/lib"), Some(13));
    assert_eq!(
        wheel_major(Origin::Product, "nvidia/cublasmp/cu13/lib"),
        Some(13)
    );
    assert_eq!(
        wheel_major(Origin::Product, "nvidia/cu12/include"),
        Some(12)
    );
    assert_eq!(
        wheel_major(Origin::Toolkit, "nvidia/cuda_nvrtc/lib"),
        Some(12)
    );
    assert_eq!(wheel_major(Origin::Product, "nvidia/cudnn/lib"), None);
    assert_eq!(wheel_major(Origin::Product, "cuquantum/include"), None);
}

#[test]
fn folders_of_other_architectures_are_skipped() {
    let cudart = table::find_library("cudart").unwrap();
    assert_eq!(
        cudart.wheel_dirs(WINDOWS),
        ["nvidia/cu13/bin/x86_64", "nvidia/cuda_runtime/bin"]
    );
    assert_eq!(
        cudart.wheel_dirs(WINDOWS_ARM),
        ["nvidia/cu13/bin/arm64", "nvidia/cuda_runtime/bin"]
    );
    assert_eq!(
        cudart.wheel_dirs(LINUX),
        ["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"]
    );
    assert_eq!(cudart.root_dirs(WINDOWS), ["bin/x64", "bin"]);
    assert_eq!(cudart.root_dirs(WINDOWS_ARM), ["bin/arm64", "bin"]);
    assert_eq!(cudart.root_dirs(LINUX), ["lib64", "lib"]);
    assert_eq!(cudart.program_files_dirs(LINUX), [""; 0]);
    let cudnn = table::find_library("cudnn").unwrap();
    assert_eq!(
        cudnn.program_files_dirs(WINDOWS_ARM),
        [
            "NVIDIA/CUDNN/v9.*/bin/*/arm64",
            "NVIDIA/CUDNN/v9.*/bin/*",
            "NVIDIA/CUDNN/v9.*/bin"
        ]
    );
    // cuDLA exists for one of the two architectures.
    let cudla = table::find_library("cudla").unwrap();
    assert_eq!(cudla.names(WINDOWS), [""; 0]);
    assert_eq!(cudla.names(WINDOWS_ARM), ["cudla.dll"]);
}

#[test]
fn every_descriptor_has_locations() {
    for row in LIBRARIES {
        let driver = row.origin == Origin::Driver;
        assert_eq!(row.wheel_dirs(LINUX).is_empty(), driver, "{}", row.name);
        for platform in [WINDOWS, WINDOWS_ARM] {
            if !row.names(platform).is_empty() {
                assert_eq!(row.wheel_dirs(platform).is_empty(), driver, "{}", row.name);
            }
        }
        assert_eq!(
            row.root_variables.is_empty(),
            row.linux_variable_dirs.is_empty()
        );
    }
}

#[test]
fn package_names_are_well_formed() {
    let all = LIBRARIES
        .iter()
        .map(|row| (row.name, row.packages, row.origin));
    let all = all.chain(
        HEADERS
            .iter()
            .map(|row| (row.name, row.packages, row.origin)),
    );
    let all = all.chain(
        BINARIES
            .iter()
            .map(|row| (row.name, row.packages, row.origin)),
    );
    let archives = STATIC_LIBRARIES.iter().chain(BITCODE_LIBRARIES);
    for (name, packages, origin) in
        all.chain(archives.map(|row| (row.name, row.packages, row.origin)))
    {
        if origin == Origin::Driver {
            assert_eq!(packages, Packages::NONE, "{name}");
            continue;
        }
        assert!(!packages.conda.is_empty(), "{name}");
        for package in [packages.pip, packages.pip_cuda12, packages.conda] {
            let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(package.chars().all(good), "{name}: {package}");
        }
        // Toolkit packages for CUDA 12 have the suffix, those for CUDA 13 have none; product packages have one suffix
        // or the other, or serve both.
        if origin == Origin::Toolkit {
            assert!(!packages.pip.contains("-cu1"), "{name}");
            let old = packages.pip_cuda12;
            assert!(old.is_empty() || old.ends_with("-cu12"), "{name}");
        } else {
            let new = packages.pip.strip_suffix("-cu13");
            assert_eq!(new, packages.pip_cuda12.strip_suffix("-cu12"), "{name}");
        }
    }
}
