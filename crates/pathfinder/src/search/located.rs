//! Results of searches.

use std::path::PathBuf;

use crate::error::SearchedLocation;
use crate::found_via::FoundVia;
use crate::loader::LibraryHandle;
use crate::table::LibraryDescriptor;

/// A loaded library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedLibrary {
    /// Its descriptor.
    pub library: &'static LibraryDescriptor,
    /// Handle for symbol lookup; never closed.
    pub handle: LibraryHandle,
    /// The file, as the loader reports it.
    pub path: PathBuf,
    /// The step that found it. A library that this crate loaded before keeps its original step, so that repeated
    /// calls agree.
    pub found_via: FoundVia,
}

/// A located library; not loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedLibrary {
    /// Its descriptor.
    pub library: &'static LibraryDescriptor,
    /// The file.
    pub path: PathBuf,
    /// The step that found it.
    pub found_via: FoundVia,
    /// The CUDA major it is built for, if its name, folder or dependencies imply one.
    pub major: Option<u32>,
    /// Its version, such as `13.0.88`, if the name of the file, package or toolkit contains it.
    pub version: Option<String>,
    /// The locations searched before, in order.
    pub searched: Vec<SearchedLocation>,
}

/// A folder of headers, a tool, a static library or a bitcode library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedPath {
    /// The name in its table.
    pub name: &'static str,
    /// The folder or the file.
    pub path: PathBuf,
    /// The step that found it.
    pub found_via: FoundVia,
}
