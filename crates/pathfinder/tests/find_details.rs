//! Searches for paths: wildcards, links, broken files, settings, errors.

mod find_support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::InMemoryFiles;
use cupyrite_pathfinder::{Environment, FileDefect, FindErrorKind, Finder, SearchOutcome, loader};
use find_support::{
    LINUX, LINUX_ARM, Machine, PLATFORMS, Runtime, WINDOWS, WINDOWS_ARM, outcome, path,
};

#[test]
fn finds_documented_layouts() {
    for (platform, name, file, answer) in [
        (
            LINUX,
            "cudart",
            "/site1/nvidia/cu13/include/cuda_runtime.h",
            "/site1/nvidia/cu13/include",
        ),
        (
            LINUX,
            "nvrtc",
            "/site2/nvidia/cuda_nvrtc/include/nvrtc.h",
            "/site2/nvidia/cuda_nvrtc/include",
        ),
        (
            LINUX,
            "cccl",
            "/site1/nvidia/cu13/include/cccl/cuda/std/version",
            "/site1/nvidia/cu13/include/cccl",
        ),
        (
            LINUX,
            "cccl",
            "/cudapath/include/cuda/std/version",
            "/cudapath/include",
        ),
        (
            LINUX,
            "nvvm",
            "/cudapath/nvvm/include/nvvm.h",
            "/cudapath/nvvm/include",
        ),
        (
            LINUX,
            "nvvm",
            "/conda/nvvm/include/nvvm.h",
            "/conda/nvvm/include",
        ),
        (
            LINUX,
            "cudart",
            "/conda/targets/x86_64-linux/include/cuda_runtime.h",
            "/conda/targets/x86_64-linux/include",
        ),
        (
            LINUX_ARM,
            "cudart",
            "/conda/targets/aarch64-linux/include/cuda_runtime.h",
            "/conda/targets/aarch64-linux/include",
        ),
        (
            LINUX_ARM,
            "cudnn",
            "/usr/include/aarch64-linux-gnu/cudnn.h",
            "/usr/include/aarch64-linux-gnu",
        ),
        (
            WINDOWS,
            "cccl",
            "C:/conda/Library/include/targets/x64/cuda/std/version",
            "C:/conda/Library/include/targets/x64",
        ),
        (
            WINDOWS_ARM,
            "cccl",
            "C:/conda/Library/include/cuda/std/version",
            "C:/conda/Library/include",
        ),
        (
            WINDOWS,
            "cudnn",
            "C:/Program Files/NVIDIA/CUDNN/v9.1/include/cudnn.h",
            "C:/Program Files/NVIDIA/CUDNN/v9.1/include",
        ),
        (
            LINUX,
            "cutlass",
            "/site1/cutlass_library/source/include/cutlass/cutlass.h",
            "/site1/cutlass_library/source/include",
        ),
    ] {
        let machine = Machine::full(platform).with([file]);
        assert_eq!(
            path(machine.finder().locate_header_directory(name)),
            answer,
            "{name}"
        );
    }
    for (platform, name, file) in [
        (LINUX, "nvcc", "/site1/nvidia/cu13/bin/nvcc"),
        (LINUX, "ptxas", "/site1/nvidia/cuda_nvcc/bin/ptxas"),
        (LINUX, "nsys", "/canary/bin/nsys"),
        (WINDOWS, "ptxas", "C:/site1/nvidia/cuda_nvcc/bin/ptxas.exe"),
        (WINDOWS, "nvcc", "C:/cudapath/bin/nvcc.exe"),
        (
            WINDOWS,
            "compute-sanitizer",
            "C:/cudapath/bin/compute-sanitizer.bat",
        ),
        (WINDOWS, "ncu", "C:/Nsight Compute 2026.3/ncu.bat"),
        (
            WINDOWS,
            "ncu",
            "C:/Nsight Compute 2026.3/target/windows-desktop-win7-x64/ncu.exe",
        ),
    ] {
        let machine = Machine::full(platform).with([file]);
        assert_eq!(path(machine.finder().locate_binary(name)), file, "{name}");
    }
}

#[test]
fn prefers_an_executable_to_a_batch_file() {
    let machine = Machine::full(WINDOWS);
    let both = machine.with(["C:/cudapath/bin/nvcc.bat", "C:/cudapath/bin/nvcc.exe"]);
    assert_eq!(
        path(both.finder().locate_binary("nvcc")),
        "C:/cudapath/bin/nvcc.exe"
    );
    // Windows requires the suffix; Linux does not accept it.
    let plain = machine.with(["C:/cudapath/bin/nvcc"]);
    assert_eq!(plain.finder().find_binary("nvcc"), Ok(None));
    let linux = Machine::full(LINUX).with(["/cudapath/bin/nvcc.exe"]);
    assert_eq!(linux.finder().find_binary("nvcc"), Ok(None));
}

#[test]
fn versions_compare_as_numbers() {
    let header = |version: &str| format!("/usr/include/nvshmem_{version}/nvshmem.h");
    let linux = Machine::bare(LINUX).with([header("9"), header("12"), header("13")]);
    let found = linux.finder().locate_header_directory("nvshmem");
    assert_eq!(path(found), "/usr/include/nvshmem_13");
    // The newest folder with the header.
    let hollow = linux.files.clone().folder("/usr/include/nvshmem_14");
    let hollow = Machine {
        files: hollow,
        ..linux
    };
    let found = hollow.finder().locate_header_directory("nvshmem");
    assert_eq!(path(found), "/usr/include/nvshmem_13");
    // Only whole names match.
    let other = Machine::bare(LINUX).with(["/usr/include/xnvshmem_1/nvshmem.h"]);
    assert_eq!(other.finder().find_header_directory("nvshmem"), Ok(None));
    let error = other
        .finder()
        .locate_header_directory("nvshmem")
        .unwrap_err();
    assert_eq!(
        outcome(&error, "/usr/include/nvshmem_*"),
        &SearchOutcome::Absent
    );

    let header = |version: &str| format!("C:/Program Files/NVIDIA/CUDNN/{version}/include/cudnn.h");
    let windows = Machine::full(WINDOWS).with([header("v9.9"), header("v9.10"), header("v10.1")]);
    let found = windows.finder().locate_header_directory("cudnn");
    assert_eq!(path(found), "C:/Program Files/NVIDIA/CUDNN/v9.10/include");
}

#[test]
fn results_are_resolved_paths() {
    let mut machine = Machine::bare(LINUX);
    machine.environment.cuda_path = Some("/usr/local/cuda".into());
    machine.files = InMemoryFiles::new()
        .link("/usr/local/cuda", "/etc/alternatives/cuda")
        .link("/etc/alternatives/cuda", "/usr/local/cuda-13.1")
        .link(
            "/usr/local/cuda-13.1/include",
            "targets/x86_64-linux/include",
        )
        .file(
            "/usr/local/cuda-13.1/targets/x86_64-linux/include/nvrtc.h",
            b"x",
        )
        .program("/opt/tools/nvcc-13.1", b"x")
        .link("/usr/local/cuda-13.1/bin/nvcc", "/opt/tools/nvcc-13.1")
        .link("/usr/local/cuda-13.1/lib64", "targets/x86_64-linux/lib")
        .file(
            "/usr/local/cuda-13.1/targets/x86_64-linux/lib/libcudadevrt.a",
            b"x",
        );
    let finder = machine.finder();
    let real = "/usr/local/cuda-13.1/targets/x86_64-linux";
    assert_eq!(
        path(finder.locate_header_directory("nvrtc")),
        format!("{real}/include")
    );
    assert_eq!(path(finder.locate_binary("nvcc")), "/opt/tools/nvcc-13.1");
    let archive = finder.locate_static_library("cudadevrt");
    assert_eq!(path(archive), format!("{real}/lib/libcudadevrt.a"));
    // The variable's text is unchanged.
    assert_eq!(
        finder.cuda_path_or_home(),
        Some(PathBuf::from("/usr/local/cuda"))
    );
}

#[test]
fn cuda_path_is_returned_unchanged() {
    let mut machine = Machine::bare(LINUX);
    assert_eq!(machine.finder().cuda_path_or_home(), None);
    machine.environment.cuda_home = Some("../here".into());
    assert_eq!(machine.finder().cuda_path_or_home(), Some("../here".into()));
    machine.environment.cuda_path = Some("/not/there/".into());
    let answer = machine.finder().cuda_path_or_home().unwrap();
    assert_eq!(answer.as_os_str(), "/not/there/");
}

/// A machine with a broken `CUDA_PATH` and a good `CUDA_HOME`.
fn broken(files: InMemoryFiles, good: bool) -> Machine {
    let mut machine = Machine::bare(LINUX);
    machine.environment.cuda_path = Some("/bad".into());
    machine.environment.cuda_home = Some("/good".into());
    machine.files = files;
    if good {
        machine.files = machine
            .files
            .file("/good/include/nvrtc.h", b"x")
            .program("/good/bin/nvcc", b"x")
            .file("/good/lib64/libcudadevrt.a", b"x");
    }
    machine
}

#[test]
fn broken_files_are_reported_and_skipped() {
    let denied = "Permission denied (os error 13)".to_owned();
    type DamageFile = fn(InMemoryFiles, &str) -> InMemoryFiles;
    let cases: [(DamageFile, FileDefect); 5] = [
        (
            |files, at| files.link(at, "/nowhere/at/all"),
            FileDefect::DanglingLink("/nowhere/at/all".into()),
        ),
        (|files, at| files.link(at, at), FileDefect::LinkCycle),
        (|files, at| files.folder(at), FileDefect::Folder),
        (|files, at| files.denied(at), FileDefect::Denied(denied)),
        (|files, at| files.file(at, b""), FileDefect::Empty),
    ];
    for (make, fault) in cases {
        let places = [
            "/bad/include/nvrtc.h",
            "/bad/bin/nvcc",
            "/bad/lib64/libcudadevrt.a",
        ];
        let files = places
            .iter()
            .fold(InMemoryFiles::new(), |files, at| make(files, at));
        let machine = broken(files.clone(), true);
        let finder = machine.finder();
        // An empty header is accepted.
        let header = if fault == FileDefect::Empty {
            "/bad/include"
        } else {
            "/good/include"
        };
        assert_eq!(
            path(finder.locate_header_directory("nvrtc")),
            header,
            "{fault}"
        );
        assert_eq!(
            path(finder.locate_binary("nvcc")),
            "/good/bin/nvcc",
            "{fault}"
        );
        let archive = path(finder.locate_static_library("cudadevrt"));
        assert_eq!(archive, "/good/lib64/libcudadevrt.a", "{fault}");

        let machine = broken(files, false);
        let finder = machine.finder();
        let told = SearchOutcome::Broken(fault.clone());
        let error = finder.locate_binary("nvcc").unwrap_err();
        assert_eq!(outcome(&error, "/bad/bin/nvcc"), &told);
        assert!(error.to_string().contains(&fault.to_string()), "{error}");
        let error = finder.locate_static_library("cudadevrt").unwrap_err();
        assert_eq!(outcome(&error, "/bad/lib64/libcudadevrt.a"), &told);
        if fault != FileDefect::Empty {
            let error = finder.locate_header_directory("nvrtc").unwrap_err();
            assert_eq!(outcome(&error, "/bad/include/nvrtc.h"), &told);
        }
    }
}

#[test]
fn a_tool_without_execute_permission_is_skipped() {
    let files = InMemoryFiles::new().file("/bad/bin/nvcc", b"x");
    let machine = broken(files.clone(), true);
    assert_eq!(
        path(machine.finder().locate_binary("nvcc")),
        "/good/bin/nvcc"
    );
    let machine = broken(files, false);
    let error = machine.finder().locate_binary("nvcc").unwrap_err();
    let told = SearchOutcome::Broken(FileDefect::NotExecutable);
    assert_eq!(outcome(&error, "/bad/bin/nvcc"), &told);
}

#[test]
fn roots_that_are_not_folders_are_reported() {
    let mut machine = Machine::bare(LINUX);
    machine.environment.cuda_path = Some("/file".into());
    machine.environment.cuda_home = Some("/dangling".into());
    machine.environment.conda_prefix = Some("/nothing".into());
    machine.environment.toolkit_roots = vec!["/closed".into()];
    machine.files = InMemoryFiles::new()
        .file("/file", b"x")
        .link("/dangling", "/gone")
        .denied("/closed");
    let error = machine.finder().locate_binary("nvcc").unwrap_err();
    let unset = outcome(&error, "site-packages or VIRTUAL_ENV");
    assert_eq!(unset, &SearchOutcome::NotSet);
    assert_eq!(
        outcome(&error, "/file"),
        &SearchOutcome::Broken(FileDefect::File)
    );
    let dangling = FileDefect::DanglingLink("/gone".into());
    assert_eq!(
        outcome(&error, "/dangling"),
        &SearchOutcome::Broken(dangling)
    );
    assert_eq!(outcome(&error, "/nothing"), &SearchOutcome::Absent);
    let closed = outcome(&error, "/closed");
    assert!(
        matches!(closed, SearchOutcome::Broken(FileDefect::Denied(_))),
        "{closed:?}"
    );
}

#[test]
fn relative_paths_are_refused() {
    let relative = PathBuf::from("here");
    let environment = Environment {
        site_packages: vec![relative.clone()],
        conda_prefix: Some(relative.clone()),
        cuda_path: Some(relative.clone()),
        cuda_home: Some(relative.clone()),
        variables: BTreeMap::from([("CUDNN_PATH", relative)]),
        ..Environment::default()
    };
    let mut machine = Machine::bare(LINUX).with([
        "here/nvidia/cudnn/include/cudnn.h",
        "here/include/cudnn.h",
        "here/bin/nvcc",
        "here/lib64/libcudadevrt.a",
    ]);
    machine.environment = environment;
    let error = machine
        .finder()
        .locate_header_directory("cudnn")
        .unwrap_err();
    for place in [
        "here",
        "CONDA_PREFIX=here",
        "CUDNN_PATH=here",
        "CUDA_PATH=here",
    ] {
        assert_eq!(outcome(&error, place), &SearchOutcome::Relative);
    }
    assert_eq!(machine.finder().find_binary("nvcc"), Ok(None));
    let error = machine
        .finder()
        .locate_static_library("cudadevrt")
        .unwrap_err();
    assert_eq!(error.kind, FindErrorKind::NotFound);
}

#[test]
fn results_do_not_depend_on_the_working_directory() {
    let root = temporary("relative");
    std::fs::create_dir_all(root.join("include")).unwrap();
    std::fs::write(root.join("include/nvrtc.h"), "x").unwrap();
    // The path relative to the working directory.
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    let relative = up.join(root.strip_prefix("/").unwrap());
    assert!(relative.join("include/nvrtc.h").is_file());
    let found = |cuda_path: &Path| {
        let environment = Environment {
            cuda_path: Some(cuda_path.to_owned()),
            ..Environment::default()
        };
        let finder = Finder {
            loader: &Runtime::default(),
            ..Finder::new(&environment)
        };
        finder.find_header_directory("nvrtc").unwrap()
    };
    assert_eq!(found(&relative), None);
    assert_eq!(found(&root).unwrap().path, root.join("include"));
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn errors_of_unknown_names_list_the_known_ones() {
    let machine = Machine::full(LINUX);
    let finder = machine.finder();
    for name in [
        "",
        "NVRTC",
        "nvrtc\0",
        "../nvrtc",
        "libnvrtc.so.13",
        "gcc",
        "a\nb",
    ] {
        for (error, what, known) in [
            (
                finder.find_header_directory(name).unwrap_err(),
                "header set",
                "cccl, cublas, cudart",
            ),
            (finder.find_binary(name).unwrap_err(), "tool", "nvcc, ptxas"),
            (
                finder.locate_static_library(name).unwrap_err(),
                "static library",
                "cudadevrt",
            ),
            (
                finder.locate_bitcode_library(name).unwrap_err(),
                "bitcode library",
                "device, nccl_device",
            ),
        ] {
            assert_eq!(error.kind, FindErrorKind::Unknown);
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("unknown {what} {name:?}")),
                "{text}"
            );
            assert!(text.contains(known), "{text}");
            assert_eq!(error.advice(), Vec::<String>::new());
        }
    }
}

#[test]
fn entries_without_windows_support_are_not_available() {
    for platform in [WINDOWS, WINDOWS_ARM] {
        // Even if a file of that name exists.
        let machine = Machine::full(platform).with([
            "C:/site1/nvidia/nccl/include/nccl.h",
            "C:/site1/nvidia/nccl/lib/libnccl_device.bc",
        ]);
        for error in [
            machine.finder().find_header_directory("nccl").unwrap_err(),
            machine
                .finder()
                .locate_bitcode_library("nccl_device")
                .unwrap_err(),
        ] {
            assert_eq!(error.kind, FindErrorKind::NotAvailable);
            assert!(
                error.to_string().contains("does not exist for Windows"),
                "{error}"
            );
        }
    }
}

#[test]
fn an_error_lists_every_location_and_the_fix() {
    let mut machine = Machine::full(LINUX).with([
        "/site1/nvidia/cu13/bin/nvcc.profile",
        "/cudapath/bin/nvcc-13",
    ]);
    machine.environment.cuda_home = None;
    let error = machine.finder().locate_binary("nvcc").unwrap_err();
    assert_eq!(
        error.to_string(),
        "tool \"nvcc\" not found; searched:\n  \
         wheels: /site1/nvidia/cu13/bin: contains only nvcc.profile\n  \
         wheels: /site2/nvidia/cu13/bin: does not exist\n  \
         wheels: /site1/nvidia/cuda_nvcc/bin: does not exist\n  \
         wheels: /site2/nvidia/cuda_nvcc/bin: does not exist\n  \
         conda: /conda/bin: does not exist\n  \
         CUDA_PATH: /cudapath/bin: contains only nvcc-13\n  \
         CUDA_HOME: not set\n  \
         toolkit of the system's CUDA runtime: /canary/bin: does not exist\n  \
         toolkit: /usr/local/cuda/bin: does not exist\n  \
         toolkit: /opt/cuda/bin: does not exist\n\
         To fix it:\n  \
         pip install nvidia-cuda-nvcc\n  \
         conda install -c conda-forge cuda-nvcc"
    );
}

#[test]
fn the_fix_is_for_the_required_major() {
    let mut machine = Machine::bare(LINUX);
    let mut advice = |name: &str, major| {
        machine.environment.major = major;
        machine.finder().locate_binary(name).unwrap_err().advice()
    };
    assert_eq!(
        advice("ptxas", None),
        [
            "pip install nvidia-cuda-nvcc    (for CUDA 12: nvidia-cuda-nvcc-cu12)",
            "conda install -c conda-forge cuda-nvcc"
        ]
    );
    assert_eq!(
        advice("ptxas", Some(12)),
        [
            "pip install nvidia-cuda-nvcc-cu12",
            "conda install -c conda-forge cuda-nvcc cuda-version=12"
        ]
    );
    // No wheel of CUDA 12 contains it.
    assert_eq!(
        advice("nvdisasm", Some(12)),
        ["conda install -c conda-forge cuda-nvdisasm cuda-version=12"]
    );
    assert_eq!(
        advice("nvdisasm", Some(13)),
        [
            "pip install nvidia-cuda-nvdisasm",
            "conda install -c conda-forge cuda-nvdisasm cuda-version=13"
        ]
    );
}

#[test]
fn every_descriptor_has_installation_advice() {
    for platform in PLATFORMS {
        let machine = Machine::bare(platform);
        let finder = machine.finder();
        for row in cupyrite_pathfinder::table::HEADERS {
            match finder.locate_header_directory(row.name) {
                Err(error) if error.kind == FindErrorKind::NotFound => {
                    assert!(!error.advice().is_empty(), "{error}");
                }
                Err(error) => assert_eq!(error.kind, FindErrorKind::NotAvailable),
                Ok(found) => panic!("{found:?}"),
            }
        }
        for row in cupyrite_pathfinder::table::BINARIES {
            let error = finder.locate_binary(row.name).unwrap_err();
            assert!(!error.advice().is_empty(), "{error}");
        }
    }
}

#[test]
fn non_utf8_names() {
    use std::os::unix::ffi::OsStringExt;
    let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/odd-\xff\xfe".to_vec()));
    let mut machine = Machine::bare(LINUX).with([odd.join("bin/nvcc")]);
    machine.environment.cuda_path = Some(odd.clone());
    let found = machine.finder().locate_binary("nvcc").unwrap();
    assert_eq!(found.path, odd.join("bin/nvcc"));
    let error = machine
        .finder()
        .locate_static_library("cudadevrt")
        .unwrap_err();
    assert!(error.to_string().contains("/odd-"), "{error}");
}

#[test]
fn thousands_of_roots_are_summarized() {
    let mut machine = Machine::bare(LINUX);
    let roots = (0..5000).map(|n| PathBuf::from(format!("/site{n}")));
    machine.environment.site_packages = roots.collect();
    let error = machine.finder().locate_binary("nvcc").unwrap_err();
    let text = error.to_string();
    assert!(text.lines().count() < 40, "{text}");
    assert!(text.contains("more locations"), "{text}");
}

/// The host's file system: links, modes, pipes.
#[test]
fn host_files() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let root = temporary("files");
    let make = |file: &str, mode: u32| {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    make("plain/bin/nvcc", 0o644);
    make("good/bin/nvcc-13", 0o755);
    symlink("nvcc-13", root.join("good/bin/nvcc")).unwrap();
    make("good/include/nvrtc.h", 0o644);
    symlink(root.join("good"), root.join("link")).unwrap();
    let environment = Environment {
        cuda_path: Some(root.join("plain")),
        cuda_home: Some(root.join("link/../link/")),
        ..Environment::default()
    };
    let finder = Finder {
        loader: &Runtime::default(),
        ..Finder::new(&environment)
    };
    assert_eq!(
        path(finder.locate_binary("nvcc")),
        path_of(&root, "good/bin/nvcc-13")
    );
    assert_eq!(
        path(finder.locate_header_directory("nvrtc")),
        path_of(&root, "good/include")
    );
    let error = finder.locate_static_library("cudadevrt").unwrap_err();
    assert_eq!(error.kind, FindErrorKind::NotFound);
    std::fs::remove_dir_all(&root).unwrap();
}

/// A unique folder name for one test.
fn temporary(test: &str) -> PathBuf {
    let name = format!("cupyrite-find-{test}-{}", std::process::id());
    std::env::temp_dir().canonicalize().unwrap().join(name)
}

fn path_of(root: &Path, below: &str) -> String {
    root.join(below).display().to_string()
}

#[test]
fn the_system_loader_resolves_without_loading() {
    // `None` on a machine without a toolkit, else an existing folder.
    let environment = Environment::default();
    let finder = Finder {
        loader: &loader::SystemLoader,
        ..Finder::new(&environment)
    };
    match finder.find_header_directory("cudart") {
        Ok(None) => {}
        Ok(Some(found)) => assert!(found.path.join("cuda_runtime.h").is_file()),
        Err(error) => panic!("{error}"),
    }
}
