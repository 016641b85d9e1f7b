//! The error of the search: everything looked at, and what would help.

use std::fmt;
use std::path::PathBuf;

use crate::environment::override_variable;
use crate::table::{Library, Origin};

/// The step of the search that takes `CUPYRITE_LIB_<NAME>`.
pub(crate) const OVERRIDE: &str = "override";

/// Why a library is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadErrorKind {
    /// It lies in none of the places.
    NotFound,
    /// It was found, and the loader refused it.
    Failed,
    /// This crate does not know a library of that name.
    Unknown,
}

/// One place that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// The step of the search, in words: `wheels`, `conda`, ...
    pub step: &'static str,
    /// A folder, a file, or a name given to the system's loader.
    pub place: String,
    /// What was there.
    pub outcome: Outcome,
}

/// What was found at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The variable or setting that names the place is not set.
    NotSet,
    /// There is no such folder or file.
    Absent,
    /// The system's loader knows no library of this name.
    NoSuchName,
    /// The folder is there, the library is not. Files with a similar name are listed.
    Other(Vec<String>),
    /// The system's loader could not load the file: its message.
    Refused(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::NotSet => f.write_str("not set"),
            Outcome::Absent => f.write_str("does not exist"),
            Outcome::NoSuchName => f.write_str("not known to it"),
            Outcome::Other(files) if files.is_empty() => {
                f.write_str("exists, without this library")
            }
            Outcome::Other(files) => write!(f, "has only {}", files.join(", ")),
            Outcome::Refused(message) => f.write_str(message),
        }
    }
}

/// A library that could not be loaded. `Display` is the whole story, on several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// What went wrong.
    pub kind: LoadErrorKind,
    /// The library's name, such as `nvrtc`.
    pub library: String,
    /// The row of the table, if there is one.
    pub row: Option<&'static Library>,
    /// For [`LoadErrorKind::Failed`]: the file.
    pub file: Option<PathBuf>,
    /// Every place that was looked at, in order.
    pub looked: Vec<Looked>,
}

impl LoadError {
    pub(crate) fn unknown(name: &str) -> LoadError {
        LoadError {
            kind: LoadErrorKind::Unknown,
            library: name.to_owned(),
            row: None,
            file: None,
            looked: Vec::new(),
        }
    }

    /// The commands that would fix it, one a line.
    pub fn advice(&self) -> Vec<String> {
        let Some(row) = self.row else {
            return Vec::new();
        };
        let set = format!(
            "{}=/path/to/{}",
            override_variable(row.name),
            row.linux_sonames[0]
        );
        let mut advice = Vec::new();
        if self.looked.iter().any(|looked| looked.step == OVERRIDE) {
            advice.push(format!(
                "correct {}, or unset it",
                override_variable(row.name)
            ));
        }
        advice.extend(match row.origin {
            Origin::Toolkit | Origin::Product => vec![
                format!("pip install {}", row.packages.pip),
                format!("conda install -c conda-forge {}", row.packages.conda),
                format!("or point to an installed one: {set}"),
            ],
            Origin::Driver => vec![
                "install the NVIDIA driver (in a container: start it with the GPU passed through)"
                    .to_owned(),
                format!("or point to an installed one: {set}"),
                "or use the embedded CPU device: CUPYRITE_DEVICE=cpu".to_owned(),
            ],
        });
        advice
    }
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
        let names = row.linux_sonames.join(" or ");
        match (&self.kind, &self.file) {
            (LoadErrorKind::Failed, Some(file)) => {
                write!(f, "{} was found but does not load", file.display())?;
            }
            _ => write!(f, "{names} was not found")?,
        }
        f.write_str(". Looked at:")?;
        for looked in &self.looked {
            if looked.place == looked.step {
                write!(f, "\n  {}: {}", looked.step, looked.outcome)?;
            } else {
                write!(
                    f,
                    "\n  {}: {}: {}",
                    looked.step, looked.place, looked.outcome
                )?;
            }
        }
        f.write_str("\nTo fix it:")?;
        for line in self.advice() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}
