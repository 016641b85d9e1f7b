//! Compares the parser with NVIDIA's assembler, for `cargo xtask ptxas`.
//!
//! With the path of `ptxas` and a folder for modules: asks both about an instruction for each form of the table and each of
//! its modifiers, in a module of the oldest version and architecture that have it, and about those and small changes of them
//! in modules of the newest version for each architecture in `TARGETS`. Prints on which they differ, except for those listed
//! in `tests/ptxas_differences.toml`. With `--all`, prints every one, instead of the first few of each opcode.
//!
//! With `--samples` or `--mutations`, prints the instructions. With `--check`, reads an architecture, a version and an
//! instruction from each line, separated by tabs, and prints what the parser says.

mod assembler;
mod differences;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use assembler::{Assembler, Question};
use differences::Difference;

use cupyrite_ptx::NEWEST_VERSION;
use cupyrite_ptx::ir::Op;
use cupyrite_ptx::isa::{DECLARATIONS, Sample, VARIABLES, WIDE_DECLARATIONS, mutations, samples};

/// The architectures for which mutations are tried.
const TARGETS: &[&str] = &["sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120a"];

/// Instructions that are printed for each opcode.
const FEW: usize = 5;

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
        "sm_107" | "sm_107a" | "sm_107f" => (9, 4),
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

/// What the parser says about an instruction; nothing if it accepts it.
fn message(question: &Question) -> Option<String> {
    let text = module(question.version, question.target, &question.text);
    let error = cupyrite_ptx::parse(&text).err()?;
    Some(error.to_string().replace('\n', " "))
}

/// An instruction for each form and modifier, for the oldest version and architecture that have it.
fn sample_questions() -> Vec<Question> {
    let all = Op::ALL.iter().flat_map(|op| samples(*op));
    let mut all: Vec<Question> = all
        .filter(|sample| sample.gates().all(|gate| gate.until.is_none()))
        .map(|sample| {
            let (version, target) = oldest(&sample);
            let text = sample.text;
            Question {
                version,
                target,
                text,
            }
        })
        .collect();
    all.sort_by_key(|question| (question.version, question.target));
    all
}

/// The samples and changes of them.
fn mutated() -> BTreeSet<String> {
    let texts = Op::ALL.iter().flat_map(|op| {
        let same = samples(*op).into_iter().map(|sample| sample.text);
        same.chain(mutations(*op))
    });
    texts.collect()
}

/// Samples and changes of them for each architecture.
fn mutation_questions() -> Vec<Question> {
    let texts = mutated();
    let all = TARGETS.iter().flat_map(|target| {
        texts.iter().map(|text| Question {
            version: NEWEST_VERSION,
            target,
            text: text.clone(),
        })
    });
    all.collect()
}

/// Reads instructions from standard input and prints what the parser says.
fn check() -> Result<(), String> {
    for line in std::io::stdin().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let mut fields = line.splitn(3, '\t');
        let mut field = || fields.next().unwrap_or("").to_string();
        let (target, version, text) = (field(), field(), field());
        let (major, minor) = version.split_once('.').unwrap_or((&version, "0"));
        let version = (major.parse().unwrap_or(0), minor.parse().unwrap_or(0));
        let text = module(version, &target, &text);
        let said = cupyrite_ptx::parse(&text).map_err(|e| e.to_string().replace('\n', " "));
        println!("{}", said.err().unwrap_or_default());
    }
    Ok(())
}

/// What the parser says about each of `questions`.
fn parsed(questions: &[Question]) -> Vec<Option<String>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = questions.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let ask = |part: &[Question]| part.iter().map(message).collect::<Vec<_>>();
        let parts = questions.chunks(share);
        let all: Vec<_> = parts.map(|part| scope.spawn(move || ask(part))).collect();
        let answers = all.into_iter().map(|one| one.join().unwrap_or_default());
        answers.flatten().collect()
    })
}

/// The architectures and the message for each instruction.
type Texts<'q> = BTreeMap<&'q str, (Vec<&'q str>, &'q str)>;

/// Asks both and prints on which questions they differ. Returns how many of those are not listed.
fn compare(
    name: &str,
    questions: &[Question],
    assembler: &Assembler,
    listed: &[Difference],
    most: usize,
) -> Result<usize, String> {
    let theirs = assembler.answers(questions)?;
    let ours = parsed(questions);
    // By opcode and direction: the text of each instruction, the architectures, and the message.
    let mut found: BTreeMap<(bool, &str), Texts> = BTreeMap::new();
    let mut counts = [[0usize; 2]; 2];
    for ((question, ours), theirs) in questions.iter().zip(&ours).zip(&theirs) {
        let (accepts, message) = match (ours, theirs) {
            (None, Some(message)) => (true, message),
            (Some(message), None) => (false, message),
            _ => continue,
        };
        let is_listed = listed.iter().any(|d| d.covers(question, accepts, message));
        counts[usize::from(accepts)][usize::from(is_listed)] += 1;
        if !is_listed {
            let opcode = question.text.split(['.', ' ', ';']).next().unwrap_or("");
            let texts = found.entry((accepts, opcode)).or_default();
            let entry = texts.entry(&question.text);
            let (targets, _) = entry.or_insert_with(|| (Vec::new(), message));
            targets.push(question.target);
        }
    }
    for ((accepts, opcode), texts) in &found {
        let who = if *accepts {
            "only the parser accepts"
        } else {
            "only ptxas accepts"
        };
        println!("{opcode}: {who} {} instructions", texts.len());
        for (text, (targets, message)) in texts.iter().take(most) {
            println!("  {text}  [{}]  {message}", targets.join(" "));
        }
    }
    let [[refused, listed_refused], [accepted, listed_accepted]] = counts;
    println!(
        "{name}: {} questions; only ptxas accepts {refused}, and {listed_refused} that are listed; \
         only the parser accepts {accepted}, and {listed_accepted} that are listed",
        questions.len()
    );
    Ok(refused + accepted)
}

fn run(arguments: &[&str]) -> Result<ExitCode, String> {
    let (most, arguments) = match arguments {
        ["--all", rest @ ..] => (usize::MAX, rest),
        _ => (FEW, arguments),
    };
    match arguments {
        ["--samples"] => {
            for Question {
                version: (major, minor),
                target,
                text,
            } in sample_questions()
            {
                println!("{target}\t{major}.{minor}\t{text}");
            }
        }
        ["--mutations"] => mutated().iter().for_each(|text| println!("{text}")),
        ["--check"] => check()?,
        [program, folder] => {
            let list = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ptxas_differences.toml");
            let text = std::fs::read_to_string(list).map_err(|e| format!("{list}: {e}"))?;
            let listed = differences::read(&text).map_err(|e| format!("{list}: {e}"))?;
            std::fs::create_dir_all(folder).map_err(|e| format!("{folder}: {e}"))?;
            let assembler = Assembler {
                program: program.into(),
                folder: folder.into(),
            };
            let asked = [
                ("samples", sample_questions()),
                ("mutations", mutation_questions()),
            ];
            let mut unlisted = 0;
            for (name, questions) in &asked {
                unlisted += compare(name, questions, &assembler, &listed, most)?;
            }
            if unlisted > 0 {
                return Ok(ExitCode::FAILURE);
            }
        }
        _ => {
            return Err(
                "usage: ptxas [--all] PTXAS FOLDER | --samples | --mutations | --check".into(),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run(&arguments).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}
