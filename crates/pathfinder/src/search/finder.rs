//! The inputs of a search.

use crate::environment::Environment;
use crate::files::{self, FileSystem};
use crate::loader::{self, DynamicLoader};
use crate::platform::Platform;

/// The inputs of a search. All of them can be replaced, so that tests cover every platform on any.
#[derive(Clone, Copy)]
pub struct Finder<'a> {
    /// The platform whose layouts and names apply.
    pub platform: Platform,
    /// Environment variables and the folders of the Python installation.
    pub environment: &'a Environment,
    /// The file system.
    pub files: &'a dyn FileSystem,
    /// The dynamic loader.
    pub loader: &'a dyn DynamicLoader,
}

impl<'a> Finder<'a> {
    /// A finder for this machine, with its loader and file system.
    pub fn new(environment: &'a Environment) -> Finder<'a> {
        Finder {
            platform: Platform::CURRENT,
            environment,
            files: &files::HostFiles,
            loader: &loader::SystemLoader,
        }
    }
}
