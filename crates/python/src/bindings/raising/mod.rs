//! Call engine for libraries whose functions raise: they return values without a status, and an error status becomes an
//! exception.
//!
//! It extends the general engine ([`crate::bindings::call::general`]) with addresses and buffers with sizes, request
//! structs that Python does not see, arrays whose length is queried first, handles that must be alive
//! ([`live_handles`]), and calls that Ctrl-C can abandon ([`interruptible`]).

pub mod entry_points;
pub mod exit_guard;
pub mod interruptible;
pub mod live_handles;
pub mod short;

use std::ffi::{CStr, c_char, c_void};

use cupyrite_sys::loader::CudaLibrary;
use pyo3::ffi;

use crate::bindings::call::convert;
use crate::bindings::call::general;
use crate::bindings::call::general::{Arguments, Frame, address, int_from, low_bytes};
use crate::bindings::custom::nvml;
use crate::bindings::descriptor::{
    Conv, Function, HandleKind, Int, Len, MAX_REQUESTS, MAX_WORDS, Out, OutSize, Output, PodRule,
    Raising, Ret, Special, Store, Word,
};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::exceptions;
pub use crate::bindings::raising::entry_points::{
    by_words, call_named, dead, error_string, status_of,
};
use crate::bindings::raising::entry_points::{log, other_thread, size_named};
use crate::bindings::symbols;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types;

/// `NVML_ERROR_INSUFFICIENT_SIZE`. Only NVML has calls that query a size first.
pub const TOO_SMALL: i64 = 7;

/// Maximum number of attempts to read a list that grows between the calls.
const TRIES: usize = 8;

/// Calls a function that raises.
///
/// # Errors
///
/// An argument does not convert, the library or the function is missing, or C returns an error.
#[inline]
pub fn call(arguments: Arguments<'_>) -> R<Owned> {
    match arguments.f.raising {
        Some(raising) if raising.short => short::call(arguments),
        Some(raising) if raising.interruptible && interruptible::applies() => {
            interruptible::call(arguments, raising)
        }
        Some(raising) => Call::new().run(arguments, raising),
        None => Err(no_descriptor(arguments.f)),
    }
}

#[cold]
fn no_descriptor(f: &Function) -> Raised {
    let message = format!("the table has no description of {}()", f.name);
    errors::raise(ExceptionKind::System, &message)
}

/// `None`, one value or a tuple.
#[inline]
fn answer(count: usize, mut value: impl FnMut(usize) -> R<Owned>) -> R<Owned> {
    match count {
        0 => Ok(cpython::none()),
        1 => value(0),
        _ => {
            // SAFETY: the tuple is new and filled before it is published. `PyTuple_SetItem` steals each reference.
            unsafe {
                let tuple = Owned::take(ffi::PyTuple_New(count.cast_signed()))?;
                for index in 0..count {
                    let item = value(index)?;
                    ffi::PyTuple_SetItem(tuple.ptr(), index.cast_signed(), item.into_ptr());
                }
                Ok(tuple)
            }
        }
    }
}

/// Converts a result of one word.
#[inline]
fn word_result(kind: Out, word: u64) -> R<Owned> {
    match kind {
        Out::Int(kind) => int_from(word, kind),
        Out::Bool => cpython::from_bool(word & 0xFF != 0),
        _ => cpython::from_i64(word.cast_signed()),
    }
}

// ---------------------------------------------------------------------------------------------------------
// General route

/// The handle argument of a call.
#[derive(Clone, Copy)]
struct LiveHandle {
    kind: HandleKind,
    value: u64,
    /// Whether the call destroys it.
    destroys: bool,
}

/// State of one call. It must not move during the call: C gets addresses into it.
pub struct Call {
    /// Arguments and results.
    pub frame: Frame,
    /// The element count that C reads and writes.
    count: u64,
    /// Addresses of the request structs.
    requests: [u64; MAX_REQUESTS],
    live: Option<LiveHandle>,
    /// Output buffer whose required size another function reports: the parameter index, and the capacity if known.
    room: Option<(u8, Option<usize>)>,
}

/// Return value of a C call.
#[derive(Clone, Copy)]
pub struct Returned {
    /// The value.
    pub value: i64,
    /// `errno` right after the call.
    pub errno: i32,
}

impl Call {
    /// An empty call.
    #[inline(always)]
    pub fn new() -> Call {
        Call {
            frame: Frame::new(),
            count: 0,
            requests: [0; MAX_REQUESTS],
            live: None,
            room: None,
        }
    }

    /// Runs the whole call on this thread.
    fn run(mut self, arguments: Arguments<'_>, raising: &'static Raising) -> R<Owned> {
        let f = arguments.f;
        self.prepare(arguments, raising)?;
        let symbol = symbols::symbol(f)?;
        if f.library == CudaLibrary::Nvml {
            nvml::check_handle(arguments, self.frame.vals[0])?;
            if let [Output { kind, .. }] = f.results
                && let Out::Slice(_, len @ Len::Arg(_)) = *kind
                && self.frame.len(arguments, len) == 0
            {
                // No elements are requested. NVML returns an error; NVIDIA's package returns an empty array.
                return self.result(arguments, 0);
            }
        }
        if let [
            Output {
                kind: Out::Made(HandleKind::NvJitLink),
                ..
            },
        ] = f.results
        {
            for mut left in live_handles::left_to_this_thread() {
                let at = (&raw mut left).addr() as u64;
                // A failure leaks the linker; it must not fail the creation of the next one.
                let _ = call_named(f.library, "destroy", &[at])?;
            }
        }
        if let Some(sizing) = &raising.sizing {
            let status = self.twice(arguments, raising, symbol, sizing.count, sizing.arrays)?;
            self.check(arguments, raising, status, None)?;
            return self.finish(arguments, raising, status);
        }
        let words = self.words(arguments, &[]);
        let Some(live) = self.live else {
            let mut returned = exit_guard::invoke(f, symbol, words.as_ptr());
            symbols::check_interrupt()?;
            if f.special == Special::ListInStruct {
                returned = self.lists(f, symbol, &words, returned)?;
            }
            if returned.value == TOO_SMALL && nvml::fills_what_fits(f) {
                returned.value = 0;
            }
            self.check(arguments, raising, returned, None)?;
            return self.finish(arguments, raising, returned);
        };
        let (returned, log) = self.with_handle(arguments, live, symbol, &words)?;
        symbols::check_interrupt()?;
        self.check(arguments, raising, returned, log.as_deref())?;
        self.finish(arguments, raising, returned)
    }

    /// Converts the arguments and allocates storage for the results.
    ///
    /// # Errors
    ///
    /// An argument does not convert, or `MemoryError`.
    pub fn prepare(&mut self, arguments: Arguments<'_>, raising: &'static Raising) -> R<()> {
        self.frame.convert(arguments)?;
        for (index, param) in arguments.f.params.iter().enumerate() {
            match param.conv {
                Conv::LiveHandle(kind) | Conv::DestroyedHandle(kind) => {
                    self.live = Some(LiveHandle {
                        kind,
                        value: self.frame.vals[index],
                        destroys: matches!(param.conv, Conv::DestroyedHandle(_)),
                    });
                }
                Conv::BufferOut(size) => self.buffer_out(arguments, index, size)?,
                Conv::Pod(id, rule) => {
                    if let Some(obj) = arguments.get(index) {
                        self.frame.vals[index] = pod(arguments, index, obj, id, rule)?;
                    }
                }
                _ => {}
            }
            if let Conv::Buffer(_) | Conv::BufferOut(_) = param.conv
                && self.frame.vals[index] == 0
            {
                entry_points::check_null(arguments.f, param.name)?;
            }
        }
        for (index, result) in arguments.f.results.iter().enumerate() {
            self.frame.outs[index] = match result.kind {
                Out::Pod(id) => {
                    let (object, address) = types::new_pod(id, 1)?;
                    self.frame.objects.push((index, object));
                    address.addr() as u64
                }
                Out::Str(len) | Out::Slice(_, len) | Out::Pods(_, len)
                    if !matches!(len, Len::Counted) && raising.ret != Ret::Text =>
                {
                    let len = self.frame.len(arguments, len);
                    self.array(index, result.kind, len)?
                }
                _ => continue,
            };
        }
        for (index, request) in raising.requests.iter().enumerate() {
            let at = match request.store {
                Store::Scratch(size) => self.frame.keep.array(size as usize)?.addr() as u64,
                Store::Result(result) => self.frame.outs[result as usize],
                Store::Arg(arg) => self.frame.vals[arg as usize],
            };
            self.requests[index] = at;
            // The library refuses null itself.
            if at == 0 {
                continue;
            }
            let to = std::ptr::with_exposed_provenance_mut::<u8>(address(at));
            // SAFETY: the struct was allocated above, or belongs to the caller and has the class's size. Offsets lie
            // within it: `descriptor::verify` checks them for scratch structs, the generator for structs of a class.
            // On a little-endian machine the low bytes of a word are the value.
            unsafe {
                if request.version != 0 {
                    to.cast::<u32>().write_unaligned(request.version);
                }
                for (offset, kind, param) in request.inputs {
                    let value = self.frame.vals[*param as usize];
                    let from = (&raw const value).cast::<u8>();
                    std::ptr::copy_nonoverlapping(from, to.add(*offset as usize), kind.size());
                }
            }
        }
        Ok(())
    }

    /// Allocates storage for `len` elements of a result.
    fn array(&mut self, index: usize, kind: Out, len: u64) -> R<u64> {
        let len = usize::try_from(len).map_err(|_| errors::no_memory())?;
        Ok(match kind {
            Out::Str(_) => {
                // One byte more than C gets: the text stays NUL-terminated whatever C writes.
                let bytes = len.checked_add(1).ok_or_else(errors::no_memory)?;
                let at = self.frame.keep.array(bytes)?;
                if len == 0 { 0 } else { at.addr() as u64 }
            }
            Out::Slice(of, _) => {
                let bytes = len.checked_mul(of.size()).ok_or_else(errors::no_memory)?;
                self.frame.keep.array(bytes)?.addr() as u64
            }
            Out::Pods(id, _) => {
                let (object, address) = types::new_pod(id, len)?;
                self.frame.objects.retain(|(at, _)| *at != index);
                self.frame.objects.push((index, object));
                if len == 0 { 0 } else { address.addr() as u64 }
            }
            _ => 0,
        })
    }

    fn buffer_out(&mut self, arguments: Arguments<'_>, index: usize, size: OutSize) -> R<()> {
        let Some(obj) = arguments.get(index) else {
            return Ok(());
        };
        let site = arguments.site(index);
        let (at, room) = convert::buffer_out(obj, site, &mut self.frame.keep)?;
        self.frame.vals[index] = at;
        let (needed, name) = match size {
            OutSize::Arg(arg) => (
                self.frame.vals[arg as usize],
                arguments.f.params[arg as usize].name,
            ),
            OutSize::Const(size) => (u64::from(size), "the size"),
            // Queried once the handle is locked.
            OutSize::Call(_) => {
                self.room = u8::try_from(index).ok().map(|index| (index, room));
                return Ok(());
            }
            OutSize::Unknown => return Ok(()),
        };
        match room {
            Some(room) => general::check_room(Some(room), needed, site, name),
            None => convert::check_memory(at, needed, site),
        }
    }

    /// Packs C's arguments. Results whose index is in `without` are passed as null.
    pub fn words(&mut self, arguments: Arguments<'_>, without: &[u8]) -> [u64; MAX_WORDS] {
        let mut words = self.frame.words(arguments);
        for (word, from) in words.iter_mut().zip(arguments.f.words) {
            match *from {
                Word::Count => *word = (&raw mut self.count).addr() as u64,
                Word::Request(request) => *word = self.requests[request as usize],
                Word::Elements(arg) => {
                    let count = arguments.get(arg as usize).map(|obj| types::pod_count(obj));
                    *word = count.unwrap_or(0) as u64;
                }
                Word::Result(result) if without.contains(&result) => *word = 0,
                Word::Result(result) => {
                    if let Out::Str(_) | Out::Slice(..) | Out::Pod(_) | Out::Pods(..) =
                        arguments.f.results[result as usize].kind
                    {
                        *word = self.frame.outs[result as usize];
                    }
                }
                _ => {}
            }
        }
        words
    }

    /// Makes a call whose handle must be alive. Also returns the library's log if the call fails.
    fn with_handle(
        &mut self,
        arguments: Arguments<'_>,
        live: LiveHandle,
        symbol: *const c_void,
        words: &[u64; MAX_WORDS],
    ) -> R<(Returned, Option<Vec<u8>>)> {
        let f = arguments.f;
        let LiveHandle {
            kind,
            value,
            destroys,
        } = live;
        let Some(entry) = live_handles::find(kind, value) else {
            return Err(dead(f, kind, value));
        };
        let mut guard = None;
        if kind.exclusive() {
            guard = live_handles::lock(&entry);
            if guard.is_none() {
                return Err(dead(f, kind, value));
            }
        }
        if let Some(state) = guard.as_deref_mut()
            && state.elsewhere()
        {
            match (destroys, state.thread) {
                (true, Some(thread)) => {
                    live_handles::ended(kind, value, state);
                    live_handles::put_off(thread, value);
                    return Ok((Returned { value: 0, errno: 0 }, None));
                }
                _ => {
                    drop(guard);
                    return Err(other_thread(f));
                }
            }
        }
        if let Some((param, room)) = self.room
            && let Conv::BufferOut(OutSize::Call(name)) = f.params[param as usize].conv
        {
            let at = self.frame.vals[param as usize];
            match size_named(f.library, name, value) {
                Ok(Ok(size)) => {
                    // The library refuses null itself. A bare address has no known size: check that it is readable.
                    let fits = match room {
                        Some(room) => size <= room,
                        None => at == 0 || size == 0 || types::readable(address(at), size),
                    };
                    if !fits {
                        drop(guard);
                        let site = arguments.site(param as usize);
                        return Err(match room {
                            Some(room) => {
                                let message = format!(
                                    "{}: the buffer has {room} bytes, but {name}() says {size}",
                                    site.prefix()
                                );
                                errors::raise(ExceptionKind::Value, &message)
                            }
                            None => convert::no_memory_at(at, size as u64, site),
                        });
                    }
                }
                // The call itself would fail for the same reason as the size query: report the query's status.
                Ok(Err(status)) => {
                    let log = log(kind, value);
                    drop(guard);
                    return Ok((
                        Returned {
                            value: status,
                            errno: 0,
                        },
                        log,
                    ));
                }
                Err(Raised) => {
                    drop(guard);
                    return Err(Raised);
                }
            }
        }
        let mut words = *words;
        if let Some(state) = guard.as_deref_mut() {
            for (word, from) in words.iter_mut().zip(f.words) {
                if let Word::Arg(arg) = *from
                    && matches!(f.params[arg as usize].conv, Conv::Str)
                    && *word != 0
                {
                    let text = std::ptr::with_exposed_provenance::<c_char>(address(*word));
                    // SAFETY: `Conv::Str` converted the argument to text that ends with a nul; the argument keeps it
                    // alive.
                    let text = unsafe { CStr::from_ptr(text) }.to_owned();
                    *word = text.as_ptr().addr() as u64;
                    state.texts.push(text);
                }
            }
        }
        let returned = exit_guard::invoke(f, symbol, words.as_ptr());
        let log = if returned.value != 0 {
            log(kind, value)
        } else {
            None
        };
        if destroys && returned.value == 0 {
            match guard.as_deref_mut() {
                Some(state) => live_handles::ended(kind, value, state),
                None => live_handles::ended_unlocked(kind, value),
            }
        }
        if returned.value == 0
            && f.name == "complete"
            && let Some(state) = guard.as_deref_mut()
        {
            // Once linked, the linker no longer depends on memory of the thread that created it.
            state.thread = None;
        }
        drop(guard);
        Ok((returned, log))
    }

    /// Makes a call that queries the element count first.
    fn twice(
        &mut self,
        arguments: Arguments<'_>,
        raising: &'static Raising,
        symbol: *const c_void,
        kind: Int,
        arrays: &[u8],
    ) -> R<Returned> {
        let f = arguments.f;
        let words = self.words(arguments, arrays);
        let mut returned = exit_guard::invoke(f, symbol, words.as_ptr());
        symbols::check_interrupt()?;
        if returned.value == TOO_SMALL {
            returned.value = 0;
        }
        self.check(arguments, raising, returned, None)?;
        let mut count = low_bytes(self.count(), kind);
        for _ in 0..TRIES {
            for array in arrays {
                let index = *array as usize;
                self.frame.outs[index] = self.array(index, f.results[index].kind, count)?;
            }
            if count == 0 {
                break;
            }
            self.count = count;
            let words = self.words(arguments, &[]);
            returned = exit_guard::invoke(f, symbol, words.as_ptr());
            symbols::check_interrupt()?;
            let now = low_bytes(self.count(), kind);
            if returned.value == TOO_SMALL && now > count {
                // The list has grown since the query.
                count = now;
                continue;
            }
            if returned.value == 0 && now < count {
                self.shrink(arguments, arrays, now)?;
            }
            self.count = now.min(count);
            break;
        }
        if count == 0 {
            self.count = 0;
        }
        Ok(returned)
    }

    /// Repeats a call whose struct points at arrays: C wrote the element counts, and the arrays are allocated now.
    fn lists(
        &mut self,
        f: &'static Function,
        symbol: *const c_void,
        words: &[u64; MAX_WORDS],
        mut returned: Returned,
    ) -> R<Returned> {
        for turn in 0..TRIES {
            if returned.value != 0 && returned.value != TOO_SMALL {
                break;
            }
            let mut grew = false;
            for (_, object) in &self.frame.objects {
                grew |= types::provide_arrays(object.obj())?;
            }
            if !grew {
                if turn == 0 {
                    // The list is empty: NVML returns "too small" even then if no array is given.
                    returned.value = 0;
                }
                break;
            }
            returned = exit_guard::invoke(f, symbol, words.as_ptr());
            symbols::check_interrupt()?;
        }
        Ok(returned)
    }

    /// The element count that C wrote.
    fn count(&self) -> u64 {
        // SAFETY: the pointer comes from a field of `self`.
        unsafe { (&raw const self.count).read_volatile() }
    }

    /// Replaces arrays of structs with shorter ones: C filled fewer elements than it reported.
    fn shrink(&mut self, arguments: Arguments<'_>, arrays: &[u8], count: u64) -> R<()> {
        for array in arrays {
            let index = *array as usize;
            let Out::Pods(id, _) = arguments.f.results[index].kind else {
                continue;
            };
            let from = self.frame.outs[index];
            let old = self.frame.object(index)?;
            let to = self.array(index, arguments.f.results[index].kind, count)?;
            let bytes = address(count) * types::class_size(id);
            // SAFETY: both arrays hold at least `count` structs, and `old` keeps the source alive for this iteration.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    std::ptr::with_exposed_provenance::<u8>(address(from)),
                    std::ptr::with_exposed_provenance_mut::<u8>(address(to)),
                    bytes,
                );
            }
            self.frame.outs[index] = to;
            drop(old);
        }
        Ok(())
    }

    /// Raises if C returned an error.
    ///
    /// # Errors
    ///
    /// C returned an error.
    pub fn check(
        &self,
        arguments: Arguments<'_>,
        raising: &'static Raising,
        returned: Returned,
        log: Option<&[u8]>,
    ) -> R<()> {
        let library = arguments.f.library;
        match raising.ret {
            Ret::Status if returned.value != 0 => Err(exceptions::raise_status(
                library,
                returned.value,
                None,
                log,
                None,
            )),
            #[allow(clippy::cast_possible_truncation)] // two 32-bit values share the word
            Ret::CuFile if returned.value as i32 != 0 => {
                let status = i64::from(returned.value as i32);
                let driver = i64::from((returned.value >> 32) as i32);
                let driver = (status == CUDA_DRIVER_ERROR).then_some(driver);
                Err(exceptions::raise_status(
                    library, status, driver, None, None,
                ))
            }
            Ret::Size if returned.value == -1 => {
                // SAFETY: `errno` is thread-local, and the built-in class is immortal.
                unsafe {
                    *libc::__errno_location() = returned.errno;
                    ffi::PyErr_SetFromErrno(ffi::PyExc_OSError);
                }
                Err(Raised)
            }
            _ => Ok(()),
        }
    }

    /// Converts the results.
    ///
    /// # Errors
    ///
    /// `MemoryError`, or text that is not UTF-8.
    pub fn finish(
        &mut self,
        arguments: Arguments<'_>,
        raising: &'static Raising,
        returned: Returned,
    ) -> R<Owned> {
        let results = arguments.f.results;
        for (index, result) in results.iter().enumerate() {
            // Register new handles first, so that no later failure leaves one unregistered.
            if let Out::Made(kind) = result.kind {
                live_handles::made(kind, self.frame.outs[index]);
            }
        }
        for (index, request) in raising.requests.iter().enumerate() {
            let at = std::ptr::with_exposed_provenance::<u8>(address(self.requests[index]));
            if at.is_null() {
                continue;
            }
            for (offset, result) in request.outputs {
                let result = *result as usize;
                // SAFETY: the outputs lie within the struct, as the inputs do in `prepare`. `result` indexes `outs`.
                unsafe {
                    let from = at.add(*offset as usize);
                    let size = match results[result].kind {
                        Out::Int(kind) => kind.size(),
                        Out::Bool => 1,
                        Out::Str(_) => {
                            self.frame.outs[result] = from.addr() as u64;
                            continue;
                        }
                        _ => 8,
                    };
                    let to = self.frame.outs.as_mut_ptr().add(result);
                    to.write(0);
                    std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), size);
                    if let Out::Made(kind) = results[result].kind {
                        live_handles::made(kind, to.read());
                    }
                }
            }
        }
        answer(results.len(), |index| {
            if index == 0 {
                match raising.ret {
                    Ret::Size => return cpython::from_i64(returned.value),
                    Ret::Value(kind) => {
                        return int_from(returned.value.cast_unsigned(), kind);
                    }
                    Ret::Text => return text(returned.value.cast_unsigned()),
                    _ => {}
                }
            }
            self.result(arguments, index)
        })
    }

    fn result(&mut self, arguments: Arguments<'_>, index: usize) -> R<Owned> {
        let word = self.frame.outs[index];
        let kind = arguments.f.results[index].kind;
        let len = match kind {
            Out::Str(len) | Out::Slice(_, len) | Out::Pods(_, len) => match len {
                Len::Counted => self.count,
                len => self.frame.len(arguments, len),
            },
            _ => 0,
        };
        match kind {
            Out::Int(_) | Out::Bool | Out::Address | Out::Made(_) => word_result(kind, word),
            Out::Str(_) => utf8(word, address(len)),
            Out::Slice(of, _) => {
                let bytes = address(len) * of.size();
                let bytes: &[u8] = if bytes == 0 {
                    &[]
                } else {
                    let from = std::ptr::with_exposed_provenance(address(word));
                    // SAFETY: `array` allocated this many elements there, and the frame keeps them alive.
                    unsafe { std::slice::from_raw_parts(from, bytes) }
                };
                types::new_slice(of, bytes)
            }
            Out::Pod(_) | Out::Pods(..) => self.frame.object(index),
            _ => self.frame.result(arguments, index),
        }
    }
}

/// `CU_FILE_CUDA_DRIVER_ERROR`: the other half of cuFile's error is a `CUresult`.
const CUDA_DRIVER_ERROR: i64 = 5011;

/// Converts a struct argument to its address.
fn pod(
    arguments: Arguments<'_>,
    index: usize,
    obj: Obj<'_>,
    id: types::ClassId,
    rule: PodRule,
) -> R<u64> {
    let site = arguments.site(index);
    if rule != PodRule::Plain
        && let Some(address) = types::pod_ptr(obj, Some(id))
    {
        types::prepare_struct(obj)?;
        return Ok(address.addr() as u64);
    }
    let class = types::class_name(id);
    match rule {
        PodRule::Exact => Err(errors::wrong_type(site, class, obj)),
        PodRule::Address if obj.is_none() && arguments.f.library != CudaLibrary::Nvml => Ok(0),
        _ if obj.is_int() => {
            let at = convert::address(obj, site)?;
            if at == 0 && arguments.f.library == CudaLibrary::Nvml {
                // NVML dereferences the struct before it checks for null.
                let message = format!("{} must be {class}, not a null address", site.prefix());
                return Err(errors::raise(ExceptionKind::Value, &message));
            }
            convert::check_memory(at, types::class_size(id) as u64, site)?;
            Ok(at)
        }
        PodRule::Address => {
            let wanted = match arguments.f.library {
                CudaLibrary::Nvml => format!("{class} or its address"),
                _ => format!("{class}, its address or None"),
            };
            Err(errors::wrong_type(site, &wanted, obj))
        }
        PodRule::Plain => {
            let wanted = format!("the address of {class}");
            Err(errors::wrong_type(site, &wanted, obj))
        }
    }
}

/// Makes a `str` from at most `len` bytes of UTF-8, up to the first nul.
fn utf8(at: u64, len: usize) -> R<Owned> {
    if at == 0 || len == 0 {
        return cpython::from_str("");
    }
    let from = std::ptr::with_exposed_provenance::<u8>(address(at));
    // SAFETY: the caller allocated `len` bytes there.
    let bytes = unsafe { std::slice::from_raw_parts(from, len) };
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(len);
    cpython::from_utf8(&bytes[..end])
}

/// Makes a `str` from a constant C string, an empty one from null.
fn text(at: u64) -> R<Owned> {
    if at == 0 {
        return cpython::from_str("");
    }
    let from = std::ptr::with_exposed_provenance::<c_char>(address(at));
    // SAFETY: by the library's contract, a non-null result is a constant string.
    cpython::from_utf8(unsafe { CStr::from_ptr(from) }.to_bytes())
}
