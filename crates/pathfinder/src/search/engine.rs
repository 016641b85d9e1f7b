//! The search for a dynamic library: one engine for every descriptor, for loading and for locating.
//!
//! The engine contains the locations and their order. A [`SearchGoal`] loads a matching file or only reports it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::environment::{MAJOR_VARIABLE, PROGRAM_FILES, path_override_variable};
use crate::error::{
    FileDefect, LoadError, LoadErrorKind, OVERRIDE, SearchOutcome, WHEELS_WITHOUT_FOLDERS,
};
use crate::found_via::FoundVia;
use crate::loader::LibraryHandle;
use crate::loader::elf::{self, DynamicSection};
use crate::search::Finder;
use crate::search::probe::{Probe, Relation, SearchLog, expand, is_absolute, probe_file};
use crate::search::version;
use crate::table::{LibraryDescriptor, Origin, wheel_major};

/// The step that uses the system loader's search.
const SYSTEM: &str = "system loader";

/// The library to search for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The library's descriptor.
    pub library: &'static LibraryDescriptor,
    /// The accepted file names, each with the CUDA major it implies.
    pub names: Vec<(&'static str, Option<u32>)>,
    /// The required CUDA major.
    pub major: Option<u32>,
    /// The library that depends on this one, if this one was not requested itself.
    pub dependent: Option<Dependent>,
}

/// A library that depends on another one.
#[derive(Debug, Clone)]
pub(crate) struct Dependent {
    /// The library's name.
    pub name: &'static str,
    /// The folder that contains it.
    pub folder: PathBuf,
    /// The step that found it.
    pub via: FoundVia,
}

impl Request {
    /// A request for every name of the descriptor, of one CUDA major or of any.
    pub(crate) fn any(
        finder: &Finder<'_>,
        library: &'static LibraryDescriptor,
        major: Option<u32>,
    ) -> Request {
        Request {
            library,
            names: library.names_for(finder.platform, major).collect(),
            major,
            dependent: None,
        }
    }
}

/// A file with an accepted name, machine and CUDA major.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// The step that found it.
    pub via: FoundVia,
    /// The name to open instead of the path, where the system loader resolves it to the same file.
    pub by_name: Option<&'static str>,
    /// The CUDA major it is for, if known.
    pub major: Option<u32>,
    /// The file's dynamic section.
    pub dynamic: DynamicSection,
}

/// Why a goal rejects a file.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// The loader's message.
    Refused(String),
    /// A dependency is missing.
    Dependency(Box<LoadError>),
}

/// Action on a matching file.
pub(crate) trait SearchGoal {
    /// The result.
    type Out;
    /// Accepts a library that is loaded already.
    fn loaded(&mut self, handle: LibraryHandle, path: PathBuf, major: Option<u32>) -> Self::Out;
    /// Accepts a file.
    fn file(&mut self, candidate: Candidate) -> Result<Self::Out, Rejection>;
    /// Accepts a name that only the loader resolves, such as one on a run path of the program.
    fn by_name(&mut self, name: &'static str) -> Result<Option<Self::Out>, Rejection>;
}

/// Why a search stops before its last location.
#[derive(Debug)]
enum SearchAbort {
    /// A file is broken, or the loader failed to load it.
    Failed(PathBuf),
    /// An override names a missing or unusable file.
    InvalidSetting,
    /// A dependency of a file is missing.
    Dependency(Box<LoadError>),
}

type Step<T> = Result<Option<T>, SearchAbort>;

/// Searches every location, in order, until the goal accepts a file.
pub(crate) fn search<G: SearchGoal>(
    finder: Finder<'_>,
    request: Request,
    goal: &mut G,
) -> Result<(G::Out, SearchLog), LoadError> {
    let mut search = Search {
        finder,
        request,
        log: SearchLog::default(),
        refused: None,
        folders: HashMap::new(),
    };
    if search.request.library.names(finder.platform).is_empty() {
        return Err(search.error(LoadErrorKind::NotAvailable, None));
    }
    if let Some(text) = &finder.environment.rejected_major
        && search.request.library.origin != Origin::Driver
    {
        let outcome =
            SearchOutcome::Refused("expected a CUDA major version, such as 13".to_owned());
        let location = format!("{MAJOR_VARIABLE}={text}");
        search.log.record("settings", location, outcome);
        return Err(search.error(LoadErrorKind::InvalidSetting, None));
    }
    if search.request.names.is_empty() {
        let known = search.request.library.majors(finder.platform);
        let known: Vec<String> = known.iter().map(u32::to_string).collect();
        let outcome = SearchOutcome::Refused(format!(
            "expected a CUDA major of {}: {}",
            search.request.library.name,
            known.join(", ")
        ));
        let major = search.request.major.unwrap_or_default();
        let (kind, location) = match search.request.dependent {
            None => (
                LoadErrorKind::InvalidSetting,
                format!("{MAJOR_VARIABLE}={major}"),
            ),
            Some(_) => (LoadErrorKind::NotFound, format!("CUDA {major}")),
        };
        search.log.record("settings", location, outcome);
        return Err(search.error(kind, None));
    }
    match search.run(goal) {
        Ok(Some(out)) => Ok((out, search.log)),
        Ok(None) => match search.refused.take() {
            None => Err(search.error(LoadErrorKind::NotFound, None)),
            file => Err(search.error(LoadErrorKind::Failed, file)),
        },
        Err(SearchAbort::Failed(file)) => Err(search.error(LoadErrorKind::Failed, Some(file))),
        Err(SearchAbort::InvalidSetting) => Err(search.error(LoadErrorKind::InvalidSetting, None)),
        Err(SearchAbort::Dependency(error)) => Err(*error),
    }
}

struct Search<'a> {
    finder: Finder<'a>,
    request: Request,
    log: SearchLog,
    /// The first file found by the system loader's search that fails to load. The search continues, as the loader's
    /// own does, but does not report "not found".
    refused: Option<PathBuf>,
    /// Known folders and whether they exist: one query per folder.
    folders: HashMap<PathBuf, bool>,
}

impl<'a> Search<'a> {
    fn run<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        if let found @ Some(_) = self.in_process(goal) {
            return Ok(found);
        }
        if let Some(path) = self
            .finder
            .environment
            .overrides
            .get(self.request.library.name)
            && let found @ Some(_) = self.override_path(path, goal)?
        {
            return Ok(found);
        }
        match self.request.library.origin {
            Origin::Toolkit | Origin::Product => self.toolkit(goal),
            Origin::Driver => self.driver(goal),
        }
    }

    fn in_process<G: SearchGoal>(&mut self, goal: &mut G) -> Option<G::Out> {
        for (name, major) in self.request.names.clone() {
            let Some(handle) = self.finder.loader.find_loaded(name) else {
                continue;
            };
            let path = self.finder.loader.path(handle);
            let path = path.unwrap_or_else(|| name.into());
            // Dependencies match loaded libraries by name alone, as in the loader.
            let major = match self.request.dependent {
                None => self.major(&path, major, None, &DynamicSection::default()),
                Some(_) => major,
            };
            if self.request.dependent.is_none() && self.is_other_major("process", &path, major) {
                continue;
            }
            return Some(goal.loaded(handle, path, major));
        }
        None
    }

    fn toolkit<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        if let found @ Some(_) = self.wheels(goal)? {
            return Ok(found);
        }
        let (finder, library) = (self.finder, self.request.library);
        let (platform, env) = (finder.platform, finder.environment);
        let conda = env.conda_prefix.as_deref();
        if let Some(root) = self.log.root(platform, "conda", "CONDA_PREFIX", conda) {
            let dirs = self.conda_dirs();
            if let found @ Some(_) = self.root("conda", root, &dirs, FoundVia::Conda, goal)? {
                return Ok(found);
            }
        }
        if let found @ Some(_) = self.system(goal)? {
            return Ok(found);
        }
        for variable in library.root_variables {
            let value = env.variable(variable);
            if let Some(root) = self.log.root(platform, variable, variable, value) {
                let dirs = library.variable_dirs(platform);
                let via = FoundVia::Variable(variable);
                if let found @ Some(_) = self.root(variable, root, &dirs, via, goal)? {
                    return Ok(found);
                }
            }
        }
        for (variable, root) in [("CUDA_PATH", &env.cuda_path), ("CUDA_HOME", &env.cuda_home)] {
            if let Some(root) = self.log.root(platform, variable, variable, root.as_deref()) {
                let (dirs, via) = (self.root_dirs(), FoundVia::CudaPath);
                if let found @ Some(_) = self.root(variable, root, &dirs, via, goal)? {
                    return Ok(found);
                }
            }
        }
        if let found @ Some(_) = self.program_files(goal)? {
            return Ok(found);
        }
        if library.canary {
            let step = "toolkit of the system's CUDA runtime";
            match finder.toolkit_root(self.request.major) {
                Some(root) => {
                    let (dirs, via) = (self.root_dirs(), FoundVia::Canary);
                    if let found @ Some(_) = self.root(step, &root, &dirs, via, goal)? {
                        return Ok(found);
                    }
                }
                None => self.log.record(step, "cudart", SearchOutcome::NoSuchName),
            }
        }
        for root in &env.toolkit_roots {
            if is_absolute(platform, root) {
                let (dirs, via) = (self.root_dirs(), FoundVia::WellKnown);
                if let found @ Some(_) = self.root("toolkit", root, &dirs, via, goal)? {
                    return Ok(found);
                }
            }
        }
        if let Some(Dependent { folder, via, .. }) = self.request.dependent.clone() {
            return self.folders("folder of the dependent library", &[folder], via, goal);
        }
        Ok(None)
    }

    fn driver<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        if let found @ Some(_) = self.system(goal)? {
            return Ok(found);
        }
        let dirs = &self.finder.environment.driver_dirs;
        let platform = self.finder.platform;
        let dirs: Vec<PathBuf> = dirs
            .iter()
            .filter(|dir| is_absolute(platform, dir))
            .cloned()
            .collect();
        self.folders("driver folders", &dirs, FoundVia::System, goal)
    }

    fn wheels<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        const STEP: &str = "wheels";
        let (platform, env) = (self.finder.platform, self.finder.environment);
        if env.site_packages.is_empty() {
            let location = WHEELS_WITHOUT_FOLDERS;
            self.log.record(STEP, location, SearchOutcome::NotSet);
            return Ok(None);
        }
        let mut roots = Vec::new();
        for root in &env.site_packages {
            if is_absolute(platform, root) {
                roots.push(root);
            } else {
                self.log.record_path(STEP, root, SearchOutcome::Relative);
            }
        }
        let dirs = self.request.library.wheel_dirs(platform);
        // The newest major of all roots comes first: an old wheel in an early root does not hide a new one.
        for (name, major) in self.request.names.clone() {
            for dir in &dirs {
                let of_dir = wheel_major(self.request.library.origin, dir);
                for root in &roots {
                    let folder = root.join(dir);
                    if !self.is_folder(&folder) {
                        continue;
                    }
                    let path = folder.join(name);
                    let via = FoundVia::SitePackages;
                    if let found @ Some(_) = self.candidate(STEP, path, via, major, of_dir, goal)? {
                        return Ok(found);
                    }
                }
            }
        }
        for dir in &dirs {
            for root in &roots {
                self.log.record_folder(STEP, root.join(dir));
            }
        }
        Ok(None)
    }

    fn program_files<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        let finder = self.finder;
        let patterns = self.request.library.program_files_dirs(finder.platform);
        if patterns.is_empty() {
            return Ok(None);
        }
        let value = finder.environment.variable(PROGRAM_FILES);
        let step = PROGRAM_FILES;
        let Some(root) = self.log.root(finder.platform, step, step, value) else {
            return Ok(None);
        };
        let mut folders = Vec::new();
        for pattern in patterns {
            let found = expand(finder.files, root, pattern);
            if found.is_empty() {
                self.log
                    .record_path(step, &root.join(pattern), SearchOutcome::Absent);
            }
            folders.extend(found);
        }
        self.folders(step, &folders, FoundVia::ProgramFiles, goal)
    }

    /// Searches folders below a root.
    fn root<G: SearchGoal>(
        &mut self,
        step: &'static str,
        root: &Path,
        dirs: &[impl AsRef<Path>],
        via: FoundVia,
        goal: &mut G,
    ) -> Step<G::Out> {
        if !self.is_folder(root) {
            self.log.record_folder(step, root);
            return Ok(None);
        }
        let mut folders = Vec::new();
        for dir in dirs {
            let folder = root.join(dir);
            // Resolves links of folders, not of files: the result names the real toolkit and the library's usual file
            // name.
            let real = match self.is_folder(&folder) {
                true => self.finder.files.resolve(&folder),
                false => None,
            };
            let folder = real.unwrap_or(folder);
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        self.folders(step, &folders, via, goal)
    }

    /// Searches folders, the preferred name first.
    fn folders<G: SearchGoal>(
        &mut self,
        step: &'static str,
        folders: &[PathBuf],
        via: FoundVia,
        goal: &mut G,
    ) -> Step<G::Out> {
        for (name, major) in self.request.names.clone() {
            for folder in folders {
                if self.is_folder(folder)
                    && let found @ Some(_) =
                        self.candidate(step, folder.join(name), via, major, None, goal)?
                {
                    return Ok(found);
                }
            }
        }
        for folder in folders {
            self.log.record_folder(step, folder);
        }
        Ok(None)
    }

    /// Examines one path. A file that is not a usable library fails the search, because skipping it would hide a
    /// broken installation.
    fn candidate<G: SearchGoal>(
        &mut self,
        step: &'static str,
        path: PathBuf,
        via: FoundVia,
        of_name: Option<u32>,
        of_dir: Option<u32>,
        goal: &mut G,
    ) -> Step<G::Out> {
        match probe_file(self.finder.files, &path) {
            Probe::Absent => return Ok(None),
            Probe::Defect(defect) => {
                self.log
                    .record_path(step, &path, SearchOutcome::Broken(defect));
                return Ok(None);
            }
            Probe::File => {}
        }
        let dynamic = match elf::inspect(self.finder.files, self.finder.platform, &path) {
            Ok(dynamic) => dynamic,
            Err(defect) => {
                self.log
                    .record_path(step, &path, SearchOutcome::Broken(defect));
                return Err(SearchAbort::Failed(path));
            }
        };
        let major = self.major(&path, of_name, of_dir, &dynamic);
        if self.is_other_major(step, &path, major) {
            return Ok(None);
        }
        let candidate = Candidate {
            path: path.clone(),
            via,
            by_name: None,
            major,
            dynamic,
        };
        match goal.file(candidate) {
            Ok(out) => Ok(Some(out)),
            Err(Rejection::Refused(message)) => {
                self.log
                    .record_path(step, &path, SearchOutcome::Refused(message));
                Err(SearchAbort::Failed(path))
            }
            Err(Rejection::Dependency(error)) => Err(SearchAbort::Dependency(error)),
        }
    }

    /// Searches the user's override, a file or a folder. No other location is searched after it.
    fn override_path<G: SearchGoal>(&mut self, path: &'a Path, goal: &mut G) -> Step<G::Out> {
        let finder = self.finder;
        let location = format!(
            "{}={}",
            path_override_variable(self.request.library.name),
            path.display()
        );
        if !is_absolute(finder.platform, path) {
            self.log.record(OVERRIDE, location, SearchOutcome::Relative);
            return Err(SearchAbort::InvalidSetting);
        }
        let via = FoundVia::Override;
        match probe_file(finder.files, path) {
            Probe::File => {}
            Probe::Absent => {
                self.log.record(OVERRIDE, location, SearchOutcome::Absent);
                return Err(SearchAbort::InvalidSetting);
            }
            Probe::Defect(FileDefect::Folder) => {
                return match self.folders(OVERRIDE, &[path.to_owned()], via, goal)? {
                    None => Err(SearchAbort::InvalidSetting),
                    found => Ok(found),
                };
            }
            Probe::Defect(defect) => {
                self.log
                    .record(OVERRIDE, location, SearchOutcome::Broken(defect));
                return Err(SearchAbort::InvalidSetting);
            }
        }
        let dynamic = match elf::inspect(finder.files, finder.platform, path) {
            Ok(dynamic) => dynamic,
            Err(defect) => {
                self.log
                    .record(OVERRIDE, location, SearchOutcome::Broken(defect));
                return Err(SearchAbort::Failed(path.to_owned()));
            }
        };
        // A dependency must have exactly the required name: an override for one CUDA major does not serve a library
        // of another.
        let own = dynamic.soname.as_deref();
        if self.request.dependent.is_some()
            && own.is_some_and(|own| self.request.names.iter().all(|(name, _)| *name != own))
        {
            let outcome = SearchOutcome::Refused(format!("is {}", own.unwrap_or_default()));
            self.log.record(OVERRIDE, location, outcome);
            return Ok(None);
        }
        let names = self.request.library.names(finder.platform);
        let majors = self.request.library.majors(finder.platform);
        let of_name = names
            .iter()
            .position(|name| Some(*name) == own || Some(OsStr::new(name)) == path.file_name())
            .and_then(|index| majors.get(index).copied());
        let major = self.major(path, of_name, None, &dynamic);
        let candidate = Candidate {
            path: path.to_owned(),
            via,
            by_name: None,
            major,
            dynamic,
        };
        match goal.file(candidate) {
            Ok(out) => Ok(Some(out)),
            Err(Rejection::Refused(message)) => {
                self.log
                    .record(OVERRIDE, location, SearchOutcome::Refused(message));
                Err(SearchAbort::Failed(path.to_owned()))
            }
            Err(Rejection::Dependency(error)) => Err(SearchAbort::Dependency(error)),
        }
    }

    /// Follows the system loader's search (`LD_LIBRARY_PATH`, `ld.so.conf`, the default folders), name by name. Skips
    /// what the loader skips; a file that fails to load ends the search for that name only.
    fn system<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        for (name, of_name) in self.request.names.clone() {
            if let found @ Some(_) = self.system_name(name, of_name, goal)? {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn system_name<G: SearchGoal>(
        &mut self,
        name: &'static str,
        of_name: Option<u32>,
        goal: &mut G,
    ) -> Step<G::Out> {
        let (finder, via) = (self.finder, FoundVia::System);
        let paths = finder.loader.resolve(name);
        if paths.is_empty() {
            return match goal.by_name(name) {
                Ok(Some(out)) => Ok(Some(out)),
                Ok(None) => {
                    self.log.record(SYSTEM, name, SearchOutcome::NoSuchName);
                    Ok(None)
                }
                Err(Rejection::Refused(message)) => {
                    self.log
                        .record(SYSTEM, name, SearchOutcome::Refused(message));
                    self.refused.get_or_insert(name.into());
                    Ok(None)
                }
                Err(Rejection::Dependency(error)) => Err(SearchAbort::Dependency(error)),
            };
        }
        for (index, path) in paths.into_iter().enumerate() {
            let defect = if self.is_stub(&path) {
                Some(FileDefect::Stub)
            } else {
                match probe_file(finder.files, &path) {
                    Probe::File => None,
                    Probe::Absent => continue,
                    Probe::Defect(defect) => Some(defect),
                }
            };
            if let Some(defect) = defect {
                self.log
                    .record_path(SYSTEM, &path, SearchOutcome::Broken(defect));
                continue;
            }
            let dynamic = match elf::inspect(finder.files, finder.platform, &path) {
                Ok(dynamic) => dynamic,
                Err(defect) => {
                    let foreign = matches!(defect, FileDefect::Architecture { .. });
                    self.log
                        .record_path(SYSTEM, &path, SearchOutcome::Broken(defect));
                    if foreign {
                        continue;
                    }
                    self.refused.get_or_insert(path);
                    return Ok(None);
                }
            };
            let major = self.major(&path, of_name, None, &dynamic);
            if self.is_other_major(SYSTEM, &path, major) {
                continue;
            }
            let candidate = Candidate {
                path: path.clone(),
                via,
                // The loader itself would take the first one.
                by_name: (index == 0).then_some(name),
                major,
                dynamic,
            };
            match goal.file(candidate) {
                Ok(out) => return Ok(Some(out)),
                Err(Rejection::Refused(message)) => {
                    self.log
                        .record_path(SYSTEM, &path, SearchOutcome::Refused(message));
                    self.refused.get_or_insert(path);
                    return Ok(None);
                }
                Err(Rejection::Dependency(error)) => return Err(SearchAbort::Dependency(error)),
            }
        }
        Ok(None)
    }

    /// Whether a file is a toolkit's link-time stub, whose functions all fail.
    fn is_stub(&self, path: &Path) -> bool {
        let below_stubs = |path: &Path| {
            path.parent()
                .is_some_and(|folder| folder.components().any(|part| part.as_os_str() == "stubs"))
        };
        below_stubs(path)
            || self.request.library.origin == Origin::Driver
                && self
                    .finder
                    .files
                    .resolve(path)
                    .is_some_and(|path| below_stubs(&path))
    }

    fn is_folder(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let is = self.finder.files.entry(folder) == crate::files::FileEntry::Folder;
        self.folders.insert(folder.to_owned(), is);
        is
    }

    fn major(
        &self,
        path: &Path,
        of_name: Option<u32>,
        of_dir: Option<u32>,
        dynamic: &DynamicSection,
    ) -> Option<u32> {
        if self.request.library.origin == Origin::Driver {
            return None;
        }
        of_name
            .or(of_dir)
            .or_else(|| version::major_of_needed(dynamic))
            .or_else(|| {
                // Avoids file system queries whose result is not used.
                let library = self.request.library;
                if self.request.major.is_none() && library.dependencies.is_empty() {
                    return None;
                }
                version::major_of_place(&self.finder, library, path)
            })
    }

    /// Whether a file is for another CUDA major than the required one; if so, records it.
    fn is_other_major(&mut self, step: &'static str, path: &Path, major: Option<u32>) -> bool {
        match (major, self.request.major) {
            (Some(found), Some(wanted)) if found != wanted => {
                let outcome = SearchOutcome::OtherMajor { found, wanted };
                self.log.record_path(step, path, outcome);
                true
            }
            _ => false,
        }
    }

    /// The library's folders below the root of a toolkit.
    fn root_dirs(&self) -> Vec<String> {
        let platform = self.finder.platform;
        let dirs = self.request.library.root_dirs(platform);
        let mut all: Vec<String> = dirs.iter().map(|dir| (*dir).to_owned()).collect();
        if !platform.is_windows() && dirs.contains(&"lib") {
            let targets = platform.targets().iter();
            all.extend(targets.map(|target| format!("targets/{target}/lib")));
        }
        all
    }

    /// The library's folders below a conda environment, which has `lib` where a toolkit has several.
    fn conda_dirs(&self) -> Vec<String> {
        let dirs = self.root_dirs().into_iter();
        if self.finder.platform.is_windows() {
            return dirs.map(|dir| format!("Library/{dir}")).collect();
        }
        dirs.filter(|dir| dir != "lib64" && !dir.starts_with("extras/"))
            .collect()
    }

    fn error(self, kind: LoadErrorKind, file: Option<PathBuf>) -> LoadError {
        let Request {
            library,
            names,
            major,
            dependent,
        } = self.request;
        let platform = self.finder.platform;
        let majors = library.majors(platform);
        let all = library.names(platform);
        let stem = all.first().map_or("", |name| stem(name));
        let searched = self.log.finish(self.finder.files, |_, file| {
            let file = file.to_string_lossy();
            if names.iter().any(|(name, _)| *name == file) {
                return Relation::None;
            }
            let other = all.iter().position(|name| *name == file);
            match (other.and_then(|index| majors.get(index)), major) {
                (Some(found), Some(wanted)) => Relation::OtherMajor(*found, wanted),
                _ if file.starts_with(stem) => Relation::Similar,
                _ => Relation::None,
            }
        });
        LoadError {
            kind,
            library: library.name.to_owned(),
            row: Some(library),
            platform,
            wanted: major,
            major: major.or_else(|| version::installed_major(&self.finder)),
            needed_by: dependent.map(|dependent| dependent.name),
            file,
            searched,
        }
    }
}

/// The common prefix of a library's file names: `libnvrtc.so`, `cudart64_`.
fn stem(name: &str) -> &str {
    match name.find(".so") {
        Some(at) => &name[..at + 3],
        None => match name.find(['_', '.']) {
            Some(at) => &name[..=at],
            None => name,
        },
    }
}
