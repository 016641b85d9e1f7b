//! The system loader with real libraries in real folders, each test in its own process.
#![cfg(target_os = "linux")]

mod libraries_support;

use std::ffi::{CStr, c_int};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cupyrite_pathfinder::loader::{DynamicLoader, LibraryHandle, OpenMode, SystemLoader};
use cupyrite_pathfinder::{
    Environment, FileDefect, Finder, FoundVia, LoadErrorKind, LoadedLibrary, SearchOutcome,
    set_site_packages,
};
use libraries_support::real::{Tree, in_child};

const TREE: &str = "CUPYRITE_TEST_TREE";

/// The parent's tree, in the child.
fn tree() -> PathBuf {
    PathBuf::from(std::env::var_os(TREE).unwrap())
}

fn at(path: &str) -> PathBuf {
    tree().join(path)
}

fn with_site() -> Environment {
    Environment {
        site_packages: vec![at("site")],
        ..Environment::default()
    }
}

fn load(env: &Environment, name: &str) -> LoadedLibrary {
    Finder::new(env)
        .load(name)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn call(handle: LibraryHandle, name: &CStr) -> c_int {
    let address = handle.symbol(name);
    assert!(!address.is_null(), "{name:?}");
    // SAFETY: the tests' libraries define their functions with this signature.
    let function = unsafe { std::mem::transmute::<*mut _, extern "C" fn() -> c_int>(address) };
    function()
}

macro_rules! in_child {
    ($test:ident, $tree:expr, $variables:expr) => {
        let tree = $tree;
        let mut variables = vec![(TREE, tree.0.to_str().unwrap())];
        let more: &[(&str, &str)] = $variables;
        variables.extend(more);
        in_child(stringify!($test), &variables, &tree.0);
        return;
    };
}

fn in_parent() -> bool {
    std::env::var_os(TREE).is_none()
}

#[test]
fn an_old_library_gets_its_old_dependency() {
    if in_parent() {
        let tree = Tree::new();
        let jit = "int jitlink_major(void) { return MAJOR; }";
        let old = tree.library(
            "site/nvidia/nvjitlink/lib/libnvJitLink.so.12",
            &jit.replace("MAJOR", "12"),
            &[],
        );
        tree.library(
            "site/nvidia/cu13/lib/libnvJitLink.so.13",
            &jit.replace("MAJOR", "13"),
            &[],
        );
        let code = "extern int jitlink_major(void); int cusparse(void) { return jitlink_major(); }";
        tree.library("site/nvidia/cusparse/lib/libcusparse.so.12", code, &[&old]);
        in_child!(an_old_library_gets_its_old_dependency, tree, &[]);
    }
    let env = with_site();
    let located = Finder::new(&env).locate("cusparse").unwrap();
    assert_eq!(located.major, Some(12));
    assert!(SystemLoader.find_loaded("libcusparse.so.12").is_none());
    let loaded = load(&env, "cusparse");
    assert_eq!(loaded.found_via, FoundVia::SitePackages);
    assert_eq!(
        loaded.path,
        at("site/nvidia/cusparse/lib/libcusparse.so.12")
    );
    assert_eq!(call(loaded.handle, c"cusparse"), 12);
    assert!(SystemLoader.find_loaded("libnvJitLink.so.13").is_none());
    // Without the dependency loaded first, the loader would not find it.
    let jit = load(
        &Environment {
            major: Some(12),
            ..with_site()
        },
        "nvJitLink",
    );
    assert_eq!(jit.found_via, FoundVia::SitePackages);
    // Symbols are visible to libraries loaded later, and a repeated call returns the same.
    assert!(
        !LibraryHandle(std::ptr::null_mut())
            .symbol(c"jitlink_major")
            .is_null()
    );
    assert_eq!(load(&env, "cusparse"), loaded);
}

#[test]
fn a_library_loaded_elsewhere_is_recognized_by_its_soname() {
    if in_parent() {
        let tree = Tree::new();
        let code = "int who(void) { return WHO; }";
        let first = code.replace("WHO", "1");
        tree.named(
            "elsewhere/other-name.so",
            "libnvrtc.so.12",
            &first,
            &[],
            &[],
        );
        tree.library(
            "site/nvidia/cu13/lib/libnvrtc.so.13",
            &code.replace("WHO", "2"),
            &[],
        );
        // A file of that name with another `DT_SONAME`.
        tree.named(
            "elsewhere/libcudart.so.12",
            "libx.so",
            &code.replace("WHO", "3"),
            &[],
            &[],
        );
        in_child!(
            a_library_loaded_elsewhere_is_recognized_by_its_soname,
            tree,
            &[]
        );
    }
    for file in ["elsewhere/other-name.so", "elsewhere/libcudart.so.12"] {
        SystemLoader
            .open(at(file).as_os_str(), OpenMode::default())
            .unwrap();
    }
    let env = with_site();
    for (name, file, answer) in [
        ("nvrtc", "elsewhere/other-name.so", 1),
        ("cudart", "elsewhere/libcudart.so.12", 3),
    ] {
        for _ in 0..2 {
            let loaded = load(&env, name);
            assert_eq!(loaded.found_via, FoundVia::AlreadyLoaded);
            assert_eq!(loaded.path, at(file));
            assert_eq!(call(loaded.handle, c"who"), answer);
            assert_eq!(Finder::new(&env).locate(name).unwrap().path, at(file));
        }
    }
    // The requested major differs from the loaded one.
    let new = load(
        &Environment {
            major: Some(13),
            ..with_site()
        },
        "nvrtc",
    );
    assert_eq!(
        (new.found_via, call(new.handle, c"who")),
        (FoundVia::SitePackages, 2)
    );
}

#[test]
fn a_library_loaded_by_a_relative_path_has_an_absolute_one() {
    if in_parent() {
        let tree = Tree::new();
        let code = "int who(void) { return 0; }";
        tree.library("some where/libnvrtc.so.13", code, &[]);
        tree.at("other/x");
        in_child!(
            a_library_loaded_by_a_relative_path_has_an_absolute_one,
            tree,
            &[]
        );
    }
    SystemLoader
        .open("some where/libnvrtc.so.13".as_ref(), OpenMode::default())
        .unwrap();
    std::env::set_current_dir(at("other")).unwrap();
    let loaded = load(&with_site(), "nvrtc");
    assert_eq!(loaded.path, at("some where/libnvrtc.so.13"));
    assert_eq!(loaded.found_via, FoundVia::AlreadyLoaded);
}

#[test]
fn the_system_search_is_predicted_and_used() {
    if in_parent() {
        let tree = Tree::new();
        let code = "int who(void) { return 0; }";
        tree.library("a/libcufft.so.12", code, &[]);
        tree.library("b/libcufft.so.12", code, &[]);
        tree.library("b/libnvrtc.so.12", code, &[]);
        // Its dependency is in a wheel, which the loader does not search.
        let jit = tree.library("site/nvidia/cu13/lib/libnvJitLink.so.13", code, &[]);
        tree.library("b/libcusparse.so.12", code, &[&jit]);
        let path = format!("{0}/nothing:{0}/a:{0}/b", tree.0.display());
        in_child!(
            the_system_search_is_predicted_and_used,
            tree,
            &[("LD_LIBRARY_PATH", &path)]
        );
    }
    let env = with_site();
    for (name, soname, file) in [
        ("cufft", "libcufft.so.12", "a/libcufft.so.12"),
        ("nvrtc", "libnvrtc.so.12", "b/libnvrtc.so.12"),
        ("cusparse", "libcusparse.so.12", "b/libcusparse.so.12"),
    ] {
        let foreseen = SystemLoader.resolve(soname);
        let located = Finder::new(&env).locate(name).unwrap();
        let loaded = load(&env, name);
        assert_eq!(loaded.path, at(file));
        assert_eq!(loaded.found_via, FoundVia::System);
        assert_eq!(foreseen.first(), Some(&loaded.path));
        assert_eq!(
            (located.path, located.found_via),
            (at(file), FoundVia::System)
        );
    }
}

#[test]
fn a_relative_folder_on_the_loaders_path_is_not_searched() {
    if in_parent() {
        let tree = Tree::new();
        let code = "int who(void) { return 0; }";
        tree.library("lure/libcufft.so.12", code, &[]);
        tree.library("libcufft.so.12", code, &[]);
        tree.library("good/libnvrtc.so.12", code, &[]);
        let path = format!("lure::.:{}/good", tree.0.display());
        in_child!(
            a_relative_folder_on_the_loaders_path_is_not_searched,
            tree,
            &[("LD_LIBRARY_PATH", &path)]
        );
    }
    // The working directory is the tree: the loader itself would find the decoy.
    let env = with_site();
    let error = Finder::new(&env).load("cufft").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    assert_eq!(load(&env, "nvrtc").path, at("good/libnvrtc.so.12"));
}

#[test]
fn a_pipe_is_never_opened() {
    if in_parent() {
        let tree = Tree::new();
        let code = "int who(void) { return 0; }";
        tree.pipe("bad/libcufft.so.12");
        tree.pipe("bad/libnvJitLink.so.12");
        tree.pipe("site/nvidia/cu13/lib/libnvrtc.so.13");
        tree.library("good/libcufft.so.12", code, &[]);
        let jit = tree.library("linked/libnvJitLink.so.12", code, &[]);
        tree.library("good/libcusparse.so.12", code, &[&jit]);
        let path = format!("{0}/bad:{0}/good", tree.0.display());
        in_child!(a_pipe_is_never_opened, tree, &[("LD_LIBRARY_PATH", &path)]);
    }
    let env = with_site();
    assert_eq!(load(&env, "cufft").path, at("good/libcufft.so.12"));
    // The loader would block on cuSPARSE's dependency.
    let error = Finder::new(&env).load("cusparse").unwrap_err();
    assert_eq!(
        (&*error.library, error.needed_by),
        ("nvJitLink", Some("cusparse"))
    );
    let error = Finder::new(&env).load("nvrtc").unwrap_err();
    let searched = error
        .searched
        .iter()
        .find(|searched| searched.location.ends_with("libnvrtc.so.13"));
    assert_eq!(
        searched.unwrap().outcome,
        SearchOutcome::Broken(FileDefect::Special)
    );
}

#[test]
fn run_paths_are_left_to_the_loader() {
    if in_parent() {
        let tree = Tree::new();
        let lt = tree.library(
            "hidden/libcublasLt.so.13",
            "int lt(void) { return 7; }",
            &[],
        );
        let code = "extern int lt(void); int blas(void) { return lt(); }";
        let path = "-Wl,-rpath,$ORIGIN/../../../../hidden";
        let file = "site/nvidia/cu13/lib/libcublas.so.13";
        tree.named(file, "libcublas.so.13", code, &[&lt], &[path]);
        // The same without a run path.
        let file = "bare/nvidia/cu13/lib/libcublas.so.13";
        tree.library(file, code, &[&lt]);
        in_child!(run_paths_are_left_to_the_loader, tree, &[]);
    }
    let bare = Environment {
        site_packages: vec![at("bare")],
        ..Environment::default()
    };
    let error = Finder::new(&bare).load("cublas").unwrap_err();
    assert_eq!(
        (&*error.library, error.needed_by),
        ("cublasLt", Some("cublas"))
    );
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    assert_eq!(call(load(&with_site(), "cublas").handle, c"blas"), 7);
}

#[test]
fn deep_bind_prefers_the_librarys_own_symbols() {
    if in_parent() {
        let tree = Tree::new();
        let code = "int who(void) { return WHO; } int ask(void) { return who(); }";
        tree.library(
            "site/nvidia/cu13/lib/libcufft.so.12",
            &code.replace("WHO", "1"),
            &[],
        );
        tree.library(
            "site/nvidia/nccl/lib/libnccl.so.2",
            &code.replace("WHO", "2"),
            &[],
        );
        tree.library(
            "site/nvidia/nvshmem/lib/libnvshmem_host.so.3",
            "int x;",
            &[],
        );
        let file = "site/nvidia/cufftmp/cu13/lib/libcufftMp.so.12";
        tree.library(file, &code.replace("WHO", "3"), &[]);
        in_child!(deep_bind_prefers_the_librarys_own_symbols, tree, &[]);
    }
    let env = with_site();
    assert_eq!(call(load(&env, "cufft").handle, c"ask"), 1);
    // The process's symbols come first, because the first library is loaded globally.
    assert_eq!(call(load(&env, "nccl").handle, c"ask"), 1);
    assert_eq!(call(load(&env, "cufftMp").handle, c"ask"), 3);
}

#[test]
fn locating_runs_no_code_of_a_library() {
    if in_parent() {
        let tree = Tree::new();
        let flag = tree.at("flag");
        let code = format!(
            "#include <stdio.h>\n__attribute__((constructor)) static void start(void) \
             {{ FILE *f = fopen(\"{}\", \"w\"); if (f) fclose(f); }}",
            flag.display()
        );
        tree.library("site/nvidia/cu13/lib/libnvrtc.so.13", &code, &[]);
        in_child!(locating_runs_no_code_of_a_library, tree, &[]);
    }
    let env = with_site();
    Finder::new(&env).locate("nvrtc").unwrap();
    assert!(!at("flag").exists());
    load(&env, "nvrtc");
    assert!(at("flag").exists());
}

#[test]
fn a_load_failure_quotes_the_loader() {
    if in_parent() {
        let tree = Tree::new();
        let code = "extern int nowhere(void); int who(void) { return nowhere(); }";
        tree.library("site/nvidia/cu13/lib/libnvrtc.so.13", code, &[]);
        tree.library(
            "conda/lib/libnvrtc.so.13",
            "int who(void) { return 0; }",
            &[],
        );
        in_child!(a_load_failure_quotes_the_loader, tree, &[]);
    }
    let env = Environment {
        conda_prefix: Some(at("conda")),
        ..with_site()
    };
    let error = Finder::new(&env).load("nvrtc").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::Failed);
    assert_eq!(error.file, Some(at("site/nvidia/cu13/lib/libnvrtc.so.13")));
    assert!(
        error.to_string().contains("undefined symbol: nowhere"),
        "{error}"
    );
}

#[test]
fn the_cost_does_not_depend_on_the_file_size() {
    if in_parent() {
        let tree = Tree::new();
        let path = tree.library("site/nvidia/cu13/lib/libcublasLt.so.13", "int x;", &[]);
        // A sparse tail of 800 MB makes it a large file.
        let file = std::fs::File::options().append(true).open(path).unwrap();
        file.set_len(800 << 20).unwrap();
        in_child!(the_cost_does_not_depend_on_the_file_size, tree, &[]);
    }
    let env = with_site();
    let finder = Finder::new(&env);
    finder.locate("cublasLt").unwrap();
    let best = (0..20)
        .map(|_| {
            let started = Instant::now();
            finder.locate("cublasLt").unwrap();
            started.elapsed()
        })
        .min()
        .unwrap();
    assert!(best.as_millis() < 2, "{best:?}");
}

/// A library loaded from several threads at once is loaded once, with the same result in each.
#[test]
fn concurrent_loads_agree() {
    if in_parent() {
        let tree = Tree::new();
        let code = "int who(void) { return 0; }";
        let lt = tree.library("site/nvidia/cu13/lib/libcublasLt.so.13", code, &[]);
        tree.library("site/nvidia/cu13/lib/libcublas.so.13", code, &[&lt]);
        in_child!(concurrent_loads_agree, tree, &[]);
    }
    let site = vec![at("site")];
    set_site_packages(site.clone());
    let all: Vec<LoadedLibrary> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|index| {
                let site = site.clone();
                scope.spawn(move || {
                    for _ in 0..50 {
                        set_site_packages(site.clone());
                        let name = if index % 2 == 0 { "cublas" } else { "cublasLt" };
                        cupyrite_pathfinder::load(name).unwrap();
                    }
                    cupyrite_pathfinder::load("cublas").unwrap()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(all.iter().all(|loaded| *loaded == all[0]));
    assert_eq!(all[0].found_via, FoundVia::SitePackages);
    assert!(Path::new(&all[0].path).starts_with(&site[0]));
}
