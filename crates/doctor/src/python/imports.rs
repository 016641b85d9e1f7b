//! Python's path finder, on the file system: which file an import takes.

use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::{FileEntry, FileSystem};

/// The depth of modules below `cuda/`.
const DEEPEST: usize = 6;

/// Python's path finder for files: import hooks and zip archives are ignored.
pub(crate) struct Imports<'a> {
    /// `sys.path`.
    pub(crate) path: &'a [PathBuf],
    /// The endings of module files in the order in which Python tries them.
    pub(crate) suffixes: &'a [String],
    pub(crate) files: &'a dyn FileSystem,
}

/// What a name refers to in one folder.
pub(super) enum In {
    /// A package: its folder and its `__init__` file.
    Package(PathBuf, PathBuf),
    /// A module.
    Module(PathBuf),
    /// A folder without `__init__`: a portion of a namespace package.
    Portion(PathBuf),
    Nothing,
}

impl Imports<'_> {
    /// What `name` refers to in this folder.
    pub(super) fn in_folder(&self, folder: &Path, name: &str) -> In {
        let package = folder.join(name);
        let is_folder = self.files.entry(&package) == FileEntry::Folder;
        if is_folder && let Some(init) = self.with_suffix(&package, "__init__") {
            return In::Package(package, init);
        }
        if let Some(file) = self.with_suffix(folder, name) {
            return In::Module(file);
        }
        if is_folder {
            return In::Portion(package);
        }
        In::Nothing
    }

    fn with_suffix(&self, folder: &Path, name: &str) -> Option<PathBuf> {
        self.suffixes
            .iter()
            .map(|suffix| folder.join(format!("{name}{suffix}")))
            .find(|file| matches!(self.files.entry(file), FileEntry::File(_)))
    }

    /// The file that `import name` would run; `None` if no file or only folders without `__init__` match.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        let mut path: Vec<PathBuf> = self.path.to_vec();
        let mut parts = name.split('.').peekable();
        while let Some(part) = parts.next() {
            if part.is_empty() {
                return None;
            }
            let mut portions = Vec::new();
            let mut next = None;
            for folder in &path {
                match self.in_folder(folder, part) {
                    In::Package(folder, init) => {
                        next = Some((Some(folder), init));
                        break;
                    }
                    In::Module(file) => {
                        next = Some((None, file));
                        break;
                    }
                    In::Portion(folder) => portions.push(folder),
                    In::Nothing => {}
                }
            }
            let last = parts.peek().is_none();
            match next {
                Some((_, file)) if last => return Some(file),
                Some((Some(folder), _)) => path = vec![folder],
                Some((None, _)) => return None,
                None if portions.is_empty() => return None,
                None => path = portions,
            }
        }
        None
    }

    /// Every file on the path for this top-level package or module, in search order.
    pub(crate) fn all(&self, name: &str) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Vec::new();
        for folder in self.path {
            if let In::Package(_, file) | In::Module(file) = self.in_folder(folder, name)
                && !found.iter().any(|old| same_file(old, &file, self.files))
            {
                found.push(file);
            }
        }
        found
    }

    /// The module name of a file below a path entry, such as `cuda.bindings.driver`.
    pub(super) fn module_of(&self, relative: &str) -> Option<String> {
        let stem = self
            .suffixes
            .iter()
            .filter(|suffix| relative.ends_with(suffix.as_str()))
            .max_by_key(|suffix| suffix.len())
            .map(|suffix| &relative[..relative.len() - suffix.len()])?;
        let stem = stem.strip_suffix("/__init__").unwrap_or(stem);
        let name = stem.replace('/', ".");
        let good =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
        name.split('.').all(good).then_some(name)
    }

    /// The modules below `folder/top`, without an installer's list.
    pub(super) fn modules_below(&self, folder: &Path, top: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut left = vec![(top.to_owned(), 0)];
        while let Some((relative, depth)) = left.pop() {
            let Ok(mut names) = self.files.list(&folder.join(&relative)) else {
                continue;
            };
            names.sort();
            for name in names {
                let Some(name) = name.to_str() else { continue };
                let below = format!("{relative}/{name}");
                if name == "__pycache__" {
                    continue;
                }
                match self.files.entry(&folder.join(&below)) {
                    FileEntry::Folder if depth < DEEPEST => left.push((below, depth + 1)),
                    FileEntry::File(_) => found.extend(self.module_of(&below)),
                    _ => {}
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

/// Whether two paths are equal after resolving links.
pub(super) fn same_file(a: &Path, b: &Path, files: &dyn FileSystem) -> bool {
    a == b
        || files
            .resolve(a)
            .is_some_and(|end| files.resolve(b) == Some(end))
}
