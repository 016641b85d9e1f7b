//! Prints an instruction for each form of the table and each of its modifiers, with the version and the architecture that it
//! needs. With `--mutations`, prints those and small changes of them, each with whether a module of the newest version for
//! each architecture in `TARGETS` can have it. `cargo xtask ptxas` compares both with NVIDIA's assembler.

use std::collections::BTreeSet;

use cupyrite_ptx::NEWEST_VERSION;
use cupyrite_ptx::ir::Op;
use cupyrite_ptx::isa::{DECLARATIONS, Sample, VARIABLES, WIDE_DECLARATIONS, mutations, samples};

/// The architectures for which mutations are tried.
const TARGETS: &[&str] = &["sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120a"];

/// The oldest version and architecture that samples are written for.
const OLDEST: ((u32, u32), &str) = ((3, 0), "sm_30");

/// The version that introduced an architecture.
fn introduced(target: &str) -> (u32, u32) {
    match target {
        "sm_30" => (3, 0),
        "sm_32" => (4, 0),
        "sm_35" => (3, 1),
        "sm_50" => (4, 0),
        "sm_52" => (4, 1),
        "sm_53" => (4, 2),
        "sm_60" | "sm_61" => (5, 0),
        "sm_70" => (6, 0),
        "sm_72" => (6, 1),
        "sm_75" => (6, 3),
        "sm_80" => (7, 0),
        "sm_86" => (7, 1),
        "sm_89" | "sm_90" => (7, 8),
        "sm_90a" => (8, 0),
        "sm_100" | "sm_100a" => (8, 6),
        "sm_120" | "sm_120a" => (8, 7),
        _ => (8, 8),
    }
}

/// The number of an architecture and its suffix.
fn order(target: &str) -> (u32, &str) {
    let name = target.trim_start_matches("sm_");
    let number = name.trim_end_matches(['a', 'f']);
    (number.parse().unwrap_or(0), &name[number.len()..])
}

/// The oldest version and architecture that have everything that a sample needs.
fn oldest(sample: &Sample) -> ((u32, u32), &'static str) {
    let (mut version, mut target) = OLDEST;
    for gate in sample.gates() {
        version = version.max(gate.version);
        let first = gate.targets[0];
        if order(first) > order(target) {
            target = first;
        }
    }
    (version.max(introduced(target)), target)
}

/// A module with one instruction.
fn module((major, minor): (u32, u32), target: &str, instruction: &str) -> String {
    let wide = if (major, minor) >= (8, 3) && order(target).0 >= 70 {
        WIDE_DECLARATIONS
    } else {
        ""
    };
    format!(
        ".version {major}.{minor}\n.target {target}\n.address_size 64\n{VARIABLES}\
         .visible .entry kernel(.param .align 64 .b8 kernel_parameter[128]) {{\n{DECLARATIONS}{wide}\
         .param .align 64 .b8 call_parameter[128];\n{instruction}\nret;\n}}\n"
    )
}

/// What the parser says about an instruction in a module of this version and target; nothing if it accepts it.
fn message(version: (u32, u32), target: &str, instruction: &str) -> String {
    let text = module(version, target, instruction);
    cupyrite_ptx::parse(&text).map_or_else(
        |error| error.to_string().replace('\n', " "),
        |_| String::new(),
    )
}

/// Reads `target`, `version` and an instruction from each line, separated by tabs, and prints what the parser says.
fn check() -> std::io::Result<()> {
    for line in std::io::stdin().lines() {
        let line = line?;
        let mut fields = line.splitn(3, '\t');
        let mut field = || fields.next().unwrap_or("");
        let (target, version, instruction) = (field(), field(), field());
        let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
        let version = (major.parse().unwrap_or(0), minor.parse().unwrap_or(0));
        println!("{}", message(version, target, instruction));
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    if std::env::args().any(|a| a == "--check") {
        return check();
    }
    if !std::env::args().any(|a| a == "--mutations") {
        for sample in Op::ALL.iter().flat_map(|op| samples(*op)) {
            let ((major, minor), target) = oldest(&sample);
            println!("{target}\t{major}.{minor}\t{}", sample.text);
        }
        return Ok(());
    }
    for op in Op::ALL {
        let same = samples(*op).into_iter().map(|sample| sample.text);
        let all: BTreeSet<String> = same.chain(mutations(*op)).collect();
        for text in all {
            let legal: String = (TARGETS.iter())
                .map(
                    |target| match cupyrite_ptx::parse(&module(NEWEST_VERSION, target, &text)) {
                        Ok(_) => '1',
                        Err(_) => '0',
                    },
                )
                .collect();
            println!("{legal}\t{text}");
        }
    }
    Ok(())
}
