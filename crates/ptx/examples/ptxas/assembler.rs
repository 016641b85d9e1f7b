//! NVIDIA's assembler as an oracle: what it says about each of many instructions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::module;

/// Instructions in one module. The assembler reports every semantic error of a module, each with its line.
const PER_MODULE: usize = 4000;

/// An instruction for a version of PTX and an architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub version: (u32, u32),
    pub target: &'static str,
    pub text: String,
}

/// What the assembler says about an instruction; nothing if it accepts it.
pub type Answer = Option<String>;

/// NVIDIA's assembler.
pub struct Assembler {
    /// The program.
    pub program: PathBuf,
    /// A folder for modules.
    pub folder: PathBuf,
}

impl Assembler {
    /// What the assembler says about each of `questions`, which are asked in order of their versions and architectures.
    pub fn answers(&self, questions: &[Question]) -> Result<Vec<Answer>, String> {
        let same = |a: &Question, b: &Question| a.version == b.version && a.target == b.target;
        let mut batches: Vec<(usize, &[Question])> = Vec::new();
        let mut first = 0;
        for group in questions.chunk_by(same) {
            for batch in group.chunks(PER_MODULE) {
                batches.push((first, batch));
                first += batch.len();
            }
        }
        let next = Mutex::new(batches.into_iter());
        let answers = Mutex::new(vec![None; questions.len()]);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || -> Result<(), String> {
            loop {
                let batch = next.lock().map_err(|e| e.to_string())?.next();
                let Some((first, batch)) = batch else {
                    return Ok(());
                };
                let found = self.ask(batch, &self.folder.join(format!("{first}.ptx")))?;
                let mut answers = answers.lock().map_err(|e| e.to_string())?;
                answers[first..first + batch.len()].clone_from_slice(&found);
            }
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let ended = all.into_iter().map(|one| {
                one.join()
                    .unwrap_or_else(|_| Err("a thread panicked".into()))
            });
            ended.collect::<Result<Vec<()>, String>>()
        })?;
        answers.into_inner().map_err(|e| e.to_string())
    }

    /// Asks about instructions for one version and architecture in one module at `path`.
    fn ask(&self, batch: &[Question], path: &Path) -> Result<Vec<Answer>, String> {
        let mut answers: Vec<Answer> = vec![None; batch.len()];
        loop {
            // A syntax error ends the assembly; the next round leaves its line out.
            let lines: Vec<&str> = (batch.iter().zip(&answers))
                .map(|(question, answer)| answer.as_ref().map_or(question.text.as_str(), |_| ""))
                .collect();
            let Question {
                version, target, ..
            } = &batch[0];
            let text = module(*version, target, &lines.join("\n"));
            let before = module(*version, target, "").lines().count() - 3;
            std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            let output = Command::new(&self.program)
                .arg(format!("-arch={}", virtual_architecture(target)))
                .arg(path)
                .args(["-o", "/dev/null"])
                .output()
                .map_err(|e| format!("{}: {e}", self.program.display()))?;
            let reports = [output.stdout, output.stderr].concat();
            let reports = String::from_utf8_lossy(&reports);
            let (mut fatal, mut progress) = (false, false);
            for (line, kind, message) in reports.lines().filter_map(report) {
                match kind {
                    "error" | "fatal" => {}
                    _ => continue,
                }
                let Some(answer) = line
                    .checked_sub(before + 1)
                    .and_then(|n| answers.get_mut(n))
                else {
                    return Err(format!("{}: line {line}: {message}", path.display()));
                };
                fatal |= kind == "fatal";
                if answer.is_none() {
                    progress = true;
                    *answer = Some(message.to_string());
                }
            }
            if !output.status.success() && !progress && answers.iter().all(Option::is_none) {
                return Err(format!("{}: {reports}", path.display()));
            }
            if !(fatal && progress) {
                break;
            }
        }
        std::fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(answers)
    }
}

/// The line, the kind and the message of a report: `ptxas FILE, line 12; error   : message`.
fn report(line: &str) -> Option<(usize, &str, &str)> {
    let (_, after) = line.split_once(", line ")?;
    let (number, after) = after.split_once("; ")?;
    let (kind, message) = after.split_once(':')?;
    Some((number.parse().ok()?, kind.trim(), message.trim()))
}

/// The architecture to assemble for: a virtual one, for which the assembler only parses and checks. It has none before
/// `compute_75`; modules for older ones are checked by their own `.target`.
fn virtual_architecture(target: &str) -> String {
    const OLDEST: u32 = 75;
    let name = target.trim_start_matches("sm_");
    let number = name.trim_end_matches(['a', 'f']);
    if number.parse().unwrap_or(0) < OLDEST {
        format!("compute_{OLDEST}")
    } else {
        format!("compute_{name}")
    }
}
