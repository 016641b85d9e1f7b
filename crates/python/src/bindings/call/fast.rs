//! Fast route: calls whose arguments are exact integers, handles of this package, enum members and kernel arguments. It
//! serves functions that return a status in a tuple and functions that raise.
//!
//! Nearly every call in a hot loop is of this kind. A [`FastRoute`] is built once, when the function object is created, and
//! is stored in the object, next to the pointer that the interpreter has just read. The descriptor, in contrast, spans a
//! dozen cache lines, which a long driver call evicts. The fast route refuses all other calls (defaults, foreign objects,
//! values that do not fit) before it has any side effect; they take the general route. Keyword arguments are bound first,
//! by the general route, which then tries the fast one.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite_sys::loader::{self, Backend, CudaLibrary};
use cupyrite_sys::{driver, runtime, waits};
use pyo3::ffi;

use crate::bindings::call::convert::Keep;
use crate::bindings::call::{general, results};
use crate::bindings::custom::{nvml, nvrtc};
use crate::bindings::descriptor::{Conv, Function, HandleKind, Int, Out, Ret, Thunk, Word};
use crate::bindings::errors::Site;
use crate::bindings::kernel_parameters::Packer;
use crate::bindings::raising::{exit_guard, handle_calls};
use crate::bindings::{raising, symbols};
use crate::cpython;
use crate::cpython::errors::guard_or;
use crate::cpython::internals::reference_count;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types;
use crate::types::{ClassId, EnumId};

/// Largest number of C parameters on the fast route.
const WORDS: usize = 11;
/// Largest number of results on the fast route.
const RESULTS: usize = 4;
/// A number of arguments that no call has.
const UNUSABLE: u8 = u8::MAX;

/// Source of a C argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum WordSource {
    /// Zero.
    Nothing,
    /// The address of the result with this index.
    Result,
    /// A handle that is exactly of the class, an `int`, or `None`. 64 bits in C.
    Handle,
    /// The same, a program that NVRTC can read.
    Program,
    /// An `int` that is the address of such a program.
    ProgramAddress,
    /// The same, with 32 bits, signed (`CUdevice`).
    Handle32,
    /// An `int` or a member of the enum.
    Enum,
    /// An `int` in the range of the unsigned C type; [`Step::id`] is its number of bits.
    Unsigned,
    /// The same, signed.
    Signed,
    /// An address as an `int`, or `None`.
    Address,
    /// The text of an exact `bytes`, which the caller keeps alive.
    Bytes,
    /// Kernel arguments.
    Kernel,
}

/// One C argument.
#[derive(Clone, Copy)]
struct Step {
    from: WordSource,
    /// Index of the Python argument or of the result.
    index: u8,
    /// The handle's class, the enum, or the integer's number of bits.
    id: u16,
}

/// What a call returns beside the status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Nothing,
    /// One handle of 64 bits.
    Handle(ClassId),
    /// One immutable value. The previous answer is returned again for the same value.
    Value,
    /// Other results of one word each.
    Words,
}

/// A function's fast route, prepared from its descriptor. The fields that every call reads come first.
#[repr(C)]
pub struct FastRoute {
    /// The symbol; null before the first call, and always for libraries whose symbols can be resolved again.
    address: AtomicPtr<c_void>,
    thunk: Thunk,
    /// Number of Python arguments; [`UNUSABLE`] if the function has no fast route.
    arguments: u8,
    /// Number of C arguments.
    words: u8,
    /// Whether a step packs kernel arguments.
    packs: bool,
    /// Whether nothing but the GIL is needed around the C call: [`FastRoute::invoke_guarded`]. Known with the address.
    plain: bool,
    keep_gil: bool,
    /// Whether the call launches a graph, whose kernels may print: [`waits::note`].
    launches_graph: bool,
    /// Whether an error status raises. The answer is then the result without a status.
    raises: bool,
    /// The kind of the first argument, a handle that must be live.
    live: Option<HandleKind>,
    library: CudaLibrary,
    /// Whether a signal handler can interrupt the call with an exception: only on the CPU device.
    interruptible: bool,
    answer: Answer,
    /// The previous answer: its word ([`Answer::Value`]) or the address of the handle object ([`Answer::Handle`]).
    last_word: u64,
    /// The answer made for it, owned, or null: a tuple, or the result of a function that raises. For [`Answer::Nothing`]:
    /// the answer for success, borrowed.
    last: *mut ffi::PyObject,
    steps: [Step; WORDS],
}

impl FastRoute {
    /// The fast route of a function; marked unusable if the function has none.
    pub fn new(f: &'static Function) -> FastRoute {
        let mut route = FastRoute {
            thunk: f.thunk,
            address: AtomicPtr::new(std::ptr::null_mut()),
            arguments: 0,
            words: 0,
            packs: false,
            plain: false,
            keep_gil: f.keep_gil,
            launches_graph: launches_graph(f),
            raises: f.raising.is_some(),
            live: None,
            library: f.library(),
            interruptible: true,
            answer: Answer::Nothing,
            last_word: 0,
            last: std::ptr::null_mut(),
            steps: [Step {
                from: WordSource::Nothing,
                index: 0,
                id: 0,
            }; WORDS],
        };
        if route.fill(f).is_none() {
            route.arguments = UNUSABLE;
        }
        route
    }

    fn fill(&mut self, f: &'static Function) -> Option<()> {
        if !cpython::GIL || f.hook.is_some() || nvml::dereferences_handle(f) {
            return None;
        }
        if let Some(raising) = f.raising {
            let simple = raising.ret == Ret::Status
                && raising.sizing.is_none()
                && raising.requests.is_empty();
            if !simple {
                return None;
            }
        }
        if f.words.len() > WORDS || f.results.len() > RESULTS {
            return None;
        }
        self.arguments = u8::try_from(f.params.len())
            .ok()
            .filter(|count| *count != UNUSABLE)?;
        self.words = u8::try_from(f.words.len()).ok()?;
        let mut seen = 0u32;
        for (step, word) in self.steps.iter_mut().zip(f.words) {
            let (from, index, id) = match *word {
                Word::Null => (WordSource::Nothing, 0, 0),
                Word::Result(result) => (WordSource::Result, result, 0),
                Word::Arg(arg) => {
                    seen |= 1 << arg;
                    let (from, id) = match f.params[arg as usize].conv {
                        Conv::Handle(ClassId(id), Int::U64)
                            if f.library() == CudaLibrary::Nvrtc =>
                        {
                            (WordSource::Program, id)
                        }
                        Conv::Handle(ClassId(id), Int::U64) => (WordSource::Handle, id),
                        Conv::Handle(ClassId(id), Int::I32) => (WordSource::Handle32, id),
                        Conv::Enum(EnumId(id)) => (WordSource::Enum, id),
                        Conv::Int(kind) | Conv::IntOrNone(kind) => integer(kind),
                        // An address of text is read before the call, which is the general route's work.
                        Conv::VoidPtr(_) | Conv::VoidPtrPtr | Conv::Writable(_) => {
                            (WordSource::Address, 0)
                        }
                        Conv::Address if nvrtc::is_program_parameter(f, arg as usize) => {
                            (WordSource::ProgramAddress, 0)
                        }
                        Conv::Address => integer(Int::I64),
                        Conv::LiveHandle(kind)
                            if arg == 0
                                && matches!(f.words[0], Word::Arg(0))
                                && handle_calls::allows_fast_route(f) =>
                        {
                            self.live = Some(kind);
                            integer(Int::I64)
                        }
                        Conv::Bytes => (WordSource::Bytes, 0),
                        Conv::KernelParams if !self.packs => {
                            self.packs = true;
                            (WordSource::Kernel, 0)
                        }
                        _ => return None,
                    };
                    (from, arg, id)
                }
                _ => return None,
            };
            *step = Step { from, index, id };
        }
        // A parameter that no C argument uses would not be converted or checked.
        if seen.count_ones() as usize != f.params.len() {
            return None;
        }
        self.answer = match f.results {
            [] => Answer::Nothing,
            [one] => match one.kind {
                Out::Handle(id, Int::U64) => Answer::Handle(id),
                Out::Int(_) | Out::Enum(_) | Out::VoidPtr | Out::Address | Out::Bool => {
                    Answer::Value
                }
                // C may write up to four floats into `outs` (`cuTexRefGetBorderColor`).
                Out::F32 | Out::F64 => Answer::Value,
                Out::CString | Out::CBytes | Out::CText | Out::Handle(..) => Answer::Words,
                _ => return None,
            },
            several => {
                let words = several.iter().all(|result| {
                    matches!(
                        result.kind,
                        Out::Int(_)
                            | Out::Enum(_)
                            | Out::Handle(..)
                            | Out::VoidPtr
                            | Out::CString
                            | Out::CBytes
                            | Out::Address
                            | Out::Bool
                            | Out::F32
                    )
                });
                if !words {
                    return None;
                }
                Answer::Words
            }
        };
        let outs = f.words.iter().filter(|w| matches!(w, Word::Result(_)));
        (outs.count() == f.results.len()).then_some(())
    }

    /// Calls `f` on the fast route. `None`, without any effect, if the call needs the general route.
    ///
    /// # Safety
    ///
    /// `this` is the fast route of `f`, in a live function object. `args` holds `nargs` live objects. The thread is attached.
    #[inline(always)]
    pub unsafe fn call(
        this: *mut FastRoute,
        f: &'static Function,
        args: *const *mut ffi::PyObject,
        nargs: usize,
    ) -> Option<R<Owned>> {
        // SAFETY: as promised by the caller. Only the attached thread accesses the route: a build without a GIL has no
        // usable one (`fill`). The caller's reference to the function keeps the route alive during the C call.
        unsafe {
            if nargs != (*this).arguments as usize {
                return None;
            }
            let mut outs = [0u64; RESULTS];
            let mut words = [const { MaybeUninit::<u64>::uninit() }; WORDS];
            let (outs, words) = (outs.as_mut_ptr(), words.as_mut_ptr().cast());
            if !(*this).convert(args, outs, words) {
                return None;
            }
            Some(if (*this).packs {
                FastRoute::pack_and_finish(this, f, args, outs, words)
            } else {
                FastRoute::finish(this, f, outs, words)
            })
        }
    }

    /// Whether the function has a fast route.
    #[inline(always)]
    pub fn is_usable(&self) -> bool {
        self.arguments != UNUSABLE
    }

    /// Calls C with the words and returns the answer.
    ///
    /// # Safety
    ///
    /// `this` is the fast route of `f`, usable, in a live function object. `words` has a word for each C parameter, and the
    /// memory that these refer to is live; `outs` has a word for each result, whose address is among `words`. The thread is
    /// attached.
    #[inline(always)]
    pub unsafe fn finish(
        this: *mut FastRoute,
        f: &'static Function,
        outs: *const u64,
        words: *const u64,
    ) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`, which converted the words.
        unsafe {
            let status = FastRoute::invoke(this, f, words)?;
            FastRoute::answer(this, f, status, outs)
        }
    }

    /// Packs the kernel arguments, then [`FastRoute::finish`]. Separate from the other calls, which need no room for kernel
    /// arguments in their stack frame. Packing runs after all conversions: it may run user code, which must not run
    /// again on the general route.
    #[inline(never)]
    unsafe fn pack_and_finish(
        this: *mut FastRoute,
        f: &'static Function,
        args: *const *mut ffi::PyObject,
        outs: *const u64,
        words: *mut u64,
    ) -> R<Owned> {
        guard_or(Err(Raised), || {
            let mut packer = Packer::new();
            let mut keep = Keep::new();
            // SAFETY: as promised by the caller of `call`; `fill` checked the indices.
            unsafe {
                let steps = (*this).steps.iter().take((*this).words as usize);
                for (at, step) in steps.enumerate() {
                    if step.from == WordSource::Kernel {
                        let site = Site {
                            func: f.name,
                            param: f.params[step.index as usize].name,
                        };
                        let obj = Obj::new(*args.add(step.index as usize));
                        words.add(at).write(packer.pack(obj, site, &mut keep)?);
                    }
                }
                FastRoute::finish(this, f, outs, words)
            }
        })
    }

    /// Converts the arguments to words. False if an argument needs the general route. Runs no user code and leaves no
    /// exception set.
    #[inline(always)]
    unsafe fn convert(
        &self,
        args: *const *mut ffi::PyObject,
        outs: *mut u64,
        words: *mut u64,
    ) -> bool {
        for at in 0..self.words as usize {
            // SAFETY: a route has at most `WORDS` steps; each index is within the arguments or results (`fill`).
            let word = unsafe {
                let step = *self.steps.get_unchecked(at);
                let index = step.index as usize;
                match step.from {
                    WordSource::Nothing | WordSource::Kernel => 0,
                    WordSource::Result => outs.add(index).addr() as u64,
                    from => match value(Obj::new(*args.add(index)), from, step.id) {
                        Some(value) => value,
                        None => return false,
                    },
                }
            };
            // SAFETY: `words` has room for `WORDS` words (`call`).
            unsafe { words.add(at).write(word) };
        }
        true
    }

    #[inline(always)]
    unsafe fn invoke(this: *mut FastRoute, f: &'static Function, words: *const u64) -> R<i64> {
        // SAFETY: the words match this function's C signature, and the symbol is that function (`FastRoute::fill`). The memory
        // they point to is kept alive by the caller. The thread is attached again before Python is used.
        unsafe {
            let mut address = (*this).address.load(Ordering::Relaxed).cast_const();
            if address.is_null() {
                address = FastRoute::resolve(this, f)?;
            }
            if !(*this).plain {
                return FastRoute::invoke_guarded(this, f, address, words);
            }
            let thunk = (*this).thunk;
            Ok(if (*this).keep_gil && symbols::keeps_gil() {
                thunk(address, words)
            } else {
                cpython::detached(|| thunk(address, words))
            })
        }
    }

    /// As [`FastRoute::invoke`], for handles that must be live, calls that delay process exit, launches of graphs, and calls
    /// that a signal handler can interrupt.
    #[inline(never)]
    unsafe fn invoke_guarded(
        this: *mut FastRoute,
        f: &'static Function,
        address: *const c_void,
        words: *const u64,
    ) -> R<i64> {
        // SAFETY: as promised by the caller of `invoke`, whose symbol this is.
        unsafe {
            let status = if let Some(kind) = (*this).live {
                handle_calls::invoke_words(f, kind, words.read(), address, words)?
            } else if exit_guard::covers((*this).library) {
                exit_guard::invoke(f, address, words).value
            } else {
                general::invoke_at(f, address, words)
            };
            if (*this).launches_graph {
                waits::note();
            }
            if (*this).interruptible {
                symbols::check_interrupt()?;
            }
            Ok(status)
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn resolve(this: *mut FastRoute, f: &'static Function) -> R<*const c_void> {
        let address = symbols::symbol(f)?;
        // SAFETY: as promised by the caller of `call`.
        unsafe {
            (*this).interruptible = loader::chosen_backend() != Some(Backend::Gpu);
            (*this).plain = !(*this).interruptible
                && !(*this).launches_graph
                && (*this).live.is_none()
                && !exit_guard::covers((*this).library);
            if matches!(f.library(), CudaLibrary::Driver | CudaLibrary::Runtime) {
                (*this).address.store(address.cast_mut(), Ordering::Relaxed);
            }
        }
        Ok(address)
    }

    /// The result of a call with this status and these words of results.
    ///
    /// # Errors
    ///
    /// Any exception that a conversion raises, or the status of a function that raises.
    ///
    /// # Safety
    ///
    /// As [`FastRoute::finish`].
    #[inline(always)]
    pub unsafe fn answer(
        this: *mut FastRoute,
        f: &'static Function,
        status: i64,
        outs: *const u64,
    ) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`; `outs` has a word for each result.
        unsafe {
            let answer = (*this).answer;
            if answer == Answer::Nothing {
                let last = (*this).last;
                if status == 0 && !last.is_null() {
                    return Ok(Obj::new(last).owned());
                }
                return FastRoute::status(this, f, status);
            }
            if status != 0 && (*this).raises {
                return Err(raising::status_error(f, status));
            }
            if status == 0 {
                let word = outs.read();
                match answer {
                    Answer::Value => return FastRoute::value(this, f, word),
                    Answer::Handle(id) => return FastRoute::handle(this, id, word),
                    Answer::Nothing | Answer::Words => {}
                }
            }
            results::answer(f, status, |index| {
                results::word_result(f.results[index].kind, outs.add(index).read())
            })
        }
    }

    #[inline(never)]
    unsafe fn status(this: *mut FastRoute, f: &'static Function, status: i64) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`. `None` and the tuple for success are never freed, so the route may
        // borrow them.
        unsafe {
            let answer = results::answer(f, status, |_| Ok(cpython::none()))?;
            if status == 0 {
                (*this).last = answer.ptr();
            }
            Ok(answer)
        }
    }

    /// (success, handle), or the handle. Reuses the previous tuple and its handle object if nothing else refers to them: a
    /// program that creates and drops events in a loop allocates one of each.
    #[inline(always)]
    unsafe fn handle(this: *mut FastRoute, id: ClassId, word: u64) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`. The route owns a reference to the answer: to the handle at `last_word`,
        // or to an immutable tuple that owns one to it. The handle is an exact instance of its class.
        unsafe {
            let last = (*this).last;
            if !last.is_null()
                && reference_count::is_unshared(last)
                && types::renew_own_handle(Obj::new((*this).last_word as *mut ffi::PyObject), word)
            {
                return Ok(Obj::new(last).owned());
            }
            FastRoute::new_handle(this, id, word)
        }
    }

    #[inline(never)]
    unsafe fn new_handle(this: *mut FastRoute, id: ClassId, word: u64) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`.
        unsafe {
            let handle = types::new_own_handle(id, word)?;
            let address = handle.ptr();
            FastRoute::memoize(this, address as u64, handle)
        }
    }

    /// (success, value), or the value, cached under `word`. Reuses the previous tuple if nothing else refers to it.
    unsafe fn memoize(this: *mut FastRoute, word: u64, value: Owned) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`. Creating a tuple can run the garbage collector, and dropping a handle
        // can run a weak reference's callback. Either can run user code that calls this function again. The route therefore
        // owns no tuple meanwhile, and `last` and `last_word` change together.
        unsafe {
            let last = std::mem::replace(&mut (*this).last, std::ptr::null_mut());
            // `is_unshared` is false from Python 3.14 on, where tuples cache their hash.
            let answer = if (*this).raises {
                drop(Owned::take(last));
                value
            } else if !last.is_null() && reference_count::is_unshared(last) {
                // Cannot fail: this is the only reference to the tuple.
                ffi::PyTuple_SetItem(last, 1, value.into_ptr());
                Owned::take(last)?
            } else {
                drop(Owned::take(last));
                let first = symbols::success((*this).library)?;
                Owned::take(ffi::PyTuple_Pack(2, first, value.ptr()))?
            };
            let old = std::mem::replace(&mut (*this).last, answer.obj().owned().into_ptr());
            (*this).last_word = word;
            drop(Owned::take(old));
            Ok(answer)
        }
    }

    /// (success, value), or the value. Returns the previous answer for the same value: it is immutable.
    #[inline(always)]
    unsafe fn value(this: *mut FastRoute, f: &'static Function, word: u64) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`; the route owns a reference to the tuple.
        unsafe {
            let last = (*this).last;
            if !last.is_null() && (*this).last_word == word {
                return Ok(Obj::new(last).owned());
            }
        }
        // SAFETY: as promised by the caller of `call`.
        unsafe { FastRoute::new_value(this, f, word) }
    }

    #[inline(never)]
    unsafe fn new_value(this: *mut FastRoute, f: &'static Function, word: u64) -> R<Owned> {
        let value = results::word_result(f.results[0].kind, word)?;
        // SAFETY: as promised by the caller of `call`.
        unsafe { FastRoute::memoize(this, word, value) }
    }
}

/// Whether a function launches a graph.
fn launches_graph(f: &Function) -> bool {
    match f.library() {
        CudaLibrary::Driver => f.symbol == driver::Symbol::cuGraphLaunch as u16,
        CudaLibrary::Runtime => f.symbol == runtime::Symbol::cudaGraphLaunch as u16,
        _ => false,
    }
}

/// The word for an argument; `None` if it needs the general route.
#[inline(always)]
fn value(obj: Obj<'_>, from: WordSource, id: u16) -> Option<u64> {
    match from {
        WordSource::Unsigned if obj.is_exact_int() => unsigned(obj, id),
        WordSource::Handle => match types::own_handle(obj, ClassId(id)) {
            Some(value) => Some(value),
            None => number_or_none(obj),
        },
        WordSource::Address => number_or_none(obj),
        WordSource::Signed if obj.is_exact_int() => signed(obj, id),
        WordSource::Enum if obj.is_exact_int() || types::is_member(obj, EnumId(id)) => {
            signed(obj, 32)
        }
        WordSource::Handle32 => match types::own_handle32(obj, ClassId(id)) {
            Some(value) => Some(i64::from(value).cast_unsigned()),
            None if obj.is_exact_int() => signed(obj, 32),
            None => obj.is_none().then_some(0),
        },
        WordSource::Bytes => obj.exact_bytes().map(|text| text.addr() as u64),
        // The general route answers for what is no program.
        WordSource::Program => {
            types::own_handle(obj, ClassId(id)).filter(|value| nvrtc::is_program(*value))
        }
        WordSource::ProgramAddress if obj.is_exact_int() => {
            signed(obj, 64).filter(|value| nvrtc::is_program(*value))
        }
        _ => None,
    }
}

/// An exact `int` of 64 bits, or 0 for `None`.
#[inline(always)]
fn number_or_none(obj: Obj<'_>) -> Option<u64> {
    if obj.is_exact_int() {
        return unsigned(obj, 64);
    }
    obj.is_none().then_some(0)
}

/// The source and number of bits for an integer type.
fn integer(kind: Int) -> (WordSource, u16) {
    match kind {
        Int::U8 => (WordSource::Unsigned, 8),
        Int::U16 => (WordSource::Unsigned, 16),
        Int::U32 => (WordSource::Unsigned, 32),
        Int::U64 => (WordSource::Unsigned, 64),
        Int::I8 => (WordSource::Signed, 8),
        Int::I16 => (WordSource::Signed, 16),
        Int::I32 => (WordSource::Signed, 32),
        Int::I64 => (WordSource::Signed, 64),
    }
}

/// An unsigned number of `bits` bits (1 to 64). `u64::MAX` is refused, as it may also mean an exception.
#[inline(always)]
fn unsigned(obj: Obj<'_>, bits: u16) -> Option<u64> {
    let value = cpython::as_u64(obj);
    if value > u64::MAX >> (64 - u32::from(bits)) || value == u64::MAX {
        return refused();
    }
    Some(value)
}

/// A signed number of `bits` bits. -1 is refused, as it may also mean an exception.
#[inline(always)]
fn signed(obj: Obj<'_>, bits: u16) -> Option<u64> {
    let value = cpython::as_i64(obj);
    let above = 64 - u32::from(bits);
    if value == -1 || (value << above) >> above != value {
        return refused();
    }
    Some(value.cast_unsigned())
}

/// Clears the exception; the general route converts the argument or raises.
#[cold]
#[inline(never)]
fn refused() -> Option<u64> {
    cpython::clear();
    None
}
