//! Every header set, tool, static library and bitcode library, on every platform, at every location: which location
//! wins, and what the error lists if none has it.
//!
//! The locations are repeated here from the documented layouts. A tree starts with files at all of them; the test
//! removes the winning one after the other.

mod find_support;

use std::path::Path;

use cupyrite_pathfinder::table::{
    BINARIES, BITCODE_LIBRARIES, Binary, HEADERS, HeaderSet, LinkableFile, Origin, STATIC_LIBRARIES,
};
use cupyrite_pathfinder::{
    Arch, FindError, FindErrorKind, FoundVia, LocatedPath, Platform, SearchOutcome,
};
use find_support::{ExpectedLocation, Machine, PLATFORMS, below, drive, targets};

/// Removes the winning file repeatedly and compares the result each time.
fn check(
    what: &str,
    platform: Platform,
    places: &[ExpectedLocation],
    find: impl Fn(&Machine) -> Result<LocatedPath, FindError>,
) {
    let machine = Machine::full(platform);
    assert!(places.len() > 3, "{what} on {platform}: {places:?}");
    for first in 0..places.len() {
        let files = places[first..].iter().map(|place| &place.file);
        let found = find(&machine.with(files));
        let found = found.unwrap_or_else(|e| panic!("{what} on {platform}, {first}: {e}"));
        let place = &places[first];
        assert_eq!(
            (found.path.as_path(), found.found_via),
            (Path::new(&place.answer), place.via),
            "{what} on {platform}, {first} of {places:#?}"
        );
    }
    let error = find(&machine).unwrap_err();
    assert_eq!(error.kind, FindErrorKind::NotFound, "{what} on {platform}");
    assert_eq!(error.name, what);
    let looked = error
        .searched
        .iter()
        .filter(|one| one.outcome != SearchOutcome::NotSet);
    let searched: Vec<&str> = looked.map(|one| one.location.as_str()).collect();
    let folder = |place: &ExpectedLocation| {
        let (folder, _) = place.file.rsplit_once('/').unwrap();
        // A header such as `cuda/std/version` is below the include folder.
        if place.file.starts_with(&format!("{}/", place.answer)) {
            place.answer.clone()
        } else {
            folder.to_owned()
        }
    };
    let mut expected: Vec<String> = Vec::new();
    for folder in places.iter().map(folder) {
        if !expected.contains(&folder) {
            expected.push(folder);
        }
    }
    // A pattern with `*` matches only existing folders.
    expected.retain(|folder| !folder.contains("nvshmem_") && !folder.contains("/NVIDIA/CUDNN/"));
    let searched: Vec<&str> = searched
        .into_iter()
        .filter(|place| !place.contains('*'))
        .collect();
    assert_eq!(searched, expected, "{what} on {platform}: {error}");
}

fn headers(row: &HeaderSet, platform: Platform) -> Vec<ExpectedLocation> {
    let c = drive(platform);
    let windows = platform.is_windows();
    let toolkit = row.origin == Origin::Toolkit;
    let subs: &[&str] = match (row.name, windows, platform.arch) {
        ("cccl", false, _) => &["cccl", ""],
        ("cccl", true, Arch::X86_64) => &["targets/x64/cccl", "targets/x64", ""],
        _ => &[""],
    };
    let mut places = Vec::new();
    let mut add = |folder: String, via| {
        let file = format!("{folder}/{}", row.header);
        places.push(ExpectedLocation {
            file,
            answer: folder,
            via,
        });
    };
    for dir in row.wheel_dirs {
        for site in ["site1", "site2"] {
            add(format!("{c}/{site}/{dir}"), FoundVia::SitePackages);
        }
    }
    let mut conda = Vec::new();
    if windows {
        conda.push("C:/conda/Library".to_owned());
    } else {
        if toolkit {
            let targets = targets(platform).iter();
            conda.extend(targets.map(|target| format!("/conda/targets/{target}")));
        }
        conda.push("/conda".to_owned());
    }
    for root in conda {
        for dir in row.root_dirs {
            for sub in subs {
                add(below(&format!("{root}/{dir}"), sub), FoundVia::Conda);
            }
        }
    }
    let variables: &[(&str, &str)] = match row.name {
        "cudnn" => &[("CUDNN_PATH", "cudnn/include")],
        "nccl" => &[
            ("NCCL_HOME", "nccl/include"),
            ("NCCL_HOME", "nccl/build/include"),
        ],
        _ => &[],
    };
    for (variable, dir) in variables {
        add(format!("{c}/{dir}"), FoundVia::Variable(variable));
    }
    let mut toolkits = vec![
        ("cudapath", FoundVia::CudaPath),
        ("cudahome", FoundVia::CudaPath),
    ];
    if toolkit {
        toolkits.push(("canary", FoundVia::Canary));
        toolkits.push(("usr/local/cuda", FoundVia::WellKnown));
        toolkits.push(("opt/cuda", FoundVia::WellKnown));
    }
    for (root, via) in toolkits {
        let mut roots = vec![format!("{c}/{root}")];
        if toolkit {
            let targets = targets(platform).iter();
            roots.extend(targets.map(|target| format!("/{root}/targets/{target}")));
        }
        for root in roots {
            for dir in row.root_dirs {
                for sub in subs {
                    add(below(&format!("{root}/{dir}"), sub), via);
                }
            }
        }
    }
    let system: &[&str] = match (row.name, windows, platform.arch) {
        ("cudnn", false, Arch::X86_64) => &[
            "/usr/include/x86_64-linux-gnu",
            "/usr/include",
            "/usr/local/include",
        ],
        ("cudnn", false, Arch::Aarch64) => &[
            "/usr/include/aarch64-linux-gnu",
            "/usr/include",
            "/usr/local/include",
        ],
        ("cudnn", true, _) => &[
            "C:/Program Files/NVIDIA/CUDNN/v9.20/include",
            "C:/Program Files/NVIDIA/CUDNN/v9.9/include",
        ],
        ("nccl", ..) => &["/usr/include", "/usr/local/include"],
        ("nvshmem", ..) => &["/usr/include/nvshmem_13", "/usr/include/nvshmem_9"],
        _ => &[],
    };
    for folder in system {
        add((*folder).to_owned(), FoundVia::SystemFolder);
    }
    places
}

#[test]
fn headers_at_every_location() {
    let mut checked = 0;
    for platform in PLATFORMS {
        for row in HEADERS {
            if platform.is_windows() && !row.on_windows {
                continue;
            }
            checked += 1;
            check(row.name, platform, &headers(row, platform), |machine| {
                machine.finder().locate_header_directory(row.name)
            });
        }
    }
    // All 31 on Linux, and the 21 that exist for Windows there.
    assert_eq!(checked, 2 * 31 + 2 * 21);
}

fn binaries(row: &Binary, platform: Platform) -> Vec<ExpectedLocation> {
    let c = drive(platform);
    let exe = if platform.is_windows() { ".exe" } else { "" };
    let mut places = Vec::new();
    let mut add = |folder: String, via| {
        let file = format!("{folder}/{}{exe}", row.name);
        places.push(ExpectedLocation {
            answer: file.clone(),
            file,
            via,
        });
    };
    let mut wheels = row.wheel_dirs.to_vec();
    if row.name == "compute-sanitizer" {
        wheels.push("nvidia/cuda_sanitizer_api/bin");
    }
    for dir in wheels {
        for site in ["site1", "site2"] {
            add(format!("{c}/{site}/{dir}"), FoundVia::SitePackages);
        }
    }
    if platform.is_windows() {
        add("C:/conda/Library/bin".to_owned(), FoundVia::Conda);
        let systems = "C:/Nsight Systems 2026.3";
        let compute = "C:/Nsight Compute 2026.3";
        let dirs: &[&str] = match row.name {
            "nsys" => &["target-windows-x64", "target-windows-armv8"],
            "nsight-sys" => &["host-windows-x64"],
            _ => &[],
        };
        let folders = [systems, compute].into_iter();
        let folders = folders.flat_map(|root| dirs.iter().map(move |dir| format!("{root}/{dir}")));
        for folder in folders {
            add(folder, FoundVia::ProgramFiles);
        }
    } else {
        add("/conda/bin".to_owned(), FoundVia::Conda);
    }
    for (root, via) in [
        ("cudapath", FoundVia::CudaPath),
        ("cudahome", FoundVia::CudaPath),
        ("canary", FoundVia::Canary),
        ("usr/local/cuda", FoundVia::WellKnown),
        ("opt/cuda", FoundVia::WellKnown),
    ] {
        add(format!("{c}/{root}/bin"), via);
    }
    places
}

#[test]
fn tools_at_every_location() {
    for platform in PLATFORMS {
        for row in BINARIES {
            // These are in folders with a `*`, which the next test covers.
            if platform.is_windows() && matches!(row.name, "ncu" | "nsight-compute") {
                continue;
            }
            check(row.name, platform, &binaries(row, platform), |machine| {
                machine.finder().locate_binary(row.name)
            });
        }
    }
}

fn archives(row: &LinkableFile, platform: Platform) -> Vec<ExpectedLocation> {
    let c = drive(platform);
    let arm = platform.arch == Arch::Aarch64;
    // Below wheels, conda and toolkits.
    type Dirs<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str]);
    let (file, (wheels, conda, toolkits)): (&str, Dirs) = match (row.name, platform.is_windows()) {
        ("cudadevrt", false) => (
            "libcudadevrt.a",
            (
                &["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"],
                &["lib"],
                &["lib64", "lib"],
            ),
        ),
        ("cudadevrt", true) if arm => (
            "cudadevrt.lib",
            (
                &["nvidia/cu13/lib/arm64"],
                &["lib", "lib/arm64"],
                &["lib/arm64"],
            ),
        ),
        ("cudadevrt", true) => (
            "cudadevrt.lib",
            (
                &["nvidia/cu13/lib/x64", "nvidia/cuda_runtime/lib/x64"],
                &["lib", "lib/x64"],
                &["lib/x64"],
            ),
        ),
        ("device", _) => (
            "libdevice.10.bc",
            (
                &[
                    "nvidia/cu13/nvvm/libdevice",
                    "nvidia/cuda_nvcc/nvvm/libdevice",
                ],
                &["nvvm/libdevice"],
                &["nvvm/libdevice"],
            ),
        ),
        ("nccl_device", false) => (
            "libnccl_device.bc",
            (&["nvidia/nccl/lib"], &["lib"], &["lib"]),
        ),
        ("nvshmem_device", false) => (
            "libnvshmem_device.bc",
            (&["nvidia/nvshmem/lib"], &["lib"], &["lib"]),
        ),
        other => panic!("{other:?} has no places here"),
    };
    let toolkit = matches!(row.name, "cudadevrt" | "device");
    let mut places = Vec::new();
    let mut add = |folder: String, via| {
        let file = format!("{folder}/{file}");
        places.push(ExpectedLocation {
            answer: file.clone(),
            file,
            via,
        });
    };
    for dir in wheels {
        for site in ["site1", "site2"] {
            add(format!("{c}/{site}/{dir}"), FoundVia::SitePackages);
        }
    }
    let library = if platform.is_windows() {
        "/Library"
    } else {
        ""
    };
    let mut roots = vec![(format!("{c}/conda{library}"), conda, FoundVia::Conda)];
    roots.push((format!("{c}/cudapath"), toolkits, FoundVia::CudaPath));
    roots.push((format!("{c}/cudahome"), toolkits, FoundVia::CudaPath));
    if toolkit {
        roots.push((format!("{c}/canary"), toolkits, FoundVia::Canary));
        roots.push((format!("{c}/usr/local/cuda"), toolkits, FoundVia::WellKnown));
        roots.push((format!("{c}/opt/cuda"), toolkits, FoundVia::WellKnown));
    }
    for (root, dirs, via) in roots {
        for dir in dirs {
            add(format!("{root}/{dir}"), via);
        }
        if toolkit {
            for target in targets(platform) {
                for dir in dirs {
                    add(format!("{root}/targets/{target}/{dir}"), via);
                }
            }
        }
    }
    places
}

#[test]
fn libraries_at_every_location() {
    for platform in PLATFORMS {
        for row in STATIC_LIBRARIES {
            check(row.name, platform, &archives(row, platform), |machine| {
                machine.finder().locate_static_library(row.name)
            });
        }
        for row in BITCODE_LIBRARIES {
            if platform.is_windows() && row.name != "device" {
                let error = Machine::full(platform)
                    .finder()
                    .locate_bitcode_library(row.name);
                assert_eq!(error.unwrap_err().kind, FindErrorKind::NotAvailable);
                continue;
            }
            check(row.name, platform, &archives(row, platform), |machine| {
                machine.finder().locate_bitcode_library(row.name)
            });
        }
    }
}
