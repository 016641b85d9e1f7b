//! Versions of PTX and architectures that a form needs.

use std::fmt;

/// The version and the architecture that a form or a modifier needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The version of PTX that introduced it.
    pub version: (u32, u32),
    /// Architectures of which one is needed. `sm_90` stands for this and all later ones, `sm_90a` for this alone, `sm_100f`
    /// for the family: `sm_100a`, `sm_100f`, `sm_103a` and so on.
    pub targets: &'static [&'static str],
    /// The version and the architecture that no longer have it: both must be reached.
    pub until: Option<((u32, u32), &'static str)>,
}

/// An architecture: its number and its suffix.
fn architecture(target: &str) -> (u32, Option<char>) {
    let name = target.strip_prefix("sm_").unwrap_or(target);
    let suffix = name.chars().last().filter(char::is_ascii_alphabetic);
    let number = name.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    (number.parse().unwrap_or(0), suffix)
}

/// Whether a module for `target` can use what needs `wanted`.
fn has(target: &str, wanted: &str) -> bool {
    let ((number, suffix), (least, kind)) = (architecture(target), architecture(wanted));
    match kind {
        None => number >= least,
        Some('f') => suffix.is_some() && number / 10 == least / 10 && number >= least,
        Some(_) => suffix == kind && number == least,
    }
}

impl Gate {
    /// Whether a module with this version and target meets the requirement.
    pub fn is_met(&self, version: (u32, u32), target: &str) -> bool {
        let ended = |&(last, from): &((u32, u32), &str)| version >= last && has(target, from);
        version >= self.version
            && self.targets.iter().any(|wanted| has(target, wanted))
            && !self.until.as_ref().is_some_and(ended)
    }

    /// Whether every module meets the requirement.
    pub fn is_open(&self) -> bool {
        self.version == (1, 0) && self.targets == ["sm_10"] && self.until.is_none()
    }
}

/// `PTX ISA 8.6 and sm_100`.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.version;
        let targets = self.targets.join(" or ");
        match (self.version == (1, 0), self.targets == ["sm_10"]) {
            (true, true) => {}
            (false, true) => write!(f, "PTX ISA {major}.{minor}")?,
            (true, false) => f.write_str(&targets)?,
            (false, false) => write!(f, "PTX ISA {major}.{minor} and {targets}")?,
        }
        let Some(((major, minor), target)) = self.until else {
            return Ok(());
        };
        if !(self.version == (1, 0) && self.targets == ["sm_10"]) {
            f.write_str(", and ")?;
        }
        write!(f, "a version before {major}.{minor}")?;
        if target != "sm_10" {
            write!(f, " or an architecture before {target}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_have_what_their_number_and_suffix_say() {
        for (target, wanted, expected) in [
            ("sm_89", "sm_90", false),
            ("sm_90", "sm_90", true),
            ("sm_120", "sm_90", true),
            ("sm_90", "sm_90a", false),
            ("sm_90a", "sm_90a", true),
            ("sm_100a", "sm_90a", false),
            ("sm_103a", "sm_100f", true),
            ("sm_100", "sm_100f", false),
            ("sm_100f", "sm_103f", false),
            ("sm_120f", "sm_100f", false),
        ] {
            assert_eq!(has(target, wanted), expected, "{target} {wanted}");
        }
    }
}
