//! The text and JSON renderings.

use std::time::Duration;

use super::super::render::{Style, shortened, wrap};
use super::super::report::{Fix, Item, ItemState, Problem, Severity, Variable};
use super::*;

fn widest(text: &str) -> usize {
    let plain = |line: &str| {
        let mut count = 0;
        let mut skip = false;
        for c in line.chars() {
            match c {
                '\x1b' => skip = true,
                'm' if skip => skip = false,
                _ if skip => {}
                _ => count += 1,
            }
        }
        count
    };
    text.lines().map(plain).max().unwrap_or(0)
}

/// A report with every field set, to long and hostile values.
fn crowded() -> Report {
    let mut report = on_cpu().report();
    let long = format!("/{}", "a-very-long-folder/".repeat(30));
    report.interpreter = python();
    report.cupyrite.location = Some(long.clone().into());
    for (i, item) in report.libraries.iter_mut().enumerate() {
        item.state = if i % 5 == 0 {
            ItemState::Broken
        } else {
            ItemState::Found
        };
        item.path = Some(format!("{long}lib{}.so.13", item.name).into());
        item.version = Some("13.5.37".to_owned());
        item.found_via = Some("was-already-loaded-from-elsewhere".to_owned());
    }
    report.variables.push(Variable {
        name: "LD_LIBRARY_PATH".to_owned(),
        value: format!("{}\x1b[31mred\u{202e}\n\tend", "/x:".repeat(200)),
    });
    report.problems.push(Problem {
        code: "made-up",
        severity: Severity::Warning,
        what: "x".repeat(300),
        why: format!("one\n\ntwo  words\n{}", "y ".repeat(300)),
        fix: vec![
            Fix::command(format!("pip install {}", "package==1.0 ".repeat(20))),
            Fix::advice_with_command("w".repeat(120), "z".repeat(150)),
            Fix::advice(""),
        ],
    });
    report
}

#[test]
fn no_line_is_wider_than_asked() {
    let report = crowded();
    for width in [0, 1, 40, 41, 57, 60, 79, 80, 99, 100, 200, usize::MAX] {
        for colours in [false, true] {
            let text = report.render(Style { width, colours });
            assert!(widest(&text) <= width.clamp(40, 100), "{width}: {text}");
            assert_eq!(text.contains('\x1b'), colours);
            assert!(!text.contains('\u{202e}'));
            assert!(text.lines().all(|line| !line.ends_with(' ')));
        }
    }
    assert_eq!(report.to_string(), report.render(Style::default()));
}

#[test]
fn a_healthy_screen_is_short() {
    let text = healthy().report().to_string();
    assert!(text.lines().count() < 24, "{text}");
    assert!(
        text.contains("NVIDIA H200, compute capability 9.0, 139.7 GiB"),
        "{text}"
    );
    assert!(
        text.ends_with("Kernels can be compiled and run on the GPU.\n"),
        "{text}"
    );
}

#[test]
fn the_verdict_follows_the_report() {
    let mut case = healthy();
    case.facts.interpreter = python();
    case.facts.package_version = Some("9.9".to_owned());
    let text = case.report().to_string();
    assert!(text.contains("one error is to be fixed first"), "{text}");
    let text = healthy().ends(Stage::Init, End::Hung).report().to_string();
    assert!(text.ends_with("Kernels cannot be compiled and run here.\n"));
}

#[test]
fn wrapping_loses_nothing() {
    let texts = [
        "",
        " ",
        "one",
        "a few words that go over a few lines of text",
        "/a/path/that/is/much/longer/than/the/line/and/must/be/cut/somewhere",
        "word /a/path/that/is/much/longer/than/the/line another",
        "ääää öööö 日本語日本語日本語日本語日本語日本語日本語日本語",
    ];
    for text in texts {
        for first in 1..40 {
            for rest in [1, 7, first, 40] {
                let lines = wrap(text, first, rest);
                assert!(lines[0].chars().count() <= first.max(1));
                assert!(lines[1..].iter().all(|line| line.chars().count() <= rest));
                let squeeze = |t: &str| t.replace(' ', "");
                assert_eq!(squeeze(&lines.concat()), squeeze(text), "{first} {rest}");
            }
        }
    }
}

#[test]
fn a_cut_command_can_be_copied() {
    let mut report = healthy().report();
    let command = "python -m pip install --force-reinstall --no-deps one==1.0 two==2.0 three==3.0";
    report.problems.push(Problem {
        code: "made-up",
        severity: Severity::Error,
        what: "x".to_owned(),
        why: "y".to_owned(),
        fix: vec![Fix::command(command)],
    });
    let text = report.render(Style {
        width: 50,
        colours: false,
    });
    let at = text.find("python -m").expect("it is there");
    let mut shown = String::new();
    for line in text[at..].lines() {
        let (part, more) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        shown.push_str(part.trim());
        if !more {
            break;
        }
        shown.push(' ');
    }
    assert_eq!(shown, command);
}

#[test]
fn a_path_keeps_its_end() {
    let path = std::path::Path::new("/one/two/three/four/libnvrtc.so.13");
    assert_eq!(shortened(path, 100), "/one/two/three/four/libnvrtc.so.13");
    assert_eq!(shortened(path, 25), ".../four/libnvrtc.so.13");
    for room in 4..40 {
        assert!(shortened(path, room).chars().count() <= room);
    }
}

#[test]
fn the_json_has_the_documented_fields() {
    let page = include_str!("../../../../docs/doctor.md");
    for report in [healthy().report(), crowded()] {
        let value: serde_json::Value = serde_json::from_str(&report.to_json()).expect("JSON");
        assert_eq!(value["format"], 1);
        assert_eq!(value["ok"], true);
        assert_eq!(
            value["devices"][0]["compute_capability"],
            report.devices[0].compute_capability.to_string()
        );
        let mut names = Vec::new();
        fields(&value, &mut names);
        for name in names {
            assert!(
                page.contains(&format!("`{name}`")),
                "docs/doctor.md lacks {name}"
            );
        }
    }
}

/// The names of all fields, including those of nested objects.
fn fields(value: &serde_json::Value, names: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                names.push(name.clone());
                fields(value, names);
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| fields(value, names)),
        _ => {}
    }
}

/// Every problem code is documented.
#[test]
fn the_codes_are_documented() {
    let page = include_str!("../../../../docs/doctor.md");
    let rules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules");
    let files = std::fs::read_dir(rules).expect("the folder of the rules");
    let sources: Vec<String> = files
        .map(|file| std::fs::read_to_string(file.expect("a rule").path()).expect("UTF-8"))
        .collect();
    let mut seen = 0;
    for source in sources {
        // A code is a string of lower-case words with hyphens, at the end of its line.
        for line in source.lines().map(str::trim) {
            let quoted = line.split('"').nth(1).unwrap_or("");
            let begins =
                line.starts_with('"') || line.starts_with("code: \"") || line.contains("=> \"");
            let is_code = quoted.contains('-')
                && !quoted.starts_with("nvidia-")
                && quoted.chars().all(|c| c.is_ascii_lowercase() || c == '-')
                && begins;
            if is_code {
                seen += 1;
                assert!(
                    page.contains(&format!("`{quoted}`")),
                    "docs/doctor.md lacks {quoted}"
                );
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn versions() {
    assert_eq!(Version::from_number(13050), V13_5);
    assert_eq!("13.5.37".parse(), Ok(V13_5));
    assert_eq!(V13_5.to_string(), "13.5");
    for wrong in ["", "13", "13.", ".5", "13.x", "-1.0"] {
        assert!(wrong.parse::<Version>().is_err(), "{wrong}");
    }
}

#[test]
fn items_of_each_state_are_reported() {
    let mut report = healthy().report();
    report.libraries = vec![Item {
        name: "cublas".to_owned(),
        state: ItemState::Broken,
        path: Some("/x/libcublas.so.13".into()),
        found_via: None,
        version: None,
        major: None,
        reason: Some("an empty file".to_owned()),
    }];
    let text = report.to_string();
    assert!(
        text.contains("BROKEN") && text.contains("/x/libcublas.so.13"),
        "{text}"
    );
}

/// A real examination, in a thread: other tests run in this process, so it does not fork.
#[test]
fn an_examination_terminates() {
    let facts = Facts {
        deadline: Duration::from_secs(120),
        ..Facts::default()
    };
    let report = super::super::examine(&facts);
    assert!(report.proof.hung_at.is_none());
    assert!(report.proof.in_process);
    assert_eq!(
        report.ok,
        report.proof.ok
            && report
                .problems
                .iter()
                .all(|p| p.severity != Severity::Error)
    );
    assert!(widest(&report.to_string()) <= 100);
}
