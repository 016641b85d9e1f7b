//! Searches for every library, set of headers and tool in the tables. Loads nothing.

use std::path::Path;

use cupyrite_pathfinder::files::FileSystem;
use cupyrite_pathfinder::table::{BINARIES, HEADERS, LIBRARIES};
use cupyrite_pathfinder::{
    FindError, FindErrorKind, Finder, LoadError, LoadErrorKind, LocatedPath,
};

use super::machine;
use super::report::{Item, ItemState, Version};

/// A library, and the search's advice if there is a problem with it.
pub(crate) struct Looked {
    pub(crate) item: Item,
    pub(crate) advice: Vec<String>,
}

/// Every library.
pub(crate) fn libraries(finder: &Finder<'_>) -> Vec<Looked> {
    let all = LIBRARIES.iter();
    all.map(|row| library(finder, row.name)).collect()
}

/// One library.
pub(crate) fn library(finder: &Finder<'_>, name: &str) -> Looked {
    let mut item = missing(name);
    let mut advice = Vec::new();
    match finder.locate(name) {
        Ok(located) => {
            item.state = ItemState::Found;
            item.path = Some(located.path);
            item.found_via = Some(located.found_via.to_string());
            item.version = located.version;
            item.major = located.major;
        }
        Err(error) => match error.kind {
            LoadErrorKind::NotAvailable => item.state = ItemState::Unavailable,
            LoadErrorKind::Failed => {
                item.state = ItemState::Broken;
                item.path.clone_from(&error.file);
                item.reason = Some(why_broken(&error));
                advice = error.advice();
            }
            // An invalid variable is reported separately.
            LoadErrorKind::InvalidSetting => item.reason = Some(why_broken(&error)),
            _ => {}
        },
    }
    Looked { item, advice }
}

/// Libraries that are installed for both CUDA majors: 12 and 13.
pub(crate) fn of_both_majors(finder: &Finder<'_>) -> Vec<[Item; 2]> {
    let of = |major| {
        let mut environment = finder.environment.clone();
        environment.major = Some(major);
        let finder = Finder {
            environment: &environment,
            ..*finder
        };
        let all = LIBRARIES.iter();
        all.map(|row| library(&finder, row.name).item)
            .collect::<Vec<_>>()
    };
    let there = |item: &Item, major| item.state == ItemState::Found && item.major == Some(major);
    of(12)
        .into_iter()
        .zip(of(13))
        .filter(|(old, new)| there(old, 12) && there(new, 13))
        .map(|(old, new)| [old, new])
        .collect()
}

/// The search's last message about a rejected file.
fn why_broken(error: &LoadError) -> String {
    match error.searched.last() {
        Some(looked) => looked.outcome.to_string(),
        None => error.to_string().lines().next().unwrap_or("").to_owned(),
    }
}

fn missing(name: &str) -> Item {
    Item {
        name: name.to_owned(),
        state: ItemState::Missing,
        path: None,
        found_via: None,
        version: None,
        major: None,
        reason: None,
    }
}

/// Every set of headers; those of the CUDA runtime state their version.
pub(crate) fn headers(finder: &Finder<'_>) -> Vec<Item> {
    HEADERS
        .iter()
        .map(|row| {
            let mut item = found(row.name, finder.find_header_directory(row.name));
            if row.name == "cudart"
                && let Some(folder) = &item.path
                && let Some(version) = toolkit_version(folder, finder.files)
            {
                item.version = Some(version.to_string());
                item.major = Some(version.major);
            }
            item
        })
        .collect()
}

/// Every tool.
pub(crate) fn tools(finder: &Finder<'_>) -> Vec<Item> {
    BINARIES
        .iter()
        .map(|row| found(row.name, finder.find_binary(row.name)))
        .collect()
}

fn found(name: &str, result: Result<Option<LocatedPath>, FindError>) -> Item {
    let mut item = missing(name);
    match result {
        Ok(Some(found)) => {
            item.state = ItemState::Found;
            item.path = Some(found.path);
            item.found_via = Some(found.found_via.to_string());
        }
        Ok(None) => {}
        Err(error) => match error.kind {
            FindErrorKind::NotAvailable => item.state = ItemState::Unavailable,
            FindErrorKind::NotFound => {}
            _ => {
                item.state = ItemState::Broken;
                item.reason = error.to_string().lines().next().map(str::to_owned);
            }
        },
    }
    item
}

/// `CUDART_VERSION`, as `cuda_runtime_api.h` defines it.
fn toolkit_version(folder: &Path, files: &dyn FileSystem) -> Option<Version> {
    let file = folder.join("cuda_runtime_api.h");
    let text = machine::text(files, file)?;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("#define CUDART_VERSION"))?;
    line.trim().parse().ok().map(Version::from_number)
}
