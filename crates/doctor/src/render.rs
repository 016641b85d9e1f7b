//! Renders the report as text: of limited width, with control characters escaped, and colours on request.

use std::fmt::{self, Write};
use std::path::Path;

use super::report::{Backend, Fix, Item, ItemState, Problem, Report, Severity};

/// The style of a rendered report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns, clamped to 40 to 100.
    pub width: usize,
    /// Whether to use colours (ANSI sequences).
    pub colours: bool,
}

impl Default for Style {
    /// 100 columns without colours.
    fn default() -> Style {
        Style {
            width: WIDEST,
            colours: false,
        }
    }
}

/// Lines of a reason to show; a search can produce dozens.
const LINES: usize = 12;
const NARROWEST: usize = 40;
const WIDEST: usize = 100;
/// The start of the second column, on wide and on narrow screens.
const LABEL: usize = 15;
const NARROW_LABEL: usize = 4;

const RED: &str = "31";
const YELLOW: &str = "33";
const GREEN: &str = "32";
const BOLD: &str = "1";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::default()))
    }
}

impl Report {
    /// The text, ending with a newline.
    pub fn render(&self, style: Style) -> String {
        let mut page = Page::new(style);
        page.title(&format!("Cupyrite {}", self.cupyrite.version), BOLD);
        self.surroundings(&mut page);
        self.job(&mut page);
        self.items(&mut page);
        if !self.variables.is_empty() {
            page.blank();
            page.title("Environment variables", BOLD);
            for variable in &self.variables {
                page.entry(&format!("{}={}", variable.name, variable.value));
            }
        }
        self.findings(&mut page);
        page.blank();
        let (verdict, colour) = self.verdict();
        page.paragraph(&verdict, 0, 0, Some(colour));
        page.text
    }

    fn surroundings(&self, page: &mut Page) {
        if let Some(python) = &self.interpreter {
            let place = python
                .executable
                .as_deref()
                .map_or(String::new(), |path| format!(", {}", path.display()));
            page.line(
                "Python",
                &format!("{} {}{place}", python.implementation, python.version),
            );
        }
        if let Some(location) = &self.cupyrite.location {
            page.line("Cupyrite", &location.display().to_string());
        }
        let mut platform = self.platform.name.clone();
        if self.platform.wsl {
            platform.push_str(", below Windows (WSL)");
        }
        if self.platform.container {
            platform.push_str(", in a container");
        }
        page.line("Platform", &platform);
    }

    fn job(&self, page: &mut Page) {
        let driver = &self.driver;
        let mut text = match (&driver.path, self.device.backend) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(Backend::Gpu)) => "loaded".to_owned(),
            (None, _) => "no NVIDIA driver library".to_owned(),
        };
        if let (Some(cuda), Some(Backend::Gpu)) = (driver.cuda, self.device.backend) {
            let _ = write!(text, ", CUDA {cuda}");
        }
        if let Some(version) = &driver.kernel_module {
            let _ = write!(text, ", kernel module {version}");
        }
        page.line("Driver", &text);
        for device in &self.devices {
            page.line(
                &format!("Device {}", device.ordinal),
                &format!(
                    "{}, compute capability {}, {}",
                    device.name,
                    device.compute_capability,
                    bytes(device.memory)
                ),
            );
        }
        if self.devices.is_empty() {
            page.line("Device", "none");
        }
        if let Some(reason) = &self.device.reason {
            page.line("why", reason);
        }
        let proof = &self.proof;
        if proof.ok {
            page.line(
                "Proof",
                &format!(
                    "a kernel was compiled, loaded and launched, its result is right: {:.0} ms",
                    proof.milliseconds
                ),
            );
        } else {
            let step = proof.stopped_at.as_deref().unwrap_or("run a kernel");
            page.line("Proof", &format!("failed to {step}"));
        }
    }

    fn items(&self, page: &mut Page) {
        page.blank();
        let found = count(&self.libraries, ItemState::Found);
        page.title(
            &format!("Libraries: {found} of {} found", self.libraries.len()),
            BOLD,
        );
        let shown = |item: &&Item| matches!(item.state, ItemState::Found | ItemState::Broken);
        let rows: Vec<&Item> = self.libraries.iter().filter(shown).collect();
        page.table(&rows);
        if found < self.libraries.len() && !self.libraries.is_empty() {
            page.entry("--json names the others");
        }
        page.blank();
        page.title("Headers and tools", BOLD);
        let headers: Vec<&Item> = self.headers.iter().filter(shown).collect();
        page.line(
            "headers",
            &summary(&headers, self.headers.len(), "sets of headers"),
        );
        let tools: Vec<&Item> = self.tools.iter().filter(shown).collect();
        page.line("tools", &summary(&tools, self.tools.len(), "tools"));
    }

    fn findings(&self, page: &mut Page) {
        page.blank();
        if self.problems.is_empty() {
            page.title("Problems: none", BOLD);
            return;
        }
        page.title(&format!("Problems: {}", self.problems.len()), BOLD);
        for (number, problem) in self.problems.iter().enumerate() {
            page.problem(number + 1, problem);
        }
    }

    /// The last line and its colour.
    fn verdict(&self) -> (String, &'static str) {
        let where_ = match self.device.backend {
            Some(Backend::Gpu) => "the GPU",
            _ => "the CPU device",
        };
        let errors = self
            .problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .count();
        if self.ok {
            let text = format!("Kernels can be compiled and run on {where_}.");
            (text, GREEN)
        } else if self.proof.ok {
            let text = format!(
                "A kernel runs on {where_}, but {} to be fixed first.",
                if errors == 1 {
                    "one error is"
                } else {
                    "errors are"
                }
            );
            (text, RED)
        } else {
            ("Kernels cannot be compiled and run here.".to_owned(), RED)
        }
    }
}

fn count(items: &[Item], state: ItemState) -> usize {
    items.iter().filter(|item| item.state == state).count()
}

/// "cudart 13.5, cccl; 29 other sets of headers were not found".
fn summary(found: &[&Item], all: usize, what: &str) -> String {
    let names: Vec<String> = found
        .iter()
        .map(|item| {
            let version = item
                .version
                .as_ref()
                .map_or(String::new(), |version| format!(" {version}"));
            let broken = if item.state == ItemState::Broken {
                " (broken)"
            } else {
                ""
            };
            format!("{}{version}{broken}", item.name)
        })
        .collect();
    if names.is_empty() {
        return format!("none of {all} {what} found");
    }
    if names.len() == all {
        return names.join(", ");
    }
    format!("{}; {} of {all} {what}", names.join(", "), names.len())
}

/// `79.6 GiB`.
fn bytes(count: u64) -> String {
    match count {
        0..0x10_0000 => format!("{count} bytes"),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", count as f64 / (1u64 << 20) as f64),
        _ => format!("{:.1} GiB", count as f64 / (1u64 << 30) as f64),
    }
}

/// Text with control characters escaped, so that a path or a variable cannot control the terminal.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_bidi(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters that change the text direction.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Wraps text into lines of at most `width` characters: at spaces, else after a slash, else anywhere.
pub(crate) fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line: Vec<char> = Vec::new();
    let mut room = first;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        let space = usize::from(!line.is_empty());
        if line.len() + space + word.len() <= room {
            if space == 1 {
                line.push(' ');
            }
            line.append(&mut word);
            continue;
        }
        if !line.is_empty() && word.len() <= rest {
            lines.push(line.drain(..).collect());
            room = rest;
            line = word;
            continue;
        }
        // A word longer than a line: starts on this line if enough of it fits.
        if line.len() + 9 > room {
            lines.push(line.drain(..).collect());
            room = rest;
        } else if !line.is_empty() {
            line.push(' ');
        }
        while line.len() + word.len() > room {
            let fits = (room - line.len()).max(1);
            let cut = match word[..fits.min(word.len())].iter().rposition(|c| *c == '/') {
                Some(at) if at + 1 >= fits / 2 && at + 1 < word.len() => at + 1,
                _ => fits,
            };
            line.extend(word.drain(..cut.min(word.len())));
            lines.push(line.drain(..).collect());
            room = rest;
        }
        line.append(&mut word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line.into_iter().collect());
    }
    lines
}

/// Shortens a path to `room` characters; its end is the most informative part.
pub(crate) fn shortened(path: &Path, room: usize) -> String {
    let text = visible(&path.to_string_lossy());
    let length = text.chars().count();
    if length <= room {
        return text;
    }
    let end: String = text
        .chars()
        .skip(length - room.saturating_sub(3).max(1))
        .collect();
    match end.find('/') {
        Some(at) if at < end.len() / 2 => format!("...{}", &end[at..]),
        _ => format!("...{end}"),
    }
}

struct Page {
    text: String,
    style: Style,
    label: usize,
}

impl Page {
    fn new(style: Style) -> Page {
        let width = style.width.clamp(NARROWEST, WIDEST);
        Page {
            text: String::new(),
            style: Style { width, ..style },
            label: if width < 60 { NARROW_LABEL } else { LABEL },
        }
    }

    fn coloured(&self, text: &str, colour: &str) -> String {
        if self.style.colours {
            format!("\x1b[{colour}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn title(&mut self, text: &str, colour: &str) {
        self.paragraph(text, 0, 2, Some(colour));
    }

    /// A paragraph below a title, wrapped and indented.
    fn entry(&mut self, text: &str) {
        self.paragraph(text, 2, 6, None);
    }

    /// Text wrapped between two indents.
    fn paragraph(&mut self, text: &str, first: usize, rest: usize, colour: Option<&str>) {
        let width = self.style.width;
        let text = visible(text);
        for (number, line) in wrap(&text, width - first, width - rest).iter().enumerate() {
            let indent = if number == 0 { first } else { rest };
            let line = match colour {
                Some(colour) => self.coloured(line, colour),
                None => line.clone(),
            };
            self.push(&format!("{:indent$}{line}", ""));
        }
    }

    /// `  Label        text`, the text wrapped in its column.
    fn line(&mut self, label: &str, text: &str) {
        let label = visible(label);
        if label.chars().count() + 3 > self.label {
            // A narrow screen has one column.
            self.paragraph(&format!("{label}: {text}"), 2, 6, None);
            return;
        }
        let room = self.style.width - self.label;
        let text = visible(text);
        for (number, line) in wrap(&text, room, room).iter().enumerate() {
            let label = if number == 0 { label.as_str() } else { "" };
            let column = self.label - 2;
            self.push(&format!("  {label:column$}{line}"));
        }
    }

    /// Name, version, origin and path of each finding, one per line.
    fn table(&mut self, rows: &[&Item]) {
        let widest = |cells: &mut dyn Iterator<Item = usize>| cells.max().unwrap_or(0);
        let name = widest(&mut rows.iter().map(|item| item.name.chars().count()))
            .max(self.label.saturating_sub(4));
        let version = widest(&mut rows.iter().map(|item| version_of(item).chars().count()));
        let origin = widest(&mut rows.iter().map(|item| origin_of(item).chars().count()));
        for item in rows {
            let head = format!(
                "  {:name$}  {:version$}  {:origin$}  ",
                visible(&item.name),
                visible(version_of(item)),
                visible(origin_of(item))
            );
            let used = head.chars().count();
            let path = item.path.as_deref().unwrap_or(Path::new(""));
            if self.style.width >= used + 24 {
                let path = shortened(path, self.style.width - used);
                self.push(&format!("{head}{path}"));
            } else {
                self.entry(&format!(
                    "{} {} {}",
                    item.name,
                    version_of(item),
                    origin_of(item)
                ));
                let path = shortened(path, self.style.width - 6);
                self.push(&format!("      {path}"));
            }
        }
    }

    fn problem(&mut self, number: usize, problem: &Problem) {
        let (word, colour) = match problem.severity {
            Severity::Error => ("error", RED),
            Severity::Warning => ("warning", YELLOW),
            Severity::Note => ("note", BOLD),
        };
        self.paragraph(
            &format!("{number}. {word}: {} [{}]", problem.what, problem.code),
            2,
            5,
            Some(colour),
        );
        let lines: Vec<&str> = problem.why.lines().collect();
        let shown = if lines.len() > LINES + 1 {
            LINES
        } else {
            lines.len()
        };
        for line in &lines[..shown] {
            self.paragraph(line, 5, 7, None);
        }
        if shown < lines.len() {
            let rest = lines.len() - shown;
            self.paragraph(&format!("({rest} more lines: --json)"), 5, 7, None);
        }
        for (number, fix) in problem.fix.iter().enumerate() {
            let label = if number == 0 { "fix: " } else { "     " };
            self.fix(label, fix);
        }
    }

    /// One step of a fix. A long command is wrapped after backslashes, so that it can be copied.
    fn fix(&mut self, label: &str, fix: &Fix) {
        let indent = 5 + label.chars().count();
        let room = self.style.width - indent;
        let words = visible(&fix.words);
        let mut lines = Vec::new();
        if let Some(command) = &fix.command {
            let command = visible(command);
            let joint = words.chars().count() + 2 + command.chars().count();
            if words.is_empty() || joint > room {
                if !words.is_empty() {
                    lines.extend(wrap(&format!("{words}:"), room, room));
                }
                let parts = wrap(&command, room - 2, room - 4);
                let last = parts.len() - 1;
                for (number, part) in parts.iter().enumerate() {
                    let indent = if number == 0 { "" } else { "  " };
                    let more = if number < last { " \\" } else { "" };
                    lines.push(format!("{indent}{part}{more}"));
                }
            } else {
                lines.push(format!("{words}: {command}"));
            }
        } else {
            lines.extend(wrap(&words, room, room));
        }
        for (number, line) in lines.iter().enumerate() {
            let label = if number == 0 { label } else { "     " };
            self.push(&format!("     {label}{line}"));
        }
    }
}

fn version_of(item: &Item) -> &str {
    item.version.as_deref().unwrap_or("")
}

fn origin_of(item: &Item) -> &str {
    match item.state {
        ItemState::Broken => "BROKEN",
        _ => item.found_via.as_deref().unwrap_or(""),
    }
}
