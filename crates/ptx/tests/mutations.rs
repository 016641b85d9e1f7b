//! Parses thousands of damaged texts. Each is accepted or rejected without a panic.

use std::panic::catch_unwind;
use std::path::PathBuf;

/// A deterministic random number generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The texts to damage: short ones, and the first functions of long ones.
fn texts() -> Vec<String> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<PathBuf> = [data.clone(), data.join("nvrtc")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .collect();
    paths.sort();
    let texts: Vec<String> = paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    texts
        .into_iter()
        .map(|text| {
            if text.len() > 8000 {
                shortened(&text)
            } else {
                text
            }
        })
        .collect()
}

/// The beginning of a text, up to the end of a function.
fn shortened(text: &str) -> String {
    let end = text[6000..]
        .find("\n}\n")
        .map_or(text.len(), |at| 6000 + at + 3);
    text[..end].to_string()
}

/// The text cut into words, numbers, blanks and single characters.
fn tokens(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '$' | '%' => 1,
        ' ' | '\t' | '\n' => 2,
        _ => 0,
    };
    let mut cuts = vec![0];
    let mut before = None;
    for (at, c) in text.char_indices() {
        if before.is_some_and(|b| b != class(c) || class(c) == 0) {
            cuts.push(at);
        }
        before = Some(class(c));
    }
    cuts.push(text.len());
    cuts.windows(2)
        .map(|w| &text[w[0]..w[1]])
        .filter(|t| !t.is_empty())
        .collect()
}

const SPICE: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    "@",
    "!",
    "|",
    "<",
    ">",
    "=",
    "-",
    "+",
    "?",
    "_",
    "%",
    "%r1",
    "%tid",
    ".",
    ".x",
    ".b32",
    ".pred",
    ".v4",
    ".reg",
    ".param",
    ".shared",
    ".global",
    ".align",
    ".func",
    ".entry",
    ".loc",
    ".section",
    ".branchtargets",
    ".callprototype",
    "bra",
    "call",
    "brx.idx",
    "mov",
    "ld",
    "0",
    "-1",
    "4294967296",
    "18446744073709551615",
    "0x8000000000000000",
    "0f7fffffff",
    "1e999",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    "\0",
    "\u{e9}",
    "\u{1f980}",
    "generic",
    "0xFF(",
    "WARP_SZ",
    "<4000000000>",
    "9.9",
];

fn damaged(text: &str, random: &mut Random) -> String {
    if random.below(3) == 0 {
        // Bytes.
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => bytes[at] ^= 1 << random.below(8),
                2 => bytes.truncate(at + 1),
                _ => bytes.insert(at, random.next() as u8),
            }
        }
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut list = tokens(text);
    for _ in 0..=random.below(4) {
        let (a, b) = (random.below(list.len()), random.below(list.len()));
        match random.below(5) {
            0 => list[a] = SPICE[random.below(SPICE.len())],
            1 => list.insert(a, SPICE[random.below(SPICE.len())]),
            2 => list.swap(a, b),
            3 => list[a] = list[b],
            _ => {
                let end = (a + 1 + random.below(20)).min(list.len());
                if list.len() - (end - a) > 1 {
                    list.drain(a..end);
                }
            }
        }
    }
    list.concat()
}

#[test]
fn damaged_texts() {
    let texts = texts();
    let mut random = Random(20_260_101);
    let (mut parsed, mut refused) = (0, 0);
    for round in 0..6000 {
        let text = damaged(&texts[round % texts.len()], &mut random);
        match catch_unwind(|| cupyrite_ptx::parse(&text)) {
            Ok(Ok(module)) => {
                parsed += 1;
                // Reports use the parsed form.
                for instr in module
                    .functions
                    .iter()
                    .filter_map(|f| f.body.as_ref())
                    .flat_map(|b| &b.instrs)
                    .take(20)
                {
                    assert!(!instr.mnemonic().is_empty());
                }
            }
            Ok(Err(error)) => {
                refused += 1;
                assert!(error.pos.line >= 1 && error.pos.column >= 1, "{error}");
                let lines = text.trim_end_matches('\0').split('\n').count();
                assert!(error.pos.line as usize <= lines, "{error}");
                assert!(
                    error.message.contains(&error.token) && !error.message.contains('\n'),
                    "{error}"
                );
            }
            Err(_) => panic!("round {round} made the parser panic with:\n{text}"),
        }
    }
    // The test is meaningful only if both outcomes are frequent.
    assert!(
        parsed > 150 && refused > 3000,
        "{parsed} parsed, {refused} refused"
    );
}

/// Every prefix of a text is accepted or rejected.
#[test]
fn prefixes() {
    let text = texts().into_iter().min_by_key(String::len).unwrap();
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let _ = cupyrite_ptx::parse(&text[..end]);
    }
}
