//! What functions do: descriptions of this project, and facts of NVIDIA's manual.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Function, LibraryApi};

/// What NVIDIA's manual documents of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualEntry {
    /// The group, e.g. `CUDA_MEM`; empty if the header has no groups.
    pub group: String,
    /// The enum members after `\return`, in order: the statuses, and what else a header names there.
    pub statuses: Vec<String>,
}

/// The description of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// What it does.
    pub does: String,
    /// Notes about parameters, by name in C.
    pub parameters: BTreeMap<String, String>,
}

impl LibraryApi {
    /// The description of a function. A function as CUDA 12 declares it has the description of its successor.
    pub fn about(&self, name: &str) -> Option<&About> {
        let plain = name.strip_suffix("_cuda12").unwrap_or(name);
        self.about.get(name).or_else(|| self.about.get(plain))
    }

    /// What the manual documents of a function: under its own name, else under that of another version.
    pub fn manual_of(&self, f: &Function) -> Option<&ManualEntry> {
        let plain = f.name.strip_suffix("_cuda12").unwrap_or(&f.name);
        [plain, &f.symbol, &f.base]
            .into_iter()
            .find_map(|name| self.manual.get(name))
    }

    /// The title and the web address of a function's section in the manual, or the manual without a title.
    pub fn section_of(&self, f: &Function) -> (String, String) {
        let group = self.manual_of(f).map_or("", |entry| &entry.group);
        let title = self.sections.get(group).cloned().unwrap_or_default();
        let url = &self.doc_url;
        let url = match self.c_library() {
            "driver" | "runtime" | "nvml" if !group.is_empty() => {
                format!("{url}{}.html", doxygen_page(group))
            }
            "cudla" if !group.is_empty() => format!("{url}index.html#{}", doxygen_page(group)),
            "cufile" => format!("{url}index.html#{}", f.base.to_lowercase()),
            _ if !title.is_empty() => format!("{url}index.html#{}", heading_anchor(&title)),
            _ => url.clone(),
        };
        (title, url)
    }
}

/// The name of a group's page in doxygen's HTML.
fn doxygen_page(group: &str) -> String {
    format!("group__{}", group.replace('_', "__"))
}

/// The anchor of a heading in Sphinx's HTML: lower case, a hyphen for other characters.
fn heading_anchor(title: &str) -> String {
    let words = title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_addresses_follow_the_manuals() {
        assert_eq!(doxygen_page("CUDART__VERSION"), "group__CUDART____VERSION");
        assert_eq!(
            heading_anchor("Precompiled header (PCH) (CUDA 12.8+)"),
            "precompiled-header-pch-cuda-12-8"
        );
    }
}
