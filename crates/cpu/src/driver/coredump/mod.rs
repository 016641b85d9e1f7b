//! Core dumps: the state of a device in a file, when a kernel fails or a user asks for it (CUDA driver API, "Coredump
//! Attributes Control API"; cuda-gdb, "GPU core dump support").
//!
//! The file is one of the CPU device: `cupyrite coredump FILE` prints it. `file` has the format.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cupyrite_engine::Fault;
use cupyrite_engine::memory::{Region, RegionKind};
use cupyrite_sys::driver::CUcoredumpSettings as Setting;
use parking_lot::Mutex;

use self::json::{Object, list};
use self::settings::{NAME_SIZE, Settings, Value, expand, process, set_process};
use crate::driver::context::{self, CONTEXTS, Context};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put, put_bytes};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::{self, refuse};
use crate::driver::memory::pointer;
use crate::driver::memory::space::space;

mod callbacks;
mod file;
mod json;
pub(crate) mod pipe;
mod settings;

pub(crate) use settings::ContextSettings;

/// The name without a setting, as driver 580 forms it.
const DEFAULT_NAME: &[u8] = b"core_%t_%h_%p.nvcudmp";
/// Version of the JSON text.
const FORMAT: &str = "cupyrite-coredump-1";

/// Held while a dump is written: one at a time.
static WRITING: Mutex<()> = Mutex::new(());

/// A failed launch.
pub(crate) struct FailedLaunch<'a> {
    pub(crate) fault: &'a Fault,
    pub(crate) status: Code,
    pub(crate) kernel: &'a str,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) dynamic_shared: u32,
    /// The parameter bank.
    pub(crate) parameters: &'a [u8],
}

/// Writes a dump of a failed launch if the settings ask for it, and then aborts the process unless they forbid it. The
/// caller has found that the context has not failed before, and holds a pin.
pub(crate) fn on_exception(context: &Arc<Context>, launch: &FailedLaunch<'_>) {
    let settings = context.coredump.resolved();
    if settings.enabled && context.coredump.is_first_exception() {
        dump(context, &settings, Some(launch));
    }
}

/// Enables dumps that a user triggers, unless the environment disables them.
pub(crate) fn enable_user_trigger() {
    set_process(Setting::CU_COREDUMP_ENABLE_USER_TRIGGER, Value::Bool(true));
}

/// Writes a dump because a user asked for it, and makes the contexts unusable, as a GPU's driver does.
fn on_request() {
    let mut active = CONTEXTS.pick(|c| c.is_active());
    // That which was created first.
    active.sort_by_key(|c| c.id);
    let Some(first) = active.first() else {
        return;
    };
    let settings = first.coredump.resolved();
    {
        let _pin = space().pin();
        dump(first, &settings, None);
    }
    for context in active {
        context.fail(Code::LAUNCH_FAILED);
    }
}

fn dump(context: &Arc<Context>, settings: &Settings, launch: Option<&FailedLaunch<'_>>) {
    let _one = WRITING.lock();
    callbacks::START.call(context.device);
    if settings.flags & settings::LOG_ONLY == 0 {
        report(write(context, settings, launch));
    }
    callbacks::COMPLETE.call(context.device);
    if settings.flags & settings::SKIP_ABORT == 0 {
        context.printf.flush();
        eprintln!(
            "cupyrite: the process is aborted after the core dump; CUDA_COREDUMP_GENERATION_FLAGS=skip_abort prevents that"
        );
        std::process::abort();
    }
}

/// Prints and logs the outcome.
fn report(outcome: Result<(PathBuf, u64), (PathBuf, std::io::Error)>) {
    match outcome {
        Ok((path, bytes)) => {
            let path = path.display();
            eprintln!(
                "cupyrite: core dump of {bytes} bytes: {path}; print it with: cupyrite coredump {path}"
            );
        }
        Err((path, error)) => {
            let text = format!(
                "the core dump {} cannot be written: {error}",
                path.display()
            );
            eprintln!("cupyrite: {text}");
            logs::message(logs::Level::Error, &text);
        }
    }
}

/// Writes the file.
fn write(
    context: &Arc<Context>,
    settings: &Settings,
    launch: Option<&FailedLaunch<'_>>,
) -> Result<(PathBuf, u64), (PathBuf, std::io::Error)> {
    let mut name = match settings.file.as_slice() {
        [] => expand(DEFAULT_NAME),
        name if settings.file_is_raw => expand(name),
        name => name.to_vec(),
    };
    let compressed = settings.flags & settings::GZIP != 0;
    if compressed && !name.ends_with(b".gz") {
        name.extend(b".gz");
    }
    let path = Path::new(std::ffi::OsStr::from_bytes(&name)).to_owned();
    let (memory, left_out) = memory(context, settings.flags);
    let json = describe(context, settings, launch, &memory, left_out);
    match file::write(&path, &json, &memory, compressed) {
        Ok(bytes) => Ok((path, bytes)),
        Err(error) => Err((path, error)),
    }
}

/// The memory that the flags ask for, and the number of ranges that the file has no room for.
fn memory(context: &Context, flags: u32) -> (Vec<Region>, usize) {
    let wanted = |region: &Region| {
        let skipped = match region.kind {
            RegionKind::Const => settings::SKIP_CONSTANT,
            RegionKind::Device | RegionKind::Managed | RegionKind::Global | RegionKind::Virtual => {
                settings::SKIP_GLOBAL
            }
            // Other programs may truncate the objects of external memory while they are read.
            RegionKind::External
            | RegionKind::Host
            | RegionKind::Registered
            | RegionKind::Graphics
            | RegionKind::Internal => return false,
        };
        let other = flags & settings::FAULTED_CONTEXTS_ONLY != 0
            && region.owner != 0
            && region.owner != context.id;
        flags & skipped == 0 && !other
    };
    let mut all = space().regions();
    all.retain(wanted);
    let left_out = all.len().saturating_sub(file::MOST_SEGMENTS);
    all.truncate(file::MOST_SEGMENTS);
    (all, left_out)
}

fn triple(of: [u32; 3]) -> String {
    list(of.map(|n| n.to_string()))
}

/// The JSON text.
fn describe(
    context: &Context,
    settings: &Settings,
    launch: Option<&FailedLaunch<'_>>,
    memory: &[Region],
    left_out: usize,
) -> String {
    let mut text = Object::default();
    text.text("format", FORMAT)
        .text(
            "reason",
            if launch.is_some() {
                "exception"
            } else {
                "user"
            },
        )
        .text("cupyrite", env!("CARGO_PKG_VERSION"))
        .raw("time", settings::now())
        .text("host", &settings::host_name())
        .raw("pid", std::process::id())
        .raw("flags", settings.flags);
    if let Ok(device) = device::by_ordinal(context.device) {
        let (major, minor) = device.capability;
        let mut object = Object::default();
        object
            .raw("ordinal", device.ordinal)
            .text("name", &device.name)
            .raw(
                "compute_capability",
                list([major, minor].map(|n| n.to_string())),
            );
        text.raw("device", object.end());
    }
    if let Some(launch) = launch {
        text.raw("fault", fault(launch));
        let mut object = Object::default();
        object
            .text("kernel", launch.kernel)
            .raw("grid", triple(launch.grid))
            .raw("block", triple(launch.block));
        if let Some(cluster) = launch.cluster {
            object.raw("cluster", triple(cluster));
        }
        object.raw("dynamic_shared_bytes", launch.dynamic_shared);
        if settings.flags & settings::SKIP_CONSTANT == 0 {
            let hex: String = launch
                .parameters
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            object.text("parameters", &hex);
        }
        text.raw("launch", object.end());
    }
    let ranges = memory.iter().map(|region| {
        let mut object = Object::default();
        object
            .raw("address", region.base)
            .raw("size", region.size)
            .text("kind", &format!("{:?}", region.kind).to_lowercase())
            .raw("device", pointer::device_of(region));
        object.end()
    });
    text.raw("memory", list(ranges));
    if left_out > 0 {
        text.raw("memory_ranges_left_out", left_out);
    }
    text.end()
}

fn fault(launch: &FailedLaunch<'_>) -> String {
    let mut object = Object::default();
    object
        .raw("status", launch.status.0)
        .text("name", launch.status.name());
    if let Some(place) = &launch.fault.place {
        object
            .raw("block", triple(place.at.block))
            .raw("thread", triple(place.at.thread))
            .text("function", &place.function)
            .text("instruction", &place.opcode)
            .raw("ptx_line", place.line);
        if let Some(source) = &place.source {
            object.text("source", source);
        }
        if let Some(address) = place.address {
            object.raw("address", address);
        }
    }
    object.text("report", launch.fault.report.trim_end());
    object.end()
}

/// The attribute of this number; contexts have no pipe.
fn attribute(number: u32, of_process: bool) -> Res<Setting> {
    let setting = Setting(number);
    let known = match setting {
        Setting::CU_COREDUMP_ENABLE_USER_TRIGGER | Setting::CU_COREDUMP_PIPE => of_process,
        _ => (1..Setting::CU_COREDUMP_MAX.0).contains(&number),
    };
    if known {
        return Ok(setting);
    }
    refuse(Code::INVALID_VALUE, || match number {
        4 | 6 => format!("attrib {number}: the attribute cannot be used for a context"),
        _ => format!("attrib {number}: expected a CUcoredumpSettings"),
    })
}

/// Size of an attribute's value in bytes.
fn size_of(setting: Setting) -> u64 {
    match setting {
        Setting::CU_COREDUMP_FILE | Setting::CU_COREDUMP_PIPE => NAME_SIZE as u64,
        Setting::CU_COREDUMP_GENERATION_FLAGS => 4,
        _ => 1,
    }
}

/// Refuses a size other than that of a boolean or of flags. A name has any size that `most` allows.
fn check_size(setting: Setting, size: u64, most: u64) -> Res {
    let wanted = size_of(setting);
    let fits = match wanted {
        1 | 4 => size == wanted,
        _ => size <= most,
    };
    if fits {
        return Ok(());
    }
    refuse(Code::INVALID_VALUE, || {
        format!(
            "*size {size}: a value of attribute {} has {wanted} bytes",
            setting.0
        )
    })
}

fn get_attribute(settings: &Settings, setting: Setting, value: u64, size: u64) -> Res {
    non_null(size)?;
    if value == 0 {
        return put(size, size_of(setting));
    }
    let room = get::<u64>(size)?;
    check_size(setting, room, u64::MAX)?;
    match settings.get(setting) {
        Value::Bool(on) => put(value, u8::from(on)),
        Value::Flags(flags) => put(value, flags),
        Value::Name(mut name) => {
            let room = room.min(NAME_SIZE as u64) as usize;
            name.truncate(room.saturating_sub(1));
            name.resize(room, 0);
            put_bytes(value, &name)
        }
    }
}

/// The value that the caller passes; `None` if it asks for the size.
fn passed(setting: Setting, value: u64, size: u64) -> Res<Option<Value>> {
    non_null(size)?;
    if value == 0 {
        put(size, size_of(setting))?;
        return Ok(None);
    }
    let len = get::<u64>(size)?;
    check_size(setting, len, NAME_SIZE as u64)?;
    Ok(Some(match size_of(setting) {
        1 => Value::Bool(get::<u8>(value)? != 0),
        4 => Value::Flags(get(value)?),
        _ => {
            let mut name = get_array::<u8>(value, len as usize)?;
            let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
            name.truncate(end.min(NAME_SIZE - 1));
            Value::Name(name)
        }
    }))
}

mod of_process {
    use super::*;

    // Usable before `cuInit`, as on GPUs.
    driver_entry_points! { bare;
        fn get_global "cuCoredumpGetAttributeGlobal" (number: u32, value: u64, size: u64) {
            get_attribute(&process(), attribute(number, true)?, value, size)
        }
        fn set_global "cuCoredumpSetAttributeGlobal" (number: u32, value: u64, size: u64) {
            let setting = attribute(number, true)?;
            let Some(value) = passed(setting, value, size)? else {
                return Ok(());
            };
            if setting == Setting::CU_COREDUMP_PIPE && pipe::is_open() {
                return refuse(Code::NOT_SUPPORTED, || "CU_COREDUMP_PIPE: the pipe is open already".into());
            }
            if !set_process(setting, value) {
                return refuse(Code::INVALID_VALUE, || {
                    format!("attrib {number}: an environment variable sets the attribute, and has precedence")
                });
            }
            if setting == Setting::CU_COREDUMP_ENABLE_USER_TRIGGER && !CONTEXTS.pick(|c| c.is_active()).is_empty() {
                pipe::listen();
            }
            Ok(())
        }
    }
}
/// Entry points that do not need `cuInit`.
pub(crate) use of_process::ENTRIES as PROCESS_ENTRIES;

driver_entry_points! {
    fn get_of_context "cuCoredumpGetAttribute" (number: u32, value: u64, size: u64) {
        let setting = attribute(number, false)?;
        let context = context::current_to_wait()?;
        get_attribute(&context.context.coredump.resolved(), setting, value, size)
    }
    fn set_of_context "cuCoredumpSetAttribute" (number: u32, value: u64, size: u64) {
        let setting = attribute(number, false)?;
        let context = context::current_to_wait()?;
        if let Some(value) = passed(setting, value, size)? {
            context.context.coredump.set(setting, value);
        }
        Ok(())
    }
    fn register_start "cuCoredumpRegisterStartCallback" (function: u64, data: u64, out: u64) {
        callbacks::START.register(function, data, out)
    }
    fn register_complete "cuCoredumpRegisterCompleteCallback" (function: u64, data: u64, out: u64) {
        callbacks::COMPLETE.register(function, data, out)
    }
    fn deregister_start "cuCoredumpDeregisterStartCallback" (handle: u64) {
        callbacks::START.deregister(handle)
    }
    fn deregister_complete "cuCoredumpDeregisterCompleteCallback" (handle: u64) {
        callbacks::COMPLETE.deregister(handle)
    }
}
