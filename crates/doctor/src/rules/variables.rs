//! Invalid values of environment variables.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::{FileEntry, FileSystem};
use cupyrite_sys::loader;
use cupyrite_sys::loader::variables::{LIBRARY_PREFIX, is_unknown, nearest};

use crate::report::{Fix, Problem, Severity};
use crate::variables::{Variables, product_variables, value};

/// Those that name the root of a toolkit, by precedence.
const TOOLKITS: [&str; 2] = ["CUDA_PATH", "CUDA_HOME"];

/// Invalid values.
pub(crate) fn all(variables: &Variables, files: &dyn FileSystem) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, given) in variables {
        let Some(name) = name.to_str() else { continue };
        if given.is_empty() {
            continue;
        }
        if is_unknown(name) {
            found.push(unknown(name));
        } else if name.starts_with(LIBRARY_PREFIX) {
            found.extend(path_problem(name, Path::new(given), files, true));
        } else if TOOLKITS.contains(&name)
            || name == "CONDA_PREFIX"
            || product_variables().contains(&name)
        {
            found.extend(path_problem(name, Path::new(given), files, false));
        }
    }
    found.extend(values(variables));
    found.extend(two_toolkits(variables, files));
    found
}

fn unset(name: &str) -> Fix {
    Fix::command(format!("unset {name}"))
}

fn unknown(name: &str) -> Problem {
    let what = match name.strip_prefix(LIBRARY_PREFIX) {
        Some(library) => format!("{name} is set, but no library is called {library}"),
        None => format!("{name} is set, but Cupyrite has no such variable"),
    };
    let nearest = nearest(name).join(" or ");
    Problem {
        code: "variable-unknown",
        severity: Severity::Error,
        what,
        why: format!("Every first use of a CUDA library fails. The closest name is {nearest}."),
        fix: vec![unset(name)],
    }
}

/// A path that does not exist.
fn path_problem(
    name: &str,
    path: &Path,
    files: &dyn FileSystem,
    file_too: bool,
) -> Option<Problem> {
    let shown = path.display();
    let (code, what) = if !path.is_absolute() {
        let what = format!("{name}={shown} is a relative path");
        ("variable-relative", what)
    } else {
        let what = match files.entry(path) {
            FileEntry::Folder => return None,
            FileEntry::File(_) if file_too => return None,
            FileEntry::File(_) => format!("{name}={shown} is a file, not a folder"),
            FileEntry::Absent => format!("{name}={shown} does not exist"),
            FileEntry::Dangling(target) => format!(
                "{name}={shown} is a link to {}, which does not exist",
                target.display()
            ),
            FileEntry::LinkCycle => format!("{name}={shown} is a cycle of links"),
            FileEntry::Denied(message) => format!("{name}={shown} cannot be looked at: {message}"),
            FileEntry::Special => format!("{name}={shown} is neither a file nor a folder"),
        };
        ("variable-path", what)
    };
    let why = match code {
        "variable-relative" => {
            "What it means would depend on the working directory, so it is passed over."
        }
        _ if file_too => "The library is looked for there and nowhere else.",
        _ => "Nothing is found there.",
    };
    let kind = if file_too {
        "the library or its folder"
    } else {
        "an installation"
    };
    Some(Problem {
        code,
        severity: Severity::Warning,
        what,
        why: why.to_owned(),
        fix: vec![
            unset(name),
            Fix::advice(format!("or set {name} to the absolute path of {kind}")),
        ],
    })
}

/// Variables with a number or one of a few words.
fn values(variables: &Variables) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut invalid = |name: &str, given: &OsStr, right: &str| {
        found.push(Problem {
            code: "variable-value",
            severity: Severity::Warning,
            what: format!("{name}='{}': expected {right}", given.to_string_lossy()),
            why: "The variable has an invalid value.".to_owned(),
            fix: vec![unset(name)],
        });
    };
    let number = |given: &OsStr| given.to_str().and_then(|text| text.trim().parse().ok());
    for (name, right) in [
        ("CUPYRITE_CPU_THREADS", "an integer from 1"),
        ("CUPYRITE_CPU_DEVICES", "an integer from 1"),
        ("CUPYRITE_CPU_MEMORY", "a number of bytes"),
    ] {
        if let Some(given) = value(variables, name)
            && number(given).is_none_or(|number: u64| number == 0)
        {
            invalid(name, given, right);
        }
    }
    for (name, words, right) in [
        (
            "CUPYRITE_RUNTIME",
            &["auto", "cudart", "own"][..],
            "auto, cudart or own",
        ),
        (
            "CUPYRITE_LINKER",
            &["auto", "nvjitlink", "driver"],
            "auto, nvjitlink or driver",
        ),
        ("CUPYRITE_CPU_TIER", &["1", "2", "auto"], "1, 2 or auto"),
        (
            "CUPYRITE_CPU_INSTRUCTIONS",
            &["avx2", "avx512"],
            "avx2 or avx512",
        ),
    ] {
        if let Some(given) = value(variables, name)
            && !words
                .iter()
                .any(|word| given.to_string_lossy().trim().eq_ignore_ascii_case(word))
        {
            invalid(name, given, right);
        }
    }
    const PER_THREAD: &str = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM";
    // Unlike in the other variables, an empty value is invalid, as in NVIDIA's package.
    if let Some(given) = variables.get(OsStr::new(PER_THREAD))
        && loader::selects_per_thread_default_stream(&given.to_string_lossy()).is_none()
    {
        invalid(PER_THREAD, given, loader::PER_THREAD_DEFAULT_STREAM_VALUES);
    }
    if let Some(given) = value(variables, "CUPYRITE_CUDA_MAJOR")
        && !matches!(number(given), Some(12u64 | 13))
    {
        invalid("CUPYRITE_CUDA_MAJOR", given, "12 or 13");
    }
    found
}

/// `CUDA_PATH` and `CUDA_HOME` that name different toolkits.
fn two_toolkits(variables: &Variables, files: &dyn FileSystem) -> Option<Problem> {
    let [path, home] = TOOLKITS.map(|name| value(variables, name).map(PathBuf::from));
    let (path, home) = (path?, home?);
    let end = |path: &Path| files.resolve(path).unwrap_or_else(|| path.to_owned());
    if end(&path) == end(&home) {
        return None;
    }
    Some(Problem {
        code: "toolkits-differ",
        severity: Severity::Warning,
        what: "CUDA_PATH and CUDA_HOME name different folders".to_owned(),
        why: format!(
            "CUDA_PATH={} counts; other programs may take CUDA_HOME={}.",
            path.display(),
            home.display()
        ),
        fix: vec![unset("CUDA_HOME")],
    })
}
