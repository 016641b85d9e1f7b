//! Malicious and broken installations in real folders: the result is correct or a specific error, never a crash or a
//! hang.
#![cfg(target_os = "linux")]

mod libraries_support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cupyrite_pathfinder::{
    Environment, FileDefect, Finder, FoundVia, LIBRARIES, LoadError, LoadErrorKind, SearchOutcome,
};
use libraries_support::elf;
use libraries_support::real::{Tree, in_child};

const NVRTC: &str = "nvidia/cu13/lib/libnvrtc.so.13";

/// A minimal library file for this machine, valid enough to be located.
fn good() -> Vec<u8> {
    elf(
        cupyrite_pathfinder::Platform::CURRENT.arch,
        "libnvrtc.so.13",
        &[],
    )
}

fn site(roots: &[&Path]) -> Environment {
    Environment {
        site_packages: roots.iter().map(PathBuf::from).collect(),
        ..Environment::default()
    }
}

fn located(env: &Environment) -> (PathBuf, FoundVia) {
    match Finder::new(env).locate("nvrtc") {
        Ok(located) => (located.path, located.found_via),
        Err(error) => panic!("{error}"),
    }
}

fn error(env: &Environment) -> LoadError {
    let error = Finder::new(env).locate("nvrtc").unwrap_err();
    let load = Finder::new(env).load("nvrtc").unwrap_err();
    assert_eq!(error.searched, load.searched);
    error
}

fn outcome<'e>(error: &'e LoadError, place: &Path) -> &'e SearchOutcome {
    let place = place.display().to_string();
    let found = error
        .searched
        .iter()
        .find(|searched| searched.location == place);
    &found
        .unwrap_or_else(|| panic!("{place} is not in:\n{error}"))
        .outcome
}

#[test]
fn link_cycles() {
    let tree = Tree::new();
    // The file, the folder above it, the root itself.
    let file = tree.link("a/nvidia/cu13/lib/libnvrtc.so.13", "libnvrtc.so.13");
    tree.link("b/nvidia/cu13/lib", "../cu13/lib");
    let root = tree.link("c", "c");
    // A folder that contains a link to itself is not a cycle: each path is finite.
    tree.link("d/nvidia/cu13/self", ".");
    let env = site(&[&tree.at("a"), &tree.at("b"), &root, &tree.at("d")]);
    let error = error(&env);
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    assert_eq!(
        *outcome(&error, &file),
        SearchOutcome::Broken(FileDefect::LinkCycle)
    );
    for folder in [
        tree.at("b").join("nvidia/cu13/lib"),
        root.join("nvidia/cu13/lib"),
    ] {
        assert_eq!(
            *outcome(&error, &folder),
            SearchOutcome::Broken(FileDefect::LinkCycle)
        );
    }
    let last = tree.file(format!("e/{NVRTC}"), &good());
    let env = site(&[&tree.at("a"), &tree.at("b"), &root, &tree.at("e")]);
    assert_eq!(located(&env), (last, FoundVia::SitePackages));
}

#[test]
fn special_files() {
    let tree = Tree::new();
    let dangling = tree.link(format!("a/{NVRTC}"), "/nowhere/libnvrtc.so");
    tree.file(format!("b/{NVRTC}/x"), b"");
    let pipe = tree.pipe(format!("c/{NVRTC}"));
    let socket = tree.at(format!("d/{NVRTC}"));
    let _listening = std::os::unix::net::UnixListener::bind(&socket);
    tree.file("e/nvidia/cu13/lib", b"a file where a folder should be");
    let root = tree.file("f", b"a file where a root should be");
    let device = tree.link(format!("g/{NVRTC}"), "/dev/zero");
    let roots: Vec<PathBuf> = ["a", "b", "c", "d", "e", "f", "g"]
        .iter()
        .map(|r| tree.0.join(r))
        .collect();
    let env = Environment {
        site_packages: roots,
        conda_prefix: Some(root.clone()),
        cuda_path: Some("/dev/null".into()),
        ..Environment::default()
    };
    let error = error(&env);
    assert_eq!(error.kind, LoadErrorKind::NotFound);
    let target = PathBuf::from("/nowhere/libnvrtc.so");
    for (place, fault) in [
        (dangling, FileDefect::DanglingLink(target)),
        (tree.0.join("b").join(NVRTC), FileDefect::Folder),
        (pipe, FileDefect::Special),
        (device, FileDefect::Special),
        (tree.0.join("e/nvidia/cu13/lib"), FileDefect::File),
        (root, FileDefect::File),
        ("/dev/null".into(), FileDefect::Special),
    ] {
        assert_eq!(
            *outcome(&error, &place),
            SearchOutcome::Broken(fault),
            "{error}"
        );
    }
    // The path may be too long for a socket; then the test omits it.
    if socket.exists() {
        assert_eq!(
            *outcome(&error, &socket),
            SearchOutcome::Broken(FileDefect::Special)
        );
    }
}

#[test]
fn a_non_library_fails_the_search() {
    for (bytes, fault) in [
        (&b""[..], FileDefect::Empty),
        (b"libnvrtc.so.13.0.88", FileDefect::NotALibrary("text")),
        (
            &good()[..100],
            FileDefect::Damaged("its dynamic segment is truncated or overwritten"),
        ),
        (
            &good()[..30],
            FileDefect::Damaged("its dynamic segment is truncated or overwritten"),
        ),
        (
            b"\x7fELF\x02\x01",
            FileDefect::Damaged("its header is truncated"),
        ),
    ] {
        let tree = Tree::new();
        let bad = tree.file(format!("a/{NVRTC}"), bytes);
        tree.file(format!("b/{NVRTC}"), &good());
        let error = error(&site(&[&tree.at("a"), &tree.at("b")]));
        assert_eq!(
            (error.kind, error.file.as_ref()),
            (LoadErrorKind::Failed, Some(&bad))
        );
        assert_eq!(*outcome(&error, &bad), SearchOutcome::Broken(fault));
    }
}

#[test]
fn non_utf8_names() {
    let tree = Tree::new();
    let odd = tree.0.join(OsStr::from_bytes(b"s\xff\xfeite \n\xc3"));
    let file = odd.join(NVRTC);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    // The error names a file with a similar name.
    std::fs::write(
        file.with_file_name(OsStr::from_bytes(b"libnvrtc.so.\xff")),
        b"",
    )
    .unwrap();
    let text = error(&site(&[&odd])).to_string();
    assert!(
        text.contains("contains only libnvrtc.so.\u{fffd}"),
        "{text}"
    );
    std::fs::write(&file, good()).unwrap();
    assert_eq!(located(&site(&[&odd])).0, file);
    let env = Environment {
        overrides: [("nvrtc", file.clone())].into(),
        ..Environment::default()
    };
    assert_eq!(located(&env), (file, FoundVia::Override));
}

#[test]
fn impossible_names() {
    let long = PathBuf::from(format!("/{}", "x".repeat(5000)));
    let parts = PathBuf::from("/x".repeat(5000));
    let nul = PathBuf::from(OsStr::from_bytes(b"/a\0b"));
    let env = Environment {
        site_packages: vec![long.clone(), parts.clone(), nul.clone(), PathBuf::new()],
        conda_prefix: Some(nul.clone()),
        cuda_path: Some(long.clone()),
        cuda_home: Some(parts),
        ..Environment::default()
    };
    assert_eq!(error(&env).kind, LoadErrorKind::NotFound);
    for path in [long, nul] {
        let env = Environment {
            overrides: [("nvrtc", path)].into(),
            ..Environment::default()
        };
        assert_eq!(error(&env).kind, LoadErrorKind::InvalidSetting);
    }
}

#[test]
fn thousands_of_roots() {
    let tree = Tree::new();
    let mut roots: Vec<PathBuf> = (0..10_000).map(|n| tree.0.join(n.to_string())).collect();
    for root in roots.iter().step_by(100) {
        std::fs::create_dir_all(root.join("nvidia")).unwrap();
    }
    let env = |roots: &[PathBuf]| Environment {
        site_packages: roots.to_owned(),
        ..Environment::default()
    };
    let started = Instant::now();
    let text = error(&env(&roots)).to_string();
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    assert!(text.lines().count() < 30, "{text}");
    let last = tree.file(format!("last/{NVRTC}"), &good());
    roots.push(tree.at("last"));
    let started = Instant::now();
    assert_eq!(located(&env(&roots)).0, last);
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn thousands_of_files_in_a_folder() {
    let tree = Tree::new();
    for n in 0..5000 {
        tree.file(format!("nvidia/cu13/lib/libnvrtc.so.{n}x"), b"");
    }
    let text = error(&site(&[&tree.0])).to_string();
    assert!(
        text.contains("libnvrtc.so.0x, ") && text.contains(", 4994 more"),
        "{text}"
    );
}

const CHILD: &str = "CUPYRITE_TEST_TREE";

/// Relative paths, in a process whose working directory is the tree.
#[test]
fn relative_paths_are_refused() {
    let Some(tree) = std::env::var_os(CHILD).map(PathBuf::from) else {
        let tree = Tree::new();
        for lure in ["", "lure/"] {
            for folder in ["nvidia/cu13/lib", "lib", "lib64", "."] {
                tree.file(format!("{lure}{folder}/libnvrtc.so.13"), &good());
                tree.file(format!("{lure}{folder}/libcudnn.so.9"), &good());
            }
        }
        let variables = [
            (CHILD, tree.0.to_str().unwrap()),
            ("CUDA_PATH", "lure"),
            ("CUDA_HOME", "."),
            ("CONDA_PREFIX", "./lure"),
            ("CUDNN_PATH", "lure"),
            ("VIRTUAL_ENV", "lure"),
        ];
        return in_child("relative_paths_are_refused", &variables, &tree.0);
    };
    assert_eq!(std::env::current_dir().unwrap(), tree);
    let mut env = Environment::current();
    assert_eq!(env.cuda_path.as_deref(), Some(Path::new("lure")));
    env.site_packages = vec!["".into(), ".".into(), "lure".into()];
    env.toolkit_roots = vec!["lure".into()];
    env.driver_dirs = vec![".".into()];
    let finder = Finder::new(&env);
    for row in LIBRARIES {
        let error = finder.locate(row.name).unwrap_err();
        assert_eq!(error.kind, LoadErrorKind::NotFound, "{error}");
    }
    let text = finder.locate("cudnn").unwrap_err().to_string();
    for place in [
        "lure",
        "CONDA_PREFIX=./lure",
        "CUDNN_PATH=lure",
        "CUDA_PATH=lure",
        "CUDA_HOME=.",
    ] {
        let line = format!("{place}: ignored, because it is not an absolute path");
        assert!(text.contains(&line), "no {line:?} in:\n{text}");
    }
}

/// Paths without access permission, in an unprivileged process.
#[test]
fn inaccessible_paths() {
    let Some(tree) = std::env::var_os(CHILD).map(PathBuf::from) else {
        let tree = Tree::new();
        tree.file(format!("folder/{NVRTC}"), &good());
        tree.file(format!("file/{NVRTC}"), &good());
        tree.file(format!("good/{NVRTC}"), &good());
        let close = |path: &str, mode| {
            std::fs::set_permissions(tree.at(path), PermissionsExt::from_mode(mode)).unwrap();
        };
        close("folder/nvidia/cu13", 0);
        close(&format!("file/{NVRTC}"), 0);
        let variables = [(CHILD, tree.0.to_str().unwrap())];
        in_child("inaccessible_paths", &variables, &tree.0);
        return close("folder/nvidia/cu13", 0o755);
    };
    // SAFETY: no arguments and no side effects.
    if unsafe { libc::geteuid() } == 0 {
        // SAFETY: this process runs only this test; the new user owns nothing.
        assert_eq!(unsafe { libc::setuid(65534) }, 0);
    }
    let root = |name: &str| tree.join(name);
    // A folder without access may contain the file: the search continues and reports the folder.
    let env = site(&[&root("folder"), &root("good")]);
    assert_eq!(located(&env).0, root("good").join(NVRTC));
    let text = error(&site(&[&root("folder")]));
    assert!(
        matches!(
            outcome(&text, &root("folder/nvidia/cu13/lib")),
            SearchOutcome::Broken(FileDefect::Denied(_))
        ),
        "{text}"
    );
    // An existing file without access is a broken installation.
    let file = root("file").join(NVRTC);
    let error = error(&site(&[&root("file"), &root("good")]));
    assert_eq!(
        (error.kind, error.file.as_ref()),
        (LoadErrorKind::Failed, Some(&file))
    );
    assert!(
        matches!(
            outcome(&error, &file),
            SearchOutcome::Broken(FileDefect::Denied(_))
        ),
        "{error}"
    );
}
