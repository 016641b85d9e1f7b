//! Headers, tools, static libraries and bitcode libraries: paths that are found without being loaded.
//!
//! One search serves all four. It examines locations in order, takes the first with a usable file, and records the
//! outcome at the others. A broken installation in one location does not hide a good one in the next.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::environment::{Environment, MAJOR_VARIABLE, PROGRAM_FILES};
use crate::error::{FileDefect, FindError, FindErrorKind, SearchOutcome, WHEELS_WITHOUT_FOLDERS};
use crate::files::FileEntry;
use crate::found_via::FoundVia;
use crate::platform::Platform;
use crate::search::Finder;
use crate::search::located::LocatedPath;
use crate::search::probe::{Probe, Relation, SearchLog, expand, is_absolute, probe_file};
use crate::search::toolkit;
use crate::table::{self, Binary, HeaderSet, LinkableFile, Origin, Packages};

const HEADER_SET: &str = "header set";
const TOOL: &str = "tool";
const STATIC_LIBRARY: &str = "static library";
const BITCODE_LIBRARY: &str = "bitcode library";

impl Finder<'_> {
    /// The include folder of the header set `name` (`"cudart"`, `"cccl"`), or `None` if it is not found. Resolves
    /// links.
    ///
    /// The order: wheels, conda, the product's own variables (`CUDNN_PATH`, `NCCL_HOME`), `CUDA_PATH`,
    /// `CUDA_HOME`, the toolkit of the system's CUDA runtime, well-known toolkits, folders of the system.
    ///
    /// # Errors
    ///
    /// [`FindErrorKind::Unknown`] if there is no such header set, [`FindErrorKind::NotAvailable`] if it does not
    /// exist for the platform, [`FindErrorKind::InvalidSetting`] if `CUPYRITE_CUDA_MAJOR` is not a number.
    pub fn find_header_directory(&self, name: &str) -> Result<Option<LocatedPath>, FindError> {
        let (row, hit, _) = self.search_header(name)?;
        Ok(hit.map(|hit| found(row, hit)))
    }

    /// As [`Finder::find_header_directory`]; if the headers are not found, the error lists every searched location.
    ///
    /// # Errors
    ///
    /// As [`Finder::find_header_directory`], and [`FindErrorKind::NotFound`].
    pub fn locate_header_directory(&self, name: &str) -> Result<LocatedPath, FindError> {
        let (row, hit, search) = self.search_header(name)?;
        hit.map(|hit| found(row, hit))
            .ok_or_else(|| search.error(FindErrorKind::NotFound))
    }

    fn search_header(&self, name: &str) -> Result<(&'static str, Hit, Search<'_>), FindError> {
        let known = || table::HEADERS.iter().map(|row| row.name).collect();
        let row =
            table::find_header_set(name).ok_or_else(|| self.unknown(HEADER_SET, name, known()))?;
        let mut search = Search::new(self, HEADER_SET, row.name, &row.packages, row.origin)?;
        if !row.exists_on(self.platform) {
            return Err(search.error(FindErrorKind::NotAvailable));
        }
        let hit = search.header(row);
        Ok((row.name, hit, search))
    }

    /// The executable of the tool `name` (`"nvcc"`, `"ptxas"`), or `None` if it is not found. Resolves links. Does
    /// not search `PATH`, so that a tool matches the rest of the installation.
    ///
    /// The order: wheels, conda, on Windows the folders in which Nsight is registered, `CUDA_PATH`,
    /// `CUDA_HOME`, the toolkit of the system's CUDA runtime, well-known toolkits.
    ///
    /// # Errors
    ///
    /// [`FindErrorKind::Unknown`] if there is no such tool, [`FindErrorKind::InvalidSetting`] if
    /// `CUPYRITE_CUDA_MAJOR` is not a number.
    pub fn find_binary(&self, name: &str) -> Result<Option<LocatedPath>, FindError> {
        let (row, hit, _) = self.search_binary(name)?;
        Ok(hit.map(|hit| found(row, hit)))
    }

    /// As [`Finder::find_binary`]; if the tool is not found, the error lists every searched location.
    ///
    /// # Errors
    ///
    /// As [`Finder::find_binary`], and [`FindErrorKind::NotFound`].
    pub fn locate_binary(&self, name: &str) -> Result<LocatedPath, FindError> {
        let (row, hit, search) = self.search_binary(name)?;
        hit.map(|hit| found(row, hit))
            .ok_or_else(|| search.error(FindErrorKind::NotFound))
    }

    fn search_binary(&self, name: &str) -> Result<(&'static str, Hit, Search<'_>), FindError> {
        let known = || table::BINARIES.iter().map(|row| row.name).collect();
        let row = table::find_binary(name).ok_or_else(|| self.unknown(TOOL, name, known()))?;
        let mut search = Search::new(self, TOOL, row.name, &row.packages, row.origin)?;
        let hit = search.binary(row);
        Ok((row.name, hit, search))
    }

    /// The static library `name` (`"cudadevrt"`). Resolves links.
    ///
    /// The order: wheels, conda, `CUDA_PATH`, `CUDA_HOME`, the toolkit of the system's CUDA runtime, well-known
    /// toolkits.
    ///
    /// # Errors
    ///
    /// [`FindErrorKind::NotFound`] if it is not found, [`FindErrorKind::Unknown`] if there is no such library,
    /// [`FindErrorKind::NotAvailable`] if it does not exist for the platform, [`FindErrorKind::InvalidSetting`] if
    /// `CUPYRITE_CUDA_MAJOR` is not a number.
    pub fn locate_static_library(&self, name: &str) -> Result<LocatedPath, FindError> {
        self.archive(STATIC_LIBRARY, name, table::STATIC_LIBRARIES)
    }

    /// The LLVM bitcode library `name` (`"device"` for `libdevice.10.bc`), in the locations and the order of
    /// [`Finder::locate_static_library`].
    ///
    /// # Errors
    ///
    /// As [`Finder::locate_static_library`].
    pub fn locate_bitcode_library(&self, name: &str) -> Result<LocatedPath, FindError> {
        self.archive(BITCODE_LIBRARY, name, table::BITCODE_LIBRARIES)
    }

    /// The value of `CUDA_PATH`, else of `CUDA_HOME`, unchanged and unchecked.
    pub fn cuda_path_or_home(&self) -> Option<PathBuf> {
        let Environment {
            cuda_path,
            cuda_home,
            ..
        } = self.environment;
        cuda_path.as_ref().or(cuda_home.as_ref()).cloned()
    }

    fn archive(
        &self,
        what: &'static str,
        name: &str,
        rows: &'static [LinkableFile],
    ) -> Result<LocatedPath, FindError> {
        let known = || rows.iter().map(|row| row.name).collect();
        let row = rows.iter().find(|row| row.name == name);
        let row = row.ok_or_else(|| self.unknown(what, name, known()))?;
        let mut search = Search::new(self, what, row.name, &row.packages, row.origin)?;
        if row.file(self.platform).is_empty() {
            return Err(search.error(FindErrorKind::NotAvailable));
        }
        let hit = search.archive(row);
        hit.map(|hit| found(row.name, hit))
            .ok_or_else(|| search.error(FindErrorKind::NotFound))
    }

    fn unknown(&self, what: &'static str, name: &str, known: Vec<&'static str>) -> FindError {
        FindError {
            kind: FindErrorKind::Unknown,
            what,
            name: name.to_owned(),
            known,
            platform: self.platform,
            major: self.environment.major,
            searched: Vec::new(),
            packages: &Packages::NONE,
        }
    }
}

/// [`Finder::find_header_directory`] on this machine.
///
/// # Errors
///
/// As there.
pub fn find_header_directory(name: &str) -> Result<Option<LocatedPath>, FindError> {
    Finder::new(&Environment::current()).find_header_directory(name)
}

/// [`Finder::locate_header_directory`] on this machine.
///
/// # Errors
///
/// As there.
pub fn locate_header_directory(name: &str) -> Result<LocatedPath, FindError> {
    Finder::new(&Environment::current()).locate_header_directory(name)
}

/// [`Finder::find_binary`] on this machine.
///
/// # Errors
///
/// As there.
pub fn find_binary(name: &str) -> Result<Option<LocatedPath>, FindError> {
    Finder::new(&Environment::current()).find_binary(name)
}

/// [`Finder::locate_binary`] on this machine.
///
/// # Errors
///
/// As there.
pub fn locate_binary(name: &str) -> Result<LocatedPath, FindError> {
    Finder::new(&Environment::current()).locate_binary(name)
}

/// [`Finder::locate_static_library`] on this machine.
///
/// # Errors
///
/// As there.
pub fn locate_static_library(name: &str) -> Result<LocatedPath, FindError> {
    Finder::new(&Environment::current()).locate_static_library(name)
}

/// [`Finder::locate_bitcode_library`] on this machine.
///
/// # Errors
///
/// As there.
pub fn locate_bitcode_library(name: &str) -> Result<LocatedPath, FindError> {
    Finder::new(&Environment::current()).locate_bitcode_library(name)
}

/// [`Finder::cuda_path_or_home`] on this machine.
pub fn cuda_path_or_home() -> Option<PathBuf> {
    Finder::new(&Environment::current()).cuda_path_or_home()
}

/// The path found, and the step that found it.
type Hit = Option<(PathBuf, FoundVia)>;

fn found(name: &'static str, (path, found_via): (PathBuf, FoundVia)) -> LocatedPath {
    log::debug!("{name}: {} ({found_via})", path.display());
    LocatedPath {
        name,
        path,
        found_via,
    }
}

/// The search for one item.
struct Search<'f> {
    finder: &'f Finder<'f>,
    log: SearchLog,
    what: &'static str,
    name: &'static str,
    packages: &'static Packages,
    /// Who installs it; determines which folders belong to one CUDA major.
    origin: Origin,
    /// Toolkits contain it, so that the search includes all toolkits.
    part_of_toolkit: bool,
    /// The common prefix of similar file names.
    stem: String,
}

/// What the search requires of a regular file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileRequirement {
    /// Nothing more: a header.
    Exist,
    /// It is not empty.
    HoldBytes,
    /// It is not empty, and this process may execute it.
    Run,
}

impl<'f> Search<'f> {
    fn new(
        finder: &'f Finder<'f>,
        what: &'static str,
        name: &'static str,
        packages: &'static Packages,
        origin: Origin,
    ) -> Result<Search<'f>, FindError> {
        let mut search = Search {
            finder,
            log: SearchLog::default(),
            what,
            name,
            packages,
            origin,
            part_of_toolkit: origin == Origin::Toolkit || what == TOOL,
            stem: name.to_lowercase(),
        };
        if let Some(value) = &finder.environment.rejected_major {
            let text = "expected a CUDA major version, such as 13".to_owned();
            let location = format!("{MAJOR_VARIABLE}={value}");
            search
                .log
                .record("settings", location, SearchOutcome::Refused(text));
            return Err(search.error(FindErrorKind::InvalidSetting));
        }
        if finder.environment.site_packages.is_empty() {
            let location = WHEELS_WITHOUT_FOLDERS;
            search.log.record("wheels", location, SearchOutcome::NotSet);
        }
        Ok(search)
    }

    fn platform(&self) -> Platform {
        self.finder.platform
    }

    fn header(&mut self, row: &HeaderSet) -> Hit {
        let env = self.finder.environment;
        let subdirs = row.subdirs(self.platform());
        let names = [row.header.to_owned()];
        for dir in row.wheel_dirs {
            for folder in self.wheel_folders(dir, &names) {
                if let Some(path) = self.header_in("wheels", &folder, &names) {
                    return Some((path, FoundVia::SitePackages));
                }
            }
        }
        if let Some(root) = self.conda() {
            for dir in self.with_targets(row.root_dirs, TargetDirOrder::First) {
                for folder in join_all(&root.join(dir), &subdirs) {
                    if let Some(path) = self.header_in("conda", &folder, &names) {
                        return Some((path, FoundVia::Conda));
                    }
                }
            }
        }
        for variable in row.root_variables {
            let value = env.variable(variable);
            let Some(root) = self.root(variable, variable, value) else {
                continue;
            };
            for dir in row.root_dirs {
                if let Some(path) = self.header_in(variable, &root.join(dir), &names) {
                    return Some((path, FoundVia::Variable(variable)));
                }
            }
        }
        for location in self.toolkits() {
            let Some((step, root, via)) = self.toolkit(location) else {
                continue;
            };
            for dir in self.with_targets(row.root_dirs, TargetDirOrder::Last) {
                for folder in join_all(&root.join(dir), &subdirs) {
                    if let Some(path) = self.header_in(step, &folder, &names) {
                        return Some((path, via));
                    }
                }
            }
        }
        for folder in self.system_folders(row) {
            if let Some(path) = self.header_in("system folders", &folder, &names) {
                return Some((path, FoundVia::SystemFolder));
            }
        }
        None
    }

    fn binary(&mut self, row: &Binary) -> Hit {
        let names = row.names(self.platform());
        for dir in row.wheel_dirs.iter().chain(row.further_wheel_dirs) {
            for folder in self.wheel_folders(dir, &names) {
                if let Some(path) = self.file_in("wheels", &folder, &names, FileRequirement::Run) {
                    return Some((path, FoundVia::SitePackages));
                }
            }
        }
        if let Some(root) = self.conda()
            && let Some(path) =
                self.file_in("conda", &root.join("bin"), &names, FileRequirement::Run)
        {
            return Some((path, FoundVia::Conda));
        }
        if self.platform().is_windows() {
            for root in &self.finder.environment.nsight_folders {
                for dir in row.nsight_dirs {
                    for folder in expand(self.finder.files, root, dir) {
                        if let Some(path) =
                            self.file_in("Nsight", &folder, &names, FileRequirement::Run)
                        {
                            return Some((path, FoundVia::ProgramFiles));
                        }
                    }
                }
            }
        }
        for location in self.toolkits() {
            let Some((step, root, via)) = self.toolkit(location) else {
                continue;
            };
            if let Some(path) = self.file_in(step, &root.join("bin"), &names, FileRequirement::Run)
            {
                return Some((path, via));
            }
        }
        None
    }

    fn archive(&mut self, row: &LinkableFile) -> Hit {
        let names = [row.file(self.platform()).to_owned()];
        self.stem = names[0].split('.').next().unwrap_or_default().to_owned();
        for dir in row.wheel_dirs(self.platform()) {
            for folder in self.wheel_folders(dir, &names) {
                if let Some(path) =
                    self.file_in("wheels", &folder, &names, FileRequirement::HoldBytes)
                {
                    return Some((path, FoundVia::SitePackages));
                }
            }
        }
        let root_dirs = row.root_dirs(self.platform());
        if let Some(root) = self.conda() {
            let mut dirs = self.with_targets(row.conda_dirs, TargetDirOrder::Last);
            if self.platform().is_windows() {
                dirs.extend(root_dirs.iter().map(PathBuf::from));
            }
            for dir in dirs {
                if let Some(path) =
                    self.file_in("conda", &root.join(dir), &names, FileRequirement::HoldBytes)
                {
                    return Some((path, FoundVia::Conda));
                }
            }
        }
        for location in self.toolkits() {
            let Some((step, root, via)) = self.toolkit(location) else {
                continue;
            };
            for dir in self.with_targets(&root_dirs, TargetDirOrder::Last) {
                if let Some(path) =
                    self.file_in(step, &root.join(dir), &names, FileRequirement::HoldBytes)
                {
                    return Some((path, via));
                }
            }
        }
        None
    }

    /// A wheel folder below each site-packages root; none if it belongs to another CUDA major than the required one.
    fn wheel_folders(&mut self, dir: &str, names: &[String]) -> Vec<PathBuf> {
        let env = self.finder.environment;
        let mut folders = Vec::new();
        for root in &env.site_packages {
            if !is_absolute(self.platform(), root) {
                self.log
                    .record_path("wheels", root, SearchOutcome::Relative);
                continue;
            }
            let folder = root.join(dir);
            match (env.major, table::wheel_major(self.origin, dir)) {
                (Some(wanted), Some(found)) if wanted != found => {
                    for path in names.iter().map(|name| folder.join(name)) {
                        if probe_file(self.finder.files, &path) == Probe::File {
                            let outcome = SearchOutcome::OtherMajor { found, wanted };
                            self.log.record_path("wheels", &path, outcome);
                        }
                    }
                }
                _ => folders.push(folder),
            }
        }
        folders
    }

    /// The root of the conda environment; on Windows its `Library` folder, which contains everything but Python.
    fn conda(&mut self) -> Option<PathBuf> {
        let value = self.finder.environment.conda_prefix.as_deref();
        let root = self.root("conda", "CONDA_PREFIX", value)?;
        let root = if self.platform().is_windows() {
            root.join("Library")
        } else {
            root
        };
        self.of_required_major("conda", root)
    }

    /// The locations of toolkits, in order.
    fn toolkits(&self) -> Vec<ToolkitLocation> {
        let env = self.finder.environment;
        let mut locations = vec![ToolkitLocation::CudaPath];
        if env.cuda_home.is_none() || env.cuda_home != env.cuda_path {
            locations.push(ToolkitLocation::CudaHome);
        }
        if self.part_of_toolkit {
            locations.push(ToolkitLocation::Canary);
            locations.extend(
                env.toolkit_roots
                    .iter()
                    .cloned()
                    .map(ToolkitLocation::WellKnown),
            );
        }
        locations
    }

    /// The root of the toolkit at a location, if it exists.
    fn toolkit(&mut self, location: ToolkitLocation) -> Option<(&'static str, PathBuf, FoundVia)> {
        let env = self.finder.environment;
        let (step, root, via) = match location {
            ToolkitLocation::CudaPath => {
                let value = env.cuda_path.as_deref();
                let root = self.root("CUDA_PATH", "CUDA_PATH", value)?;
                ("CUDA_PATH", root, FoundVia::CudaPath)
            }
            ToolkitLocation::CudaHome => {
                let value = env.cuda_home.as_deref();
                let root = self.root("CUDA_HOME", "CUDA_HOME", value)?;
                ("CUDA_HOME", root, FoundVia::CudaPath)
            }
            ToolkitLocation::Canary => {
                let step = "toolkit of the system's CUDA runtime";
                let Some(root) = self.finder.toolkit_root_by_canary() else {
                    self.log.record(step, "cudart", SearchOutcome::NoSuchName);
                    return None;
                };
                (step, root, FoundVia::Canary)
            }
            ToolkitLocation::WellKnown(root) => {
                if self.finder.files.entry(&root) != FileEntry::Folder {
                    self.log.record_folder("toolkit", root);
                    return None;
                }
                ("toolkit", root, FoundVia::WellKnown)
            }
        };
        Some((step, self.of_required_major(step, root)?, via))
    }

    /// The root that a variable names, if it is an existing folder.
    fn root(
        &mut self,
        step: &'static str,
        variable: &'static str,
        value: Option<&Path>,
    ) -> Option<PathBuf> {
        let root = self.log.root(self.platform(), step, variable, value)?;
        if self.finder.files.entry(root) != FileEntry::Folder {
            // One record for the root, not one for each folder below it.
            self.log.record_folder(step, root);
            return None;
        }
        Some(root.to_owned())
    }

    /// `root`, unless its toolkit is for another CUDA major than the required one.
    fn of_required_major(&mut self, step: &'static str, root: PathBuf) -> Option<PathBuf> {
        let Some(wanted) = self.finder.environment.major else {
            return Some(root);
        };
        if self.origin != Origin::Toolkit {
            return Some(root);
        }
        match toolkit::major(self.finder.files, self.platform(), &root) {
            Some(found) if found != wanted => {
                let outcome = SearchOutcome::OtherMajor { found, wanted };
                self.log.record_path(step, &root, outcome);
                None
            }
            _ => Some(root),
        }
    }

    /// Folders of conda environments and toolkits, and the same folders below `targets/<target>`.
    fn with_targets(&self, dirs: &[&'static str], order: TargetDirOrder) -> Vec<PathBuf> {
        let plain = dirs.iter().map(PathBuf::from);
        if self.origin != Origin::Toolkit || self.platform().is_windows() {
            return plain.collect();
        }
        let targets = self.platform().targets().iter();
        let below = targets.flat_map(|target| {
            let root = Path::new("targets").join(target);
            dirs.iter().map(move |dir| root.join(dir))
        });
        match order {
            TargetDirOrder::First => below.chain(plain).collect(),
            TargetDirOrder::Last => plain.chain(below).collect(),
        }
    }

    /// The system folders of a header set.
    fn system_folders(&mut self, row: &HeaderSet) -> Vec<PathBuf> {
        let files = self.finder.files;
        let mut folders = Vec::new();
        if row.multiarch && !self.platform().is_windows() {
            folders.push(Path::new("/usr/include").join(self.platform().multiarch()));
        }
        for pattern in row.system_dirs(self.platform()) {
            let base = match pattern.strip_prefix("${ProgramFiles}/") {
                None => Some((PathBuf::from("/"), pattern)),
                Some(rest) => {
                    let value = self.finder.environment.variable(PROGRAM_FILES);
                    let root = self.root("system folders", PROGRAM_FILES, value);
                    root.map(|root| (root, rest))
                }
            };
            let Some((base, pattern)) = base else {
                continue;
            };
            let found = expand(files, &base, pattern);
            if found.is_empty() {
                let location = base.join(pattern).display().to_string();
                self.log
                    .record("system folders", location, SearchOutcome::Absent);
            }
            folders.extend(found);
        }
        folders
    }

    /// The resolved folder, if it contains the header.
    fn header_in(
        &mut self,
        step: &'static str,
        folder: &Path,
        names: &[String],
    ) -> Option<PathBuf> {
        self.usable_file(step, folder, names, FileRequirement::Exist)?;
        Some(self.real(folder))
    }

    /// The resolved path of the first of `names` that exists in a folder and is usable.
    fn file_in(
        &mut self,
        step: &'static str,
        folder: &Path,
        names: &[String],
        requirement: FileRequirement,
    ) -> Option<PathBuf> {
        let path = self.usable_file(step, folder, names, requirement)?;
        Some(self.real(&path))
    }

    fn real(&self, path: &Path) -> PathBuf {
        let resolved = self.finder.files.resolve(path);
        resolved.unwrap_or_else(|| path.to_owned())
    }

    /// The first of `names` that is a usable file in a folder; records the defects of the others.
    fn usable_file(
        &mut self,
        step: &'static str,
        folder: &Path,
        names: &[String],
        requirement: FileRequirement,
    ) -> Option<PathBuf> {
        let files = self.finder.files;
        let mut broken = false;
        for name in names {
            let path = folder.join(name);
            let defect = match probe_file(files, &path) {
                Probe::Absent => continue,
                Probe::Defect(defect) => defect,
                Probe::File
                    if requirement != FileRequirement::Exist
                        && files.entry(&path) == FileEntry::File(0) =>
                {
                    FileDefect::Empty
                }
                Probe::File
                    if requirement == FileRequirement::Run && !files.is_executable(&path) =>
                {
                    FileDefect::NotExecutable
                }
                Probe::File => return Some(path),
            };
            self.log
                .record_path(step, &path, SearchOutcome::Broken(defect));
            broken = true;
        }
        if !broken {
            self.log.record_folder(step, folder);
        }
        None
    }

    fn error(self, kind: FindErrorKind) -> FindError {
        let searched = self.log.finish(self.finder.files, |_, name: &OsStr| {
            let name = name.to_string_lossy().to_lowercase();
            if name.starts_with(&self.stem) {
                Relation::Similar
            } else {
                Relation::None
            }
        });
        FindError {
            kind,
            what: self.what,
            name: self.name.to_owned(),
            known: Vec::new(),
            platform: self.finder.platform,
            major: self.finder.environment.major,
            searched,
            packages: self.packages,
        }
    }
}

/// A location of a toolkit.
enum ToolkitLocation {
    /// The value of `CUDA_PATH`.
    CudaPath,
    /// The value of `CUDA_HOME`.
    CudaHome,
    /// The toolkit of the system's CUDA runtime.
    Canary,
    /// A usual installation folder.
    WellKnown(PathBuf),
}

/// Position of the target folders in the order.
#[derive(Clone, Copy)]
enum TargetDirOrder {
    /// Before the plain folders, as in conda environments.
    First,
    /// After the plain folders, as in toolkits.
    Last,
}

/// Subfolders of a folder; an empty name is the folder itself.
fn join_all(folder: &Path, dirs: &[&str]) -> Vec<PathBuf> {
    let join = |dir: &&str| {
        if dir.is_empty() {
            folder.to_owned()
        } else {
            folder.join(dir)
        }
    };
    dirs.iter().map(join).collect()
}
