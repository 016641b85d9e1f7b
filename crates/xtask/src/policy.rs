//! Rules on files that no other tool checks.

use std::fs;
use std::path::Path;

use crate::Error;
use crate::environment::Env;
use crate::report::output;

/// Lines of a hand-written source file beyond which it should be split.
const LONGEST: usize = 1000;
/// Bytes: the wheel, and what it unpacks to.
const WHEEL_BUDGET: u64 = 5_000_000;
const INSTALLED_BUDGET: u64 = 15_000_000;
/// Folders of the machine something was written on; split so that this file passes its own check.
const FOREIGN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/tm", "p/t/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Checks every file that git knows.
pub fn check(root: &Path) -> Result<(), Error> {
    let files = output(std::process::Command::new("git").arg("-C").arg(root).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let mut wrong = Vec::new();
    if root.join("python/cuda/__init__.py").exists() {
        wrong.push(
            "python/cuda/__init__.py: `cuda` is a namespace that other packages share".to_owned(),
        );
    }
    for name in files.lines() {
        let Ok(text) = fs::read_to_string(root.join(name)) else {
            continue; // binary, or deleted and not yet committed
        };
        check_file(name, &text, &mut wrong);
    }
    if wrong.is_empty() {
        println!("{} files keep the rules", files.lines().count());
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

fn check_file(name: &str, text: &str, wrong: &mut Vec<String>) {
    let generated = name.contains("/generated/");
    let source = [".rs", ".py", ".pyi"].iter().any(|end| name.ends_with(end));
    if generated
        && source
        && !text
            .lines()
            .take(3)
            .any(|line| line.contains("cargo xtask codegen"))
    {
        wrong.push(format!(
            "{name}: does not begin with the command that generates it"
        ));
    }
    let lines = text.lines().count();
    if source && !generated && !name.ends_with(".pyi") && lines > LONGEST {
        wrong.push(format!(
            "{name}: {lines} lines; split it by idea (at most {LONGEST})"
        ));
    }
    for folder in FOREIGN {
        if let Some(at) = text.find(folder) {
            let line = text[..at].lines().count().max(1);
            wrong.push(format!(
                "{name}:{line}: names a folder of some machine ({folder})"
            ));
        }
    }
    if source && !generated {
        for word in [
            "todo!(",
            "unimplemented!(",
            // Only the statement: an abstract method and a clear refusal may say it through PyO3.
            "raise NotImplementedError",
            concat!("FIX", "ME"),
        ] {
            let exempt = name.starts_with("crates/xtask/") || name.starts_with("tests/");
            if text.contains(word) && !exempt {
                wrong.push(format!("{name}: {word}...: unfinished"));
            }
        }
    }
}

/// Checks the size of the wheel and of what it installs.
pub fn sizes(env: &Env) -> Result<(), Error> {
    let wheel = env.build_wheel()?;
    let packed = fs::metadata(&wheel).map_or(0, |data| data.len());
    let script = "import sys, zipfile; print(sum(i.file_size for i in zipfile.ZipFile(sys.argv[1]).infolist()))";
    let text = output(env.command().args(["-c", script]).arg(&wheel))?;
    let unpacked: u64 = text.trim().parse().map_err(|e| format!("{text:?}: {e}"))?;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "wheel {:.2} MB of {:.0}, installed {:.2} MB of {:.0}",
        megabytes(packed),
        megabytes(WHEEL_BUDGET),
        megabytes(unpacked),
        megabytes(INSTALLED_BUDGET)
    );
    if packed > WHEEL_BUDGET || unpacked > INSTALLED_BUDGET {
        return Err("over the budget of the design".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_file;

    fn wrong(name: &str, text: &str) -> usize {
        let mut wrong = Vec::new();
        check_file(name, text, &mut wrong);
        wrong.len()
    }

    #[test]
    fn rules() {
        assert_eq!(wrong("a.rs", "fn main() {}\n"), 0);
        assert_eq!(wrong("a.rs", &"x\n".repeat(1001)), 1);
        assert_eq!(wrong("x/generated/a.rs", &"x\n".repeat(1001)), 1);
        assert_eq!(wrong("x/generated/a.rs", "// cargo xtask codegen\n"), 0);
        assert_eq!(wrong("a.md", concat!("see /wo", "rk/x")), 1);
        assert_eq!(wrong("a.py", "raise NotImplementedError\n"), 1);
    }
}
