//! What a search gives back.

use std::path::PathBuf;

use crate::error::SearchedLocation;
use crate::found_via::FoundVia;
use crate::loader::LibraryHandle;
use crate::table::LibraryDescriptor;

/// A library in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedLibrary {
    /// The row it belongs to.
    pub library: &'static LibraryDescriptor,
    /// For symbols; never closed.
    pub handle: LibraryHandle,
    /// The file, as the loader names it.
    pub path: PathBuf,
    /// The step that found it. What this crate has loaded before keeps the step of that time, so that a
    /// repeated call answers as the first one did.
    pub found_via: FoundVia,
}

/// A library that would be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedLibrary {
    /// The row it belongs to.
    pub library: &'static LibraryDescriptor,
    /// The file.
    pub path: PathBuf,
    /// The step that found it.
    pub found_via: FoundVia,
    /// The CUDA major it is built for, where its name, folder or dependencies tell.
    pub major: Option<u32>,
    /// Its version, such as `13.0.88`, where that can be read off the file's, the package's or the toolkit's
    /// own words.
    pub version: Option<String>,
    /// Every place that was looked at before, in order.
    pub searched: Vec<SearchedLocation>,
}

/// A folder of headers, a tool or an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedPath {
    /// The name in its table.
    pub name: &'static str,
    /// The folder or the file.
    pub path: PathBuf,
    /// The step that found it.
    pub found_via: FoundVia,
}
