//! The short way through the engine: calls whose arguments are exact integers, our own handles and enum members.
//!
//! Nearly every call of a hot loop is of this kind. What it takes is put together once, when the function object is
//! made, into a [`Plan`] that lies in the object itself: a handful of bytes beside the pointer the interpreter has just
//! read, where the description is spread over a dozen cache lines that a long call of the driver pushes out. Everything
//! the plan does not foresee (keywords, defaults, foreign objects, values that do not fit) goes the engine's general
//! way from the start; nothing has happened by then.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite_sys::loader::{self, Backend, CudaLibrary};
use pyo3::ffi;
pub use specialized::of as vectorcall_of;

use crate::bindings::call::convert::Keep;
use crate::bindings::call::general;
use crate::bindings::call::specialized;
use crate::bindings::descriptor::{Conv, Function, Int, Out, PLAIN_RESULTS, Special, Thunk, Word};
use crate::bindings::errors::Site;
use crate::bindings::kernel_arguments::Packer;
use crate::bindings::symbols;
use crate::cpython;
use crate::cpython::internals::reference_count;
use crate::cpython::{Obj, Owned, R};
use crate::types;
use crate::types::{ClassId, EnumId};

/// The most C parameters of a call that goes the short way.
const WORDS: usize = 11;

/// Where a C argument comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum WordSource {
    /// Zero.
    Nothing,
    /// The address of the result with this index.
    Result,
    /// A handle that is exactly of the class, an `int`, or `None`. 64 bits in C.
    Handle,
    /// The same of 32 bits, signed (`CUdevice`).
    Handle32,
    /// An `int` or a member of the enum.
    Enum,
    /// An `int` within C's type, of as many bits as the step says.
    Unsigned,
    Signed,
    /// An address as an `int`, or `None`.
    Address,
    /// Arguments of a kernel.
    Kernel,
}

/// One C argument.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) from: WordSource,
    /// Index of the Python argument or of the result.
    pub(super) index: u8,
    /// The handle's class, the enum, or the integer's bits.
    pub(super) id: u16,
}

/// What comes back after the status.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    /// One handle of 64 bits.
    Handle(ClassId),
    /// One immutable value. The same value gives the same tuple as the last time.
    Value,
    /// Anything else that is a word each.
    Words,
}

/// A function's short way. What each call reads lies in front.
#[repr(C)]
pub struct Plan {
    /// The symbol, once it was called.
    pub(super) address: AtomicPtr<c_void>,
    pub(super) thunk: Thunk,
    /// Whether there is a short way.
    pub(super) usable: bool,
    /// Whether there is one that packs the arguments of a kernel.
    pub(super) launches: bool,
    pub(super) keep_gil: bool,
    /// Python arguments.
    pub(super) arguments: u8,
    /// C arguments.
    pub(super) words: u8,
    pub(super) library: CudaLibrary,
    /// Whether a wait of the CPU device can end with an exception.
    pub(super) interruptible: bool,
    pub(super) answer: Answer,
    /// The last answer: its word ([`Answer::Value`]) or the handle's address ([`Answer::Handle`]), and the tuple made for
    /// it (null: none).
    pub(super) last_word: u64,
    pub(super) last: *mut ffi::PyObject,
    pub(super) steps: [Step; WORDS],
}

impl Plan {
    /// The plan of a function; where it has no short way, one that says so.
    pub fn new(f: &'static Function) -> Plan {
        let mut plan = Plan {
            thunk: f.thunk,
            address: AtomicPtr::new(std::ptr::null_mut()),
            arguments: 0,
            words: 0,
            usable: false,
            keep_gil: f.keep_gil,
            launches: false,
            library: f.library,
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
        let some = plan.fill(f).is_some();
        plan.usable = some && !plan.launches;
        plan.launches &= some;
        plan
    }

    fn fill(&mut self, f: &'static Function) -> Option<()> {
        // Symbols of the other libraries may be resolved anew, and none of their functions is called in hot loops.
        let known = matches!(f.library, CudaLibrary::Driver | CudaLibrary::Runtime);
        if !known || !cpython::GIL || f.special != Special::None || f.raising.is_some() {
            return None;
        }
        if f.words.len() > WORDS || f.results.len() > PLAIN_RESULTS {
            return None;
        }
        self.arguments = u8::try_from(f.params.len()).ok()?;
        self.words = u8::try_from(f.words.len()).ok()?;
        let mut seen = 0u32;
        for (step, word) in self.steps.iter_mut().zip(f.words) {
            let (from, index, id) = match *word {
                Word::Null => (WordSource::Nothing, 0, 0),
                Word::Result(result) => (WordSource::Result, result, 0),
                Word::Arg(arg) => {
                    seen |= 1 << arg;
                    let (from, id) = match f.params[arg as usize].conv {
                        Conv::Handle(ClassId(id), Int::U64) => (WordSource::Handle, id),
                        Conv::Handle(ClassId(id), Int::I32) => (WordSource::Handle32, id),
                        Conv::Enum(EnumId(id)) => (WordSource::Enum, id),
                        Conv::Int(kind) | Conv::IntOrNone(kind) => integer(kind),
                        Conv::VoidPtr(_) | Conv::VoidPtrPtr => (WordSource::Address, 0),
                        Conv::KernelParams if !self.launches => {
                            self.launches = true;
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
        // A parameter that no C argument takes would not be looked at.
        if seen.count_ones() as usize != f.params.len() {
            return None;
        }
        self.answer = match f.results {
            [] => Answer::Nothing,
            [one] => match one.kind {
                Out::Handle(id, Int::U64) => Answer::Handle(id),
                Out::Int(_) | Out::Enum(_) | Out::VoidPtr => Answer::Value,
                // Where it is the only one, there is room for four (`cuTexRefGetBorderColor`).
                Out::F32 | Out::F64 => Answer::Value,
                Out::CString | Out::Handle(..) => Answer::Words,
                _ => return None,
            },
            several => {
                let words = several.iter().all(|result| {
                    matches!(
                        result.kind,
                        Out::Int(_) | Out::Enum(_) | Out::Handle(..) | Out::VoidPtr | Out::CString
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

    /// Calls `f` by the short way; `None` where that is not possible, and nothing has happened then.
    ///
    /// # Safety
    ///
    /// `this` is the plan of `f`, in a live function object. `args` holds `nargs` live objects. The thread is attached.
    #[inline(always)]
    pub unsafe fn call(
        this: *mut Plan,
        f: &'static Function,
        args: *const *mut ffi::PyObject,
        nargs: usize,
    ) -> Option<R<Owned>> {
        // SAFETY: as promised by the caller. Only this thread touches the plan: it is attached, and a build without a
        // GIL has no plans that are usable. The plan lives on during the call of C, as the caller holds the function.
        unsafe {
            if !(*this).usable || nargs != (*this).arguments as usize {
                return None;
            }
            let mut outs = [0u64; PLAIN_RESULTS];
            let mut words = [const { MaybeUninit::<u64>::uninit() }; WORDS];
            if !(*this).convert(args, outs.as_mut_ptr(), words.as_mut_ptr().cast()) {
                return None;
            }
            let status = match Plan::invoke(this, f, words.as_ptr().cast()) {
                Ok(status) => status,
                Err(raised) => return Some(Err(raised)),
            };
            Some(Plan::answer(this, f, status, outs.as_ptr()))
        }
    }

    /// The same for a launch. `kwnames` is null where there are none.
    ///
    /// # Safety
    ///
    /// As [`Plan::call`].
    pub unsafe fn launch(
        this: *mut Plan,
        f: &'static Function,
        args: *const *mut ffi::PyObject,
        nargs: usize,
        kwnames: *mut ffi::PyObject,
    ) -> Option<R<Owned>> {
        // SAFETY: as promised by the caller.
        if unsafe { !(*this).launches || nargs != (*this).arguments as usize } || !kwnames.is_null()
        {
            return None;
        }
        let mut packer = Packer::new();
        let mut keep = Keep::new();
        let mut outs = [0u64; PLAIN_RESULTS];
        let mut words = [const { MaybeUninit::<u64>::uninit() }; WORDS];
        // SAFETY: as promised by the caller of `call`; the indices were checked when the plan was made.
        unsafe {
            if !(*this).convert(args, outs.as_mut_ptr(), words.as_mut_ptr().cast()) {
                return None;
            }
            // Last: it may run code of the program's, which must not run twice.
            let steps = (*this).steps.iter().take((*this).words as usize);
            for (step, word) in steps.zip(&mut words) {
                if step.from == WordSource::Kernel {
                    let site = Site {
                        func: f.name,
                        param: f.params[step.index as usize].name,
                    };
                    let obj = Obj::new(*args.add(step.index as usize));
                    match packer.pack(obj, site, &mut keep) {
                        Ok(address) => word.write(address),
                        Err(raised) => return Some(Err(raised)),
                    };
                }
            }
            let status = match Plan::invoke(this, f, words.as_ptr().cast()) {
                Ok(status) => status,
                Err(raised) => return Some(Err(raised)),
            };
            Some(Plan::answer(this, f, status, outs.as_ptr()))
        }
    }

    /// Fills in the words; false where one argument needs more than a glance. Runs no code of the program's, and leaves
    /// no exception.
    #[inline(always)]
    unsafe fn convert(
        &self,
        args: *const *mut ffi::PyObject,
        outs: *mut u64,
        words: *mut u64,
    ) -> bool {
        for at in 0..self.words as usize {
            // SAFETY: a plan has at most `WORDS` steps; each index lies within the arguments or the results.
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
            // SAFETY: as above.
            unsafe { words.add(at).write(word) };
        }
        true
    }

    #[inline(always)]
    unsafe fn invoke(this: *mut Plan, f: &'static Function, words: *const u64) -> R<i64> {
        // SAFETY: the words were made for this function's C signature, the symbol is that function, and everything
        // the words point at is in the caller's frame. The thread state is restored before Python is touched.
        unsafe {
            let mut address = (*this).address.load(Ordering::Relaxed).cast_const();
            if address.is_null() {
                address = Plan::resolve(this, f)?;
            }
            let thunk = (*this).thunk;
            let status = if (*this).keep_gil && symbols::keeps_gil() {
                thunk(address, words)
            } else {
                cpython::detached(|| thunk(address, words))
            };
            if (*this).interruptible {
                symbols::check_interrupt()?;
            }
            Ok(status)
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn resolve(this: *mut Plan, f: &'static Function) -> R<*const c_void> {
        let address = symbols::symbol(f)?;
        // SAFETY: as promised by the caller of `call`.
        unsafe {
            (*this).interruptible = loader::chosen_backend() != Some(Backend::Gpu);
            (*this).address.store(address.cast_mut(), Ordering::Relaxed);
        }
        Ok(address)
    }

    #[inline(always)]
    pub(super) unsafe fn answer(
        this: *mut Plan,
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
                return Plan::status(this, status);
            }
            if status == 0 {
                let word = outs.read();
                match answer {
                    Answer::Value => return Plan::value(this, f, word),
                    Answer::Handle(id) => return Plan::handle(this, id, word),
                    Answer::Nothing | Answer::Words => {}
                }
            }
            general::answer(f.library, status, f.results.len(), |index| {
                general::word_result(f.results[index].kind, outs.add(index).read())
            })
        }
    }

    #[inline(never)]
    pub(super) unsafe fn status(this: *mut Plan, status: i64) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`. The tuple that says success is there for ever, also in the plan.
        unsafe {
            let tuple = symbols::status_tuple((*this).library, status)?;
            if status == 0 {
                (*this).last = tuple.ptr();
            }
            Ok(tuple)
        }
    }

    /// (success, handle). Where nobody holds the tuple of the last time any more, it is used again, and where nobody
    /// holds its handle, that too: a program that makes and drops events in a loop makes one of each.
    #[inline(always)]
    pub(super) unsafe fn handle(this: *mut Plan, id: ClassId, word: u64) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`; the plan holds a reference to the tuple and the tuple one to the
        // handle, which is exactly of the class. Nobody changes a tuple.
        unsafe {
            let last = (*this).last;
            if !last.is_null()
                && reference_count::is_unshared(last)
                && types::renew_own_handle((*this).last_word as *mut ffi::PyObject, word)
            {
                return Ok(Obj::new(last).owned());
            }
            Plan::new_handle(this, id, word)
        }
    }

    #[inline(never)]
    unsafe fn new_handle(this: *mut Plan, id: ClassId, word: u64) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`.
        unsafe {
            let handle = Owned::take(types::new_own_handle(id, word))?;
            let address = handle.ptr();
            Plan::remember(this, address as u64, handle)
        }
    }

    /// (success, value), kept for the next time under `word`; in the tuple of the last time where nobody else has it.
    unsafe fn remember(this: *mut Plan, word: u64, value: Owned) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`. Making a tuple can run the collector, and letting a handle go a
        // weak reference's callback, and so code of the program's that calls this function: the plan has no tuple
        // meanwhile, and is changed in one go.
        unsafe {
            let last = std::mem::replace(&mut (*this).last, std::ptr::null_mut());
            // Later versions keep a tuple's hash.
            let tuple = if !last.is_null() && reference_count::is_unshared(last) {
                // It is the only reference, so that this cannot fail.
                ffi::PyTuple_SetItem(last, 1, value.into_ptr());
                Owned::take(last)?
            } else {
                drop(Owned::take(last));
                let first = symbols::success((*this).library)?;
                Owned::take(ffi::PyTuple_Pack(2, first, value.ptr()))?
            };
            let old = std::mem::replace(&mut (*this).last, tuple.obj().owned().into_ptr());
            (*this).last_word = word;
            drop(Owned::take(old));
            Ok(tuple)
        }
    }

    /// (success, value), the tuple of the last time where the value is that of the last time: neither can be changed.
    #[inline(always)]
    unsafe fn value(this: *mut Plan, f: &'static Function, word: u64) -> R<Owned> {
        // SAFETY: as promised by the caller of `call`; the plan holds a reference to the tuple.
        unsafe {
            let last = (*this).last;
            if !last.is_null() && (*this).last_word == word {
                return Ok(Obj::new(last).owned());
            }
        }
        // SAFETY: as above.
        unsafe { Plan::new_value(this, f, word) }
    }

    #[inline(never)]
    unsafe fn new_value(this: *mut Plan, f: &'static Function, word: u64) -> R<Owned> {
        let value = general::word_result(f.results[0].kind, word)?;
        // SAFETY: as promised by the caller of `call`.
        unsafe { Plan::remember(this, word, value) }
    }
}

/// An argument that needs no more than a glance.
#[inline(always)]
pub(super) fn value(obj: Obj<'_>, from: WordSource, id: u16) -> Option<u64> {
    match from {
        WordSource::Handle => {
            if let Some(value) = types::own_handle(obj.ptr(), ClassId(id)) {
                return Some(value);
            }
        }
        WordSource::Handle32 => {
            if let Some(value) = types::own_handle32(obj.ptr(), ClassId(id)) {
                return Some(i64::from(value).cast_unsigned());
            }
        }
        _ => {}
    }
    if obj.is_exact_int() {
        return match from {
            WordSource::Unsigned => unsigned(obj, id),
            WordSource::Signed => signed(obj, id),
            WordSource::Handle32 | WordSource::Enum => signed(obj, 32),
            _ => unsigned(obj, 64),
        };
    }
    match from {
        WordSource::Enum if types::is_member(obj.ptr(), EnumId(id)) => signed(obj, 32),
        WordSource::Handle | WordSource::Handle32 | WordSource::Address if obj.is_none() => Some(0),
        _ => None,
    }
}

/// How an integer of a type is taken.
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

/// A number of up to `bits` bits (1 to 64). The largest of 64 stands for an exception too.
#[inline(always)]
fn unsigned(obj: Obj<'_>, bits: u16) -> Option<u64> {
    let value = cpython::as_u64(obj);
    if value > u64::MAX >> (64 - u32::from(bits)) || value == u64::MAX {
        return refused();
    }
    Some(value)
}

/// The same with a sign; -1 stands for an exception too.
#[inline(always)]
fn signed(obj: Obj<'_>, bits: u16) -> Option<u64> {
    let value = cpython::as_i64(obj);
    let above = 64 - u32::from(bits);
    if value == -1 || (value << above) >> above != value {
        return refused();
    }
    Some(value.cast_unsigned())
}

/// The general way tells what is wrong, if anything is.
#[cold]
#[inline(never)]
fn refused() -> Option<u64> {
    cpython::clear();
    None
}
