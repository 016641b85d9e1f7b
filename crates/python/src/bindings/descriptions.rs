//! What the functions do, from the generated texts `generated/*_descriptions.tsv`.
//!
//! `crates/codegen/src/backend/python_descriptions.rs` writes the texts and explains their lines. A lookup reads a text from its
//! start: docstrings are read by people.

use cupyrite_sys::loader::CudaLibrary;

/// The descriptions of a library, which both of its modules share.
#[derive(Clone, Copy, Debug)]
pub struct Descriptions {
    text: &'static str,
}

/// The description of a function.
#[derive(Debug)]
pub struct Description {
    /// What it does; may be empty.
    pub does: &'static str,
    /// Title of the section of NVIDIA's manual; may be empty.
    pub section: &'static str,
    /// Address of the section.
    pub url: &'static str,
    statuses: &'static str,
    notes: &'static str,
}

impl Descriptions {
    /// The descriptions of a library.
    pub fn of(library: CudaLibrary) -> Descriptions {
        macro_rules! text {
            ($name:literal) => {
                include_str!(concat!("../generated/", $name, "_descriptions.tsv"))
            };
        }
        let text = match library {
            CudaLibrary::Driver => text!("driver"),
            CudaLibrary::Runtime => text!("runtime"),
            CudaLibrary::Nvrtc => text!("nvrtc"),
            CudaLibrary::NvJitLink => text!("nvjitlink"),
            CudaLibrary::Nvvm => text!("nvvm"),
            CudaLibrary::NvFatbin => text!("nvfatbin"),
            CudaLibrary::Nvml => text!("nvml"),
            CudaLibrary::CuFile => text!("cufile"),
            CudaLibrary::Cudla => text!("cudla"),
        };
        Descriptions { text }
    }

    /// What follows a tag and a first field.
    fn line(self, tag: &str, key: &str) -> Option<&'static str> {
        let mut lines = self.text.lines();
        lines.find_map(|line| {
            let rest = line.strip_prefix(tag)?.strip_prefix('\t')?;
            rest.strip_prefix(key)?.strip_prefix('\t')
        })
    }

    /// The library, as a name in a sentence.
    pub fn title(self) -> &'static str {
        let mut lines = self.text.lines();
        lines
            .find_map(|line| line.strip_prefix("title\t"))
            .unwrap_or("")
    }

    /// What a status means.
    pub fn meaning(self, status: i64) -> Option<&'static str> {
        self.line("status", &status.to_string())
    }

    /// The description of the function that calls a symbol, or of a function without a C function by its Python name.
    pub fn function(self, name: &str) -> Option<Description> {
        let mut fields = self.line("function", name)?.splitn(4, '\t');
        let section = fields.next()?;
        // A section without a title is given by its address.
        let (section, url) = match self.line("section", section) {
            Some(url) => (section, url),
            None => ("", section),
        };
        Some(Description {
            section,
            url,
            statuses: fields.next()?,
            does: fields.next()?,
            notes: fields.next().unwrap_or(""),
        })
    }
}

impl Description {
    /// The values of the statuses that the function documents.
    pub fn statuses(&self) -> impl Iterator<Item = i64> {
        self.statuses
            .split(' ')
            .filter_map(|status| status.parse().ok())
    }

    /// Indexes of parameters in C (in Python, if there is no C function), and the notes on them.
    pub fn notes(&self) -> impl Iterator<Item = (u8, &'static str)> {
        self.notes.split('\t').filter_map(|field| {
            let (index, note) = field.split_once('=')?;
            Some((index.parse().ok()?, note))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_its_fields() {
        let driver = Descriptions::of(CudaLibrary::Driver);
        assert_eq!(driver.title(), "CUDA driver API");
        assert!(driver.meaning(2).is_some_and(|text| !text.is_empty()));
        assert_eq!(driver.meaning(-5), None);
        let Some(found) = driver.function("cuMemAlloc_v2") else {
            panic!("cuMemAlloc_v2 has no description");
        };
        assert!(!found.does.is_empty());
        assert!(!found.section.is_empty() && found.url.starts_with("https://"));
        assert!(found.statuses().any(|status| status == 2));
        assert!(found.notes().any(|(index, _)| index == 1));
        assert!(driver.function("cuMem").is_none());
    }
}
