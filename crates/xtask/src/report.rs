//! What commands print: a line for each step with its duration, logs of quiet commands, gaps of a run.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use crate::Error;

/// What this run did not check, each with its reason.
static GAPS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints and records that something is not checked. `cargo xtask ci` repeats all of it at its end.
pub fn note_gap(gap: &str) {
    eprintln!("not checked: {gap}");
    GAPS.lock()
        .unwrap_or_else(|e| e.into_inner())
        .push(gap.to_owned());
}

/// What was not checked so far.
pub fn gaps() -> Vec<String> {
    GAPS.lock().unwrap_or_else(|e| e.into_inner()).clone()
}

/// Lines of a log that are shown when its command fails.
const TAIL: usize = 60;
/// Column at which durations begin.
const WIDTH: usize = 72;

/// Runs `work` as a step and prints its name, the text that it returns, and its duration.
pub fn step(name: &str, work: impl FnOnce() -> Result<String, Error>) -> Result<(), Error> {
    let start = Instant::now();
    let mut err = std::io::stderr();
    let _ = write!(err, "  {name} ");
    let _ = err.flush();
    let result = work();
    let seconds = start.elapsed().as_secs_f64();
    match result {
        Ok(note) => {
            let note = if note.is_empty() {
                note
            } else {
                format!("{note} ")
            };
            let dots = WIDTH.saturating_sub(name.chars().count() + note.chars().count() + 4);
            eprintln!("{note}{} {seconds:6.1} s", ".".repeat(dots.max(3)));
            Ok(())
        }
        Err(message) => {
            eprintln!("failed after {seconds:.1} s");
            Err(message)
        }
    }
}

/// Runs a command with its output in `log`. The error holds the last lines of the log.
pub fn quiet(command: &mut Command, log: &Path) -> Result<(), Error> {
    let shown = show(command);
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let file = File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
    let second = file
        .try_clone()
        .map_err(|e| format!("{}: {e}", log.display()))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(second)
        .status()
        .map_err(|e| format!("{shown}: {e}"))?;
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
    Err(format!(
        "{tail}\n\n{shown}\nfailed ({status}); full output: {}",
        log.display()
    ))
}

/// Runs a command with its output on this terminal.
pub fn loud(command: &mut Command) -> Result<(), Error> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().map_err(|e| format!("{shown}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{shown}\nfailed ({status})"))
    }
}

/// The standard output of a command, or an error with its standard error.
pub fn output(command: &mut Command) -> Result<String, Error> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{shown}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(format!("{message}\n{shown}\nfailed ({})", output.status))
    }
}

fn show(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}
