//! One line a step, with its duration; the output of a quiet command goes to a log that is shown on failure.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Error;

/// Lines of a log that are shown when its command fails.
const TAIL: usize = 60;
/// Column at which durations begin.
const WIDTH: usize = 72;

/// Runs `work` as a step. The text it returns, if any, is shown behind the name.
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

/// Runs a command with its output in `log`; on failure the error holds the end of it.
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
        "{tail}\n\n{shown}\nfailed ({status}); all of its output: {}",
        log.display()
    ))
}

/// Runs a command on this terminal.
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

/// The standard output of a command that must succeed.
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
