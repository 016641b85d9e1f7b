//! What Python would import, read from the file system: its path finder's rules, the installers' file lists, and
//! conflicts between packages that write into the same folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::{FileEntry, FileSystem};
use sha2::{Digest, Sha256};

use super::report::{ModuleOrigin, Package};
use super::rules::CLIENTS;

/// NVIDIA's packages whose modules Cupyrite replaces, and Cupyrite's stand-ins for them.
pub(crate) const SHARED_NAMES: &[&str] = &[
    "cuda-bindings",
    "cuda-core",
    "cuda-pathfinder",
    "cuda-python",
];
/// The package with the native module.
pub(crate) const OURS: &str = "cupyrite";
/// What the local label of a stand-in's version begins with; Cupyrite's version follows.
const LABEL: &str = "cupyrite.";

/// The version of Cupyrite that a stand-in with this version belongs to: `0.1.0` of `13.5.0+cupyrite.0.1.0`.
pub(crate) fn stand_in_of(version: &str) -> Option<&str> {
    version.split_once('+')?.1.strip_prefix(LABEL)
}

/// Larger lists of installed files are not read.
const LONGEST_LIST: usize = 16 << 20;
/// Larger files are compared by size only.
const LONGEST_FILE: u64 = 64 << 20;
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
enum In {
    /// A package: its folder and its `__init__` file.
    Package(PathBuf, PathBuf),
    /// A module.
    Module(PathBuf),
    /// A folder without `__init__`: a portion of a namespace package.
    Portion(PathBuf),
    Nothing,
}

impl Imports<'_> {
    fn in_folder(&self, folder: &Path, name: &str) -> In {
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
    fn module_of(&self, relative: &str) -> Option<String> {
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
    fn modules_below(&self, folder: &Path, top: &str) -> Vec<String> {
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

/// An installed package, known from its `.dist-info` folder.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its path entry.
    pub(crate) root: PathBuf,
    /// Its files, by path below `root`; `None` if the list cannot be read.
    pub(crate) files: Option<BTreeMap<String, Listed>>,
    /// What it was installed from, if that was no package index (PEP 610).
    pub(crate) source: Option<String>,
}

/// A file's entry in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    sha256: Option<String>,
    size: Option<u64>,
}

/// The current state of an installed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The same file.
    Kept,
    /// Missing.
    Gone,
    /// Different content.
    Changed,
}

impl Installed {
    /// The installed packages with these names, in pip's spelling, and their locations.
    pub(crate) fn all(path: &[PathBuf], names: &[&str], files: &dyn FileSystem) -> Vec<Installed> {
        let mut found: Vec<Installed> = Vec::new();
        let mut seen: Vec<PathBuf> = Vec::new();
        for root in path {
            let real = files.resolve(root).unwrap_or_else(|| root.clone());
            if seen.contains(&real) {
                continue;
            }
            seen.push(real);
            let Ok(mut entries) = files.list(root) else {
                continue;
            };
            entries.sort();
            for entry in entries {
                let Some(stem) = entry.to_str().and_then(|e| e.strip_suffix(".dist-info")) else {
                    continue;
                };
                let (name, version) = stem.rsplit_once('-').unwrap_or((stem, ""));
                let name = normal(name);
                if !names.contains(&name.as_str()) {
                    continue;
                }
                let info = root.join(&entry);
                found.push(Installed {
                    version: version.to_owned(),
                    files: read_list(&info.join("RECORD"), files),
                    source: read_source(&info.join("direct_url.json"), files),
                    root: root.clone(),
                    name,
                });
            }
        }
        found
    }

    /// Whether it is Cupyrite's native package or one of the stand-ins.
    fn is_ours(&self) -> bool {
        self.name == OURS || stand_in_of(&self.version).is_some()
    }

    /// Whether it is one of NVIDIA's packages.
    fn is_peer(&self) -> bool {
        SHARED_NAMES.contains(&self.name.as_str()) && !self.is_ours()
    }

    /// The current state of one of its files. Only files that several packages claim are read, others are compared by
    /// size.
    pub(crate) fn fate(&self, relative: &str, contested: bool, files: &dyn FileSystem) -> Fate {
        let Some(listed) = self.files.as_ref().and_then(|list| list.get(relative)) else {
            return Fate::Changed;
        };
        let path = self.root.join(relative);
        let FileEntry::File(size) = files.entry(&path) else {
            return Fate::Gone;
        };
        if listed.size.is_some_and(|listed| listed != size) {
            return Fate::Changed;
        }
        if contested
            && size <= LONGEST_FILE
            && let Some(expected) = &listed.sha256
            && let Ok(bytes) = files.read(&path, 0, size as usize + 1)
            && *expected != base64(&Sha256::digest(&bytes))
        {
            return Fate::Changed;
        }
        Fate::Kept
    }
}

/// A package's name as pip compares it.
fn normal(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '-' | '_' | '.' => {
                if !out.ends_with('-') {
                    out.push('-');
                }
            }
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// Parses a `RECORD`: lines of path, `sha256=digest`, size (Python Packaging User Guide, "Recording installed
/// projects"). Other lines are skipped.
fn read_list(path: &Path, files: &dyn FileSystem) -> Option<BTreeMap<String, Listed>> {
    if !matches!(files.entry(path), FileEntry::File(size) if size <= LONGEST_LIST as u64) {
        return None;
    }
    let bytes = files.read(path, 0, LONGEST_LIST).ok()?;
    let mut list = BTreeMap::new();
    for line in String::from_utf8_lossy(&bytes).lines() {
        let mut fields = line.trim_end().rsplitn(3, ',');
        let (Some(size), Some(digest), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let path = match path.strip_prefix('"').and_then(|p| p.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => path.to_owned(),
        };
        list.insert(
            path,
            Listed {
                sha256: digest.strip_prefix("sha256=").map(str::to_owned),
                size: size.parse().ok(),
            },
        );
    }
    Some(list)
}

/// The path or URL in a `direct_url.json`, if it still exists as far as that can be seen.
fn read_source(path: &Path, files: &dyn FileSystem) -> Option<String> {
    if !matches!(files.entry(path), FileEntry::File(size) if size <= LONGEST_LIST as u64) {
        return None;
    }
    let bytes = files.read(path, 0, LONGEST_LIST).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let url = text
        .split_once("\"url\"")?
        .1
        .split('"')
        .nth(1)
        .filter(|url| !url.contains('\\'))?;
    let Some(local) = url.strip_prefix("file://") else {
        return Some(url.to_owned());
    };
    let local = decoded(local)?;
    (files.entry(Path::new(&local)) != FileEntry::Absent).then_some(local)
}

/// A URL's path without percent-encoding.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// URL-safe base64 without padding, as in lists of installed files.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut number = 0u32;
        for place in 0..3 {
            number = number << 8 | u32::from(chunk.get(place).copied().unwrap_or(0));
        }
        for place in 0..=chunk.len() {
            let digit = number >> (18 - 6 * place) & 63;
            out.push(DIGITS[digit as usize] as char);
        }
    }
    out
}

/// Whether two paths are equal after resolving links.
fn same_file(a: &Path, b: &Path, files: &dyn FileSystem) -> bool {
    a == b
        || files
            .resolve(a)
            .is_some_and(|end| files.resolve(b) == Some(end))
}

/// Findings about packages and modules.
#[derive(Debug, Default)]
pub(crate) struct Python {
    pub(crate) packages: Vec<Package>,
    pub(crate) modules: Vec<ModuleOrigin>,
    /// Missing files of Cupyrite.
    pub(crate) missing: Vec<PathBuf>,
    /// Files of Cupyrite with content that no package's list contains.
    pub(crate) changed: Vec<PathBuf>,
    /// Numbers of a peer's files that Cupyrite has overwritten, or that are missing.
    pub(crate) peers_damaged: Vec<(String, usize)>,
    /// Every `cupyrite` on the path.
    pub(crate) copies: Vec<PathBuf>,
    /// A `cuda/__init__` file: Python then ignores all other `cuda` folders.
    pub(crate) cuda_init: Option<PathBuf>,
    /// Where NumPy would come from.
    pub(crate) numpy: Option<PathBuf>,
    /// Packages that load the driver themselves ([`CLIENTS`]): name and version.
    pub(crate) clients: Vec<(String, String)>,
    /// Whether pip is known to be missing: environments that uv made have none.
    pub(crate) without_pip: bool,
    /// Whether the running `cupyrite` was installed by an installer.
    pub(crate) installed: bool,
    /// What the running `cupyrite` was installed from, if it is known.
    pub(crate) source: Option<String>,
    /// Stand-ins that are not beside the installed `cupyrite`.
    pub(crate) absent: Vec<&'static str>,
    /// Stand-ins of another version of Cupyrite: name and version.
    pub(crate) stale: Vec<(String, String)>,
}

/// Examines the relevant packages. `package` is the folder of the running `cupyrite`.
pub(crate) fn look(imports: &Imports<'_>, package: Option<&Path>) -> Python {
    let files = imports.files;
    let names: Vec<&str> = [OURS]
        .into_iter()
        .chain(SHARED_NAMES.iter().copied())
        .collect();
    let installed = Installed::all(imports.path, &names, files);
    let numpy = Installed::all(imports.path, &["numpy"], files);
    let root = package.and_then(Path::parent);
    let same = |a: &Path, b: &Path| same_file(a, b, files);
    // The running package and its stand-ins, if an installer put them here.
    let beside = |p: &&Installed| p.is_ours() && root.is_some_and(|root| same(root, &p.root));
    let native = installed.iter().find(|p| p.name == OURS && beside(p));
    let ours: Vec<&Installed> = match native {
        Some(_) => installed.iter().filter(beside).collect(),
        None => Vec::new(),
    };
    // Whether several packages claim the same file.
    let contested = |root: &Path, relative: &str| {
        let claims = |p: &&Installed| {
            let list = p.files.as_ref();
            list.is_some_and(|list| list.contains_key(relative)) && same(&p.root, root)
        };
        installed.iter().filter(claims).count() > 1
    };

    let mut found = Python {
        copies: imports.all(OURS),
        numpy: imports.find("numpy"),
        clients: Installed::all(imports.path, CLIENTS, files)
            .into_iter()
            .map(|client| (client.name, client.version))
            .collect(),
        without_pip: !imports.path.is_empty() && imports.find("pip").is_none(),
        installed: native.is_some(),
        source: native.and_then(|native| native.source.clone()),
        ..Python::default()
    };
    for package in installed.iter().chain(&numpy) {
        let damaged = package.files.as_ref().map(|list| {
            list.keys()
                .filter(|file| is_module_of_interest(file))
                .filter(|file| {
                    package.fate(file, contested(&package.root, file), files) != Fate::Kept
                })
                .count()
        });
        if let Some(count) = damaged
            && count > 0
            && package.is_peer()
        {
            found.peers_damaged.push((package.name.clone(), count));
        }
        found.packages.push(Package {
            name: package.name.clone(),
            version: package.version.clone(),
            location: package.root.clone(),
            damaged,
            ours: package.is_ours(),
        });
    }
    let Some(root) = root else { return found };
    found.cuda_init = cuda_init(imports);

    if native.is_some() {
        let is_here = |name: &&&str| ours.iter().any(|package| package.name == **name);
        let absent = SHARED_NAMES.iter().filter(|name| !is_here(name));
        found.absent = absent.copied().collect();
        let stale = ours.iter().filter(|package| {
            stand_in_of(&package.version)
                .is_some_and(|version| version != env!("CARGO_PKG_VERSION"))
        });
        found.stale = stale
            .map(|package| (package.name.clone(), package.version.clone()))
            .collect();
    }

    let mut modules: Vec<(String, PathBuf)> = Vec::new();
    match native.and_then(|native| native.files.as_ref()) {
        Some(_) => {
            let lists = ours.iter().filter_map(|package| package.files.as_ref());
            for file in lists.flat_map(BTreeMap::keys) {
                if is_module_of_interest(file)
                    && let Some(module) = imports.module_of(file)
                {
                    modules.push((module, root.join(file)));
                }
            }
        }
        // Not installed: a source tree, or an unpacked wheel.
        None => {
            for top in ["cupyrite", "cuda/bindings", "cuda/core", "cuda/pathfinder"] {
                for module in imports.modules_below(root, top) {
                    let own = Imports {
                        path: &[root.to_owned()],
                        suffixes: imports.suffixes,
                        files,
                    };
                    if let Some(file) = own.find(&module) {
                        modules.push((module, file));
                    }
                }
            }
        }
    }
    modules.sort();
    modules.dedup();
    for (module, expected) in modules {
        let file = imports.find(&module);
        let here = file.as_deref().is_some_and(|file| same(file, &expected));
        let owner = file
            .as_deref()
            .and_then(|file| owner(file, &installed, &contested, files));
        let fate = expected
            .strip_prefix(root)
            .ok()
            .and_then(Path::to_str)
            .and_then(|relative| {
                let lists = |package: &&&Installed| {
                    let list = package.files.as_ref();
                    list.is_some_and(|list| list.contains_key(relative))
                };
                let package = ours.iter().find(lists)?;
                Some(package.fate(relative, contested(root, relative), files))
            });
        match fate {
            Some(Fate::Gone) => found.missing.push(expected.clone()),
            Some(Fate::Changed) if owner.is_none_or(Installed::is_ours) => {
                found.changed.push(expected.clone());
            }
            _ => {}
        }
        found.modules.push(ModuleOrigin {
            ours: here && fate != Some(Fate::Changed),
            peer: owner.is_some_and(Installed::is_peer),
            // A tree without a list belongs to Cupyrite if no other package claims the file.
            package: owner
                .map(|owner| owner.name.clone())
                .or_else(|| (here && fate.is_none()).then(|| OURS.to_owned())),
            module,
            file,
        });
    }
    found
}

/// The package whose list has this file with this content.
fn owner<'a>(
    file: &Path,
    installed: &'a [Installed],
    contested: &dyn Fn(&Path, &str) -> bool,
    files: &dyn FileSystem,
) -> Option<&'a Installed> {
    let of = |package: &&Installed| {
        let Some(relative) = file.strip_prefix(&package.root).ok().and_then(Path::to_str) else {
            return false;
        };
        package.fate(relative, contested(&package.root, relative), files) == Fate::Kept
    };
    // Two packages may contain identical files: no conflict.
    installed
        .iter()
        .filter(of)
        .max_by_key(|package| package.is_ours())
}

/// Files that several packages may write: modules below `cuda/`, and Cupyrite's own.
fn is_module_of_interest(relative: &str) -> bool {
    let below = ["cuda/", "cupyrite/", "numpy/__init__"];
    below.iter().any(|top| relative.starts_with(top)) && !relative.contains("__pycache__")
}

fn cuda_init(imports: &Imports<'_>) -> Option<PathBuf> {
    imports
        .path
        .iter()
        .find_map(|folder| match imports.in_folder(folder, "cuda") {
            In::Package(_, init) => Some(init),
            In::Module(file) => Some(file),
            _ => None,
        })
}
