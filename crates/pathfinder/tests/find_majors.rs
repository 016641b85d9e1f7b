//! Searches for paths on machines with several CUDA majors.

mod find_support;

use std::path::Path;

use cupyrite_pathfinder::{FindErrorKind, FoundVia, SearchOutcome};
use find_support::{LINUX, LINUX_ARM, Machine, Runtime, WINDOWS, WINDOWS_ARM, outcome, path};

const CUDA_13: &[u8] = b"#define CUDA_VERSION 13010\n";
const CUDA_12: &[u8] = b"#define CUDA_VERSION 12090\n";

/// Wheels, conda and toolkits of both majors.
fn both_majors() -> Machine {
    let mut machine = Machine::bare(LINUX).with([
        "/site/nvidia/cu13/include/nvrtc.h",
        "/site/nvidia/cuda_nvrtc/include/nvrtc.h",
        "/site/nvidia/cu13/bin/ptxas",
        "/site/nvidia/cuda_nvcc/bin/ptxas",
        "/site/nvidia/cu13/lib/libcudadevrt.a",
        "/site/nvidia/cuda_runtime/lib/libcudadevrt.a",
        "/site/nvidia/cudnn/include/cudnn.h",
    ]);
    machine.environment.site_packages = vec!["/site".into()];
    machine
}

#[test]
fn the_newest_major_wins_unless_one_is_requested() {
    let mut machine = both_majors();
    for (major, header, tool, archive) in [
        (None, "cu13", "cu13", "cu13"),
        (Some(13), "cu13", "cu13", "cu13"),
        (Some(12), "cuda_nvrtc", "cuda_nvcc", "cuda_runtime"),
    ] {
        machine.environment.major = major;
        let finder = machine.finder();
        let found = path(finder.locate_header_directory("nvrtc"));
        assert_eq!(found, format!("/site/nvidia/{header}/include"));
        let found = path(finder.locate_binary("ptxas"));
        assert_eq!(found, format!("/site/nvidia/{tool}/bin/ptxas"));
        let found = path(finder.locate_static_library("cudadevrt"));
        assert_eq!(found, format!("/site/nvidia/{archive}/lib/libcudadevrt.a"));
        // cuDNN's folder is the same for both.
        let found = path(finder.locate_header_directory("cudnn"));
        assert_eq!(found, "/site/nvidia/cudnn/include");
    }
    machine.environment.major = Some(14);
    let error = machine.finder().locate_binary("ptxas").unwrap_err();
    for (folder, found) in [("cu13", 13), ("cuda_nvcc", 12)] {
        let place = format!("/site/nvidia/{folder}/bin/ptxas");
        let told = SearchOutcome::OtherMajor { found, wanted: 14 };
        assert_eq!(outcome(&error, &place), &told);
    }
}

#[test]
fn toolkits_of_another_major_are_skipped() {
    let files = |machine: Machine, root: &str, header: &[u8]| Machine {
        files: machine
            .files
            .clone()
            .file(format!("{root}/include/cuda.h"), header)
            .file(format!("{root}/include/nvrtc.h"), b"x")
            .file(format!("{root}/include/cudnn.h"), b"x")
            .program(format!("{root}/bin/nvcc"), b"x")
            .file(format!("{root}/nvvm/libdevice/libdevice.10.bc"), b"x"),
        ..machine
    };
    let mut machine = Machine::bare(LINUX);
    machine.environment.conda_prefix = Some("/conda".into());
    machine.environment.cuda_path = Some("/old".into());
    machine.environment.toolkit_roots = vec!["/new".into()];
    let machine = files(machine, "/conda", CUDA_12);
    let machine = files(machine, "/old", CUDA_12);
    let mut machine = files(machine, "/new", CUDA_13);
    assert_eq!(
        path(machine.finder().locate_binary("nvcc")),
        "/conda/bin/nvcc"
    );

    machine.environment.major = Some(13);
    let finder = machine.finder();
    let found = finder.locate_binary("nvcc").unwrap();
    assert_eq!(found.path, Path::new("/new/bin/nvcc"));
    assert_eq!(found.found_via, FoundVia::WellKnown);
    assert_eq!(
        path(finder.locate_header_directory("nvrtc")),
        "/new/include"
    );
    let device = path(finder.locate_bitcode_library("device"));
    assert_eq!(device, "/new/nvvm/libdevice/libdevice.10.bc");
    // cuDNN is not part of the toolkit: its location does not imply a major.
    assert_eq!(
        path(finder.locate_header_directory("cudnn")),
        "/conda/include"
    );

    machine.environment.toolkit_roots.clear();
    let error = machine.finder().locate_binary("nvcc").unwrap_err();
    let told = SearchOutcome::OtherMajor {
        found: 12,
        wanted: 13,
    };
    for root in ["/conda", "/old"] {
        assert_eq!(outcome(&error, root), &told);
    }
    let text = error.to_string();
    for part in [
        "unset CUPYRITE_CUDA_MAJOR",
        "for CUDA 12",
        "cuda-version=13",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_invalid_major_fails_every_search() {
    let mut machine = both_majors();
    machine.environment.rejected_major = Some("cu13".to_owned());
    let finder = machine.finder();
    for error in [
        finder.find_header_directory("nvrtc").unwrap_err(),
        finder.find_binary("ptxas").unwrap_err(),
        finder.locate_static_library("cudadevrt").unwrap_err(),
        finder.locate_bitcode_library("device").unwrap_err(),
    ] {
        assert_eq!(error.kind, FindErrorKind::InvalidSetting);
        let text = error.to_string();
        assert!(text.contains("CUPYRITE_CUDA_MAJOR=cu13"), "{text}");
    }
}

#[test]
fn finds_the_toolkit_of_the_systems_runtime() {
    for (platform, runtime, root) in [
        (LINUX, "/x/lib64/libcudart.so.13", "/x"),
        (LINUX, "/x/lib/libcudart.so.12", "/x"),
        (LINUX, "/x/targets/x86_64-linux/lib/libcudart.so.13", "/x"),
        (LINUX_ARM, "/x/targets/sbsa-linux/lib/libcudart.so.13", "/x"),
        (WINDOWS, "C:/x/bin/cudart64_12.dll", "C:/x"),
        (WINDOWS, "C:/x/bin/x64/cudart64_13.dll", "C:/x"),
        (WINDOWS_ARM, "C:/x/bin/arm64/cudart64_13.dll", "C:/x"),
    ] {
        let nvcc = if platform.is_windows() {
            "nvcc.exe"
        } else {
            "nvcc"
        };
        let nvcc = format!("{root}/bin/{nvcc}");
        let mut machine = Machine::bare(platform).with([runtime, &nvcc]);
        machine.loader = Runtime(vec![runtime.into()]);
        let found = machine.finder().locate_binary("nvcc").unwrap();
        assert_eq!(found.path, Path::new(&nvcc), "{runtime}");
        assert_eq!(found.found_via.to_string(), "system-ctk-root");
    }
}
