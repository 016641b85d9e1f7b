//! The settings of core dumps: of the process, of contexts, and of the environment, which has precedence.
//!
//! The booleans `CU_COREDUMP_TRIGGER_HOST` and `CU_COREDUMP_LIGHTWEIGHT` are views of the generation flags.

use std::env;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cupyrite_sys::driver::{CUCoredumpGenerationFlags as Flag, CUcoredumpSettings as Setting};
use parking_lot::Mutex;

/// Room for a name with its NUL.
pub(super) const NAME_SIZE: usize = 1024;

/// Bits of `CU_COREDUMP_GENERATION_FLAGS`.
pub(super) const SKIP_ABORT: u32 = Flag::CU_COREDUMP_SKIP_ABORT.0 as u32;
pub(super) const SKIP_GLOBAL: u32 = Flag::CU_COREDUMP_SKIP_GLOBAL_MEMORY.0 as u32;
pub(super) const SKIP_CONSTANT: u32 = Flag::CU_COREDUMP_SKIP_CONSTBANK_MEMORY.0 as u32;
pub(super) const GZIP: u32 = Flag::CU_COREDUMP_GZIP_COMPRESS.0 as u32;
pub(super) const FAULTED_CONTEXTS_ONLY: u32 = Flag::CU_COREDUMP_FAULTED_CONTEXTS_ONLY.0 as u32;
pub(super) const LOG_ONLY: u32 = Flag::CU_COREDUMP_LOG_ONLY.0 as u32;
pub(super) const LIGHTWEIGHT: u32 = Flag::CU_COREDUMP_LIGHTWEIGHT_FLAGS.0 as u32;

/// The names of the flags in `CUDA_COREDUMP_GENERATION_FLAGS`.
const FLAG_NAMES: [(&str, u32); 11] = [
    (
        "skip_nonrelocated_elf_images",
        Flag::CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES.0 as u32,
    ),
    ("skip_global_memory", SKIP_GLOBAL),
    (
        "skip_shared_memory",
        Flag::CU_COREDUMP_SKIP_SHARED_MEMORY.0 as u32,
    ),
    (
        "skip_local_memory",
        Flag::CU_COREDUMP_SKIP_LOCAL_MEMORY.0 as u32,
    ),
    ("skip_abort", SKIP_ABORT),
    ("skip_constbank_memory", SKIP_CONSTANT),
    (
        "skip_tensor_memory",
        Flag::CU_COREDUMP_SKIP_TENSOR_MEMORY.0 as u32,
    ),
    ("gzip_compress", GZIP),
    ("faulted_contexts_only", FAULTED_CONTEXTS_ONLY),
    (
        "no_errbar_at_exit",
        Flag::CU_COREDUMP_NO_ERRBAR_AT_EXIT.0 as u32,
    ),
    ("log_only", LOG_ONLY),
];

/// The settings that apply to a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(super) enabled: bool,
    pub(super) user_trigger: bool,
    /// Empty for the default name.
    pub(super) file: Vec<u8>,
    /// Whether `file` is the name of a context, in which nothing was replaced yet.
    pub(super) file_is_raw: bool,
    /// Empty for the default name.
    pub(super) pipe: Vec<u8>,
    pub(super) flags: u32,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Bool(bool),
    Flags(u32),
    Name(Vec<u8>),
}

impl Settings {
    pub(super) fn get(&self, setting: Setting) -> Value {
        match setting {
            Setting::CU_COREDUMP_ENABLE_ON_EXCEPTION => Value::Bool(self.enabled),
            Setting::CU_COREDUMP_TRIGGER_HOST => Value::Bool(self.flags & SKIP_ABORT == 0),
            Setting::CU_COREDUMP_LIGHTWEIGHT => {
                // There is no tensor memory to skip.
                let all = LIGHTWEIGHT & !(Flag::CU_COREDUMP_SKIP_TENSOR_MEMORY.0 as u32);
                Value::Bool(self.flags & all == all)
            }
            Setting::CU_COREDUMP_ENABLE_USER_TRIGGER => Value::Bool(self.user_trigger),
            Setting::CU_COREDUMP_FILE => Value::Name(self.file.clone()),
            Setting::CU_COREDUMP_PIPE => Value::Name(self.pipe.clone()),
            _ => Value::Flags(self.flags),
        }
    }

    pub(super) fn set(&mut self, setting: Setting, value: Value) {
        match (setting, value) {
            (Setting::CU_COREDUMP_ENABLE_ON_EXCEPTION, Value::Bool(on)) => self.enabled = on,
            (Setting::CU_COREDUMP_TRIGGER_HOST, Value::Bool(on)) => {
                self.flags = self.flags & !SKIP_ABORT | if on { 0 } else { SKIP_ABORT };
            }
            (Setting::CU_COREDUMP_LIGHTWEIGHT, Value::Bool(on)) => {
                self.flags = self.flags & !LIGHTWEIGHT | if on { LIGHTWEIGHT } else { 0 };
            }
            (Setting::CU_COREDUMP_ENABLE_USER_TRIGGER, Value::Bool(on)) => self.user_trigger = on,
            (Setting::CU_COREDUMP_FILE, Value::Name(name)) => self.file = name,
            (Setting::CU_COREDUMP_PIPE, Value::Name(name)) => self.pipe = name,
            (_, Value::Flags(flags)) => self.flags = flags,
            _ => {}
        }
    }
}

/// What a context has set for itself.
#[derive(Default)]
pub(crate) struct ContextSettings(Mutex<Overrides>, AtomicBool);

#[derive(Default)]
struct Overrides {
    enabled: Option<bool>,
    file: Option<Vec<u8>>,
    flags: Option<u32>,
}

impl ContextSettings {
    /// The settings that apply to the context.
    pub(super) fn resolved(&self) -> Settings {
        let process = PROCESS.get_or_init(Process::default).0.lock();
        let own = self.0.lock();
        let mut all = process.settings.clone();
        // What the environment sets has precedence.
        let free = |setting: Setting| !process.is_locked(setting);
        if let Some(enabled) = own.enabled
            && free(Setting::CU_COREDUMP_ENABLE_ON_EXCEPTION)
        {
            all.enabled = enabled;
        }
        if let Some(file) = &own.file
            && free(Setting::CU_COREDUMP_FILE)
        {
            all.file.clone_from(file);
            all.file_is_raw = true;
        }
        if let Some(flags) = own.flags
            && free(Setting::CU_COREDUMP_GENERATION_FLAGS)
        {
            let environment = process.settings.flags & process.forced;
            all.flags = flags & !process.forced | environment;
        }
        all
    }

    /// Changes an attribute, without effect where the environment sets it.
    pub(super) fn set(&self, setting: Setting, value: Value) {
        let mut changed = self.resolved();
        changed.set(setting, value);
        let mut own = self.0.lock();
        match setting {
            Setting::CU_COREDUMP_ENABLE_ON_EXCEPTION => own.enabled = Some(changed.enabled),
            Setting::CU_COREDUMP_FILE => own.file = Some(changed.file),
            _ => own.flags = Some(changed.flags),
        }
    }

    /// Returns whether this is the first exception of the context. Several kernels may fail at the same time.
    pub(super) fn is_first_exception(&self) -> bool {
        !self.1.swap(true, Ordering::SeqCst)
    }

    /// The settings of a context that is activated again.
    pub(crate) fn reset(&self) {
        *self.0.lock() = Overrides::default();
        self.1.store(false, Ordering::SeqCst);
    }

    /// Turns on dumps on exceptions, for a context that was created with the flag for it.
    pub(crate) fn enable(&self) {
        self.0.lock().enabled = Some(true);
    }
}

/// The settings of the process.
struct Process(Mutex<ProcessState>);

struct ProcessState {
    settings: Settings,
    /// Attributes that the environment sets, by number.
    locked: u32,
    /// Flags that a variable of their own sets.
    forced: u32,
}

static PROCESS: OnceLock<Process> = OnceLock::new();

impl ProcessState {
    fn is_locked(&self, setting: Setting) -> bool {
        self.locked & 1 << setting.0 != 0
    }
}

impl Default for Process {
    /// The settings of the environment.
    fn default() -> Self {
        let variable = |name: &str| {
            let value = env::var_os(name)?.into_vec();
            (!value.is_empty()).then_some(value)
        };
        Process(Mutex::new(from_environment(variable)))
    }
}

/// Reads the variables; invalid ones are reported to standard error.
fn from_environment(variable: impl Fn(&str) -> Option<Vec<u8>>) -> ProcessState {
    let mut state = ProcessState {
        settings: Settings::default(),
        locked: 0,
        forced: 0,
    };
    let locked = &mut state.locked;
    let mut lock = |setting: Setting| *locked |= 1 << setting.0;
    let settings = &mut state.settings;
    if let Some(value) = variable("CUDA_ENABLE_COREDUMP_ON_EXCEPTION") {
        settings.enabled = value == b"1";
        lock(Setting::CU_COREDUMP_ENABLE_ON_EXCEPTION);
    }
    if let Some(value) = variable("CUDA_ENABLE_USER_TRIGGERED_COREDUMP") {
        settings.user_trigger = value == b"1";
        lock(Setting::CU_COREDUMP_ENABLE_USER_TRIGGER);
    }
    if let Some(list) = variable("CUDA_COREDUMP_GENERATION_FLAGS") {
        let list = String::from_utf8_lossy(&list).into_owned();
        for name in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            match FLAG_NAMES.iter().find(|(known, _)| *known == name) {
                Some((_, flag)) => settings.flags |= flag,
                None => {
                    let known: Vec<&str> = FLAG_NAMES.iter().map(|f| f.0).collect();
                    eprintln!(
                        "cupyrite: CUDA_COREDUMP_GENERATION_FLAGS: unknown flag '{name}' is ignored; expected {}",
                        known.join(", ")
                    );
                }
            }
        }
        lock(Setting::CU_COREDUMP_GENERATION_FLAGS);
        lock(Setting::CU_COREDUMP_LIGHTWEIGHT);
    }
    if variable("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP").is_some_and(|v| v == b"1") {
        settings.flags |= LIGHTWEIGHT;
    }
    if let Some(value) = variable("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION") {
        settings.set(
            Setting::CU_COREDUMP_TRIGGER_HOST,
            Value::Bool(value != b"0"),
        );
        state.forced |= SKIP_ABORT;
        lock(Setting::CU_COREDUMP_TRIGGER_HOST);
    }
    for (name, setting) in [
        ("CUDA_COREDUMP_FILE", Setting::CU_COREDUMP_FILE),
        ("CUDA_COREDUMP_PIPE", Setting::CU_COREDUMP_PIPE),
    ] {
        match variable(name) {
            Some(value) if value.len() < NAME_SIZE => {
                settings.set(setting, Value::Name(expand(&value)));
                lock(setting);
            }
            Some(value) => eprintln!(
                "cupyrite: {name} is ignored: it has {} characters, at most {} are allowed",
                value.len(),
                NAME_SIZE - 1
            ),
            None => {}
        }
    }
    state
}

/// The settings of the process.
pub(super) fn process() -> Settings {
    let process = PROCESS.get_or_init(Process::default).0.lock();
    process.settings.clone()
}

/// Changes an attribute of the process; false if the environment sets it.
pub(super) fn set_process(setting: Setting, value: Value) -> bool {
    let mut process = PROCESS.get_or_init(Process::default).0.lock();
    if process.is_locked(setting) {
        return false;
    }
    let value = match value {
        Value::Name(name) => Value::Name(expand(&name)),
        other => other,
    };
    let (before, forced) = (process.settings.flags, process.forced);
    process.settings.set(setting, value);
    process.settings.flags = process.settings.flags & !forced | before & forced;
    true
}

/// The host's name.
pub(super) fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: writes at most that many bytes to the array.
    let status = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|b| *b == 0).unwrap_or(0);
    match status {
        0 => String::from_utf8_lossy(&name[..end]).into_owned(),
        _ => String::new(),
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| d.as_secs())
}

/// Replaces `%h` by the host's name, `%p` by the process's id, `%t` by the time in seconds; before any other character,
/// `%` is removed.
pub(super) fn expand(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'h') => out.extend(host_name().bytes()),
            Some(b'p') => out.extend(std::process::id().to_string().bytes()),
            Some(b't') => out.extend(now().to_string().bytes()),
            Some(other) => out.push(*other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> ProcessState {
        from_environment(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_bytes().to_vec())
        })
    }

    #[test]
    fn names_are_expanded() {
        let (host, pid) = (host_name(), std::process::id());
        assert_eq!(
            expand(b"core.%h.%p.%c.%%.x%"),
            format!("core.{host}.{pid}.c.%.x").into_bytes()
        );
        let time = String::from_utf8(expand(b"%t")).unwrap();
        assert!(time.parse::<u64>().unwrap() > 1_700_000_000);
    }

    #[test]
    fn variables_set_and_lock() {
        let s = of(&[
            ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"),
            (
                "CUDA_COREDUMP_GENERATION_FLAGS",
                "skip_abort, nonsense,skip_global_memory,,",
            ),
            ("CUDA_COREDUMP_FILE", "x.%p"),
        ]);
        assert!(s.settings.enabled && !s.settings.user_trigger);
        assert_eq!(s.settings.flags, SKIP_ABORT | SKIP_GLOBAL);
        assert_eq!(
            s.settings.file,
            format!("x.{}", std::process::id()).into_bytes()
        );
        for (setting, locked) in [
            (Setting::CU_COREDUMP_ENABLE_ON_EXCEPTION, true),
            (Setting::CU_COREDUMP_GENERATION_FLAGS, true),
            (Setting::CU_COREDUMP_LIGHTWEIGHT, true),
            (Setting::CU_COREDUMP_TRIGGER_HOST, false),
            (Setting::CU_COREDUMP_FILE, true),
            (Setting::CU_COREDUMP_PIPE, false),
            (Setting::CU_COREDUMP_ENABLE_USER_TRIGGER, false),
        ] {
            assert_eq!(s.is_locked(setting), locked, "{}", setting.0);
        }
        let off = of(&[
            ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "yes"),
            ("CUDA_COREDUMP_FILE", &"a".repeat(1024)),
        ]);
        assert!(!off.settings.enabled && off.settings.file.is_empty());
        assert!(!off.is_locked(Setting::CU_COREDUMP_FILE));
        let light = of(&[
            ("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "1"),
            ("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION", "0"),
        ]);
        assert_eq!(light.settings.flags, LIGHTWEIGHT | SKIP_ABORT);
        assert!(light.is_locked(Setting::CU_COREDUMP_TRIGGER_HOST));
        assert!(!light.is_locked(Setting::CU_COREDUMP_LIGHTWEIGHT));
    }

    #[test]
    fn booleans_are_views_of_the_flags() {
        let mut s = Settings::default();
        s.set(Setting::CU_COREDUMP_LIGHTWEIGHT, Value::Bool(true));
        s.set(Setting::CU_COREDUMP_TRIGGER_HOST, Value::Bool(false));
        assert_eq!(
            s.get(Setting::CU_COREDUMP_GENERATION_FLAGS),
            Value::Flags(LIGHTWEIGHT | SKIP_ABORT)
        );
        s.set(
            Setting::CU_COREDUMP_GENERATION_FLAGS,
            Value::Flags(SKIP_GLOBAL),
        );
        assert_eq!(s.get(Setting::CU_COREDUMP_LIGHTWEIGHT), Value::Bool(false));
        assert_eq!(s.get(Setting::CU_COREDUMP_TRIGGER_HOST), Value::Bool(true));
    }
}
