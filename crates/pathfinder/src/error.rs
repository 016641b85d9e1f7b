//! The errors of a search: everything looked at, and what would help.

use std::fmt;
use std::path::PathBuf;

use crate::environment::{MAJOR_VARIABLE, path_override_variable};
use crate::platform::Platform;
use crate::table::{LibraryDescriptor, Origin, Packages};

/// The step of the search that takes `CUPYRITE_LIB_<NAME>`.
pub(crate) const OVERRIDE: &str = "override";

/// Places of one step that are told one by one; more of them are summed up.
const PLACES_TOLD: usize = 8;

/// Why a library is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoadErrorKind {
    /// It lies in none of the places.
    NotFound,
    /// It was found, and it is broken or the loader refused it.
    Failed,
    /// This crate does not know a library of that name.
    Unknown,
    /// It is known, and does not exist for this platform.
    NotAvailable,
    /// A variable of this project's own says something that cannot be: a `CUPYRITE_LIB_<NAME>` that leads
    /// nowhere, a `CUPYRITE_CUDA_MAJOR` that is no number.
    InvalidSetting,
}

/// One place that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedLocation {
    /// The step of the search, in words: `wheels`, `conda`, ...
    pub step: &'static str,
    /// A folder, a file, or a name given to the system's loader.
    pub place: String,
    /// What was there.
    pub outcome: SearchOutcome,
}

/// What was found at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchOutcome {
    /// The variable or setting that names the place is not set.
    NotSet,
    /// The variable holds a path that begins nowhere: what it means would depend on the working directory.
    Relative,
    /// There is no such folder or file.
    Absent,
    /// The system's loader knows no library of this name.
    NoSuchName,
    /// The folder is there, what was searched for is not. Files with a similar name are listed.
    Other(Vec<String>),
    /// It is there, for another CUDA major than the one that counts.
    OtherMajor {
        /// The one it is for.
        found: u32,
        /// The one that counts.
        wanted: u32,
    },
    /// Something is there that cannot be what was searched for.
    Broken(FileDefect),
    /// The system's loader could not load the file: its message.
    Refused(String),
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileDefect {
    /// A symbolic link to something that does not exist.
    DanglingLink(PathBuf),
    /// Symbolic links that lead to each other.
    LinkCycle,
    /// This process may not look at it: the system's message.
    Denied(String),
    /// The system could not read it: its message.
    Unreadable(String),
    /// A folder where a file should be.
    Folder,
    /// A file where a folder should be.
    File,
    /// A pipe, a socket or a device. It is not opened.
    Special,
    /// A file of no bytes.
    Empty,
    /// A tool that this process may not execute.
    NotExecutable,
    /// No library: what its first bytes are.
    NotALibrary(&'static str),
    /// Cut off, or written over: what does not fit.
    Damaged(&'static str),
    /// Built for another platform.
    Architecture {
        /// For which.
        found: String,
        /// For which it should be.
        wanted: Platform,
    },
    /// A stub, made for linking only.
    Stub,
}

impl fmt::Display for FileDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileDefect::DanglingLink(target) => write!(
                f,
                "a symbolic link to {}, which does not exist",
                target.display()
            ),
            FileDefect::LinkCycle => f.write_str("symbolic links that lead to each other"),
            FileDefect::Denied(message) => {
                write!(f, "this process may not look at it ({message})")
            }
            FileDefect::Unreadable(message) => write!(f, "cannot be read ({message})"),
            FileDefect::Folder => f.write_str("a folder, not a file"),
            FileDefect::File => f.write_str("a file, not a folder"),
            FileDefect::Special => f.write_str("a pipe, a socket or a device, not a file"),
            FileDefect::Empty => f.write_str("an empty file"),
            FileDefect::NotExecutable => f.write_str("a file that this process may not execute"),
            FileDefect::NotALibrary(what) => write!(f, "not a library, but {what}"),
            FileDefect::Damaged(what) => write!(f, "a damaged library: {what}"),
            FileDefect::Architecture { found, wanted } => {
                write!(f, "built for {found}; this process is {wanted}")
            }
            FileDefect::Stub => f.write_str("a stub for linking, never to be loaded"),
        }
    }
}

impl fmt::Display for SearchOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchOutcome::NotSet => f.write_str("not set"),
            SearchOutcome::Relative => f.write_str("ignored, because it is not an absolute path"),
            SearchOutcome::Absent => f.write_str("does not exist"),
            SearchOutcome::NoSuchName => f.write_str("not known to it"),
            SearchOutcome::Other(files) if files.is_empty() => f.write_str("exists, without it"),
            SearchOutcome::Other(files) => write!(f, "has only {}", files.join(", ")),
            SearchOutcome::OtherMajor { found, wanted } => {
                write!(f, "for CUDA {found}; only CUDA {wanted} counts here")
            }
            SearchOutcome::Broken(fault) => fault.fmt(f),
            SearchOutcome::Refused(message) => f.write_str(message),
        }
    }
}

/// A library that could not be found or loaded. `Display` is the whole story, on several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// What went wrong.
    pub kind: LoadErrorKind,
    /// The library's name, such as `nvrtc`.
    pub library: String,
    /// The row of the table, if there is one.
    pub row: Option<&'static LibraryDescriptor>,
    /// The platform of the search.
    pub platform: Platform,
    /// The only CUDA major that counts: asked for, or needed by [`LoadError::needed_by`].
    pub wanted: Option<u32>,
    /// The CUDA major to install it for: the one that counts, or else the one that is installed; `None` if
    /// nothing tells.
    pub major: Option<u32>,
    /// The library that cannot be loaded without this one, if it was not asked for itself.
    pub needed_by: Option<&'static str>,
    /// For [`LoadErrorKind::Failed`]: the file.
    pub file: Option<PathBuf>,
    /// Every place that was looked at, in order.
    pub searched: Vec<SearchedLocation>,
}

impl LoadError {
    pub(crate) fn unknown(name: &str, platform: Platform) -> LoadError {
        LoadError {
            kind: LoadErrorKind::Unknown,
            library: name.to_owned(),
            row: None,
            platform,
            wanted: None,
            major: None,
            needed_by: None,
            file: None,
            searched: Vec::new(),
        }
    }

    /// The file names that counted.
    pub fn names(&self) -> Vec<&'static str> {
        let Some(row) = self.row else {
            return Vec::new();
        };
        row.names_for(self.platform, self.wanted)
            .map(|(name, _)| name)
            .collect()
    }

    /// The commands that would fix it, one a line.
    pub fn advice(&self) -> Vec<String> {
        let Some(row) = self.row else {
            return Vec::new();
        };
        let names = self.names();
        let variable = path_override_variable(row.name);
        let mut advice = Vec::new();
        match self.kind {
            LoadErrorKind::Unknown | LoadErrorKind::NotAvailable => return advice,
            LoadErrorKind::InvalidSetting if self.searched.iter().all(|l| l.step != OVERRIDE) => {
                return vec![
                    "set it to the number of a CUDA major, such as 13, or unset it".into(),
                ];
            }
            _ => {}
        }
        if self
            .searched
            .iter()
            .any(|searched| searched.step == OVERRIDE)
        {
            advice.push(format!("correct {variable}, or unset it"));
        }
        if self.needed_by.is_none() {
            advice.extend(other_major(&self.searched));
        }
        let set = names
            .first()
            .map(|name| format!("or point to an installed one: {variable}=/path/to/{name}"));
        if row.origin == Origin::Driver {
            advice.push(
                "install the NVIDIA driver (in a container: start it with the GPU passed through)"
                    .to_owned(),
            );
            advice.extend(set);
            advice.push("or use the embedded CPU device: CUPYRITE_DEVICE=cpu".to_owned());
        } else {
            // What is installed and broken is not installed again unless that is asked for.
            let again = match self.kind {
                LoadErrorKind::Failed => " --force-reinstall",
                _ => "",
            };
            advice.extend(install(&row.packages, self.major, again));
            advice.extend(set);
        }
        advice
    }
}

/// What to do where the thing is there, for a CUDA major that does not count.
fn other_major(searched: &[SearchedLocation]) -> Option<String> {
    searched.iter().find_map(|searched| match searched.outcome {
        SearchOutcome::OtherMajor { found, .. } => Some(format!(
            "unset {MAJOR_VARIABLE} to take the one for CUDA {found}, or install the other one:"
        )),
        _ => None,
    })
}

/// The commands that install packages: one for pip, one for conda, each if there is one.
fn install(packages: &Packages, major: Option<u32>, again: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let pip = match major {
        // Empty where no wheel of CUDA 12 has it: those of CUDA 13 would be no help.
        Some(12) => packages.pip_cuda12,
        _ => packages.pip,
    };
    if !pip.is_empty() {
        let other = match major {
            None if !packages.pip_cuda12.is_empty() && packages.pip_cuda12 != pip => {
                format!("    (for CUDA 12: {})", packages.pip_cuda12)
            }
            _ => String::new(),
        };
        lines.push(format!("pip install{again} {pip}{other}"));
    }
    if !packages.conda.is_empty() {
        let version = major.map_or_else(String::new, |major| format!(" cuda-version={major}"));
        lines.push(format!(
            "conda install{again} -c conda-forge {}{version}",
            packages.conda
        ));
    }
    lines
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(row) = self.row else {
            let known: Vec<&str> = crate::LIBRARIES.iter().map(|row| row.name).collect();
            return write!(
                f,
                "no library is called {:?}; known: {}",
                self.library,
                known.join(", ")
            );
        };
        let needed = self
            .needed_by
            .map_or_else(String::new, |parent| format!(", which {parent} needs,"));
        if self.kind == LoadErrorKind::NotAvailable {
            return write!(
                f,
                "{}{needed} does not exist for {}",
                row.name, self.platform
            );
        }
        let names = self.names().join(" or ");
        match (self.kind, &self.file) {
            (LoadErrorKind::Failed, Some(file)) => {
                write!(f, "{}{needed} was found but does not load", file.display())?;
            }
            (LoadErrorKind::InvalidSetting, _) => write!(f, "a setting for {} is wrong", row.name)?,
            _ => write!(f, "{names}{needed} was not found")?,
        }
        if let (Some(major), None) = (self.wanted, self.needed_by) {
            write!(f, " ({MAJOR_VARIABLE}={major})")?;
        }
        write_searched(f, &self.searched)?;
        write_advice(f, &self.advice())
    }
}

impl std::error::Error for LoadError {}

/// Why a folder of headers, a tool or an archive is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindErrorKind {
    /// This crate does not know it.
    Unknown,
    /// It lies in none of the places.
    NotFound,
    /// It is known, and does not exist for this platform.
    NotAvailable,
    /// `CUPYRITE_CUDA_MAJOR` is no number.
    InvalidSetting,
}

/// A folder of headers, a tool or an archive that could not be found. `Display` is the whole story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindError {
    /// What went wrong.
    pub kind: FindErrorKind,
    /// What was searched for: `header set`, `tool`, `static library`, `bitcode library`.
    pub what: &'static str,
    /// Its name, as it was given.
    pub name: String,
    /// For [`FindErrorKind::Unknown`]: the names that are known.
    pub known: Vec<&'static str>,
    /// The platform of the search.
    pub platform: Platform,
    /// The CUDA major that is asked for or installed; `None` if nothing tells.
    pub major: Option<u32>,
    /// Every place that was looked at, in order.
    pub searched: Vec<SearchedLocation>,
    /// What to install.
    pub packages: &'static Packages,
}

impl FindError {
    /// The commands that would fix it, one a line.
    pub fn advice(&self) -> Vec<String> {
        match self.kind {
            FindErrorKind::NotFound => {
                let other = other_major(&self.searched).into_iter();
                other
                    .chain(install(self.packages, self.major, ""))
                    .collect()
            }
            FindErrorKind::InvalidSetting => {
                vec!["set it to the number of a CUDA major, such as 13, or unset it".to_owned()]
            }
            FindErrorKind::Unknown | FindErrorKind::NotAvailable => Vec::new(),
        }
    }
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FindError { what, name, .. } = self;
        match self.kind {
            FindErrorKind::Unknown => {
                let known = self.known.join(", ");
                return write!(f, "no {what} is called {name:?}; known: {known}");
            }
            FindErrorKind::NotAvailable => {
                return write!(
                    f,
                    "the {what} {name:?} does not exist for {}",
                    self.platform
                );
            }
            FindErrorKind::NotFound => write!(f, "the {what} {name:?} was not found")?,
            FindErrorKind::InvalidSetting => {
                write!(f, "a setting for the {what} {name:?} is wrong")?
            }
        }
        write_searched(f, &self.searched)?;
        write_advice(f, &self.advice())
    }
}

impl std::error::Error for FindError {}

/// Every place and what was there. Many places of one step in which nothing was are summed up.
fn write_searched(f: &mut fmt::Formatter<'_>, searched: &[SearchedLocation]) -> fmt::Result {
    if searched.is_empty() {
        return Ok(());
    }
    f.write_str(". Looked at:")?;
    let same = |a: &SearchedLocation, b: &SearchedLocation| {
        a.step == b.step && a.outcome == SearchOutcome::Absent && b.outcome == SearchOutcome::Absent
    };
    for group in searched.chunk_by(same) {
        let shown = if group.len() > PLACES_TOLD {
            PLACES_TOLD - 1
        } else {
            group.len()
        };
        for searched in &group[..shown] {
            if searched.place == searched.step {
                write!(f, "\n  {}: {}", searched.step, searched.outcome)?;
            } else {
                let SearchedLocation {
                    step,
                    place,
                    outcome,
                } = searched;
                write!(f, "\n  {step}: {place}: {outcome}")?;
            }
        }
        if shown < group.len() {
            let (step, rest) = (group[0].step, group.len() - shown);
            write!(f, "\n  {step}: {rest} more places: none exists")?;
        }
    }
    Ok(())
}

fn write_advice(f: &mut fmt::Formatter<'_>, advice: &[String]) -> fmt::Result {
    if advice.is_empty() {
        return Ok(());
    }
    f.write_str("\nTo fix it:")?;
    advice.iter().try_for_each(|line| write!(f, "\n  {line}"))
}
