//! Packages that share a folder, in both installation orders; copies; what Python would import.

use super::super::python::{Imports, base64};
use super::super::report::Severity;
use super::*;
use sha2::{Digest, Sha256};

const SITE: &str = "/venv/lib/python3.12/site-packages";
const SO: &str = ".cpython-312-x86_64-linux-gnu.so";

fn suffixes() -> Vec<String> {
    [SO, ".abi3.so", ".so", ".py", ".pyc"]
        .map(str::to_owned)
        .into()
}

/// Files that a package installs, with their contents.
type Package<'a> = (&'a str, &'a str, &'a [(&'a str, &'a [u8])]);

const OURS: Package<'_> = (
    "cupyrite",
    "0.1.0",
    &[
        ("cupyrite/__init__.py", b"cupyrite"),
        ("cupyrite/_native.abi3.so", b"native"),
    ],
);
const OUR_BINDINGS: Package<'_> = (
    "cuda_bindings",
    concat!("13.5.0+cupyrite.", env!("CARGO_PKG_VERSION")),
    &[
        ("cuda/bindings/__init__.py", b"ours of bindings"),
        ("cuda/bindings/driver.py", b"our driver"),
        ("cuda/bindings/utils.py", b"our utils"),
    ],
);
const OUR_CORE: Package<'_> = (
    "cuda_core",
    concat!("1.2.2+cupyrite.", env!("CARGO_PKG_VERSION")),
    &[],
);
const OUR_PATHFINDER: Package<'_> = (
    "cuda_pathfinder",
    concat!("1.9.1+cupyrite.", env!("CARGO_PKG_VERSION")),
    &[("cuda/pathfinder/__init__.py", b"our pathfinder")],
);
const OUR_PYTHON: Package<'_> = (
    "cuda_python",
    concat!("13.5.0+cupyrite.", env!("CARGO_PKG_VERSION")),
    &[],
);
const ALL_OURS: [&Package<'_>; 5] = [
    &OURS,
    &OUR_PATHFINDER,
    &OUR_BINDINGS,
    &OUR_CORE,
    &OUR_PYTHON,
];
const BINDINGS: Package<'_> = (
    "cuda_bindings",
    "13.5.0",
    &[
        ("cuda/bindings/__init__.py", b"theirs"),
        (
            "cuda/bindings/driver.cpython-312-x86_64-linux-gnu.so",
            b"their driver",
        ),
        ("cuda/bindings/utils/__init__.py", b"their utils"),
        ("cuda/bindings/runtime.py", b"their runtime"),
    ],
);
const PATHFINDER: Package<'_> = (
    "cuda-pathfinder",
    "1.9.1",
    // The same length as Cupyrite's file: only the digest differs.
    &[("cuda/pathfinder/__init__.py", b"ur pathfinder!")],
);

/// Installs a package as pip does: overwrites existing files and writes a list.
fn install(case: Case, root: &str, package: &Package<'_>) -> Case {
    let (name, version, files) = package;
    let mut case = case;
    let mut list = String::new();
    for (file, content) in *files {
        case = case.file(&format!("{root}/{file}"), content);
        let digest = base64(&Sha256::digest(content));
        list.push_str(&format!("{file},sha256={digest},{}\n", content.len()));
    }
    let info = format!("{name}-{version}.dist-info");
    list.push_str(&format!("{info}/RECORD,,\n"));
    case.file(&format!("{root}/{info}/RECORD"), list.as_bytes())
}

/// Installs all of Cupyrite but the packages of these names.
fn install_ours_without(case: Case, root: &str, left_out: &[&str]) -> Case {
    let chosen = ALL_OURS
        .iter()
        .filter(|(name, ..)| !left_out.contains(name));
    chosen.fold(case, |case, package| install(case, root, package))
}

/// Installs all of Cupyrite.
fn install_ours(case: Case, root: &str) -> Case {
    install_ours_without(case, root, &[])
}

fn in_python() -> Case {
    let mut case = healthy();
    case.facts.interpreter = python();
    case.facts.package = Some(format!("{SITE}/cupyrite").into());
    case.facts.package_version = Some(env!("CARGO_PKG_VERSION").to_owned());
    case.facts.path = vec!["/project".into(), SITE.into()];
    case.facts.suffixes = suffixes();
    case.file(&format!("{SITE}/numpy/__init__.py"), b"numpy")
        .file(&format!("{SITE}/pip/__init__.py"), b"pip")
}

fn file_of(report: &Report, module: &str) -> String {
    let origin = report.modules.iter().find(|m| m.module == module);
    let file = origin.and_then(|origin| origin.file.clone());
    file.map_or(String::new(), |file| {
        let below = file.strip_prefix(SITE).unwrap_or(&file);
        below.display().to_string()
    })
}

#[test]
fn cupyrite_alone_has_no_problem() {
    let report = install_ours(in_python(), SITE).report();
    assert_eq!(codes(&report), [""; 0]);
    assert!(report.ok);
    assert_eq!(report.modules.len(), 6);
    assert!(report.modules.iter().all(|module| module.ours));
    assert_eq!(report.packages[0].damaged, Some(0));
}

#[test]
fn the_peer_installed_after_cupyrite() {
    let case = install_ours(in_python(), SITE);
    let case = install(case, SITE, &BINDINGS);
    let report = install(case, SITE, &PATHFINDER).report();
    assert!(!report.ok && report.proof.ok);
    assert_eq!(codes(&report), ["peer-mixed"]);
    let problem = &report.problems[0];
    assert_eq!(problem.severity, Severity::Error);
    assert!(
        problem.what.contains("cuda-bindings 13.5.0"),
        "{}",
        problem.what
    );
    assert!(
        problem.what.contains("cuda-pathfinder 1.9.1"),
        "{}",
        problem.what
    );
    assert!(
        problem.what.contains("4 of Cupyrite's 6"),
        "{}",
        problem.what
    );
    // An extension module before the .py file, a package before the module.
    assert_eq!(
        file_of(&report, "cuda.bindings.driver"),
        format!("cuda/bindings/driver{SO}")
    );
    assert_eq!(
        file_of(&report, "cuda.bindings.utils"),
        "cuda/bindings/utils/__init__.py"
    );
    let fix = commands(&report, "peer-mixed");
    assert_eq!(
        fix,
        [
            "/venv/bin/python -m cupyrite stand-in",
            "/venv/bin/python -m pip uninstall -y cupyrite cuda-python",
            "/venv/bin/python -m pip install --force-reinstall --no-deps cuda-pathfinder==1.9.1 \
             cuda-bindings==13.5.0 cuda-core==1.2.2",
        ]
    );
}

#[test]
fn cupyrite_installed_after_the_peer() {
    // The extension module still exists and takes precedence over the later file.
    let report = install_ours(install(in_python(), SITE, &BINDINGS), SITE).report();
    assert_eq!(codes(&report), ["peer-mixed"]);
    assert!(report.problems[0].what.contains("2 of Cupyrite's 6"));
    let init = report.modules.iter().find(|m| m.module == "cuda.bindings");
    assert!(
        init.is_some_and(|module| module.ours),
        "overwritten by Cupyrite"
    );
    // Its files are reported as damaged even if none of them is imported.
    let report = install_ours(install(in_python(), SITE, &PATHFINDER), SITE).report();
    assert_eq!(codes(&report), ["peer-overwritten"]);
    assert!(report.ok);
}

#[test]
fn the_peer_elsewhere_on_the_path() {
    let later = "/other/site-packages";
    let mut case = install(install_ours(in_python(), SITE), later, &BINDINGS);
    case.facts.path.push(later.into());
    let report = case.report();
    assert_eq!(codes(&report), ["peer-installed"]);
    assert!(report.ok && report.problems[0].severity == Severity::Note);
    case.facts.path.reverse();
    let report = case.report();
    assert_eq!(codes(&report), ["peer-first"]);
    assert!(
        report.problems[0]
            .why
            .contains("/other/site-packages/cuda/bindings")
    );
}

#[test]
fn the_peer_in_place_of_a_stand_in() {
    // pip replaced one of them: its list and its files are NVIDIA's.
    let case = install_ours_without(in_python(), SITE, &["cuda_bindings"]);
    let report = install(case, SITE, &("cuda_bindings", "13.0.3", BINDINGS.2)).report();
    assert!(!report.ok && report.proof.ok);
    assert_eq!(codes(&report), ["peer-mixed"]);
    let problem = &report.problems[0];
    assert!(
        problem
            .what
            .contains("(cuda-bindings 13.0.3) were installed in place")
    );
    let fix = commands(&report, "peer-mixed");
    assert_eq!(
        fix,
        [
            "/venv/bin/python -m cupyrite stand-in",
            "/venv/bin/python -m pip uninstall -y cupyrite cuda-python",
            "/venv/bin/python -m pip install --force-reinstall --no-deps cuda-bindings==13.0.3 \
             cuda-core==1.2.2 cuda-pathfinder==1.9.1",
        ]
    );
    let ours = |name: &str| {
        report
            .packages
            .iter()
            .find(|p| p.name == name)
            .map(|p| p.ours)
    };
    assert_eq!(ours("cuda-bindings"), Some(false));
    assert_eq!(ours("cuda-core"), Some(true));
    // All of them: what runs is not Cupyrite.
    let names = ["cuda_bindings", "cuda_core", "cuda_pathfinder"];
    let case = install_ours_without(in_python(), SITE, &names);
    let case = install(case, SITE, &BINDINGS);
    let case = install(case, SITE, &("cuda_core", "1.2.2", &[]));
    let report = install(case, SITE, &PATHFINDER).report();
    assert_eq!(codes(&report), ["peer-mixed"]);
    assert!(!report.ok);
}

#[test]
fn stand_ins_that_are_missing_or_of_another_version() {
    let case = install_ours_without(in_python(), SITE, &["cuda_bindings", "cuda_core"]);
    let report = case.report();
    assert_eq!(codes(&report), ["stand-in-missing"]);
    assert!(!report.ok);
    assert!(report.problems[0].what.contains("cuda-bindings, cuda-core"));
    let stand_in = ["/venv/bin/python -m cupyrite stand-in"];
    assert_eq!(commands(&report, "stand-in-missing"), stand_in);
    // The one without modules.
    let report = install_ours_without(in_python(), SITE, &["cuda_python"]).report();
    assert_eq!(codes(&report), ["stand-in-missing"]);
    assert!(report.ok, "a warning only");
    let case = install_ours_without(in_python(), SITE, &["cuda_core"]);
    let report = install(case, SITE, &("cuda_core", "1.2.2+cupyrite.0.0.9", &[])).report();
    assert_eq!(codes(&report), ["version-mixed"]);
    assert!(
        report.problems[0]
            .what
            .contains("cuda-core 1.2.2+cupyrite.0.0.9")
    );
    assert_eq!(commands(&report, "version-mixed"), stand_in);
}

#[test]
fn an_environment_without_pip_gets_commands_of_uv() {
    let case = install_ours_without(in_python(), SITE, &["cuda_bindings"]);
    let mut case = install(case, SITE, &BINDINGS);
    case.facts.path = vec!["/other".into()];
    let root = "/other";
    let case = install(
        install_ours_without(case, root, &["cuda_bindings"]),
        root,
        &BINDINGS,
    );
    let mut case = case.file("/other/numpy/__init__.py", b"numpy");
    case.facts.package = Some("/other/cupyrite".into());
    let report = case.report();
    let fix = commands(&report, "peer-mixed");
    assert_eq!(
        fix[1..],
        [
            "uv pip uninstall --python /venv/bin/python cupyrite cuda-python",
            "uv pip install --python /venv/bin/python --force-reinstall --no-deps cuda-bindings==13.5.0 \
             cuda-core==1.2.2 cuda-pathfinder==1.9.1",
        ]
    );
}

#[test]
fn a_reinstallation_names_what_cupyrite_was_installed_from() {
    let damaged = || {
        install_ours(in_python(), SITE)
            .file(&format!("{SITE}/cupyrite/__init__.py"), b"patched by hand")
    };
    let url = format!("{SITE}/cupyrite-0.1.0.dist-info/direct_url.json");
    let fix = |case: Case| commands(&case.report(), "files-damaged");
    assert_eq!(fix(damaged()), [""; 0], "unknown: words only");
    let wheel = br#"{"archive_info": {}, "url": "file:///wheels%20here/cupyrite-0.1.0.whl"}"#;
    assert_eq!(fix(damaged().file(&url, wheel)), [""; 0], "removed since");
    let case = damaged().file(&url, wheel);
    assert_eq!(
        fix(case.file("/wheels here/cupyrite-0.1.0.whl", b"")),
        [
            "/venv/bin/python -m pip install --force-reinstall --no-deps '/wheels here/cupyrite-0.1.0.whl'"
        ]
    );
    for broken in [
        &b"{"[..],
        b"{\"url\": 5}",
        b"{\"url\": \"file:///%f\"}",
        b"\xff",
    ] {
        assert_eq!(fix(damaged().file(&url, broken)), [""; 0]);
    }
}

#[test]
fn uninstalling_the_peer_leaves_damage() {
    // Uninstalling removed the shared file: the list has all, the folder all but one.
    let case = install_ours_without(in_python(), SITE, &["cuda_bindings"]);
    let mut list = String::new();
    let (name, version, files) = OUR_BINDINGS;
    let mut case = files.iter().fold(case, |case, (file, content)| {
        let digest = base64(&Sha256::digest(content));
        list.push_str(&format!("{file},sha256={digest},{}\n", content.len()));
        match file.ends_with("__init__.py") {
            true => case,
            false => case.file(&format!("{SITE}/{file}"), content),
        }
    });
    let record = format!("{SITE}/{name}-{version}.dist-info/RECORD");
    case = case.file(&record, list.as_bytes());
    let report = case.report();
    assert_eq!(codes(&report), ["files-damaged"]);
    assert!(report.problems[0].why.contains("cuda/bindings/__init__.py"));
    assert_eq!(
        commands(&report, "files-damaged"),
        ["/venv/bin/python -m cupyrite stand-in"]
    );
    assert!(!report.ok);
}

#[test]
fn a_modified_file_is_reported() {
    let case = install_ours(in_python(), SITE);
    let report = case
        .file(
            &format!("{SITE}/cuda/bindings/driver.py"),
            b"patched by hand",
        )
        .report();
    assert_eq!(codes(&report), ["files-damaged"]);
    assert!(report.ok, "a warning only");
}

#[test]
fn two_copies_and_two_versions() {
    let other = "/users/ada/.local/site-packages";
    let mut case = install_ours(install_ours(in_python(), SITE), other);
    case.facts.path.push(other.into());
    assert_eq!(codes(&case.report()), ["two-copies"]);
    // The same folder under two names is one copy.
    let mut case = install_ours(in_python(), SITE);
    case.files = case.files.link("/venv/lib64", "/venv/lib");
    case.facts
        .path
        .push("/venv/lib64/python3.12/site-packages".into());
    assert_eq!(codes(&case.report()), [""; 0]);
    // The state after an interrupted upgrade.
    let case = install_ours(in_python(), SITE);
    let report = install(case, SITE, &("cupyrite", "0.0.9", &[])).report();
    assert_eq!(codes(&report), ["two-copies"]);
    // The native module of one version, Python files of another.
    let mut case = install_ours(in_python(), SITE);
    case.facts.package_version = Some("9.9".to_owned());
    let report = case.report();
    assert_eq!(codes(&report), ["version-mixed"]);
    assert!(!report.ok);
}

#[test]
fn a_cuda_package_of_the_users_own() {
    let case = install_ours(in_python(), SITE).file("/project/cuda/__init__.py", b"mine");
    let report = case.report();
    assert_eq!(codes(&report), ["cuda-shadowed"]);
    assert!(
        report.problems[0]
            .what
            .contains("/project/cuda/__init__.py")
    );
    assert_eq!(file_of(&report, "cuda.bindings.driver"), "");
    // A folder without __init__ shadows nothing; a module of the same name does.
    let case = install_ours(in_python(), SITE).file("/project/cuda/notes.txt", b"mine");
    assert_eq!(codes(&case.report()), [""; 0]);
    let case = install_ours(in_python(), SITE).file("/project/cuda.py", b"mine");
    assert_eq!(codes(&case.report()), ["cuda-shadowed"]);
    let case = install_ours(in_python(), SITE).file("/project/cuda/bindings/__init__.py", b"x");
    assert_eq!(codes(&case.report()), ["module-shadowed"]);
}

#[test]
fn malformed_records_are_tolerated() {
    let long = vec![b','; 1 << 16];
    for record in [
        &b""[..],
        b"\xff\xfe\x00,,\n",
        b"one\n,\n,,\n\"a\"\"b,c\",,\n",
        &long,
    ] {
        let mut case = install_ours(in_python(), SITE)
            .file(&format!("{SITE}/cuda_core-.dist-info/RECORD"), record)
            .file(&format!("{SITE}/cuda_core.dist-info/METADATA"), record)
            .file(&format!("{SITE}/-.dist-info/RECORD"), record);
        case.files = case.files.denied(format!("{SITE}/cuda_python-1.dist-info"));
        let report = case.report();
        assert!(
            report
                .packages
                .iter()
                .any(|p| p.name == "cuda-python" && p.damaged.is_none())
        );
        let own = install_ours(in_python(), SITE)
            .file(&format!("{SITE}/cupyrite-0.1.0.dist-info/RECORD"), record)
            .report();
        assert!(own.format == 1);
    }
}

#[test]
fn a_tree_without_a_list_is_taken_as_it_is() {
    let mut case = in_python();
    for (file, content) in ALL_OURS.iter().flat_map(|(_, _, files)| *files) {
        case = case.file(&format!("{SITE}/{file}"), content);
    }
    let report = case.report();
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(report.modules.len(), 6);
    assert!(report.modules.iter().all(|module| module.ours));
}

#[test]
fn numpy_is_needed_by_the_demo_only() {
    let mut case = in_python();
    case.files = InMemoryFiles::new().file(format!("{SITE}/pip/__init__.py"), b"pip");
    let mut case = install_ours(case, SITE);
    let report = case.report();
    assert_eq!(codes(&report), ["numpy-missing"]);
    assert!(report.ok);
    case.facts.demo = true;
    assert!(!case.report().ok);
}

#[test]
fn clients_that_load_the_driver_need_run_on_the_cpu_device() {
    let metadata = b"Metadata-Version: 2.1\nName: numba-cuda\nVersion: 0.30.4\n";
    let client = || {
        let folder = format!("{SITE}/numba_cuda-0.30.4.dist-info");
        let mut case = install_ours(in_python(), SITE);
        case.outcome.probe.backend = Some(Backend::Cpu);
        case.file(&format!("{folder}/METADATA"), metadata)
    };
    let mut case = client();
    let report = case.report();
    assert_eq!(codes(&report), ["client-without-run"]);
    assert!(report.ok && report.problems[0].severity == Severity::Note);
    assert!(
        report.problems[0].what.contains("numba-cuda 0.30.4"),
        "{}",
        report.problems[0].what
    );
    let commands = commands(&report, "client-without-run");
    assert_eq!(commands[0], "/venv/bin/python -m cupyrite run program.py");
    case.outcome.probe.backend = Some(Backend::Gpu);
    assert!(!codes(&case.report()).contains(&"client-without-run"));
    let folder = format!("/usr/lib:{SITE}/cupyrite/lib/cpu");
    let report = client().set("LD_LIBRARY_PATH", &folder).report();
    assert_eq!(codes(&report), [""; 0]);
}

#[test]
fn pythons_path_finder() {
    let files = InMemoryFiles::new()
        .file("/a/n/one.py", b"")
        .file("/b/n/one.so", b"")
        .file("/b/n/two/__init__.pyc", b"")
        .file("/b/n/two.so", b"")
        .file("/b/m.py", b"")
        .file("/b/m/x.py", b"");
    let path = ["/a".into(), "/b".into(), "/none".into()];
    let suffixes = suffixes();
    let imports = Imports {
        path: &path,
        suffixes: &suffixes,
        files: &files,
    };
    let find = |name: &str| imports.find(name).map(|file| file.display().to_string());
    // A namespace package has parts in both folders; the first folder wins.
    assert_eq!(find("n.one").as_deref(), Some("/a/n/one.py"));
    assert_eq!(find("n.two").as_deref(), Some("/b/n/two/__init__.pyc"));
    assert_eq!(find("n"), None);
    // A module beside a folder without __init__.
    assert_eq!(find("m").as_deref(), Some("/b/m.py"));
    assert_eq!(find("m.x"), None);
    for nothing in ["", ".", "n.", "n..one", "absent", "n.absent.x"] {
        assert_eq!(find(nothing), None, "{nothing}");
    }
}

#[test]
fn base64_matches_the_rfc_vectors() {
    // RFC 4648, section 10, without padding.
    for (plain, coded) in [
        ("", ""),
        ("f", "Zg"),
        ("fo", "Zm8"),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg"),
    ] {
        assert_eq!(base64(plain.as_bytes()), coded);
    }
    assert_eq!(base64(&[0xfb, 0xff]), "-_8");
}
