//! The names of Cupyrite's environment variables: the only list of them. The doctor reads it as well.
//!
//! Each module reads the values of its own variables. A variable that begins with `CUPYRITE_` and is not in the list is
//! an error on the first use of a library: a misspelt `CUPYRITE_DEVICE` must not select another device than intended.

use std::ffi::OsString;

use cupyrite_pathfinder::LIBRARIES;

use super::{LoadError, LoadErrorKind};

/// Prefix of all names.
pub const PREFIX: &str = "CUPYRITE_";

/// Prefix of the variables for the locations of libraries; the name of the library follows in capitals.
pub const LIBRARY_PREFIX: &str = "CUPYRITE_LIB_";

/// Prefix of the variables of tests, which are not listed.
const TEST_PREFIX: &str = "CUPYRITE_TEST_";

/// Variables for users (docs/environment.md).
pub const SETTINGS: &[&str] = &[
    "CUPYRITE_CPU_COMPUTE_CAPABILITY",
    "CUPYRITE_CPU_DEVICES",
    "CUPYRITE_CPU_DUMP",
    "CUPYRITE_CPU_DUMP_FOLDER",
    "CUPYRITE_CPU_INSTRUCTIONS",
    "CUPYRITE_CPU_MEMORY",
    "CUPYRITE_CPU_THREADS",
    "CUPYRITE_CPU_TIER",
    "CUPYRITE_CUDA_MAJOR",
    "CUPYRITE_DEVICE",
    "CUPYRITE_LINKER",
    "CUPYRITE_RUNTIME",
    "CUPYRITE_STRICT_ABI",
];

/// Variables of this project's tests, benchmarks and examples, which their processes inherit.
pub const PROJECT: &[&str] = &[
    "CUPYRITE_CUDARC_FOLDER",
    "CUPYRITE_CYCLES",
    "CUPYRITE_DIFFERENTIAL_SECONDS",
    "CUPYRITE_EXAMPLE_TOLD",
    "CUPYRITE_FUZZ_EXAMPLES",
    "CUPYRITE_GRAPH_BUILDS",
    "CUPYRITE_PEER_PYTHON",
    "CUPYRITE_REQUIRE_WHEELS",
];

/// Whether a variable has Cupyrite's prefix and is not in the list.
pub fn is_unknown(name: &str) -> bool {
    if !name.starts_with(PREFIX) || name.starts_with(TEST_PREFIX) {
        return false;
    }
    match name.strip_prefix(LIBRARY_PREFIX) {
        Some(library) => LIBRARIES
            .iter()
            .all(|row| row.name.to_uppercase() != library),
        None => !SETTINGS.contains(&name) && !PROJECT.contains(&name),
    }
}

/// The known names with the fewest differences from an unknown one, the nearest first: one or two.
pub fn nearest(unknown: &str) -> Vec<String> {
    let libraries = LIBRARIES
        .iter()
        .map(|row| format!("{LIBRARY_PREFIX}{}", row.name.to_uppercase()));
    let settings = SETTINGS.iter().map(|&name| name.to_owned());
    let mut known: Vec<(usize, String)> = if unknown.starts_with(LIBRARY_PREFIX) {
        libraries
            .map(|name| (distance(unknown, &name), name))
            .collect()
    } else {
        settings
            .map(|name| (distance(unknown, &name), name))
            .collect()
    };
    known.sort();
    let fewest = known.first().map_or(0, |(edits, _)| *edits);
    known.retain(|(edits, _)| *edits <= fewest + 1);
    known.into_iter().take(2).map(|(_, name)| name).collect()
}

/// Refuses unknown variables of this process. Empty ones count as unset.
///
/// # Errors
///
/// [`LoadErrorKind::InvalidSelection`], with the nearest known names.
pub fn check_names() -> Result<(), LoadError> {
    match find_unknown(std::env::vars_os()) {
        None => Ok(()),
        Some(name) => Err(LoadError::plain(
            LoadErrorKind::InvalidSelection,
            unknown_message(&name),
        )),
    }
}

/// The first unknown variable that is not empty.
fn find_unknown(variables: impl Iterator<Item = (OsString, OsString)>) -> Option<String> {
    variables
        .filter(|(_, value)| !value.is_empty())
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| is_unknown(name))
        .min()
}

fn unknown_message(name: &str) -> String {
    let what = match name.strip_prefix(LIBRARY_PREFIX) {
        Some(library) => format!("there is no library {library}"),
        None => "Cupyrite has no such environment variable".to_owned(),
    };
    let nearest = nearest(name).join(" or ");
    format!("{name}: {what}; did you mean {nearest}? Correct it, or unset {name}")
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(200).enumerate() {
        let mut before = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let here = (before + usize::from(x != *y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            before = std::mem::replace(&mut row[j + 1], here);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn unknown_names_are_found() {
        let unknown = |name: &str, value: &str| {
            find_unknown([(name.into(), value.into())].into_iter()).is_some()
        };
        for known in [
            "PATH",
            "CUPYRITE",
            "CUPYRITE_DEVICE",
            "CUPYRITE_LIB_CUBLASLT",
            "CUPYRITE_LIB_NVJITLINK",
            "CUPYRITE_TEST_ANYTHING",
            "CUPYRITE_REQUIRE_WHEELS",
        ] {
            assert!(!unknown(known, "1"), "{known}");
        }
        for wrong in [
            "CUPYRITE_NO_SUCH_SETTING",
            "CUPYRITE_DEVISE",
            "CUPYRITE_LIB_NVRTX",
            "CUPYRITE_LIB_",
            "CUPYRITE_device",
        ] {
            assert!(unknown(wrong, "1"), "{wrong}");
            assert!(!unknown(wrong, ""), "{wrong}");
        }
    }

    #[test]
    fn messages_have_the_nearest_names() {
        assert_eq!(nearest("CUPYRITE_DEVISE"), ["CUPYRITE_DEVICE"]);
        assert_eq!(nearest("CUPYRITE_CPU_DEVICE")[0], "CUPYRITE_CPU_DEVICES");
        assert_eq!(nearest("CUPYRITE_LIB_NVRTX")[0], "CUPYRITE_LIB_NVRTC");
        assert_eq!(
            unknown_message("CUPYRITE_DEVISE"),
            "CUPYRITE_DEVISE: Cupyrite has no such environment variable; did you mean CUPYRITE_DEVICE? Correct it, or unset \
             CUPYRITE_DEVISE"
        );
    }

    /// Words in `text` that are names of variables.
    fn names(text: &str) -> BTreeSet<&str> {
        text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
            .filter(|word| word.starts_with(PREFIX) && !word.ends_with('_'))
            .filter(|word| !word.starts_with(LIBRARY_PREFIX) && !word.starts_with(TEST_PREFIX))
            .collect()
    }

    #[test]
    fn the_list_is_that_of_the_documentation() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/environment.md");
        // The published crate does not contain the page.
        let Ok(page) = std::fs::read_to_string(page) else {
            return;
        };
        let (users, project) = page.split_once("## For the project's own").unwrap();
        assert_eq!(names(users), SETTINGS.iter().copied().collect());
        let project = names(project);
        assert!(
            project.iter().all(|name| PROJECT.contains(name)),
            "{project:?}"
        );
    }
}
