//! The evidence that the rules judge, what can be concluded from it, and the commands for the examined interpreter.

use cupyrite_pathfinder::files::FileSystem;

use crate::find::Looked;
use crate::isolate::Outcome;
use crate::python::Python;
use crate::report::{Backend, Item, Machine};
use crate::variables::{self, Variables};
use crate::{Facts, show};

/// The evidence that the rules judge.
pub(crate) struct Evidence<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) variables: &'a Variables,
    pub(crate) files: &'a dyn FileSystem,
    pub(crate) machine: &'a Machine,
    pub(crate) outcome: &'a Outcome,
    pub(crate) libraries: &'a [Looked],
    pub(crate) headers: Vec<Item>,
    pub(crate) both: Vec<[Item; 2]>,
    pub(crate) kernel_module: Option<String>,
    pub(crate) python: &'a Python,
}

impl Evidence<'_> {
    /// The examined interpreter as the first word of a command; `None` from Rust.
    pub(crate) fn python_command(&self) -> Option<String> {
        let python = self.facts.interpreter.as_ref()?;
        let active = variables::value(self.variables, "VIRTUAL_ENV");
        Some(match (&python.executable, &python.prefix) {
            // The environment is active: its programs come first on PATH.
            (_, Some(prefix)) if active == Some(prefix.as_os_str()) => "python".to_owned(),
            (Some(executable), _) => quoted(&show(executable)),
            (None, _) => "python".to_owned(),
        })
    }

    /// The command that installs `words` for the examined interpreter: with pip, or with uv where pip is missing.
    pub(crate) fn install(&self, words: &str) -> String {
        match self.python_command() {
            None => format!("pip install {words}"),
            Some(python) if self.python.without_pip => {
                format!("uv pip install --python {python} {words}")
            }
            Some(python) => format!("{python} -m pip install {words}"),
        }
    }

    /// The command that uninstalls `names` from the examined interpreter's environment.
    pub(crate) fn uninstall(&self, names: &str) -> String {
        match self.python_command() {
            None => format!("pip uninstall -y {names}"),
            Some(python) if self.python.without_pip => {
                format!("uv pip uninstall --python {python} {names}")
            }
            Some(python) => format!("{python} -m pip uninstall -y {names}"),
        }
    }

    /// Whether NVIDIA's driver serves the process.
    pub(crate) fn on_gpu(&self) -> bool {
        self.outcome.probe.backend == Some(Backend::Gpu)
    }

    /// The library with this name in the table.
    pub(crate) fn located(&self, name: &str) -> Option<&Item> {
        let mut items = self.libraries.iter().map(|looked| &looked.item);
        items.find(|item| item.name == name)
    }

    /// Whether there is evidence of an NVIDIA GPU.
    pub(crate) fn has_gpu(&self) -> bool {
        let machine = self.machine;
        !machine.pci_gpus.is_empty()
            || machine
                .device_files
                .iter()
                .any(|name| is_gpu_file(name.as_str()))
    }

    /// A description of the evidence of an NVIDIA GPU.
    pub(crate) fn gpu_signs(&self) -> String {
        let machine = self.machine;
        let mut signs = Vec::new();
        if !machine.pci_gpus.is_empty() {
            signs.push(format!("PCI device {}", machine.pci_gpus.join(", ")));
        }
        let files: Vec<&str> = machine
            .device_files
            .iter()
            .map(String::as_str)
            .filter(|name| is_gpu_file(name))
            .collect();
        if !files.is_empty() {
            signs.push(files.join(", "));
        }
        signs.join("; ")
    }
}

/// `/dev/nvidia0`, not `/dev/nvidiactl`.
fn is_gpu_file(name: &str) -> bool {
    name.strip_prefix("/dev/nvidia")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Quotes a word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=+:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
