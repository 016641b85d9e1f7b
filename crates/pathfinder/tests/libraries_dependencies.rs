//! Dependencies: exactly the names that the file requires, each loaded once, whatever the table lists.

mod libraries_support;

use cupyrite_pathfinder::{FoundVia, LoadError, LoadErrorKind};
use libraries_support::expected::rows;
use libraries_support::{LINUX, PLATFORMS, WINDOWS, World};

fn site() -> World {
    World::new(LINUX).with(|env| env.site_packages = vec!["/site".into()])
}

const CU13: &str = "/site/nvidia/cu13/lib";

/// The wheels of CUDA 13 that cuSOLVER requires, with their dependencies.
fn new_wheels(world: World) -> World {
    world
        .library(&format!("{CU13}/libnvJitLink.so.13"), &["libc.so.6"])
        .library(&format!("{CU13}/libcublasLt.so.13"), &[])
        .library(&format!("{CU13}/libcublas.so.13"), &["libcublasLt.so.13"])
        // Opens nvJitLink itself.
        .library(&format!("{CU13}/libcusparse.so.12"), &["libc.so.6"])
        .library(
            &format!("{CU13}/libcusolver.so.12"),
            &[
                "libcublas.so.13",
                "libcublasLt.so.13",
                "libcusparse.so.12",
                "libnvJitLink.so.13",
                "libc.so.6",
            ],
        )
        .file("/system/x", b"")
        .library("/system/libc.so.6", &[])
        .system("/system")
}

/// Those of CUDA 12.
fn old_wheels(world: World) -> World {
    let lib = |wheel: &str, name: &str| format!("/site/nvidia/{wheel}/lib/{name}");
    world
        .library(&lib("nvjitlink", "libnvJitLink.so.12"), &[])
        .library(&lib("cublas", "libcublasLt.so.12"), &[])
        .library(&lib("cublas", "libcublas.so.12"), &["libcublasLt.so.12"])
        .library(
            &lib("cusparse", "libcusparse.so.12"),
            &["libnvJitLink.so.12"],
        )
        .library(
            &lib("cusolver", "libcusolver.so.11"),
            &[
                "libnvJitLink.so.12",
                "libcusparse.so.12",
                "libcublas.so.12",
                "libcublasLt.so.12",
            ],
        )
}

fn names(world: &World) -> Vec<String> {
    let opened = world.opened().into_iter();
    opened
        .map(|path| path.rsplit('/').next().unwrap().to_owned())
        .collect()
}

#[test]
fn dependencies_load_first_and_once() {
    let world = new_wheels(site());
    world.load("cusolver").unwrap();
    assert_eq!(
        names(&world),
        [
            "libnvJitLink.so.13",
            "libcusparse.so.12",
            "libcublasLt.so.13",
            "libcublas.so.13",
            "libcusolver.so.12"
        ]
    );
    // A dependency keeps its own step.
    assert_eq!(
        world.load("nvJitLink").unwrap().found_via,
        FoundVia::SitePackages
    );
    world.load("cusparse").unwrap();
    assert_eq!(world.opened().len(), 5);
}

#[test]
fn majors_side_by_side_are_not_mixed() {
    let both = || old_wheels(new_wheels(site()));
    let new = both();
    let loaded = new.load("cusolver").unwrap();
    assert_eq!(
        loaded.path.to_str().unwrap(),
        format!("{CU13}/libcusolver.so.12")
    );
    assert!(
        new.opened().iter().all(|path| path.starts_with(CU13)),
        "{:?}",
        new.opened()
    );

    let old = both().with(|env| env.major = Some(12));
    old.load("cusolver").unwrap();
    assert_eq!(
        old.opened(),
        [
            "/site/nvidia/nvjitlink/lib/libnvJitLink.so.12",
            "/site/nvidia/cusparse/lib/libcusparse.so.12",
            "/site/nvidia/cublas/lib/libcublasLt.so.12",
            "/site/nvidia/cublas/lib/libcublas.so.12",
            "/site/nvidia/cusolver/lib/libcusolver.so.11",
        ]
    );
}

#[test]
fn an_old_library_gets_its_old_dependencies() {
    // cuSPARSE of CUDA 12 with nvJitLink of both majors: its name is the same for both, its dependency is not.
    let world = || {
        site()
            .library(&format!("{CU13}/libnvJitLink.so.13"), &[])
            .library("/site/nvidia/nvjitlink/lib/libnvJitLink.so.12", &[])
            .library(
                "/site/nvidia/cusparse/lib/libcusparse.so.12",
                &["libnvJitLink.so.12"],
            )
    };
    let old = world();
    old.load("cusparse").unwrap();
    assert_eq!(names(&old), ["libnvJitLink.so.12", "libcusparse.so.12"]);
    assert_eq!(world().locate("cusparse").unwrap().major, Some(12));

    // An override for the other major has no effect.
    let overridden = world().with(|env| {
        env.overrides = [("nvJitLink", format!("{CU13}/libnvJitLink.so.13").into())].into();
    });
    overridden.load("cusparse").unwrap();
    assert_eq!(
        names(&overridden),
        ["libnvJitLink.so.12", "libcusparse.so.12"]
    );

    // In a folder that implies no major, the file determines it.
    let plain = World::new(LINUX)
        .with(|env| env.cuda_path = Some("/tk".into()))
        .library("/tk/lib64/libcusparse.so.12", &["libnvJitLink.so.12"])
        .library("/tk/lib64/libnvJitLink.so.12", &[])
        .library("/tk/lib64/libnvJitLink.so.13", &[]);
    plain.load("cusparse").unwrap();
    assert_eq!(names(&plain), ["libnvJitLink.so.12", "libcusparse.so.12"]);
}

#[test]
fn a_library_without_named_dependencies_uses_the_major_of_its_location() {
    let both = |world: World| {
        world
            .library(&format!("{CU13}/libcublasLt.so.13"), &[])
            .library("/site/nvidia/cublas/lib/libcublasLt.so.12", &[])
            .library("/site/nvidia/cudnn/lib/libcudnn.so.9", &["libdl.so.2"])
            .library("/system/libdl.so.2", &[])
            .system("/system")
    };
    for (package, expected) in [
        ("nvidia_cudnn_cu13-9.28.0.42", "libcublasLt.so.13"),
        ("nvidia_cudnn_cu12-9.28.0.42", "libcublasLt.so.12"),
    ] {
        let world = both(site()).file(&format!("/site/{package}.dist-info/METADATA"), b"");
        let located = world.locate("cudnn").unwrap();
        let major = package[15..17].parse().ok();
        assert_eq!(
            (located.major, located.version.as_deref()),
            (major, Some("9.28.0.42"))
        );
        world.load("cudnn").unwrap();
        assert_eq!(names(&world), [expected, "libcudnn.so.9"]);
    }
    // A toolkit's folder implies the major too: cuSPARSE of CUDA 13 names no dependency of the table.
    let world = World::new(LINUX)
        .with(|env| {
            env.cuda_path = Some("/usr/local/cuda".into());
            env.site_packages = vec!["/site".into()];
        })
        .link("/usr/local/cuda", "cuda-12.9")
        .library("/usr/local/cuda-12.9/lib64/libcusparse.so.12", &[])
        .library("/site/nvidia/nvjitlink/lib/libnvJitLink.so.12", &[])
        .library(&format!("{CU13}/libnvJitLink.so.13"), &[]);
    world.load("cusparse").unwrap();
    assert_eq!(names(&world), ["libnvJitLink.so.12", "libcusparse.so.12"]);
}

#[test]
fn only_the_exact_dependency_name_is_accepted() {
    let world = site()
        .library(
            "/site/nvidia/cu13/lib/libmathdx.so.0",
            &["libcudss.so.0", "libnvrtc.so.13"],
        )
        .library("/site/nvidia/cu13/lib/libcudss.so.1", &[])
        .library("/site/nvidia/cu13/lib/libcudss.so.0", &["libcublas.so.13"])
        .library(
            "/site/nvidia/cu13/lib/libcublas.so.13",
            &["libcublasLt.so.13"],
        )
        .library("/site/nvidia/cu13/lib/libcublasLt.so.13", &[])
        .library("/site/nvidia/cu13/lib/libnvrtc.so.13", &[]);
    world.load("mathdx").unwrap();
    let opened = names(&world);
    assert!(opened.contains(&"libcudss.so.0".to_owned()), "{opened:?}");
    assert!(!opened.contains(&"libcudss.so.1".to_owned()), "{opened:?}");
}

#[test]
fn a_link_into_a_toolkit_determines_the_major() {
    let world = || {
        World::new(LINUX)
            .system("/usr/lib64")
            .link(
                "/usr/lib64/libcusparse.so.12",
                "/usr/local/cuda-12.9/lib64/libcusparse.so.12",
            )
            .library("/usr/local/cuda-12.9/lib64/libcusparse.so.12", &[])
            .library("/site/nvidia/nvjitlink/lib/libnvJitLink.so.12", &[])
            .library(&format!("{CU13}/libnvJitLink.so.13"), &[])
            .with(|env| env.site_packages = vec!["/site".into()])
    };
    let plain = world();
    plain.load("cusparse").unwrap();
    assert_eq!(names(&plain), ["libnvJitLink.so.12", "libcusparse.so.12"]);
    let asked = world().with(|env| env.major = Some(13));
    assert_eq!(missing(&asked, "cusparse").kind, LoadErrorKind::NotFound);
}

fn missing(world: &World, name: &str) -> LoadError {
    world.load(name).map(|loaded| loaded.path).expect_err(name)
}

#[test]
fn a_missing_dependency_names_its_dependent() {
    let world = site()
        .library(&format!("{CU13}/libcublas.so.13"), &["libcublasLt.so.13"])
        .library("/site/nvidia/cublas/lib/libcublasLt.so.12", &[]);
    let error = missing(&world, "cublas");
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    assert_eq!(
        (&*error.library, error.needed_by),
        ("cublasLt", Some("cublas"))
    );
    let text = error.to_string();
    assert!(
        text.starts_with("libcublasLt.so.13, required by cublas, not found; searched:"),
        "{text}"
    );
    assert!(
        text.contains("libcublasLt.so.12: for CUDA 12; CUDA 13 is required"),
        "{text}"
    );
    assert!(text.contains("\n  pip install nvidia-cublas\n"), "{text}");
    assert!(!text.contains("CUPYRITE_CUDA_MAJOR"), "{text}");

    // Two levels down, the error names the direct dependent.
    let deep = site()
        .library(&format!("{CU13}/libnvblas.so.13"), &["libcublas.so.13"])
        .library(&format!("{CU13}/libcublas.so.13"), &["libcublasLt.so.13"]);
    let error = missing(&deep, "nvblas");
    assert_eq!(
        (&*error.library, error.needed_by),
        ("cublasLt", Some("cublas"))
    );

    // Without names in the file, the table determines them.
    let shim = site().library("/site/nvidia/cudnn/lib/libcudnn.so.9", &[]);
    let error = missing(&shim, "cudnn");
    assert_eq!(
        (&*error.library, error.needed_by),
        ("cublasLt", Some("cudnn"))
    );
}

#[test]
fn a_dependency_on_the_run_path_is_not_missing() {
    // The test loader's system folder acts as a run path: only the loader searches it.
    struct RunPath(World);
    impl cupyrite_pathfinder::loader::DynamicLoader for RunPath {
        fn find_loaded(&self, soname: &str) -> Option<cupyrite_pathfinder::loader::LibraryHandle> {
            self.0.find_loaded(soname)
        }
        fn open(
            &self,
            path: &std::ffi::OsStr,
            mode: cupyrite_pathfinder::loader::OpenMode,
        ) -> Result<cupyrite_pathfinder::loader::LibraryHandle, String> {
            if !path.to_string_lossy().contains('/') {
                return Err(format!("{}: cannot open", path.to_string_lossy()));
            }
            self.0.open(path, mode)
        }
        fn path(
            &self,
            handle: cupyrite_pathfinder::loader::LibraryHandle,
        ) -> Option<std::path::PathBuf> {
            self.0.path(handle)
        }
        fn resolve(&self, _: &str) -> Vec<std::path::PathBuf> {
            Vec::new()
        }
    }
    let world = RunPath(
        site()
            .library(&format!("{CU13}/libcublas.so.13"), &["libcublasLt.so.13"])
            .library("/run/path/libcublasLt.so.13", &[])
            .system("/run/path"),
    );
    let finder = cupyrite_pathfinder::Finder {
        loader: &world,
        ..world.0.finder()
    };
    finder.load("cublas").unwrap();
}

#[test]
fn the_dependents_folder_is_searched_last() {
    let world = World::new(LINUX)
        .library("/mine/libcublas.so.13", &["libcublasLt.so.13"])
        .library("/mine/libcublasLt.so.13", &[])
        .with(|env| env.overrides = [("cublas", "/mine/libcublas.so.13".into())].into());
    world.load("cublas").unwrap();
    assert_eq!(names(&world), ["libcublasLt.so.13", "libcublas.so.13"]);
}

#[test]
fn dependencies_that_a_version_does_not_name_are_optional() {
    // Early versions of cuSOLVER did not use nvJitLink.
    let world = site()
        .library(
            "/site/nvidia/cusolver/lib/libcusolver.so.11",
            &["libcublas.so.12"],
        )
        .library(
            "/site/nvidia/cublas/lib/libcublas.so.12",
            &["libcublasLt.so.12"],
        )
        .library("/site/nvidia/cublas/lib/libcublasLt.so.12", &[]);
    world.load("cusolver").unwrap();
    assert_eq!(
        names(&world),
        ["libcublasLt.so.12", "libcublas.so.12", "libcusolver.so.11"]
    );
}

#[test]
fn dependencies_outside_the_table_load_first() {
    // Otherwise the loader would search for it and not find it in a wheel.
    let world = site()
        .library(&format!("{CU13}/libnppc.so.13"), &["libcudart.so.13"])
        .library(&format!("{CU13}/libcudart.so.13"), &[]);
    world.load("nppc").unwrap();
    assert_eq!(names(&world), ["libcudart.so.13", "libnppc.so.13"]);
}

#[test]
fn optional_dependencies_may_be_missing_but_not_broken() {
    let world = || {
        site()
            .library(&format!("{CU13}/libcudss.so.1"), &["libcublas.so.13"])
            .library(&format!("{CU13}/libcublas.so.13"), &[])
            .library(&format!("{CU13}/libcublasLt.so.13"), &[])
    };
    let without = world();
    without.load("cudss").unwrap();
    let with = world().library(&format!("{CU13}/libnvrtc.so.13"), &[]);
    with.load("cudss").unwrap();
    assert_eq!(with.opened().len(), without.opened().len() + 1);
    let broken = world().file(&format!("{CU13}/libnvrtc.so.13"), b"");
    let error = missing(&broken, "cudss");
    assert_eq!(
        (error.kind, error.needed_by),
        (LoadErrorKind::Failed, Some("cudss"))
    );
    assert!(error.to_string().contains("an empty file"), "{error}");
}

#[test]
fn a_broken_dependency_is_named() {
    let world = site()
        .library(&format!("{CU13}/libcublas.so.13"), &["libcublasLt.so.13"])
        .file(
            &format!("{CU13}/libcublasLt.so.13"),
            b"version https://git-lfs.github.com/spec/v1\n",
        );
    let error = missing(&world, "cublas");
    assert_eq!(error.kind, LoadErrorKind::Failed);
    let text = error.to_string();
    let start = format!("{CU13}/libcublasLt.so.13, required by cublas, found but failed to load");
    assert!(text.starts_with(&start), "{text}");
}

#[test]
fn dependency_cycles_terminate() {
    let world = site()
        .library(&format!("{CU13}/libcublas.so.13"), &["libcublasLt.so.13"])
        .library(
            &format!("{CU13}/libcublasLt.so.13"),
            &["libnvJitLink.so.13"],
        )
        .library(
            &format!("{CU13}/libnvJitLink.so.13"),
            &["libcublas.so.13", "libnvJitLink.so.13"],
        )
        .system(CU13);
    let loaded = world.load("cublas").unwrap();
    assert!(loaded.path.ends_with("libcublas.so.13"));
    assert!(world.opened().len() <= 3, "{:?}", world.opened());
}

/// On every platform, from a toolkit: the expected dependencies load before each library, none twice.
#[test]
fn every_library_loads_after_its_dependencies() {
    let rows = rows();
    let mut count = 0;
    for platform in PLATFORMS {
        for row in rows.iter().filter(|row| !row.dependencies.is_empty()) {
            if row.names(platform).is_empty() {
                continue;
            }
            // One folder of the toolkit contains all libraries.
            let mut world =
                World::new(platform).with(|env| env.cuda_path = Some(root(platform).into()));
            for any in &rows {
                if let Some(place) = any
                    .places(platform)
                    .iter()
                    .find(|place| place.label == "CUDA_PATH")
                {
                    let name = any.names(platform).first();
                    world = name
                        .into_iter()
                        .fold(world, |world, name| world.library(&place.path(name), &[]));
                }
            }
            world.load(row.name).unwrap();
            let opened = names(&world);
            let at = |name: &str| opened.iter().position(|opened| opened == name);
            let own = at(row.names(platform)[0]);
            assert_eq!(
                own,
                Some(opened.len() - 1),
                "{} on {platform}: {opened:?}",
                row.name
            );
            for dependency in &row.dependencies {
                let needed = rows.iter().find(|row| row.name == *dependency).unwrap();
                let Some(name) = needed.names(platform).first() else {
                    continue;
                };
                assert!(
                    at(name) < own && at(name).is_some(),
                    "{name} before {}: {opened:?}",
                    row.name
                );
                count += 1;
            }
            let mut once = opened.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), opened.len(), "{opened:?}");
        }
    }
    assert!(count > 100, "{count}");
}

fn root(platform: cupyrite_pathfinder::Platform) -> &'static str {
    if platform.os == WINDOWS.os {
        "C:/path"
    } else {
        "/path"
    }
}
