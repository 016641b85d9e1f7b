//! Runs the files of `tests/ptx`: PTX modules with inputs, expected outputs and expected refusals in comments.
//!
//! A line `//! ...` before a kernel says how it is launched and what it does; `ptx/README.md` has the notation. Modules of one
//! file are separated by a line of dashes in a comment (`// ----`).

#[path = "engine/harness.rs"]
#[allow(dead_code)]
mod harness;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cupyrite_engine::memory::{AddressSpace, RegionKind};
use cupyrite_engine::{Bounds, Fault, Image, LaunchConfig, launch, launch_clusters};
use harness::Printed;

/// A parameter of a case: a value, or a buffer with its contents before the launch and expected contents.
struct Argument {
    name: String,
    ty: String,
    by_value: bool,
    input: Vec<u8>,
    expected: Option<Vec<u8>>,
}

/// A launch of a kernel, described in the comments before it.
struct Case {
    kernel: String,
    line: usize,
    has_launch_line: bool,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: Option<[u32; 3]>,
    shared: u32,
    arguments: Vec<Argument>,
    /// The kind of the fault, and a text that its report contains.
    fault: Option<(String, String)>,
    refused: Option<String>,
}

/// One module of a file.
struct Module {
    first_line: usize,
    text: String,
    refused: Option<String>,
    cases: Vec<Case>,
}

/// The bytes of values such as `1 0x2 -3`, `0..32` (an increasing range) and `7*32` (repeated).
fn values(ty: &str, text: &str) -> Result<Vec<u8>, String> {
    let width = ty[1..]
        .parse::<usize>()
        .map_err(|_| format!("no type '{ty}'"))?
        / 8;
    let one = |word: &str| -> Result<u64, String> {
        let bad = || format!("'{word}' is no {ty}");
        match ty {
            "f32" => Ok(u64::from(word.parse::<f32>().map_err(|_| bad())?.to_bits())),
            "f64" => Ok(word.parse::<f64>().map_err(|_| bad())?.to_bits()),
            _ => match word.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).map_err(|_| bad()),
                None => word.parse::<i128>().map(|v| v as u64).map_err(|_| bad()),
            },
        }
    };
    let mut bytes = Vec::new();
    let mut push = |value: u64| bytes.extend_from_slice(&value.to_le_bytes()[..width]);
    for word in text.split_whitespace() {
        if let Some((value, count)) = word.split_once('*') {
            let count = count
                .parse::<usize>()
                .map_err(|_| format!("no count in '{word}'"))?;
            let value = one(value)?;
            (0..count).for_each(|_| push(value));
        } else if let Some((from, to)) = word.split_once("..") {
            let (from, to) = (one(from)?, one(to)?);
            (from..to).for_each(&mut push);
        } else {
            push(one(word)?);
        }
    }
    Ok(bytes)
}

impl Case {
    fn new(line: usize) -> Self {
        Self {
            kernel: String::new(),
            line,
            has_launch_line: false,
            grid: [1; 3],
            block: [1; 3],
            cluster: None,
            shared: 0,
            arguments: Vec::new(),
            fault: None,
            refused: None,
        }
    }
}

impl Argument {
    /// The size of an element in bytes.
    fn width(&self) -> usize {
        self.ty[1..].parse::<usize>().unwrap_or(8) / 8
    }
}

fn triple(text: &str) -> Result<[u32; 3], String> {
    let mut all = [1; 3];
    for (to, word) in all.iter_mut().zip(text.split(',')) {
        *to = word.parse().map_err(|_| format!("no number in '{text}'"))?;
    }
    Ok(all)
}

/// Reads the modules of a file.
fn modules(text: &str) -> Result<Vec<Module>, (usize, String)> {
    let mut all = Vec::new();
    let new = |first_line| Module {
        first_line,
        text: String::new(),
        refused: None,
        cases: Vec::new(),
    };
    let mut module = new(0);
    let mut cases: Vec<Case> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let at = |message: String| (n + 1, message);
        if line.starts_with("// ----") {
            all.push(std::mem::replace(&mut module, new(n + 1)));
            continue;
        }
        module.text.push_str(line);
        module.text.push('\n');
        if let Some(directive) = line.strip_prefix("//!") {
            let directive = directive.trim();
            if let Some(message) = directive.strip_prefix("refused-module: ") {
                module.refused = Some(message.to_string());
                continue;
            }
            // A second launch line begins another case of the same kernel.
            let begins = match cases.last() {
                None => true,
                Some(case) => directive.starts_with("launch") && case.has_launch_line,
            };
            if begins {
                cases.push(Case::new(n + 1));
            }
            let case = cases.last_mut().expect("a case was added");
            read_directive(case, directive).map_err(at)?;
        } else if let Some((_, rest)) = line.split_once(".entry ") {
            let kernel = rest
                .split(|c: char| c == '(' || c.is_whitespace())
                .next()
                .unwrap_or("");
            for mut case in cases.drain(..) {
                case.kernel = kernel.to_string();
                module.cases.push(case);
            }
        }
    }
    match cases.first() {
        Some(case) => Err((case.line, "no kernel follows".to_string())),
        None => {
            all.push(module);
            Ok(all)
        }
    }
}

fn read_directive(case: &mut Case, directive: &str) -> Result<(), String> {
    let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
    match word {
        "launch" => {
            case.has_launch_line = true;
            for setting in rest.split_whitespace() {
                match setting.split_once('=') {
                    Some(("grid", value)) => case.grid = triple(value)?,
                    Some(("block", value)) => case.block = triple(value)?,
                    Some(("cluster", value)) => case.cluster = Some(triple(value)?),
                    Some(("shared", value)) => case.shared = triple(value)?[0],
                    _ => return Err(format!("no setting '{setting}'")),
                }
            }
        }
        "in" | "out" | "value" => {
            let (head, list) = rest.split_once(':').ok_or("':' is missing")?;
            let (name, ty) = head.split_once(' ').ok_or("'NAME TYPE:' is missing")?;
            let bytes = values(ty, list)?;
            let known = case.arguments.iter_mut().find(|a| a.name == name);
            match (word, known) {
                ("out", Some(argument)) => argument.expected = Some(bytes),
                ("out", None) => case.arguments.push(Argument {
                    name: name.to_string(),
                    ty: ty.to_string(),
                    by_value: false,
                    input: vec![0xCD; bytes.len()],
                    expected: Some(bytes),
                }),
                (_, Some(_)) => return Err(format!("'{name}' is there twice")),
                (_, None) => case.arguments.push(Argument {
                    name: name.to_string(),
                    ty: ty.to_string(),
                    by_value: word == "value",
                    input: bytes,
                    expected: None,
                }),
            }
        }
        "fault" => {
            let (kind, text) = rest.split_once(": ").unwrap_or((rest, ""));
            case.fault = Some((kind.to_string(), text.to_string()));
        }
        "refused:" => case.refused = Some(rest.to_string()),
        _ => return Err(format!("no directive '{word}'")),
    }
    Ok(())
}

/// The first difference between two buffers.
fn difference(argument: &Argument, got: &[u8]) -> Option<String> {
    let expected = argument.expected.as_ref()?;
    let width = argument.width();
    let hex = |bytes: &[u8]| {
        let digits: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
        format!("0x{digits}")
    };
    let pairs = expected.chunks(width).zip(got.chunks(width)).enumerate();
    let (n, (want, got)) = pairs.into_iter().find(|(_, (a, b))| a != b)?;
    Some(format!(
        "{}[{n}] is {}, expected {}",
        argument.name,
        hex(got),
        hex(want)
    ))
}

fn run(image: &Image, case: &Case) -> Result<(), String> {
    let kernel = image.kernel(&case.kernel).ok_or("no such kernel")?;
    match (kernel.unsupported(), &case.refused) {
        (Some(why), Some(wanted)) if why.contains(wanted) => return Ok(()),
        (Some(why), _) => return Err(format!("refused: {why}")),
        (None, Some(_)) => return Err("not refused".to_string()),
        (None, None) => {}
    }
    let space = AddressSpace::global();
    let mut params: Vec<u8> = Vec::new();
    let mut buffers = Vec::new();
    for argument in &case.arguments {
        if argument.by_value {
            params.resize(params.len().next_multiple_of(argument.width()), 0);
            params.extend_from_slice(&argument.input);
            continue;
        }
        params.resize(params.len().next_multiple_of(8), 0);
        let address = space
            .alloc(argument.input.len() as u64, 256, RegionKind::Device)
            .map_err(|e| format!("{e:?}"))?;
        // SAFETY: the allocation has this size, and no kernel is running.
        unsafe {
            std::ptr::copy_nonoverlapping(
                argument.input.as_ptr(),
                address as *mut u8,
                argument.input.len(),
            );
        }
        params.extend_from_slice(&address.to_le_bytes());
        buffers.push(address);
    }
    let wanted = kernel.param_bytes as usize;
    if params.len() != wanted {
        let got = params.len();
        return Err(format!("{got} bytes of parameters, expected {wanted}"));
    }
    let printed = Printed::default();
    let config = LaunchConfig {
        dynamic_shared: case.shared,
        printf: &printed,
        ..LaunchConfig::new(case.grid, case.block, &params)
    };
    let result = match case.cluster {
        Some(cluster) => launch_clusters(&kernel, &config, cluster, &Bounds),
        None => launch(&kernel, &config),
    };
    let mut problem = match (result, &case.fault) {
        (Ok(()), None) => None,
        (Ok(()), Some((wanted, _))) => Some(format!("no fault, expected {wanted}")),
        (Err(Fault { kind, report, .. }), Some((wanted, text)))
            if format!("{kind:?}") == *wanted && report.contains(text) =>
        {
            None
        }
        (Err(fault), _) => Some(format!("{fault:?}")),
    };
    let in_memory = case.arguments.iter().filter(|a| !a.by_value);
    for (argument, address) in in_memory.zip(&buffers) {
        // SAFETY: the allocation has this size, and the kernel has ended.
        let got =
            unsafe { std::slice::from_raw_parts(*address as *const u8, argument.input.len()) };
        problem = problem.or_else(|| difference(argument, got));
    }
    for address in buffers {
        space.free(address).map_err(|e| format!("{e:?}"))?;
    }
    problem.map_or(Ok(()), Err)
}

fn run_file(path: &Path, problems: &mut Vec<String>) -> usize {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let modules = match modules(&text) {
        Ok(modules) => modules,
        Err((line, message)) => {
            problems.push(format!("{name}:{line}: {message}"));
            return 0;
        }
    };
    let mut count = 0;
    for module in modules {
        count += module.cases.len() + usize::from(module.refused.is_some());
        let image = match (
            Image::load(&module.text, AddressSpace::global()),
            &module.refused,
        ) {
            (Ok(image), None) => image,
            (Err(error), Some(wanted)) if error.to_string().contains(wanted) => continue,
            (Err(error), _) => {
                problems.push(format!(
                    "{name}, module after line {}: {error}",
                    module.first_line
                ));
                continue;
            }
            (Ok(_), Some(_)) => {
                problems.push(format!(
                    "{name}, module after line {}: not refused",
                    module.first_line
                ));
                continue;
            }
        };
        for case in &module.cases {
            if let Err(problem) = run(&image, case) {
                problems.push(format!("{name}:{}: {}: {problem}", case.line, case.kernel));
            }
        }
    }
    count
}

#[test]
fn every_file_of_the_corpus_does_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .collect();
    files.sort();
    let mut problems = Vec::new();
    let counts: HashMap<&PathBuf, usize> = files
        .iter()
        .map(|path| (path, run_file(path, &mut problems)))
        .collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    let empty: Vec<_> = counts.iter().filter(|(_, count)| **count == 0).collect();
    assert!(empty.is_empty(), "files without a case: {empty:?}");
}
