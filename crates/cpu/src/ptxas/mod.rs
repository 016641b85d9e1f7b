//! `ptxas` of the CPU device: checks PTX as NVIDIA's assembler does, and writes it into a cubin that this device loads.
//!
//! Belongs here: the command line, the messages, the statistics of `-v`. Does not belong here: the rules of PTX
//! (`cupyrite-ptx`), the format of the cubin ([`crate::code`]).
//!
//! The command line, the texts that programs parse and the exit status are those of `ptxas` 13
//! (<https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/>, "ptxas options").

mod options;
mod statistics;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use cupyrite_engine::memory::AddressSpace;
use cupyrite_engine::{Image, Kernel, Unit};
use cupyrite_ptx::ir::{Linkage, Module, Space, Variable};

use crate::code::{self, CodeSource, Content};
use options::{Action, Options};

/// Exit status of a refused command line or module.
const FAILED: i32 = 255;
/// Addresses for the variables of the checked modules, in bytes. Nothing is stored there but initial values.
const CAPACITY: u64 = 1 << 40;

/// What a run printed, and its exit status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Exit status: 0, or 255 as of NVIDIA's program.
    pub status: i32,
    /// Text for standard output.
    pub stdout: String,
    /// Text for standard error.
    pub stderr: String,
}

/// The end of a run by errors, which were reported.
struct Aborted;

/// Messages for standard error.
#[derive(Default)]
struct Report {
    text: String,
    no_warnings: bool,
    warnings_are_errors: bool,
    failed: bool,
}

impl Report {
    fn line(&mut self, place: Option<(&str, u32)>, kind: &str, message: &str) {
        // A message of several lines is several messages.
        for message in message.lines() {
            match place {
                Some((file, line)) => {
                    self.text += &format!("ptxas {file}, line {line}; {kind:<8}: {message}\n");
                }
                None => self.text += &format!("ptxas {kind:<8}: {message}\n"),
            }
        }
    }

    fn error(&mut self, place: Option<(&str, u32)>, message: &str) {
        self.failed = true;
        let kind = if place.is_some() { "error" } else { "fatal" };
        self.line(place, kind, message);
    }

    fn fatal(&mut self, message: &str) -> Aborted {
        self.error(None, message);
        Aborted
    }

    fn warning(&mut self, place: Option<(&str, u32)>, message: &str) {
        if self.warnings_are_errors {
            self.error(place, message);
        } else if !self.no_warnings {
            self.line(place, "warning", message);
        }
    }

    fn info(&mut self, message: &str) {
        self.line(None, "info", message);
    }

    /// Ends the run if there were errors.
    fn check(&mut self) -> Result<(), Aborted> {
        if self.failed {
            return Err(self.fatal("Ptx assembly aborted due to errors"));
        }
        Ok(())
    }
}

/// A module of the command line.
struct Input {
    unit: Unit,
    module: Module,
}

/// Runs the program with these arguments, which do not include its name.
pub fn run(arguments: &[OsString]) -> Outcome {
    let mut report = Report::default();
    let mut stdout = String::new();
    let done = match options::parse(arguments) {
        Ok(Action::Print(text)) => {
            stdout = text;
            Ok(())
        }
        Ok(Action::Assemble(options)) => assemble(&options, &mut report),
        Err(message) => Err(report.fatal(&message)),
    };
    Outcome {
        status: if done.is_ok() { 0 } else { FAILED },
        stdout,
        stderr: report.text,
    }
}

fn assemble(options: &Options, report: &mut Report) -> Result<(), Aborted> {
    report.no_warnings = options.no_warnings;
    report.warnings_are_errors = options.warnings_are_errors;
    for message in &options.warnings {
        report.warning(None, message);
    }
    let mut inputs = Vec::new();
    for source in &options.sources {
        if let Some(input) = read(source, options, report) {
            inputs.push(input);
        }
    }
    report.check()?;
    for input in &inputs {
        check_target(input, options, report)?;
    }
    let statistics = check_kernels(&inputs, options, report)?;
    report.check()?;
    if options.verbose {
        for line in statistics {
            match line.strip_prefix('\t') {
                Some(more) => report.text += &format!("    {more}\n"),
                None => report.info(&line),
            }
        }
    }
    if options.parse_only {
        return Ok(());
    }
    let units: Vec<Unit> = inputs.into_iter().map(|i| i.unit).collect();
    write(&options.output, &code::wrap(&units)).map_err(|error| {
        report.fatal(&format!(
            "Output file '{}' could not be written: {error}",
            options.output.display()
        ))
    })
}

/// Reads and checks a module; reports errors and returns `None`.
fn read(source: &options::Source, options: &Options, report: &mut Report) -> Option<Input> {
    let (name, bytes) = match source {
        options::Source::Text(text) => ("<input>".to_owned(), Ok(text.as_bytes().to_vec())),
        options::Source::File(path) if path.as_os_str() == "-" => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().read_to_end(&mut bytes);
            ("<stdin>".to_owned(), read.map(|_| bytes))
        }
        options::Source::File(path) => (path.display().to_string(), std::fs::read(path)),
    };
    let Ok(bytes) = bytes else {
        report.error(None, &format!("Input file '{name}' could not be opened"));
        return None;
    };
    let text = match code::content(CodeSource::Slice(&bytes), &name) {
        Ok(Content::Ptx(units)) if code::is_text(&bytes) => units
            .into_iter()
            .next()
            .map_or_else(String::new, |unit| unit.text),
        // The parser reports what is wrong with any other text.
        _ if code::is_text(&bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => {
            report.error(None, &format!("Input file '{name}' is not PTX"));
            return None;
        }
    };
    match cupyrite_ptx::parse(&text) {
        Ok(module) => {
            let mut unit = Unit::new(name, text);
            unit.max_registers = options.max_registers;
            Some(Input { unit, module })
        }
        Err(error) => {
            report.error(Some((&name, error.pos.line)), &error.message);
            None
        }
    }
}

/// Checks that the architecture runs code for the module's `.target`.
fn check_target(input: &Input, options: &Options, report: &mut Report) -> Result<(), Aborted> {
    let target = input.module.target.first().map_or("", String::as_str);
    let (number, arch) = (input.module.arch(), options.arch.number);
    if number > arch {
        return Err(report
            .fatal("SM version specified by .target is higher than default SM version assumed"));
    }
    let name = &options.arch.name;
    // Code for one architecture (`a`) runs on that one, code for a family (`f`) on those of the same major version.
    let fits = if target.ends_with('a') {
        name.strip_prefix("sm_") == target.strip_prefix("sm_")
    } else if target.ends_with('f') {
        number / 10 == arch / 10 && name.ends_with(['a', 'f'])
    } else {
        true
    };
    if !fits {
        return Err(report.fatal(&format!(
            "PTX with .target '{target}' cannot be compiled for architecture '{name}'"
        )));
    }
    Ok(())
}

/// Links the modules as the device does when it loads them, and compiles their kernels; returns the lines of `-v`.
fn check_kernels(
    inputs: &[Input],
    options: &Options,
    report: &mut Report,
) -> Result<Vec<String>, Aborted> {
    let units: Vec<Unit> = inputs.iter().map(|i| i.unit.clone()).collect();
    let mut lines = vec![statistics::variables(inputs.iter().map(|i| &i.module))];
    if options.relocatable && has_external_symbols(inputs) {
        // The modules are linked when the program is.
        return Ok(lines);
    }
    let named = |name: &&String| inputs.iter().any(|i| statistics::names(&i.module, name));
    if let Some(name) = cupyrite_engine::undefined_functions(&units)
        .iter()
        .find(named)
    {
        return Err(report.fatal(&format!("Unresolved extern function '{name}'")));
    }
    let started = Instant::now();
    let space = Arc::new(AddressSpace::new(CAPACITY));
    let image = match Image::load_units(&units, &space) {
        Ok(image) => image,
        Err(error) => {
            let place =
                (units.len() == 1 && error.line != 0).then(|| (units[0].name.as_str(), error.line));
            report.error(place, &error.message);
            report.check()?;
            return Err(Aborted);
        }
    };
    let refused: Vec<(&Kernel, u32, &str)> = image
        .kernels()
        .iter()
        .filter_map(|kernel| {
            let (line, message) = kernel.compile_error()?;
            Some((&**kernel, line, message))
        })
        .collect();
    let none_runs = refused.len() == image.kernels().len();
    for (kernel, line, message) in &refused {
        let message = format!("{message} (kernel '{}')", kernel.name);
        let place = (units.len() == 1 && *line != 0).then(|| (units[0].name.as_str(), *line));
        match none_runs {
            true => report.error(place, &message),
            false => report.warning(place, &message),
        }
    }
    let modules: Vec<&Module> = inputs.iter().map(|i| &i.module).collect();
    for kernel in image.kernels() {
        if kernel.compile_error().is_none() {
            lines.extend(statistics::kernel(kernel, &modules, &options.arch));
        }
    }
    let elapsed = started.elapsed().as_secs_f64() * 1000.0;
    lines.push(format!("Compile time = {elapsed:.3} ms"));
    Ok(lines)
}

/// Whether a module declares functions or variables of others.
fn has_external_symbols(inputs: &[Input]) -> bool {
    // External shared memory is that of the launch.
    let is_external = |v: &Variable| {
        v.linkage == Linkage::Extern && matches!(v.space, Space::Global | Space::Const)
    };
    inputs.iter().map(|i| &i.module).any(|m| {
        m.functions.iter().any(|f| f.linkage == Linkage::Extern)
            || m.globals.iter().any(is_external)
    })
}

/// Writes a file. Readers see the former contents or the new ones.
fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    // A device such as /dev/null cannot be replaced.
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return std::fs::write(path, contents);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = Path::new(&part);
    std::fs::write(part, contents)
        .and_then(|()| std::fs::rename(part, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(part);
        })
}
