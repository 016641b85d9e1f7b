//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::driver::DRIVER_VERSION;

/// What follows an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    /// `true` or `false`.
    Bool,
    Number,
    /// Any word.
    Word,
}

/// An option: its long name, its short name, what follows it.
type Row = (&'static str, &'static str, Value);

/// The options of `ptxas` 13. Those that [`parse`] does not use concern the generated machine code.
const OPTIONS: &[Row] = &[
    ("Ofast-compile", "Ofc", Value::Word),
    (
        "allow-expensive-optimizations",
        "allow-expensive-optimizations",
        Value::Bool,
    ),
    ("compile-as-tools-patch", "astoolspatch", Value::None),
    ("compile-only", "c", Value::None),
    ("compiler-annotations", "annotate", Value::None),
    ("def-load-cache", "dlcm", Value::Word),
    ("def-store-cache", "dscm", Value::Word),
    ("device-debug", "g", Value::None),
    (
        "device-function-maxrregcount",
        "func-maxrregcount",
        Value::Word,
    ),
    (
        "device-stack-protector",
        "device-stack-protector",
        Value::Bool,
    ),
    (
        "disable-optimizer-constants",
        "disable-optimizer-consts",
        Value::None,
    ),
    ("disable-warnings", "w", Value::None),
    ("dont-merge-basicblocks", "no-bb-merge", Value::None),
    ("entry", "e", Value::Word),
    ("extensible-whole-program", "ewp", Value::None),
    ("fmad", "fmad", Value::Bool),
    ("force-load-cache", "flcm", Value::Word),
    ("force-store-cache", "fscm", Value::Word),
    (
        "g-tensor-memory-access-check",
        "g-tmem-access-check",
        Value::None,
    ),
    ("generate-line-info", "lineinfo", Value::None),
    ("gpu-name", "arch", Value::Word),
    ("help", "h", Value::None),
    ("input-as-string", "ias", Value::Word),
    (
        "legacy-bar-warp-wide-behavior",
        "legacy-bar-warp-wide-behavior",
        Value::None,
    ),
    ("machine", "m", Value::Number),
    (
        "make-errors-visible-at-exit",
        "make-errors-visible-at-exit",
        Value::None,
    ),
    ("maxntid", "maxntid", Value::Word),
    ("maxrregcount", "maxrregcount", Value::Word),
    ("minnctapersm", "minnctapersm", Value::Number),
    ("opt-level", "O", Value::Number),
    ("optimize-float-atomics", "opt-fp-atomics", Value::None),
    ("options-file", "optf", Value::Word),
    ("output-file", "o", Value::Word),
    (
        "override-directive-values",
        "override-directive-values",
        Value::None,
    ),
    ("position-independent-code", "pic", Value::Bool),
    ("preserve-relocs", "preserve-relocs", Value::None),
    ("regAllocOptLevel", "regAllocOptLevel", Value::Number),
    ("register-usage-level", "regUsageLevel", Value::Number),
    ("return-at-end", "ret-end", Value::None),
    ("sp-bounds-check", "sp-bounds-check", Value::None),
    ("split-compile", "split-compile", Value::Number),
    (
        "suppress-async-bulk-multicast-advisory-warning",
        "suppress-async-bulk-multicast-advisory-warning",
        Value::None,
    ),
    ("suppress-debug-info", "suppress-debug-info", Value::None),
    (
        "suppress-double-demote-warning",
        "suppress-double-demote-warning",
        Value::None,
    ),
    (
        "suppress-stack-size-warning",
        "suppress-stack-size-warning",
        Value::None,
    ),
    ("verbose", "v", Value::None),
    ("version", "V", Value::None),
    (
        "warn-on-double-precision-use",
        "warn-double-usage",
        Value::None,
    ),
    ("warn-on-local-memory-usage", "warn-lmem-usage", Value::None),
    ("warn-on-spills", "warn-spills", Value::None),
    ("warning-as-error", "Werror", Value::None),
];

/// Depth of `--options-file` within such files.
const MAX_DEPTH: u32 = 8;

/// An architecture: `sm_90a` and 90.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Architecture {
    pub(super) name: String,
    pub(super) number: u32,
}

/// Where a module comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A file; `-` is standard input.
    File(PathBuf),
    /// `--input-as-string`.
    Text(String),
}

/// The options that have an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) sources: Vec<Source>,
    pub(super) output: PathBuf,
    pub(super) arch: Architecture,
    /// The architecture is virtual: nothing is written.
    pub(super) parse_only: bool,
    pub(super) relocatable: bool,
    pub(super) verbose: bool,
    pub(super) no_warnings: bool,
    pub(super) warnings_are_errors: bool,
    pub(super) max_registers: Option<u32>,
    /// Warnings about the command line.
    pub(super) warnings: Vec<String>,
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Text for standard output.
    Print(String),
    Assemble(Options),
}

/// `--version`. Programs search it for `release 13.5`, and identify cached cubins by all of it.
fn version() -> String {
    let (major, minor) = (DRIVER_VERSION / 1000, DRIVER_VERSION % 1000 / 10);
    let own = env!("CARGO_PKG_VERSION");
    format!(
        "ptxas: Cupyrite {own}, PTX assembler of the CPU device\n\
         Writes cubins that contain PTX and no machine code\n\
         Cuda compilation tools, release {major}.{minor}, V{major}.{minor}.0\n"
    )
}

fn usage() -> String {
    let mut text = String::from(
        "\nUsage  : ptxas [options] <ptx file>,...\n\n\
         Checks PTX and writes it into a cubin that Cupyrite's CPU device loads. Options that concern machine code have \
         no effect.\n\nOptions\n=======\n\n",
    );
    for (long, short, value) in OPTIONS {
        let value = match value {
            Value::None => "",
            Value::Bool => " <true|false>",
            Value::Number => " <N>",
            Value::Word => " <value>",
        };
        text += &format!("{:<68}(-{short})\n", format!("--{long}{value}"));
    }
    text
}

/// The value of `--gpu-name`, and whether it is virtual.
fn architecture(value: &str) -> Option<(Architecture, bool)> {
    let number = value
        .strip_prefix("sm_")
        .or_else(|| value.strip_prefix("compute_"))?;
    let name = format!("sm_{number}");
    if !cupyrite_ptx::known_architecture(&name) {
        return None;
    }
    let number = number.trim_end_matches(['a', 'f']).parse().ok()?;
    Some((Architecture { name, number }, value.starts_with("compute_")))
}

/// The option of a word and the value after its `=` or, for `-O3`, after its letter.
fn find(word: &str) -> Option<(&'static Row, Option<&str>)> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let found = match name.strip_prefix("--") {
        Some(long) => OPTIONS.iter().find(|o| o.0 == long),
        None => {
            let short = name.strip_prefix('-')?;
            // NVIDIA's program accepts long names after one dash too.
            OPTIONS.iter().find(|o| o.1 == short || o.0 == short)
        }
    };
    if let Some(row) = found {
        return Some((row, value));
    }
    let level = word
        .strip_prefix("-O")
        .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()))?;
    let row = OPTIONS.iter().find(|o| o.1 == "O")?;
    Some((row, Some(level)))
}

/// The words of an options file: separated by blanks, quoted or not.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Replaces `--options-file` by the words of the files.
fn expand(words: Vec<OsString>, depth: u32) -> Result<Vec<OsString>, String> {
    let mut out = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let found = word.to_str().and_then(find);
        let Some((_, value)) = found.filter(|(row, _)| row.1 == "optf") else {
            out.push(word);
            continue;
        };
        let value = value.map(OsString::from).or_else(|| words.next());
        let files = value.ok_or("argument expected after '-optf'")?;
        for file in files.to_string_lossy().split(',') {
            let text = std::fs::read_to_string(file)
                .map_err(|_| format!("Option file '{file}' could not be opened"))?;
            if depth == MAX_DEPTH {
                return Err(format!("Option file '{file}': nested too deeply"));
            }
            let inner = split(&text).into_iter().map(OsString::from).collect();
            out.extend(expand(inner, depth + 1)?);
        }
    }
    Ok(out)
}

/// Checks the value of an option.
fn check(row: &Row, value: &str) -> Result<(), String> {
    match row.2 {
        Value::Bool if !matches!(value, "true" | "false") => {
            Err(format!("'{value}': expected true or false"))
        }
        Value::Number if value.parse::<u32>().is_err() => {
            Err(format!("'{value}': expected a number"))
        }
        _ => Ok(()),
    }
}

/// Reads the command line.
///
/// # Errors
/// The message of an invalid command line.
pub(super) fn parse(arguments: &[OsString]) -> Result<Action, String> {
    let default = Architecture {
        name: "sm_75".into(),
        number: 75,
    };
    let mut options = Options {
        sources: Vec::new(),
        output: "elf.o".into(),
        arch: default,
        parse_only: false,
        relocatable: false,
        verbose: false,
        no_warnings: false,
        warnings_are_errors: false,
        max_registers: None,
        warnings: Vec::new(),
    };
    let mut gpu_name: Option<String> = None;
    let mut words = expand(arguments.to_vec(), 0)?.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if !text.starts_with('-') || text == "-" {
            options.sources.push(Source::File(word.into()));
            continue;
        }
        let Some((row, joined)) = find(&text) else {
            let name = text.trim_start_matches('-');
            let Some((name, _)) = name.split_once('=') else {
                return Err(format!("Unknown option '-{name}'"));
            };
            // NVIDIA's program has undocumented options. With a value in the same word, the next word is none.
            let message = format!("Unknown option '-{name}' has no effect");
            options.warnings.push(message);
            continue;
        };
        let value: OsString = match (row.2, joined) {
            (Value::None, Some(_)) => {
                return Err(format!("no argument expected after '-{}'", row.1));
            }
            (Value::None, None) => OsString::new(),
            (_, Some(value)) => value.into(),
            (_, None) => words
                .next()
                .ok_or_else(|| format!("argument expected after '-{}'", row.1))?,
        };
        let value_text = value.to_string_lossy();
        check(row, &value_text)?;
        match row.0 {
            "help" => return Ok(Action::Print(usage())),
            "version" => return Ok(Action::Print(version())),
            "verbose" => options.verbose = true,
            "compile-only" => options.relocatable = true,
            "disable-warnings" => options.no_warnings = true,
            "warning-as-error" => options.warnings_are_errors = true,
            "output-file" => options.output = value.into(),
            "input-as-string" => options.sources.push(Source::Text(value_text.into_owned())),
            "machine" if value_text != "64" => {
                return Err(format!(
                    "Value '{value_text}' is not defined for option 'machine'"
                ));
            }
            "maxrregcount" => {
                options.max_registers = match &*value_text {
                    "archmax" => None,
                    "archmin" => Some(1),
                    number => number.parse().map(Some).map_err(|_| {
                        format!("Invalid value '{number}' for option 'maxrregcount'")
                    })?,
                };
            }
            "gpu-name" => {
                let (arch, is_virtual) = architecture(&value_text).ok_or_else(|| {
                    format!("Value '{value_text}' is not defined for option 'gpu-name'")
                })?;
                if gpu_name.as_ref().is_some_and(|old| *old != value_text) {
                    options.warnings.push(
                        "incompatible redefinition for option 'gpu-name', the last value of this option was used"
                            .into(),
                    );
                }
                (options.arch, options.parse_only) = (arch, is_virtual);
                gpu_name = Some(value_text.into_owned());
            }
            _ => {}
        }
    }
    if options.sources.is_empty() {
        return Ok(Action::Print(usage()));
    }
    // Zero stands for no limit.
    options.max_registers = options.max_registers.filter(|&n| n != 0);
    Ok(Action::Assemble(options))
}
