//! The search on made-up trees: which file wins, and what an error tells.

use std::ffi::{OsStr, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupyrite_pathfinder::dl::{Handle, Loader, Mode};
use cupyrite_pathfinder::search::search;
use cupyrite_pathfinder::table::{Library, library as find};
use cupyrite_pathfinder::{Environment, FoundVia, LoadError, LoadErrorKind, Outcome, load};

/// A folder that disappears with the test.
struct Tree(PathBuf);

impl Tree {
    fn new(files: &[&str]) -> Tree {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "cupyrite-pathfinder-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let tree = Tree(std::env::temp_dir().join(name));
        fs::create_dir_all(&tree.0).unwrap();
        for file in files {
            let path = tree.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        tree
    }
    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Loads any file that exists (unless it is called broken), and the names it is told.
#[derive(Default)]
struct Fake {
    in_process: Vec<&'static str>,
    system: Vec<&'static str>,
    missing_dependency: bool,
    opened: Mutex<Vec<PathBuf>>,
}

impl Loader for Fake {
    fn loaded(&self, soname: &str) -> Option<Handle> {
        self.in_process
            .contains(&soname)
            .then(|| self.handle(soname.as_ref()))
    }
    fn open(&self, path: &OsStr, _: Mode) -> Result<Handle, String> {
        let text = path.to_string_lossy();
        if text.contains("broken") {
            return Err(format!("{text}: invalid ELF header"));
        }
        if text.contains('/') || self.system.contains(&&*text) {
            return Ok(self.handle(Path::new(path)));
        }
        let file = if self.missing_dependency {
            "libother.so"
        } else {
            &text
        };
        Err(format!(
            "{file}: cannot open shared object file: No such file or directory"
        ))
    }
    fn path(&self, handle: Handle) -> Option<PathBuf> {
        self.opened
            .lock()
            .unwrap()
            .get(handle.0 as usize - 1)
            .cloned()
    }
    fn resolve(&self, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

impl Fake {
    fn handle(&self, path: &Path) -> Handle {
        let mut opened = self.opened.lock().unwrap();
        opened.push(path.to_owned());
        Handle(opened.len() as *mut c_void)
    }
    fn files(&self) -> Vec<PathBuf> {
        self.opened.lock().unwrap().clone()
    }
}

fn nvrtc() -> &'static Library {
    find("nvrtc").unwrap()
}

fn found(env: &Environment, loader: &Fake) -> (PathBuf, FoundVia) {
    let loaded = search(nvrtc(), env, loader).unwrap();
    (loaded.path, loaded.found_via)
}

fn places(error: &LoadError) -> Vec<&'static str> {
    error.looked.iter().map(|looked| looked.step).collect()
}

#[test]
fn every_step_in_its_order() {
    let tree = Tree::new(&[
        "site/nvidia/cu13/lib/libnvrtc.so.13",
        "conda/lib/libnvrtc.so.13",
        "path/lib64/libnvrtc.so.12",
        "home/targets/x86_64-linux/lib/libnvrtc.so.13",
        "home/targets/sbsa-linux/lib/libnvrtc.so.13",
        "toolkit/lib/libnvrtc.so.13",
    ]);
    let mut env = Environment {
        site_packages: vec![tree.at("site")],
        conda_prefix: Some(tree.at("conda")),
        cuda_path: Some(tree.at("path")),
        cuda_home: Some(tree.at("home")),
        toolkit_roots: vec![tree.at("nothing"), tree.at("toolkit")],
        ..Environment::default()
    };
    let system = || Fake {
        system: vec!["libnvrtc.so.12"],
        ..Fake::default()
    };
    let in_process = Fake {
        in_process: vec!["libnvrtc.so.12"],
        ..system()
    };
    assert_eq!(
        found(&env, &in_process),
        ("libnvrtc.so.12".into(), FoundVia::AlreadyLoaded)
    );
    assert_eq!(
        found(&env, &system()).0,
        tree.at("site/nvidia/cu13/lib/libnvrtc.so.13")
    );
    env.site_packages.clear();
    assert_eq!(
        found(&env, &system()),
        (tree.at("conda/lib/libnvrtc.so.13"), FoundVia::Conda)
    );
    env.conda_prefix = None;
    assert_eq!(
        found(&env, &system()),
        ("libnvrtc.so.12".into(), FoundVia::System)
    );
    let none = Fake::default;
    assert_eq!(
        found(&env, &none()),
        (tree.at("path/lib64/libnvrtc.so.12"), FoundVia::CudaPath)
    );
    env.cuda_path = None;
    assert!(found(&env, &none()).0.starts_with(tree.at("home/targets")));
    env.cuda_home = None;
    assert_eq!(
        found(&env, &none()),
        (tree.at("toolkit/lib/libnvrtc.so.13"), FoundVia::WellKnown)
    );
    env.toolkit_roots.clear();
    let error = search(nvrtc(), &env, &none()).unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    assert_eq!(
        places(&error),
        [
            "wheels",
            "conda",
            "system loader",
            "system loader",
            "CUDA_PATH",
            "CUDA_HOME"
        ]
    );
}

#[test]
fn a_new_wheel_in_a_later_root_beats_an_old_one() {
    let tree = Tree::new(&[
        "one/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "two/nvidia/cu13/lib/libnvrtc.so.13",
    ]);
    let mut env = Environment {
        site_packages: vec![tree.at("one"), tree.at("two")],
        ..Environment::default()
    };
    assert_eq!(
        found(&env, &Fake::default()).0,
        tree.at("two/nvidia/cu13/lib/libnvrtc.so.13")
    );
    env.site_packages.pop();
    assert_eq!(
        found(&env, &Fake::default()).0,
        tree.at("one/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
    );
}

#[test]
fn what_nvrtc_opens_itself_is_loaded_with_it() {
    let tree = Tree::new(&[
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cu13/lib/libnvrtc-builtins.so.13.5",
    ]);
    let env = Environment {
        site_packages: vec![tree.0.clone()],
        ..Environment::default()
    };
    let loader = Fake::default();
    let first = found(&env, &loader).0;
    let builtins = first.with_file_name("libnvrtc-builtins.so.13.5");
    assert_eq!(loader.files(), [first, builtins]);
}

#[test]
fn the_override_is_a_file_or_a_folder_and_final() {
    let tree = Tree::new(&[
        "site/nvidia/cu13/lib/libnvrtc.so.13",
        "mine/libnvrtc.so.12",
        "broken.so",
    ]);
    let with = |path: &str| Environment {
        site_packages: vec![tree.at("site")],
        overrides: [("nvrtc", tree.at(path))].into(),
        ..Environment::default()
    };
    let file = (tree.at("mine/libnvrtc.so.12"), FoundVia::Override);
    assert_eq!(found(&with("mine/libnvrtc.so.12"), &Fake::default()), file);
    assert_eq!(found(&with("mine"), &Fake::default()), file);

    let gone = search(nvrtc(), &with("gone.so"), &Fake::default()).unwrap_err();
    assert_eq!((gone.kind, gone.looked.len()), (LoadErrorKind::NotFound, 1));
    let text = gone.to_string();
    assert!(text.contains("CUPYRITE_LIB_NVRTC="), "{text}");
    assert!(
        text.contains("correct CUPYRITE_LIB_NVRTC, or unset it"),
        "{text}"
    );

    let broken = search(nvrtc(), &with("broken.so"), &Fake::default()).unwrap_err();
    assert_eq!(broken.kind, LoadErrorKind::Failed);
    assert!(
        broken.to_string().contains("invalid ELF header"),
        "{broken}"
    );
}

#[test]
fn a_found_file_that_does_not_load_ends_the_search() {
    let tree = Tree::new(&[
        "broken/nvidia/cu13/lib/libnvrtc.so.13",
        "conda/lib/libnvrtc.so.13",
    ]);
    let env = Environment {
        site_packages: vec![tree.at("broken")],
        conda_prefix: Some(tree.at("conda")),
        ..Environment::default()
    };
    let error = search(nvrtc(), &env, &Fake::default()).unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::Failed);
    assert_eq!(
        error.file,
        Some(tree.at("broken/nvidia/cu13/lib/libnvrtc.so.13"))
    );
    assert!(matches!(
        error.looked.last().unwrap().outcome,
        Outcome::Refused(_)
    ));
}

#[test]
fn a_missing_dependency_is_not_a_missing_library() {
    let loader = Fake {
        missing_dependency: true,
        ..Fake::default()
    };
    let error = search(find("cuda").unwrap(), &Environment::default(), &loader).unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::Failed);
    assert!(error.to_string().contains("libother.so"), "{error}");
}

#[test]
fn the_driver_is_never_taken_from_a_toolkit() {
    let tree = Tree::new(&[
        "lib64/libcuda.so.1",
        "lib64/stubs/libcuda.so.1",
        "wsl/libcuda.so.1",
    ]);
    let mut env = Environment {
        site_packages: vec![tree.0.clone()],
        conda_prefix: Some(tree.0.clone()),
        cuda_path: Some(tree.0.clone()),
        toolkit_roots: vec![tree.0.clone()],
        driver_dirs: vec![tree.at("nothing")],
        ..Environment::default()
    };
    let cuda = find("cuda").unwrap();
    let error = search(cuda, &env, &Fake::default()).unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    assert!(error.to_string().contains("CUPYRITE_DEVICE=cpu"), "{error}");
    env.driver_dirs.push(tree.at("wsl"));
    let loaded = search(cuda, &env, &Fake::default()).unwrap();
    assert_eq!(loaded.path, tree.at("wsl/libcuda.so.1"));
}

#[test]
fn an_error_tells_what_was_there_and_what_to_do() {
    let tree = Tree::new(&["conda/lib/libnvrtc.so.11.2", "conda/lib/libcudart.so.13"]);
    let env = Environment {
        conda_prefix: Some(tree.at("conda")),
        cuda_path: Some(tree.at("nowhere")),
        ..Environment::default()
    };
    let text = search(nvrtc(), &env, &Fake::default())
        .unwrap_err()
        .to_string();
    for part in [
        "libnvrtc.so.13 or libnvrtc.so.12 was not found",
        "has only libnvrtc.so.11.2",
        "nowhere: does not exist",
        "\n  CUDA_HOME: not set",
        "pip install nvidia-cuda-nvrtc",
        "conda install -c conda-forge cuda-nvrtc",
        "CUPYRITE_LIB_NVRTC=",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains("libcudart"), "{text}");
}

#[test]
fn unknown_names_are_told_the_known_ones() {
    let error = load("nvrtcc").unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::Unknown);
    let text = error.to_string();
    assert!(
        text.contains("\"nvrtcc\"") && text.contains("cuda, nvrtc"),
        "{text}"
    );
}

#[test]
fn site_packages_of_a_virtual_environment() {
    let tree = Tree::new(&["lib/python3.11/site-packages/x.py", "lib/other/x"]);
    let roots = cupyrite_pathfinder::environment::site_packages_of(&tree.0);
    assert_eq!(roots, [tree.at("lib/python3.11/site-packages")]);
}

/// The real loader, on a library every process has.
#[test]
fn the_real_loader() {
    let loader = cupyrite_pathfinder::dl::System;
    let handle = loader.loaded("libc.so.6").expect("glibc is in the process");
    assert!(loader.path(handle).unwrap().ends_with("libc.so.6"));
    assert!(!handle.symbol(c"printf").is_null());
    assert!(handle.symbol(c"cuInit").is_null());
    assert!(loader.loaded("libnothing.so.1").is_none());
    let message = loader
        .open(OsStr::new("libnothing.so.1"), Mode::default())
        .unwrap_err();
    assert!(
        message.starts_with("libnothing.so.1: cannot open"),
        "{message}"
    );
}
