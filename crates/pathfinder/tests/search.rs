//! The search on simulated machines: which file wins, what is loaded with it, and what errors contain.

mod libraries_support;

use cupyrite_pathfinder::loader::{DynamicLoader, OpenMode, SystemLoader};
use cupyrite_pathfinder::{FileDefect, FoundVia, LoadError, LoadErrorKind, SearchOutcome, load};
use libraries_support::{LINUX, LINUX_ARM, WINDOWS, World, elf};

const NVRTC_13: &str = "/site/nvidia/cu13/lib/libnvrtc.so.13";

fn linux() -> World {
    World::new(LINUX).with(|env| env.site_packages = vec!["/site".into()])
}

fn found(world: &World, name: &str) -> (String, FoundVia) {
    match world.load(name) {
        Ok(loaded) => (loaded.path.display().to_string(), loaded.found_via),
        Err(error) => panic!("{error}"),
    }
}

fn at(path: &str, via: FoundVia) -> (String, FoundVia) {
    (path.to_owned(), via)
}

fn outcome<'e>(error: &'e LoadError, place: &str) -> &'e SearchOutcome {
    let mut searched = error.searched.iter();
    let found = searched.find(|searched| searched.location == place);
    &found
        .unwrap_or_else(|| panic!("{place} is not in:\n{error}"))
        .outcome
}

#[test]
fn a_new_wheel_in_a_later_root_beats_an_old_one() {
    let world = World::new(LINUX)
        .with(|env| env.site_packages = vec!["/one".into(), "/two".into()])
        .library("/one/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", &[])
        .library("/two/nvidia/cu13/lib/libnvrtc.so.13", &[]);
    let new = at(
        "/two/nvidia/cu13/lib/libnvrtc.so.13",
        FoundVia::SitePackages,
    );
    assert_eq!(found(&world, "nvrtc"), new);
    let old = World::new(LINUX)
        .with(|env| env.site_packages = vec!["/one".into(), "/two".into()])
        .library("/one/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", &[]);
    let path = "/one/nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
    assert_eq!(found(&old, "nvrtc"), at(path, FoundVia::SitePackages));
}

#[test]
fn a_loaded_library_keeps_its_step() {
    let world = linux()
        .library(NVRTC_13, &[])
        .library("/own/libcudart.so.12", &[])
        .library("/site/nvidia/cu13/lib/libcudart.so.13", &[])
        .in_process("/own/libcudart.so.12");
    for _ in 0..2 {
        assert_eq!(found(&world, "nvrtc"), at(NVRTC_13, FoundVia::SitePackages));
        let own = at("/own/libcudart.so.12", FoundVia::AlreadyLoaded);
        assert_eq!(found(&world, "cudart"), own);
    }
    assert_eq!(world.opened().len(), 1);
    // Locating also finds loaded libraries.
    let located = world.locate("cudart").unwrap();
    assert_eq!(located.path.to_str(), Some("/own/libcudart.so.12"));
    assert_eq!(
        (located.found_via, located.major),
        (FoundVia::AlreadyLoaded, Some(12))
    );
}

#[test]
fn a_library_under_another_file_name_is_recognized_by_its_soname() {
    let world = linux()
        .named("/own/renamed.so", "libnvrtc.so.13", &[])
        .library(NVRTC_13, &[])
        .in_process("/own/renamed.so");
    assert_eq!(
        found(&world, "nvrtc"),
        at("/own/renamed.so", FoundVia::AlreadyLoaded)
    );
}

#[test]
fn companions_of_nvrtc_are_loaded_with_it() {
    // In a wheel, only the companion's name contains the version.
    let builtins = "/site/nvidia/cu13/lib/libnvrtc-builtins.so.13.5";
    let wheel = linux().library(NVRTC_13, &[]).library(builtins, &[]);
    wheel.load("nvrtc").unwrap();
    assert_eq!(wheel.opened(), [NVRTC_13, builtins]);

    // In a toolkit, the link's target contains the version, and other versions may exist.
    let root = |env: &mut cupyrite_pathfinder::Environment| env.cuda_path = Some("/cuda".into());
    let toolkit = World::new(LINUX)
        .with(root)
        .named("/cuda/lib64/libnvrtc.so.13.0.88", "libnvrtc.so.13", &[])
        .link("/cuda/lib64/libnvrtc.so.13", "libnvrtc.so.13.0.88")
        .library("/cuda/lib64/libnvrtc-builtins.so.13.1", &[])
        .named(
            "/cuda/lib64/libnvrtc-builtins.so.13.0.88",
            "libnvrtc-builtins.so.13.0",
            &[],
        )
        .link(
            "/cuda/lib64/libnvrtc-builtins.so.13.0",
            "libnvrtc-builtins.so.13.0.88",
        )
        .library("/cuda/lib64/libnvrtc-builtins.so.12.9", &[]);
    toolkit.load("nvrtc").unwrap();
    let expected =
        ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"].map(|name| format!("/cuda/lib64/{name}"));
    assert_eq!(toolkit.opened(), expected);

    // If the match is ambiguous, none is loaded.
    let unclear = linux()
        .library(NVRTC_13, &[])
        .library(builtins, &[])
        .library("/site/nvidia/cu13/lib/libnvrtc-builtins.so.13.4", &[]);
    unclear.load("nvrtc").unwrap();
    assert_eq!(unclear.opened().len(), 1);
}

#[test]
fn the_override_is_a_file_or_a_folder_and_final() {
    let with = |path: &str| {
        linux()
            .library(NVRTC_13, &[])
            .library("/mine/libnvrtc.so.12", &[])
            .file("/mine/broken.so", b"text")
            .file("/other/x", b"")
            .with(|env| env.overrides = [("nvrtc", path.into())].into())
    };
    let file = at("/mine/libnvrtc.so.12", FoundVia::Override);
    assert_eq!(found(&with("/mine/libnvrtc.so.12"), "nvrtc"), file);
    assert_eq!(found(&with("/mine"), "nvrtc"), file);

    for (path, kind, part) in [
        (
            "/gone.so",
            LoadErrorKind::InvalidSetting,
            "CUPYRITE_LIB_NVRTC=/gone.so: does not exist",
        ),
        (
            "mine",
            LoadErrorKind::InvalidSetting,
            "not an absolute path",
        ),
        (
            "/other",
            LoadErrorKind::InvalidSetting,
            "/other: does not contain it",
        ),
        (
            "/mine/broken.so",
            LoadErrorKind::Failed,
            "not a library: text",
        ),
    ] {
        for error in [
            with(path).load("nvrtc").unwrap_err(),
            with(path).locate("nvrtc").unwrap_err(),
        ] {
            assert_eq!((error.kind, error.searched.len()), (kind, 1), "{error}");
            let text = error.to_string();
            assert!(text.contains(part), "{text}");
            assert!(
                text.contains("correct or unset CUPYRITE_LIB_NVRTC"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_non_library_fails_the_search_and_is_named() {
    let good = "/conda/lib/libnvrtc.so.13";
    let mut arm = elf(LINUX_ARM.arch, "libnvrtc.so.13", &[]);
    let cases: &[(&[u8], &str)] = &[
        (b"", "an empty file"),
        (b"GROUP ( libnvrtc.so )", "a linker script"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (
            &arm.clone(),
            "built for AArch64; this process is Linux on x86-64",
        ),
        (&elf(LINUX.arch, "x", &[])[..90], "a corrupt library"),
        (
            &{
                arm[4] = 1;
                arm[18] = 3;
                arm[19] = 0;
                arm
            },
            "built for 32-bit x86",
        ),
    ];
    for (bytes, part) in cases {
        let world = linux()
            .file(NVRTC_13, bytes)
            .library(good, &[])
            .with(|env| env.conda_prefix = Some("/conda".into()));
        for error in [
            world.load("nvrtc").unwrap_err(),
            world.locate("nvrtc").unwrap_err(),
        ] {
            assert_eq!(error.kind, LoadErrorKind::Failed);
            assert_eq!(error.file, Some(NVRTC_13.into()));
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("{NVRTC_13} found but failed to load")),
                "{text}"
            );
            assert!(text.contains(part), "no {part:?} in:\n{text}");
            let again = "pip install --force-reinstall nvidia-cuda-nvrtc\n";
            assert!(text.contains(again), "{text}");
        }
    }
    let mut refused = linux().library(NVRTC_13, &[]).library(good, &[]);
    refused.refused.push(NVRTC_13.into());
    let error = refused.load("nvrtc").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::Failed);
    assert!(error.to_string().contains("undefined symbol: x"), "{error}");
}

#[test]
fn special_files_are_recorded_and_skipped() {
    let good = "/conda/lib/libnvrtc.so.13";
    let conda = |world: World| {
        world
            .library(good, &[])
            .with(|env| env.conda_prefix = Some("/conda".into()))
    };
    let folder = "/site/nvidia/cu13/lib";
    for (world, expected) in [
        (
            linux().link(NVRTC_13, "gone.so"),
            FileDefect::DanglingLink("gone.so".into()),
        ),
        (
            linux().link(NVRTC_13, "libnvrtc.so.13"),
            FileDefect::LinkCycle,
        ),
        (
            linux().file(&format!("{NVRTC_13}/x"), b""),
            FileDefect::Folder,
        ),
    ] {
        let world = conda(world);
        let searched = world.locate("nvrtc").unwrap().searched;
        assert_eq!(found(&world, "nvrtc"), at(good, FoundVia::Conda));
        let first = searched
            .iter()
            .find(|searched| searched.location == NVRTC_13)
            .unwrap();
        assert_eq!(first.outcome, SearchOutcome::Broken(expected));
    }
    let mut denied = conda(linux());
    denied.files = denied.files.folder(folder).denied(NVRTC_13);
    assert_eq!(found(&denied, "nvrtc"), at(good, FoundVia::Conda));
}

#[test]
fn skips_what_the_system_loader_skips() {
    // Skips foreign and special files; a broken file ends the system search for its name.
    let arm = elf(LINUX_ARM.arch, "libnvrtc.so.13", &[]);
    let world = World::new(LINUX)
        .system("/a")
        .system("/b")
        .file("/a/libnvrtc.so.13", &arm)
        .library("/b/libnvrtc.so.13", &[]);
    assert_eq!(
        found(&world, "nvrtc"),
        at("/b/libnvrtc.so.13", FoundVia::System)
    );
    assert_eq!(
        world.locate("nvrtc").unwrap().path.to_str(),
        Some("/b/libnvrtc.so.13")
    );

    let broken = || {
        World::new(LINUX)
            .system("/a")
            .file("/a/libnvrtc.so.13", b"text")
            .with(|env| env.cuda_path = Some("/cuda".into()))
    };
    let rescued = broken().library("/cuda/lib64/libnvrtc.so.12", &[]);
    assert_eq!(
        found(&rescued, "nvrtc"),
        at("/cuda/lib64/libnvrtc.so.12", FoundVia::CudaPath)
    );
    let error = broken().load("nvrtc").unwrap_err();
    assert_eq!(
        (error.kind, error.file),
        (LoadErrorKind::Failed, Some("/a/libnvrtc.so.13".into()))
    );
}

#[test]
fn toolkit_folder_links_are_resolved_and_file_links_are_not() {
    let world = World::new(LINUX)
        .with(|env| env.cuda_path = Some("/usr/local/../local/cuda".into()))
        .link("/usr/local/cuda", "cuda-13.0")
        .link("/usr/local/cuda-13.0/lib64", "targets/x86_64-linux/lib")
        .named(
            "/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcublasLt.so.13.0.88",
            "libcublasLt.so.13",
            &[],
        )
        .link(
            "/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcublasLt.so.13",
            "libcublasLt.so.13.0.88",
        );
    let path = "/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcublasLt.so.13";
    let located = world.locate("cublasLt").unwrap();
    assert_eq!(located.path.to_str(), Some(path));
    assert_eq!(located.version.as_deref(), Some("13.0.88"));
    assert_eq!(found(&world, "cublasLt"), at(path, FoundVia::CudaPath));
    // In wheels and system folders, links are not resolved.
    let wheel = World::new(LINUX)
        .with(|env| env.site_packages = vec!["/linked".into()])
        .link("/linked", "/site")
        .library(NVRTC_13, &[]);
    assert_eq!(
        wheel.locate("nvrtc").unwrap().path.to_str(),
        Some("/linked/nvidia/cu13/lib/libnvrtc.so.13")
    );
}

#[test]
fn names_come_before_folders_in_the_system() {
    let world = World::new(LINUX)
        .system("/a")
        .system("/b")
        .library("/a/libnvrtc.so.12", &[])
        .library("/b/libnvrtc.so.13", &[]);
    assert_eq!(found(&world, "nvrtc").0, "/b/libnvrtc.so.13");
}

#[test]
fn the_driver_is_never_taken_from_a_toolkit() {
    let world = || {
        World::new(LINUX)
            .library("/all/lib64/libcuda.so.1", &[])
            .library("/all/lib/libcuda.so.1", &[])
            .library("/all/nvidia/cu13/lib/libcuda.so.1", &[])
            .library("/all/lib64/stubs/libcuda.so.1", &[])
            .link("/links/libcuda.so.1", "/all/lib64/stubs/libcuda.so.1")
            .library("/wsl/libcuda.so.1", &[])
            .system("/all/lib64/stubs")
            .system("/links")
            .with(|env| {
                env.site_packages = vec!["/all".into()];
                env.conda_prefix = Some("/all".into());
                env.cuda_path = Some("/all".into());
                env.cuda_home = Some("/all".into());
                env.toolkit_roots = vec!["/all".into()];
                env.driver_dirs = vec!["/nothing".into()];
                // The driver has no CUDA major.
                env.rejected_major = Some("x".into());
            })
    };
    let error = world().load("cuda").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    for stub in ["/all/lib64/stubs/libcuda.so.1", "/links/libcuda.so.1"] {
        assert_eq!(
            *outcome(&error, stub),
            SearchOutcome::Broken(FileDefect::Stub)
        );
    }
    assert!(error.to_string().contains("CUPYRITE_DEVICE=cpu"), "{error}");
    let later = world().with(|env| env.driver_dirs.push("/wsl".into()));
    assert_eq!(
        found(&later, "cuda"),
        at("/wsl/libcuda.so.1", FoundVia::System)
    );
    let behind = world().system("/wsl");
    assert_eq!(
        found(&behind, "cuda"),
        at("/wsl/libcuda.so.1", FoundVia::System)
    );
    assert_eq!(behind.opened(), ["/wsl/libcuda.so.1"]);
}

#[test]
fn link_time_stubs_are_skipped() {
    let world = World::new(LINUX)
        .system("/tk/lib64/stubs")
        .system("/tk/lib64")
        .library("/tk/lib64/stubs/libcublasLt.so.13", &[])
        .library("/tk/lib64/libcublasLt.so.13", &[]);
    let real = at("/tk/lib64/libcublasLt.so.13", FoundVia::System);
    assert_eq!(found(&world, "cublasLt"), real);
}

#[test]
fn a_driver_with_a_missing_dependency_is_not_a_missing_driver() {
    let world = World::new(LINUX)
        .system("/usr/lib64")
        .library("/usr/lib64/libcuda.so.1", &["libother.so"]);
    let error = world.load("cuda").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::Failed);
    assert!(error.to_string().contains("libother.so"), "{error}");
}

#[test]
fn an_error_lists_findings_and_advice() {
    let world = World::new(LINUX)
        .library("/conda/lib/libnvrtc.so.11.2", &[])
        .library("/conda/lib/libcudart.so.13", &[])
        .with(|env| {
            env.conda_prefix = Some("/conda".into());
            env.cuda_path = Some("/nowhere".into());
            env.cuda_home = Some("relative/cuda".into());
        });
    let error = world.load("nvrtc").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    let text = error.to_string();
    for part in [
        "libnvrtc.so.13 or libnvrtc.so.12 not found",
        "\n  wheels: site-packages or VIRTUAL_ENV: not set",
        "\n  wheels are searched in the active virtual environment, and VIRTUAL_ENV is not set: activate the environment \
         that has them, or the one to install into:\n  pip install",
        "\n  conda: /conda/lib: contains only libnvrtc.so.11.2",
        "\n  system loader: libnvrtc.so.13: not found",
        "\n  CUDA_PATH: /nowhere: does not exist",
        "\n  CUDA_HOME: CUDA_HOME=relative/cuda: ignored, because it is not an absolute path",
        "\n  pip install nvidia-cuda-nvrtc    (for CUDA 12: nvidia-cuda-nvrtc-cu12)\n",
        "\n  conda install -c conda-forge cuda-nvrtc\n",
        "CUPYRITE_LIB_NVRTC=/path/to/libnvrtc.so.13",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains("libcudart"), "{text}");
    let in_python = linux().load("nvrtc").unwrap_err().to_string();
    assert!(!in_python.contains("VIRTUAL_ENV"), "{in_python}");
}

#[test]
fn advice_is_for_the_installed_or_requested_major() {
    let line = |world: World, name: &str| {
        let advice = world.load(name).unwrap_err().advice();
        advice
            .into_iter()
            .find(|line| line.starts_with("pip"))
            .unwrap()
    };
    let old = linux().library("/site/nvidia/cuda_runtime/lib/libcudart.so.12", &[]);
    assert_eq!(line(old, "cublas"), "pip install nvidia-cublas-cu12");
    let new = linux().library("/site/nvidia/cu13/lib/libcudart.so.13", &[]);
    assert_eq!(line(new, "cublas"), "pip install nvidia-cublas");
    let asked = linux().with(|env| env.major = Some(12));
    assert_eq!(line(asked, "cublas"), "pip install nvidia-cublas-cu12");
}

#[test]
fn a_missing_major_names_the_variable() {
    let error = linux()
        .library(NVRTC_13, &[])
        .with(|env| env.major = Some(12))
        .load("nvrtc")
        .unwrap_err();
    assert_eq!(
        (error.kind, error.names()),
        (LoadErrorKind::NotFound, vec!["libnvrtc.so.12"])
    );
    let text = error.to_string();
    for part in [
        "libnvrtc.so.12 not found (CUPYRITE_CUDA_MAJOR=12); searched:",
        "libnvrtc.so.13: for CUDA 13; CUDA 12 is required",
        "unset CUPYRITE_CUDA_MAJOR to use the one for CUDA 13, or install the other one:\n  pip install nvidia-cuda-nvrtc-cu12\n",
        "cuda-version=12",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    for (major, rejected) in [(Some(11), None), (None, Some("cu13".to_owned()))] {
        let error = linux()
            .library(NVRTC_13, &[])
            .with(|env| (env.major, env.rejected_major) = (major, rejected))
            .load("nvrtc")
            .unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::InvalidSetting);
        let text = error.to_string();
        assert!(text.contains("CUPYRITE_CUDA_MAJOR="), "{text}");
        assert!(text.contains("set it to a CUDA major version"), "{text}");
    }
}

#[test]
fn many_roots_are_summarized() {
    let world = World::new(LINUX).with(|env| {
        env.site_packages = (0..5000).map(|n| format!("/root{n}").into()).collect();
    });
    let text = world.load("nvrtc").unwrap_err().to_string();
    assert!(text.lines().count() < 30, "{text}");
    assert!(
        text.contains("wheels: 9993 more locations: none exists"),
        "{text}"
    );
}

#[test]
fn errors_of_unknown_names_list_the_known_ones() {
    let error = load("nvrtcc").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::Unknown);
    let text = error.to_string();
    assert!(
        text.starts_with("unknown library \"nvrtcc\"; known: cudart, "),
        "{text}"
    );
    assert_eq!(
        text.matches(", ").count() + 1,
        cupyrite_pathfinder::LIBRARIES.len()
    );
}

#[test]
fn unavailable_platforms_are_reported() {
    let error = World::new(WINDOWS).load("cufile").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::NotAvailable);
    assert_eq!(
        error.to_string(),
        "cufile does not exist for Windows on x86-64"
    );
}

#[test]
fn libraries_are_opened_with_their_flags() {
    let plain = OpenMode::default();
    let world = linux().library(NVRTC_13, &[]);
    world.load("nvrtc").unwrap();
    let added = OpenMode {
        add_folder: true,
        ..plain
    };
    assert_eq!(world.modes()[0].1, added);
    let world = linux()
        .library(
            "/site/nvidia/cufftmp/cu13/lib/libcufftMp.so.12",
            &["libnvshmem_host.so.3"],
        )
        .library("/site/nvidia/nvshmem/lib/libnvshmem_host.so.3", &[]);
    world.load("cufftMp").unwrap();
    let deep = OpenMode {
        deep_bind: true,
        ..plain
    };
    assert_eq!(
        world
            .modes()
            .iter()
            .map(|(_, mode)| *mode)
            .collect::<Vec<_>>(),
        [plain, deep]
    );
}

#[test]
fn site_packages_of_a_virtual_environment() {
    let root = std::env::temp_dir().join(format!("cupyrite-venv-{}", std::process::id()));
    let site = root.join("lib/python3.11/site-packages");
    std::fs::create_dir_all(&site).unwrap();
    std::fs::create_dir_all(root.join("lib/other")).unwrap();
    let roots = cupyrite_pathfinder::environment::site_packages_in(&root);
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(roots, [site]);
    let relative = cupyrite_pathfinder::environment::site_packages_in("relative".as_ref());
    assert!(relative.is_empty());
}

/// The system loader, with a library that every process has.
#[test]
fn the_system_loader() {
    let handle = SystemLoader
        .find_loaded("libc.so.6")
        .expect("glibc is in the process");
    assert!(SystemLoader.path(handle).unwrap().ends_with("libc.so.6"));
    assert!(!handle.symbol(c"printf").is_null());
    assert!(handle.symbol(c"cuInit").is_null());
    assert!(SystemLoader.find_loaded("libnothing.so.1").is_none());
    let message = SystemLoader
        .open("libnothing.so.1".as_ref(), OpenMode::default())
        .unwrap_err();
    assert!(
        message.starts_with("libnothing.so.1: cannot open"),
        "{message}"
    );
}
