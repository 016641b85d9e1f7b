//! Rules on files that no other tool checks, and the size of the wheel.

use std::fs;
use std::path::Path;

use crate::Error;
use crate::environment::{Env, read, root, wheels};
use crate::report::output;

/// Lines of a hand-written source file beyond which it is split (CONTRIBUTING.md).
const LONGEST: usize = 800;
/// Longer files, each with the reason why it is not split.
const LONGER: &[(&str, &str)] = &[];
/// Bytes of all wheels, and of the files in them (docs/performance.md).
const WHEEL_BUDGET: u64 = 9_000_000;
const INSTALLED_BUDGET: u64 = 25_000_000;
/// Folders of one machine. The literals are split so that this file passes its own check.
const FOREIGN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/tm", "p/t/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// `cargo xtask policy`.
pub fn policy(rest: &[&str]) -> Result<(), Error> {
    if !rest.is_empty() {
        return Err("usage: cargo xtask policy".into());
    }
    check(&root())
}

/// Files that git tracks or would add, a line each.
fn files(root: &Path) -> Result<String, Error> {
    output(std::process::Command::new("git").arg("-C").arg(root).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))
}

/// Checks every file that git tracks or would add.
fn check(root: &Path) -> Result<(), Error> {
    let files = files(root)?;
    let mut violations = Vec::new();
    if root.join("python/cuda/__init__.py").exists() {
        violations
            .push("python/cuda/__init__.py: not allowed; `cuda` is a namespace package".to_owned());
    }
    for name in files.lines() {
        let Ok(text) = fs::read_to_string(root.join(name)) else {
            continue; // binary, or deleted and not yet committed
        };
        check_file(name, &text, &mut violations);
    }
    for (name, _) in LONGER {
        let text = fs::read_to_string(root.join(name)).unwrap_or_default();
        if text.lines().count() <= LONGEST {
            violations.push(format!(
                "{name}: is missing or has at most {LONGEST} lines; remove it from LONGER in {}",
                file!()
            ));
        }
    }
    let changelog = read(&root.join("CHANGELOG.md"))?;
    let manifest = read(&root.join("Cargo.toml"))?;
    violations.extend(release_violation(&changelog, &manifest));
    if violations.is_empty() {
        println!("{} files follow the policy", files.lines().count());
        Ok(())
    } else {
        Err(violations.join("\n"))
    }
}

/// Whether a file is a stub of a generated module of `cuda.bindings`.
fn is_generated_stub(name: &str) -> bool {
    let folder = "python/cuda/bindings/";
    name.ends_with(".pyi") && name.starts_with(folder) && !name.contains("/_internal/")
}

/// Why the newest heading of the changelog is refused. It begins with "Unreleased" or the workspace's version.
fn release_violation(changelog: &str, manifest: &str) -> Option<String> {
    let version = (manifest.split_once("[workspace.package]"))
        .and_then(|(_, rest)| rest.lines().find_map(|l| l.strip_prefix("version = ")))
        .map(|version| version.trim_matches('"'));
    let Some(version) = version else {
        return Some("Cargo.toml: no version under [workspace.package]".into());
    };
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## "));
    let newest = newest.unwrap_or_default();
    if newest == "Unreleased" || newest.split(' ').next() == Some(version) {
        return None;
    }
    Some(format!(
        "CHANGELOG.md: newest heading '{newest}'; expected 'Unreleased' or '{version}'"
    ))
}

fn check_file(name: &str, text: &str, violations: &mut Vec<String>) {
    let generated = name.contains("/generated/") || is_generated_stub(name);
    let source = [".rs", ".py", ".pyi"].iter().any(|end| name.ends_with(end));
    if generated
        && source
        && !text
            .lines()
            .take(3)
            .any(|line| line.contains("cargo xtask codegen"))
    {
        violations.push(format!(
            "{name}: the first lines of a generated file name `cargo xtask codegen`"
        ));
    }
    let lines = text.lines().count();
    let excepted = LONGER.iter().any(|(longer, _)| *longer == name);
    if source && !generated && !excepted && lines > LONGEST {
        violations.push(format!(
            "{name}: {lines} lines; at most {LONGEST} are allowed"
        ));
    }
    for folder in FOREIGN {
        if let Some(at) = text.find(folder) {
            let line = text[..at].lines().count().max(1);
            violations.push(format!(
                "{name}:{line}: {folder} is a folder of one machine"
            ));
        }
    }
    if source && !generated {
        for word in [
            "todo!(",
            "unimplemented!(",
            // Only the statement: PyO3 code may raise it to refuse an operation.
            "raise NotImplementedError",
            concat!("FIX", "ME"),
        ] {
            let exempt = name.starts_with("crates/xtask/") || name.starts_with("tests/");
            if text.contains(word) && !exempt {
                violations.push(format!("{name}: contains {word}"));
            }
        }
    }
}

/// `cargo xtask wheel-size`.
pub fn wheel_size(rest: &[&str]) -> Result<(), Error> {
    if !rest.is_empty() {
        return Err("usage: cargo xtask wheel-size".into());
    }
    let env = Env::ready()?;
    let wheel = env.build_wheel()?;
    let all = wheels(wheel.parent().unwrap_or(&wheel));
    let size = |wheel| fs::metadata(wheel).map_or(0, |data| data.len());
    let packed: u64 = all.iter().map(size).sum();
    let script = "import sys, zipfile; \
         print(sum(i.file_size for w in sys.argv[1:] for i in zipfile.ZipFile(w).infolist()))";
    let text = output(env.command().args(["-c", script]).args(&all))?;
    let unpacked: u64 = text.trim().parse().map_err(|e| format!("{text:?}: {e}"))?;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "wheels {:.2} MB of {:.0}, installed {:.2} MB of {:.0}",
        megabytes(packed),
        megabytes(WHEEL_BUDGET),
        megabytes(unpacked),
        megabytes(INSTALLED_BUDGET)
    );
    if packed > WHEEL_BUDGET || unpacked > INSTALLED_BUDGET {
        return Err("the wheels exceed their budget (docs/performance.md)".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LONGER, check_file, release_violation};

    fn violations(name: &str, text: &str) -> usize {
        let mut violations = Vec::new();
        check_file(name, text, &mut violations);
        violations.len()
    }

    #[test]
    fn the_newest_release_is_the_next_or_the_workspaces_version() {
        let manifest = "[workspace.package]\nversion = \"0.2.0\"\n";
        for heading in ["Unreleased", "0.2.0", "0.2.0 (2026-11-26)"] {
            let changelog = format!("# Changelog\n\n## {heading}\n\n## 0.1.0\n");
            assert_eq!(release_violation(&changelog, manifest), None, "{heading}");
        }
        for heading in ["0.1.0", "0.2", "Next", ""] {
            let changelog = format!("# Changelog\n\n## {heading}\n\n## 0.2.0\n");
            assert!(
                release_violation(&changelog, manifest).is_some(),
                "{heading}"
            );
        }
        assert!(release_violation("# Changelog\n", manifest).is_some());
        assert!(release_violation("## Unreleased\n", "").is_some());
    }

    #[test]
    fn rules() {
        assert_eq!(violations("a.rs", "fn main() {}\n"), 0);
        for name in ["a.rs", "tests/a.py", "python/a.pyi"] {
            assert_eq!(violations(name, &"x\n".repeat(800)), 0, "{name}");
            assert_eq!(violations(name, &"x\n".repeat(801)), 1, "{name}");
        }
        for (name, reason) in LONGER {
            assert_eq!(violations(name, &"x\n".repeat(801)), 0, "{name}");
            assert!(!reason.is_empty(), "{name}");
        }
        assert_eq!(violations("python/cuda/bindings/_internal/a.pyi", "x\n"), 0);
        for name in ["x/generated/a.rs", "python/cuda/bindings/a.pyi"] {
            assert_eq!(violations(name, &"x\n".repeat(801)), 1, "{name}");
            let marked = format!("# cargo xtask codegen\n{}", "x\n".repeat(801));
            assert_eq!(violations(name, &marked), 0, "{name}");
        }
        assert_eq!(violations("a.md", concat!("see /wo", "rk/x")), 1);
        assert_eq!(violations("a.py", "raise NotImplementedError\n"), 1);
    }
}
