//! Subjects of commits (docs/style.md): at most 72 characters, imperative; and no merge commits.
//!
//! Checked from `BASE` on, so that the history before the rule needs no rewriting.

use std::path::Path;
use std::process::Command;

use crate::Error;
use crate::environment::{read, root};
use crate::report::{note_gap, output};

/// The last commit that need not follow the rules.
const BASE: &str = "15f81743d088df8c27d4752524af4b00e7361b51";
/// Characters of a subject.
const LONGEST: usize = 72;
/// Endings of verbs in the third person, the past tense and the progressive.
const CONJUGATED: &[&str] = &["s", "ed", "ing"];
/// Endings of imperatives among them: Pass, Focus, Need.
const IMPERATIVE: &[&str] = &["ss", "us", "eed"];
/// Further imperatives with those endings.
const IMPERATIVES: &[&str] = &[
    "Alias", "Bring", "Embed", "Ping", "Shed", "Shred", "String", "Swing",
];
/// First words of a description.
const DESCRIPTIONS: &[&str] = &[
    "A", "An", "How", "One", "The", "This", "What", "Which", "Why",
];

/// `cargo xtask commits [--message FILE]`: the commits since `BASE`, or the message that git is about to commit.
pub fn commits(rest: &[&str]) -> Result<(), Error> {
    match rest {
        [] => check(&root(), BASE),
        ["--message", file] => {
            let text = read(&crate::generate::absolute(file))?;
            match subject(&text) {
                Some(line) => refusal(line).map_or(Ok(()), |why| Err(format!("'{line}': {why}"))),
                None => Ok(()), // git itself refuses an empty message
            }
        }
        _ => Err("usage: cargo xtask commits [--message FILE]".into()),
    }
}

/// git in a folder, whatever repository a hook or a rebase that runs this names.
fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        command.env_remove(name);
    }
    command.arg("-C").arg(folder);
    command
}

/// Checks the commits after `base` that `HEAD` descends from.
pub fn check(root: &Path, base: &str) -> Result<(), Error> {
    let git = |words: &[&str]| output(git(root).args(words));
    // A shallow clone lacks the commit or the way to it; an older branch does not contain it.
    if git(&["merge-base", "--is-ancestor", base, "HEAD"]).is_err() {
        note_gap(&format!(
            "commits since {} (not in the history of this checkout: shallow clone or older branch)",
            &base[..12]
        ));
        return Ok(());
    }
    let log = git(&["log", "--format=%h %P%x09%s", &format!("{base}..HEAD")])?;
    let mut violations = Vec::new();
    for (index, line) in log.lines().enumerate() {
        let (commits, subject) = line.split_once('\t').unwrap_or((line, ""));
        let mut commits = commits.split(' ');
        let commit = commits.next().unwrap_or_default();
        let merge = commits.count() > 1;
        // GitHub tests a pull request as a merge into its target, which is never pushed.
        let temporary = index == 0 && is_of_github(subject);
        if merge && !temporary {
            violations.push(format!(
                "{commit} '{subject}': is a merge commit; rebase instead"
            ));
        } else if !merge && let Some(why) = refusal(subject) {
            violations.push(format!("{commit} '{subject}': {why}"));
        }
    }
    if violations.is_empty() {
        println!(
            "{} commits since {} follow docs/style.md",
            log.lines().count(),
            &base[..12]
        );
        Ok(())
    } else {
        Err(violations.join("\n"))
    }
}

/// Whether a subject is "Merge HASH into HASH".
fn is_of_github(subject: &str) -> bool {
    let is_hash = |word: &str| word.len() == 40 && word.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(subject.split(' ').collect::<Vec<_>>()[..],
        ["Merge", head, "into", base] if is_hash(head) && is_hash(base))
}

/// The first line of a message that is not a comment of git's editor template.
fn subject(message: &str) -> Option<&str> {
    message
        .lines()
        .find(|line| !line.starts_with('#') && !line.trim().is_empty())
}

/// Why a subject is refused.
fn refusal(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > LONGEST {
        return Some(format!(
            "has {length} characters; at most {LONGEST} are allowed"
        ));
    }
    let first = subject.split(' ').next().unwrap_or_default();
    let capital = first.starts_with(|c: char| c.is_ascii_uppercase());
    if !capital || !first.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
        return Some("does not begin with a capitalised verb".into());
    }
    if !is_imperative(first) {
        return Some(format!(
            "'{first}' is not an imperative, as in \"Add a test\""
        ));
    }
    if subject.ends_with('.') {
        return Some("ends with a full stop".into());
    }
    None
}

fn is_imperative(word: &str) -> bool {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    let conjugated = ends(CONJUGATED) && !ends(IMPERATIVE) && !IMPERATIVES.contains(&word);
    !conjugated && !DESCRIPTIONS.contains(&word)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{check, is_of_github, refusal, subject};
    use crate::environment::target;
    use crate::report::{gaps, output};

    #[test]
    fn subjects_are_short_and_imperative() {
        for good in [
            "Free imported pools after their last event",
            "Pass the stream on",
            "Re-export the launcher",
            "Embed the PTX",
            &format!("Add {}", "x".repeat(68)),
        ] {
            assert_eq!(refusal(good), None, "{good}");
        }
        for bad in [
            "",
            "fix it",
            "core: Fix it",
            "Fixes it",
            "Fixed it",
            "Fixing it",
            "A test of launches",
            "The CPU device",
            "Fix it.",
            &format!("Add {}", "x".repeat(69)),
        ] {
            assert!(refusal(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn comments_of_a_message_are_skipped() {
        assert_eq!(
            subject("# On branch x\n\nAdd it\n\nBody.\n"),
            Some("Add it")
        );
        assert_eq!(subject("# nothing\n"), None);
    }

    #[test]
    fn merges_of_github_are_recognised() {
        let hash = "15f81743d088df8c27d4752524af4b00e7361b51";
        assert!(is_of_github(&format!("Merge {hash} into {hash}")));
        assert!(!is_of_github("Merge branch 'x' into y"));
    }

    #[test]
    fn history_is_checked_from_the_base_on_and_skipped_without_it() {
        let folder = target().join("xtask-tests").join("commits");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let git = |words: &[&str]| {
            let identity = ["-c", "user.name=x", "-c", "user.email=x@x"];
            output(super::git(&folder).args(identity).args(words)).unwrap()
        };
        let commit = |subject: &str| {
            git(&[
                "commit",
                "--quiet",
                "--no-verify",
                "--allow-empty",
                "-m",
                subject,
            ]);
            git(&["rev-parse", "HEAD"]).trim().to_owned()
        };
        git(&["init", "--quiet", "--initial-branch=main", "."]);
        let first = commit("old and without form.");
        let base = commit("another one of those");
        commit("Add a thing");
        assert_eq!(check(&folder, &base), Ok(()));
        assert!(
            check(&folder, &first)
                .unwrap_err()
                .contains("another one of those")
        );
        // A history without the base, as that of a shallow clone, is not checked and says so.
        assert_eq!(check(&folder, &"0".repeat(40)), Ok(()));
        assert!(gaps().iter().any(|gap| gap.contains("000000000000")));

        git(&["checkout", "--quiet", "-b", "side", &base]);
        commit("Add another thing");
        git(&["checkout", "--quiet", "main"]);
        git(&["merge", "--quiet", "--no-ff", "-m", "Join both", "side"]);
        assert!(check(&folder, &base).unwrap_err().contains("merge commit"));
        let subject = format!("Merge {base} into {base}");
        git(&[
            "commit",
            "--quiet",
            "--no-verify",
            "--amend",
            "-m",
            &subject,
        ]);
        assert_eq!(check(&folder, &base), Ok(()));
    }
}
