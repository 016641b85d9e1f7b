//! Functions that the device provides to kernels: `vprintf`, `__assertfail`, `malloc`, `free`,
//! `cudaGraphSetConditional`, `cudaGraphLaunch`.

use std::ffi::{CString, c_char};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::context::{Context, ExecResult, fault};
use super::lanes::lanes;
use super::memory::{
    ResolvedAddress, get, local_base, local_read_bytes, local_write, resolve, set,
};
use super::warp::Warp;
use crate::conditions;
use crate::engine::fault_report::{FaultKind, LaneFault};
use crate::engine::program::{BuiltinArg, BuiltinKind, BuiltinOp, Inst, MemSpace, fixed};
use crate::memory::{Reach, RegionKind};

/// Owner number of device-side heap blocks.
pub const HEAP_OWNER: u64 = u64::MAX;
/// Bytes that device-side `malloc` has allocated in this process.
static HEAP_USED: AtomicU64 = AtomicU64::new(0);
/// Maximum length of a string that a kernel passes, in bytes.
const LONGEST: usize = 64 << 10;

/// Executes a call of such a function for the lanes `active`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn builtin(
    cx: &mut Context<'_>,
    w: &mut Warp,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.builtins[inst.target as usize];
    if op.kind == BuiltinKind::AssertFail {
        // SAFETY: upheld by the caller.
        return Err(unsafe { assert_fail(cx, w, regs, op, active) });
    }
    for l in lanes(active) {
        // SAFETY: upheld by the caller.
        let arg =
            |cx: &Context<'_>, w: &mut Warp, n: usize| unsafe { argument(cx, w, regs, op, n, l) };
        let result = match op.kind {
            BuiltinKind::Vprintf => {
                let (format, list) = (arg(cx, w, 0), arg(cx, w, 1));
                let text = print(cx, w, l as u32, format, list)?;
                match text {
                    Some((bytes, count)) => {
                        cx.launch.printf.emit(&bytes);
                        count as u64
                    }
                    None => u64::from(u32::MAX),
                }
            }
            BuiltinKind::Malloc => malloc(cx, arg(cx, w, 0)),
            BuiltinKind::Free => {
                let at = arg(cx, w, 0);
                if at != 0 {
                    match cx.launch.space.free_if(at, |r| {
                        r.kind == RegionKind::Internal && r.owner == HEAP_OWNER
                    }) {
                        Ok(r) => {
                            HEAP_USED.fetch_sub(r.size, Ordering::Relaxed);
                        }
                        Err(_) => {
                            let text =
                                format!("free of {at:#x}, which device-side malloc did not return");
                            return Err(fault(FaultKind::IllegalAddress, 1 << l, text));
                        }
                    }
                }
                0
            }
            BuiltinKind::SetConditional => {
                let (handle, value) = (arg(cx, w, 0), arg(cx, w, 1));
                if !conditions::set(handle, value as u32) {
                    let text = format!(
                        "cudaGraphSetConditional: {handle:#x} is not a condition handle, or its graph is destroyed"
                    );
                    return Err(fault(FaultKind::IllegalAddress, 1 << l, text));
                }
                0
            }
            BuiltinKind::LaunchGraph => {
                /// `cudaErrorNotPermitted`: only kernels in graphs launch graphs.
                const NOT_PERMITTED: u64 = 800;
                let (graph, stream) = (arg(cx, w, 0), arg(cx, w, 1));
                cx.launch
                    .graph
                    .map_or(NOT_PERMITTED, |g| g.launch(graph, stream).into())
            }
            BuiltinKind::AssertFail => 0,
        };
        if let Some(place) = op.result {
            // SAFETY: upheld by the caller; frames lie within the stack limit.
            unsafe {
                match place {
                    BuiltinArg::Memory(at, size) => {
                        let frame = *regs.add(fixed::FRAME as usize).cast::<u32>().add(l);
                        let base = local_base(cx, w);
                        for k in 0..size.min(8) {
                            local_write(
                                base,
                                frame + at + k,
                                l,
                                1,
                                u128::from(result >> (8 * k) & 0xff),
                            );
                        }
                    }
                    BuiltinArg::Register(at, slot) => set(regs, at, slot, l, u128::from(result)),
                }
            }
        }
    }
    Ok(())
}

/// Argument `n` of a call.
unsafe fn argument(
    cx: &Context<'_>,
    w: &mut Warp,
    regs: *mut u8,
    op: &BuiltinOp,
    n: usize,
    lane: usize,
) -> u64 {
    // SAFETY: upheld by the caller; the kernel's frame lies within local memory.
    unsafe {
        match op.args.get(n) {
            Some(&BuiltinArg::Memory(at, size)) => {
                let frame = *regs.add(fixed::FRAME as usize).cast::<u32>().add(lane);
                local_read_bytes(local_base(cx, w), frame + at, lane, size.min(8)) as u64
            }
            Some(&BuiltinArg::Register(at, slot)) => get(regs, at, slot, lane) as u64,
            None => 0,
        }
    }
}

/// `malloc`; zero if the heap is exhausted.
fn malloc(cx: &Context<'_>, size: u64) -> u64 {
    if size == 0 {
        return 0;
    }
    let fits = HEAP_USED
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(size)
                .filter(|&n| n <= cx.launch.heap_limit)
        })
        .is_ok();
    if !fits {
        return 0;
    }
    match cx
        .launch
        .space
        .alloc_owned(size, 16, RegionKind::Internal, HEAP_OWNER, Reach::ALL)
    {
        Ok(r) => r.base,
        Err(_) => {
            HEAP_USED.fetch_sub(size, Ordering::Relaxed);
            0
        }
    }
}

/// Reads up to 8 bytes of generic memory.
fn peek(
    cx: &mut Context<'_>,
    w: &mut Warp,
    lane: u32,
    at: u64,
    bytes: u32,
) -> Result<u64, Box<LaneFault>> {
    match resolve(cx, MemSpace::Generic, 255, lane, at, bytes, bytes, false)? {
        ResolvedAddress::Host(p) => {
            let mut buffer = [0u8; 8];
            // SAFETY: `resolve` has checked the range.
            unsafe {
                std::ptr::copy_nonoverlapping(p as *const u8, buffer.as_mut_ptr(), bytes as usize)
            };
            Ok(u64::from_le_bytes(buffer))
        }
        ResolvedAddress::Local(o) => {
            let base = local_base(cx, w);
            // SAFETY: `resolve` has checked the range.
            Ok(unsafe { local_read_bytes(base, o, lane as usize, bytes) } as u64)
        }
    }
}

/// Reads a string that ends with a NUL.
fn string(
    cx: &mut Context<'_>,
    w: &mut Warp,
    lane: u32,
    at: u64,
) -> Result<Vec<u8>, Box<LaneFault>> {
    let mut out = Vec::new();
    while out.len() < LONGEST {
        let c = peek(cx, w, lane, at.wrapping_add(out.len() as u64), 1)? as u8;
        if c == 0 {
            break;
        }
        out.push(c);
    }
    Ok(out)
}

/// The argument buffer of `vprintf`, in which every argument is aligned to its size.
struct Arguments {
    at: u64,
    used: usize,
}

impl Arguments {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        w: &mut Warp,
        lane: u32,
        bytes: u32,
    ) -> Result<u64, Box<LaneFault>> {
        self.at = self.at.next_multiple_of(u64::from(bytes));
        let v = peek(cx, w, lane, self.at, bytes)?;
        self.at += u64::from(bytes);
        self.used += 1;
        Ok(v)
    }
}

/// Output of a `vprintf` call and the number of its arguments.
type Printed = Option<(Vec<u8>, usize)>;

/// Formats the call of one lane; `None` if the format is null.
fn print(
    cx: &mut Context<'_>,
    w: &mut Warp,
    lane: u32,
    format: u64,
    list: u64,
) -> Result<Printed, Box<LaneFault>> {
    if format == 0 {
        return Ok(None);
    }
    let f = string(cx, w, lane, format)?;
    let mut args = Arguments { at: list, used: 0 };
    let mut out = Vec::with_capacity(f.len() + 32);
    let mut n = 0;
    while n < f.len() {
        if f[n] != b'%' {
            out.push(f[n]);
            n += 1;
            continue;
        }
        let start = n;
        n += 1;
        let mut spec = Spec::default();
        while let Some(&c) = f.get(n) {
            if !b"-+ #0".contains(&c) {
                break;
            }
            spec.flags.push(c as char);
            n += 1;
        }
        let number = |n: &mut usize| {
            let mut v = 0i32;
            while let Some(c) = f.get(*n).filter(|c| c.is_ascii_digit()) {
                v = (v * 10 + i32::from(c - b'0')).min(4096);
                *n += 1;
            }
            v
        };
        if f.get(n) == Some(&b'*') {
            n += 1;
            let v = args.next(cx, w, lane, 4)? as i32;
            if v < 0 {
                spec.flags.push('-');
            }
            spec.width = Some(v.unsigned_abs().min(4096) as i32);
        } else if f.get(n).is_some_and(u8::is_ascii_digit) {
            spec.width = Some(number(&mut n));
        }
        if f.get(n) == Some(&b'.') {
            n += 1;
            if f.get(n) == Some(&b'*') {
                n += 1;
                let v = args.next(cx, w, lane, 4)? as i32;
                spec.precision = (v >= 0).then_some(v.min(4096));
            } else {
                spec.precision = Some(number(&mut n));
            }
        }
        let (mut long, mut short) = (0, 0);
        while let Some(&c) = f.get(n) {
            match c {
                b'l' => long += 1,
                b'j' | b'z' | b't' => long = 2,
                b'h' => short += 1,
                _ => break,
            }
            n += 1;
        }
        let Some(&c) = f.get(n) else {
            out.extend_from_slice(&f[start..]);
            break;
        };
        n += 1;
        // `long` has 64 bits in device code.
        let wide = long > 0;
        match c {
            b'%' => out.push(b'%'),
            b'd' | b'i' => {
                let v = args.next(cx, w, lane, if wide { 8 } else { 4 })?;
                let v = match (wide, short) {
                    (true, _) => v as i64,
                    (_, 0) => i64::from(v as i32),
                    (_, 1) => i64::from(v as i16),
                    _ => i64::from(v as i8),
                };
                spec.integer(&mut out, c, v);
            }
            b'u' | b'o' | b'x' | b'X' => {
                let v = args.next(cx, w, lane, if wide { 8 } else { 4 })?;
                let v = match (wide, short) {
                    (true, _) => v,
                    (_, 0) => u64::from(v as u32),
                    (_, 1) => u64::from(v as u16),
                    _ => u64::from(v as u8),
                };
                spec.integer(&mut out, c, v as i64);
            }
            b'c' => {
                let v = args.next(cx, w, lane, 4)? as u8;
                spec.text(&mut out, &[v]);
            }
            b'p' => {
                let v = args.next(cx, w, lane, 8)?;
                spec.text(&mut out, format!("{v:#x}").as_bytes());
            }
            b's' => {
                let at = args.next(cx, w, lane, 8)?;
                let mut s = if at == 0 {
                    b"(null)".to_vec()
                } else {
                    string(cx, w, lane, at)?
                };
                if let Some(p) = spec.precision {
                    s.truncate(p as usize);
                }
                spec.text(&mut out, &s);
            }
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                let v = f64::from_bits(args.next(cx, w, lane, 8)?);
                spec.float(&mut out, c, v);
            }
            _ => out.extend_from_slice(&f[start..n]),
        }
    }
    Ok(Some((out, args.used)))
}

/// A conversion specification of a format string.
#[derive(Default)]
struct Spec {
    flags: String,
    width: Option<i32>,
    precision: Option<i32>,
}

impl Spec {
    fn head(&self) -> String {
        let mut s = format!("%{}", self.flags);
        if let Some(w) = self.width {
            let _ = write!(s, "{w}");
        }
        if let Some(p) = self.precision {
            let _ = write!(s, ".{p}");
        }
        s
    }

    fn run(
        &self,
        out: &mut Vec<u8>,
        tail: &str,
        call: impl Fn(*mut c_char, usize, *const c_char) -> i32,
    ) {
        let Ok(spec) = CString::new(self.head() + tail) else {
            return;
        };
        // A field has at most 4096 characters, and a number at most 309 digits before the point.
        let mut buffer = vec![0u8; 10240];
        let n = call(buffer.as_mut_ptr().cast(), buffer.len(), spec.as_ptr());
        let n = usize::try_from(n).unwrap_or(0).min(buffer.len() - 1);
        out.extend_from_slice(&buffer[..n]);
    }

    fn integer(&self, out: &mut Vec<u8>, conversion: u8, v: i64) {
        let tail = format!("ll{}", conversion as char);
        self.run(out, &tail, |p, n, f| {
            // SAFETY: the specification has exactly one conversion, of a 64-bit integer, and the buffer has `n` bytes.
            unsafe { libc::snprintf(p, n, f, v) }
        });
    }

    fn float(&self, out: &mut Vec<u8>, conversion: u8, v: f64) {
        let tail = String::from(conversion as char);
        self.run(out, &tail, |p, n, f| {
            // SAFETY: the specification has exactly one conversion, of a double, and the buffer has `n` bytes.
            unsafe { libc::snprintf(p, n, f, v) }
        });
    }

    fn text(&self, out: &mut Vec<u8>, s: &[u8]) {
        let pad = usize::try_from(self.width.unwrap_or(0))
            .unwrap_or(0)
            .saturating_sub(s.len());
        if self.flags.contains('-') {
            out.extend_from_slice(s);
            out.resize(out.len() + pad, b' ');
        } else {
            out.resize(out.len() + pad, b' ');
            out.extend_from_slice(s);
        }
    }
}

/// The message of a failed assertion, one line per lane, in the format of a GPU.
unsafe fn assert_fail(
    cx: &mut Context<'_>,
    w: &mut Warp,
    regs: *mut u8,
    op: &BuiltinOp,
    active: u32,
) -> Box<LaneFault> {
    let mut text = String::new();
    for l in lanes(active) {
        let part = |cx: &mut Context<'_>, w: &mut Warp, n: usize| {
            // SAFETY: upheld by the caller.
            let at = unsafe { argument(cx, w, regs, op, n, l) };
            let s = if at == 0 {
                Ok(Vec::new())
            } else {
                string(cx, w, l as u32, at)
            };
            s.map_or_else(|_| "?".into(), |s| String::from_utf8_lossy(&s).into_owned())
        };
        let (expression, file, function) = (part(cx, w, 0), part(cx, w, 1), part(cx, w, 3));
        // SAFETY: upheld by the caller.
        let line = unsafe { argument(cx, w, regs, op, 2, l) } as u32;
        let at = cx.block.coordinates(cx.launch.block, w.index, l as u32);
        let ([bx, by, bz], [tx, ty, tz]) = (at.block, at.thread);
        let _ = writeln!(
            text,
            "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{expression}` failed."
        );
    }
    fault(FaultKind::Assert, active, text)
}
