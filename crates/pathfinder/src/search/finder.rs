//! What a search depends on.

use crate::environment::Environment;
use crate::files::{self, FileSystem};
use crate::loader::{self, DynamicLoader};
use crate::platform::Platform;

/// Everything a search depends on.
#[derive(Clone, Copy)]
pub struct Finder<'a> {
    /// Whose layouts and names.
    pub platform: Platform,
    /// Variables and the folders of the Python installation.
    pub environment: &'a Environment,
    /// The file system.
    pub files: &'a dyn FileSystem,
    /// The dynamic loader.
    pub loader: &'a dyn DynamicLoader,
}

impl<'a> Finder<'a> {
    /// A search on this machine, with its own loader and file system.
    pub fn new(environment: &'a Environment) -> Finder<'a> {
        Finder {
            platform: Platform::CURRENT,
            environment,
            files: &files::HostFiles,
            loader: &loader::SystemLoader,
        }
    }
}
