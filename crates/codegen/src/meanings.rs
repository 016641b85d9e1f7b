//! Descriptions of enum members, for the reference pages and docstrings: `api/meanings.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::ir::LibraryApi;

/// Descriptions by module and enum (`driver.CUresult`), then by member.
#[derive(Debug, Default)]
pub struct Meanings(BTreeMap<String, BTreeMap<String, String>>);

impl Meanings {
    /// Reads the descriptions and checks each name against the libraries.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not TOML, or contains an unknown name.
    pub fn load(root: &Path, libraries: &[&LibraryApi]) -> Result<Meanings, String> {
        let path = root.join("api/meanings.toml");
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Meanings::parse(&text, libraries).map_err(|e| format!("{}: {e}", path.display()))
    }

    fn parse(text: &str, libraries: &[&LibraryApi]) -> Result<Meanings, String> {
        let all: BTreeMap<String, BTreeMap<String, String>> =
            toml::from_str(text).map_err(|e| e.to_string())?;
        for (key, members) in &all {
            let (module, name) = key
                .split_once('.')
                .ok_or_else(|| format!("{key}: no module"))?;
            let found = (libraries.iter().find(|lib| lib.name == module))
                .and_then(|lib| lib.python.enums.iter().find(|e| e.name == name))
                .ok_or_else(|| format!("{key}: unknown enum"))?;
            for member in members.keys() {
                if !found.members.iter().any(|(name, _)| name == member) {
                    return Err(format!("{key}.{member}: unknown member"));
                }
            }
        }
        Ok(Meanings(all))
    }

    /// The description of a member; empty if it has none.
    pub fn of(&self, library: &str, name: &str, member: &str) -> &str {
        (self.0.get(&format!("{library}.{name}")))
            .and_then(|members| members.get(member))
            .map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_errors() {
        let error = Meanings::parse("[\"driver.CUresult\"]\nA = \"b\"\n", &[]).unwrap_err();
        assert_eq!(error, "driver.CUresult: unknown enum");
        assert!(Meanings::parse("[CUresult]\nA = \"b\"\n", &[]).is_err());
        let none = Meanings::parse("", &[]).unwrap();
        assert_eq!(none.of("driver", "CUresult", "CUDA_SUCCESS"), "");
    }
}
