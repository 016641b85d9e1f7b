//! A digest of every file that the compiler may read for a source.
//!
//! NVRTC does not report the files that it read, so this searches for them conservatively. Conditions are not
//! evaluated: every `#include` counts, also in a comment. A name counts in every directory where it could be found
//! (those of the options, of the source, of the including file; on Windows, where compilers search beside all
//! including files, of every file seen), not only in the first that has it, and its absence counts, too: a header that
//! comes to hide another one changes the digest. An `#include MACRO` cannot be followed and is an error.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use sha2::{Digest, Sha256};

/// Number of cached files; up to twenty times as many paths are examined.
const MOST: usize = 20_000;
/// A file that was modified within this time may change again with the same time stamp.
const FRESH: Duration = Duration::from_secs(2);

/// The reason why the included files cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unknown(pub(super) String);

/// The names that a text includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct IncludedNames {
    names: Vec<String>,
    /// A directive whose name comes from a macro.
    computed: Option<String>,
}

/// The search path.
#[derive(Debug)]
pub(super) struct Search<'a> {
    /// The directory of the source; `None` if it is not searched.
    pub source: Option<PathBuf>,
    /// Directories of the options.
    pub directories: Vec<PathBuf>,
    /// Headers given as text.
    pub headers: &'a [(String, String)],
}

/// The files that a source may include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Included {
    /// The digest of their names and contents; `None` if there are none.
    pub digest: Option<[u8; 32]>,
    /// Whether a name was found nowhere.
    pub incomplete: bool,
}

/// Everything that `source` (and files included before it) may include.
pub(super) fn included(
    source: &[u8],
    before: &[String],
    search: &Search<'_>,
) -> Result<Included, Unknown> {
    let mut walk = Walk {
        search,
        hasher: Sha256::new(),
        seen: HashSet::new(),
        files: HashSet::new(),
        looked_up: HashSet::new(),
        directories: search.directories.clone(),
        found: HashSet::new(),
    };
    walk.directories.extend(search.source.clone());
    let before = IncludedNames {
        names: before.to_vec(),
        computed: None,
    };
    let mut open: Vec<Open> = vec![(Arc::new(wanted(source)), None), (Arc::new(before), None)];
    for (_, text) in search.headers {
        open.push((Arc::new(wanted(text.as_bytes())), None));
    }
    // A directory that is searched only because a file in it was included may contain a name from an earlier file:
    // such names are looked up again.
    let mut names: Vec<String> = Vec::new();
    let mut directories = 0;
    loop {
        while let Some((wanted, home)) = open.pop() {
            if let Some(directive) = &wanted.computed {
                return Err(Unknown(format!("{directive}: the name is made by a macro")));
            }
            for name in &wanted.names {
                if walk.looked_up.insert(name.clone()) {
                    names.push(name.clone());
                    for directory in &walk.directories.clone() {
                        walk.look_up(name, Some(directory), &mut open)?;
                    }
                    if walk.directories.is_empty() || Path::new(name).is_absolute() {
                        walk.look_up(name, None, &mut open)?;
                    }
                }
                if let Some(home) = &home {
                    walk.look_up(name, Some(home), &mut open)?;
                }
            }
        }
        let known = walk.directories.len();
        if directories == 0 {
            directories = search.directories.len() + usize::from(search.source.is_some());
        }
        if directories == known {
            break;
        }
        for at in directories..known {
            let directory = walk.directories[at].clone();
            for name in names.clone() {
                walk.look_up(&name, Some(&directory), &mut open)?;
            }
        }
        directories = known;
    }
    let given = |name: &String| search.headers.iter().any(|header| header.0 == *name);
    Ok(Included {
        incomplete: names
            .iter()
            .any(|name| !walk.found.contains(name) && !given(name)),
        digest: (!walk.found.is_empty()).then(|| walk.hasher.finalize().into()),
    })
}

/// A text, and the directory of its file.
type Open = (Arc<IncludedNames>, Option<PathBuf>);

struct Walk<'a, 'b> {
    search: &'a Search<'b>,
    hasher: Sha256,
    /// Examined paths.
    seen: HashSet<PathBuf>,
    /// Hashed files.
    files: HashSet<PathBuf>,
    looked_up: HashSet<String>,
    /// All searched directories, in order of discovery.
    directories: Vec<PathBuf>,
    /// Names that refer to a file.
    found: HashSet<String>,
}

impl Walk<'_, '_> {
    /// Hashes the file that a name refers to in a directory, if it exists.
    fn look_up(
        &mut self,
        name: &str,
        directory: Option<&Path>,
        open: &mut Vec<Open>,
    ) -> Result<(), Unknown> {
        let given = self.search.headers.iter().any(|header| header.0 == name);
        let path = match directory {
            Some(directory) => directory.join(name),
            None if Path::new(name).is_absolute() => PathBuf::from(name),
            None => return Ok(()),
        };
        if given {
            // A header given as text is part of the key already.
            return Ok(());
        }
        if !self.seen.insert(path.clone()) {
            if self.files.contains(&path) {
                self.found.insert(name.to_owned());
            }
            return Ok(());
        }
        if self.seen.len() > 20 * MOST {
            return Err(Unknown("too many files may be included".into()));
        }
        let file = match look(&path) {
            Ok(file) => file,
            Err(error) => return Err(Unknown(format!("{}: {error}", path.display()))),
        };
        let Some(file) = file else {
            return Ok(());
        };
        self.found.insert(name.to_owned());
        self.files.insert(path.clone());
        let text = path.to_string_lossy();
        self.hasher.update((text.len() as u64).to_le_bytes());
        self.hasher.update(text.as_bytes());
        self.hasher.update(file.digest);
        let home = path.parent().map(Path::to_path_buf).unwrap_or_default();
        if cfg!(windows) && !self.directories.contains(&home) {
            self.directories.push(home.clone());
        }
        open.push((file.wanted.clone(), Some(home)));
        Ok(())
    }
}

/// Cached information about a file.
#[derive(Clone, Debug)]
struct Looked {
    stamp: Stamp,
    digest: [u8; 32],
    wanted: Arc<IncludedNames>,
}

/// Changes whenever the file does, unless it changes twice within the clock's resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    node: (u64, u64, i64, i64),
}

impl Stamp {
    fn of(data: &fs::Metadata) -> Stamp {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Stamp {
            length: data.len(),
            modified: data.modified().ok(),
            #[cfg(unix)]
            node: (data.dev(), data.ino(), data.ctime(), data.ctime_nsec()),
        }
    }

    /// Whether the last change is old enough for another one to change the stamp.
    fn settled(&self) -> bool {
        let old = |time: SystemTime| time.elapsed().is_ok_and(|age| age > FRESH);
        #[cfg(unix)]
        let changed = u64::try_from(self.node.2)
            .ok()
            .map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        #[cfg(not(unix))]
        let changed = self.modified;
        self.modified.is_some_and(old) && changed.is_some_and(old)
    }
}

/// The information about a file, read again if it has changed; `None` if it does not exist.
fn look(path: &Path) -> std::io::Result<Option<Looked>> {
    static KNOWN: Mutex<Option<HashMap<PathBuf, Looked>>> = Mutex::new(None);
    let data = match fs::metadata(path) {
        Ok(data) if data.is_file() => data,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Err(error),
        // Missing, or an invalid name: the compiler does not find it, either.
        Err(_) => return Ok(None),
    };
    let stamp = Stamp::of(&data);
    let known = || KNOWN.lock();
    if let Some(file) = known().as_ref().and_then(|known| known.get(path))
        && file.stamp == stamp
    {
        return Ok(Some(file.clone()));
    }
    let text = fs::read(path)?;
    let file = Looked {
        digest: Sha256::digest(&text).into(),
        wanted: Arc::new(wanted(&text)),
        stamp,
    };
    if file.stamp.settled() && path.is_absolute() {
        let mut known = known();
        let known = known.get_or_insert_default();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(path.to_path_buf(), file.clone());
    }
    Ok(Some(file))
}

/// The digest of a file, computed again if it has changed.
pub(super) fn file_digest(path: &Path) -> Option<[u8; 32]> {
    look(path).ok().flatten().map(|file| file.digest)
}

/// The names in `#include` and `__has_include` of a text.
fn wanted(text: &[u8]) -> IncludedNames {
    let spliced = splice(text);
    let text = spliced.as_deref().unwrap_or(text);
    let mut wanted = IncludedNames::default();
    let mut at = 0;
    while let Some((start, end, word)) = next_word(text, at) {
        at = end;
        let asks = word.starts_with("__has");
        let mut next = skip_space(text, end);
        if asks {
            if text.get(next) != Some(&b'(') {
                continue;
            }
            next = skip_space(text, next + 1);
        }
        let close = match text.get(next) {
            Some(b'<') => b'>',
            Some(b'"') => b'"',
            _ => {
                if asks || follows_hash(text, start) {
                    let line = text[start..].split(|b| *b == b'\n').next();
                    let line = String::from_utf8_lossy(line.unwrap_or_default());
                    let line: String = line.trim().chars().take(80).collect();
                    wanted.computed.get_or_insert(line);
                }
                continue;
            }
        };
        let rest = &text[next + 1..];
        let length = rest.iter().position(|b| *b == close || *b == b'\n');
        if let Some(length) = length.filter(|length| rest[*length] == close) {
            let name = String::from_utf8_lossy(&rest[..length]).into_owned();
            if !name.is_empty() && !wanted.names.contains(&name) {
                wanted.names.push(name);
            }
        }
    }
    wanted
}

/// The text with line continuations removed; `None` if it has none.
fn splice(text: &[u8]) -> Option<Vec<u8>> {
    let is_splice = |at: usize| match &text[at..] {
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        _ => 0,
    };
    if !(0..text.len()).any(|at| text[at] == b'\\' && is_splice(at) > 0) {
        return None;
    }
    let mut spliced = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match is_splice(at) {
            0 => {
                spliced.push(text[at]);
                at += 1;
            }
            skipped => at += skipped,
        }
    }
    Some(spliced)
}

/// The next word from `at` on that is part of an include directive.
fn next_word(text: &[u8], mut at: usize) -> Option<(usize, usize, &'static str)> {
    const WORDS: [&str; 7] = [
        "include",
        "include_next",
        "import",
        "embed",
        "__has_include",
        "__has_include_next",
        "__has_embed",
    ];
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    while at < text.len() {
        if !is_word(text[at]) {
            at += 1;
            continue;
        }
        let length = text[at..].iter().position(|byte| !is_word(*byte));
        let end = length.map_or(text.len(), |length| at + length);
        // The first letters of these words: avoids comparing most of the text.
        if matches!(text[at], b'i' | b'e' | b'_') {
            let found = WORDS
                .into_iter()
                .find(|word| word.as_bytes() == &text[at..end]);
            if let Some(word) = found {
                return Some((at, end, word));
            }
        }
        at = end;
    }
    None
}

/// Skips white space and comments within a line.
fn skip_space(text: &[u8], mut at: usize) -> usize {
    loop {
        match &text[at.min(text.len())..] {
            [b' ' | b'\t' | b'\x0b' | b'\x0c' | b'\r', ..] => at += 1,
            [b'/', b'*', rest @ ..] => {
                let length = rest.windows(2).position(|pair| pair == b"*/");
                match length {
                    Some(length) => at += length + 4,
                    None => return text.len(),
                }
            }
            _ => return at,
        }
    }
}

/// Whether a word may be the name of a directive: `#`, `%:`, `??=`, or a comment (which may follow one of these)
/// precedes it.
fn follows_hash(text: &[u8], at: usize) -> bool {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\x0b' | b'\x0c' | b'\r');
    let end = text[..at].iter().rposition(|byte| !space(byte));
    let before = &text[..end.map_or(0, |end| end + 1)];
    [&b"#"[..], b"%:", b"??=", b"*/"]
        .iter()
        .any(|mark| before.ends_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_in_any_position() {
        let text = br#"
#include "a.h"
  #  include /* why */ <b/c.h> // and so on
#inc\
lude <d.h>
%:include"e.h"
#if __has_include(<f.h>) && defined(__has_include)
#include_next <g.h>
/* #include "h.h" */ const char *s = "/*";
#include <i.h>
// Note: include what you use. // include it
int included = include < 5, import = 1;
"#;
        let found = wanted(text);
        assert_eq!(found.computed, None);
        let names = ["a.h", "b/c.h", "d.h", "e.h", "f.h", "g.h", "h.h", "i.h"];
        assert_eq!(found.names, names);
        for computed in [
            "# /* a */ include NAME",
            "%:include NAME",
            "#include NAME",
            "# include\tNAME",
            "#if __has_include(NAME)",
        ] {
            let text = format!("int x;\n{computed}\n");
            assert!(wanted(text.as_bytes()).computed.is_some(), "{computed}");
        }
        assert_eq!(wanted(b"#include"), wanted(b"# include "));
        assert_eq!(wanted(b"#include <unclosed\n>").names, [""; 0]);
        assert_eq!(wanted(b""), IncludedNames::default());
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let id = std::process::id();
            let path = std::env::temp_dir().join(format!("cupyrite-includes-{name}-{id}"));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn every_file_that_may_be_read_counts() {
        let folder = Folder::new("count");
        folder.write("one/a.h", "#include \"deep/b.h\"\n");
        folder.write("two/deep/b.h", "#include \"beside.h\"\n");
        folder.write("two/deep/beside.h", "int x;");
        folder.write("two/other.h", "unused");
        let search = || Search {
            source: None,
            directories: vec![folder.0.join("one"), folder.0.join("two")],
            headers: &[],
        };
        let source = b"#include <a.h>\n";
        let digest = |text: &[u8], before: &[String], search: &Search<'_>| {
            included(text, before, search).map(|included| included.digest)
        };
        let now = || digest(source, &[], &search()).unwrap().unwrap();
        let first = now();
        assert_eq!(now(), first);
        // Same length, same second: only the content differs.
        folder.write("two/deep/beside.h", "int y;");
        let second = now();
        assert_ne!(second, first);
        folder.write("two/other.h", "still unused");
        assert_eq!(now(), second);
        // A file that hides another.
        folder.write("one/deep/b.h", "int z;");
        let third = now();
        assert_ne!(third, second);
        fs::remove_file(folder.0.join("one/deep/b.h")).unwrap();
        assert_eq!(now(), second);
        // Where a name is looked for if it is not beside the file that has it.
        folder.write("one/beside.h", "int late;");
        assert_ne!(now(), second);
        assert!(!included(source, &[], &search()).unwrap().incomplete);
        let missing = included(b"#include <a.h>\n#include <missing.h>\n", &[], &search());
        assert!(missing.unwrap().incomplete);
        folder.write("one/a.h", "#include NAME\n");
        let error = digest(source, &[], &search()).unwrap_err();
        assert!(error.0.contains("NAME"), "{error:?}");
        assert_eq!(digest(b"int x;", &[], &search()), Ok(None));
        let before = digest(b"int x;", &["other.h".into()], &search()).unwrap();
        assert!(before.is_some());
        let given = [("other.h".to_owned(), "int x;".to_owned())];
        let search = Search {
            headers: &given,
            ..search()
        };
        assert_eq!(digest(b"#include <other.h>", &[], &search), Ok(None));
    }

    #[test]
    fn include_cycles_terminate() {
        let folder = Folder::new("round");
        folder.write("a.h", "#include \"b.h\"\n");
        folder.write("b.h", "#include \"a.h\"\n#include \"b.h\"\n");
        let search = Search {
            source: Some(folder.0.clone()),
            directories: Vec::new(),
            headers: &[],
        };
        let found = included(b"#include \"a.h\"", &[], &search).unwrap();
        assert!(found.digest.is_some() && !found.incomplete);
    }
}
