//! The host's side of `vprintf`: reads the record of a call and formats it as glibc 2.38 and later do.
//!
//! The driver passes the record to the C library's `vprintf` by the x86-64 calling convention: numbers and pointers in
//! one sequence, floating-point numbers in another. A conversion that the C library supports and the driver does not
//! takes the next value of its sequence. Past the end of a sequence a GPU's driver reads stale memory; here a missing
//! value is zero.

use std::ffi::{CString, c_char};
use std::fmt::Write as _;

use super::super::builtins::LONGEST;
use super::PrintfArgument;
use super::scan::{ArgumentKind, Side, conversions};

/// The text that a call prints.
pub(super) fn print(format: &[u8], mut slots: Vec<PrintfArgument>) -> Vec<u8> {
    let kinds = conversions(format, Side::Host);
    if kinds.is_empty() {
        // Not passed to the C library: `%zu` alone is printed as it is.
        return format.to_vec();
    }
    // The format follows the arguments in the record: a conversion that only the host supports takes its text.
    slots.extend(format.chunks(8).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        PrintfArgument::Bits(u64::from_le_bytes(bytes))
    }));
    let mut values = Values::default();
    let kinds = kinds.into_iter().filter(|&k| k != ArgumentKind::Nothing);
    for (kind, slot) in kinds.zip(slots) {
        match (kind, slot) {
            (ArgumentKind::Double, PrintfArgument::Bits(bits) | PrintfArgument::Text(bits, _)) => {
                values.doubles.push(f64::from_bits(bits));
            }
            (_, slot) => values.integers.push(slot),
        }
    }
    let mut printer = Printer {
        values,
        unknown: false,
        out: Vec::with_capacity(format.len() + 32),
    };
    printer.print(format);
    printer.out
}

/// The two sequences of values, and how many of each are taken.
#[derive(Default)]
struct Values {
    integers: Vec<PrintfArgument>,
    integers_taken: usize,
    doubles: Vec<f64>,
    doubles_taken: usize,
}

impl Values {
    fn integer(&mut self) -> u64 {
        self.integers_taken += 1;
        match self.integers.get(self.integers_taken - 1) {
            Some(&(PrintfArgument::Bits(v) | PrintfArgument::Text(v, _))) => v,
            None => 0,
        }
    }

    /// The next value as a string; `None` if it is null or was not passed as a string.
    fn text(&mut self) -> Option<Vec<u8>> {
        self.integers_taken += 1;
        match self.integers.get_mut(self.integers_taken - 1) {
            Some(PrintfArgument::Text(_, bytes)) => Some(std::mem::take(bytes)),
            _ => None,
        }
    }

    fn double(&mut self) -> f64 {
        self.doubles_taken += 1;
        self.doubles
            .get(self.doubles_taken - 1)
            .copied()
            .unwrap_or(0.0)
    }
}

/// Size of a conversion's argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Size {
    Byte,
    Short,
    #[default]
    Word,
    Long,
    /// `L`, `ll` or `q`: a long integer, or a `long double`.
    LongDouble,
}

/// A conversion specification of the C library.
#[derive(Default)]
struct Spec {
    alternative: bool,
    grouping: bool,
    plus: bool,
    space: bool,
    left: bool,
    zeros: bool,
    native_digits: bool,
    width: usize,
    precision: Option<usize>,
    size: Size,
}

struct Printer {
    values: Values,
    /// Whether an unknown conversion was printed. After one, an incomplete conversion at the end is printed as well.
    unknown: bool,
    out: Vec<u8>,
}

impl Printer {
    fn print(&mut self, format: &[u8]) {
        let mut rest = format;
        while let Some(start) = rest.iter().position(|&c| c == b'%') {
            self.out.extend_from_slice(&rest[..start]);
            rest = &rest[start + 1..];
            let Some(spec) = self.specification(&mut rest) else {
                return;
            };
            let conversion = rest.split_off_first().copied();
            if self.convert(&spec, conversion).is_none() {
                return;
            }
        }
        self.out.extend_from_slice(rest);
    }

    /// Reads flags, width, precision and size; `None` if a number is too large for the C library.
    fn specification(&mut self, rest: &mut &[u8]) -> Option<Spec> {
        let mut spec = Spec::default();
        while let Some(&c) = rest.first() {
            match c {
                b'#' => spec.alternative = true,
                b'\'' => spec.grouping = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'-' => spec.left = true,
                b'0' => spec.zeros = true,
                b'I' => spec.native_digits = true,
                _ => break,
            }
            *rest = &rest[1..];
        }
        if let Some(after) = rest.strip_prefix(b"*") {
            *rest = after;
            let v = self.values.integer() as i32;
            spec.left |= v < 0;
            spec.width = v.unsigned_abs() as usize;
        } else {
            spec.width = number(rest)?;
        }
        if let Some(after) = rest.strip_prefix(b".") {
            *rest = after;
            if let Some(after) = rest.strip_prefix(b"*") {
                *rest = after;
                spec.precision = usize::try_from(self.values.integer() as i32).ok();
            } else {
                spec.precision = Some(number(rest)?);
            }
        }
        spec.zeros &= !spec.left;
        spec.width = spec.width.min(LONGEST);
        spec.precision = spec.precision.map(|p| p.min(LONGEST));
        spec.size = size(rest);
        Some(spec)
    }

    /// Prints one conversion; `None` if it ends the output.
    fn convert(&mut self, spec: &Spec, conversion: Option<u8>) -> Option<()> {
        let out = &mut self.out;
        match conversion {
            Some(b'%') => out.push(b'%'),
            Some(c @ (b'd' | b'i')) => {
                let v = self.values.integer();
                let v = match spec.size {
                    Size::Byte => i64::from(v as i8),
                    Size::Short => i64::from(v as i16),
                    Size::Word => i64::from(v as i32),
                    Size::Long | Size::LongDouble => v as i64,
                };
                spec.integer(out, c, v as u64);
            }
            Some(c @ (b'u' | b'o' | b'x' | b'X' | b'b' | b'B')) => {
                let v = self.values.integer();
                let v = match spec.size {
                    Size::Byte => u64::from(v as u8),
                    Size::Short => u64::from(v as u16),
                    Size::Word => u64::from(v as u32),
                    Size::Long | Size::LongDouble => v,
                };
                if c.eq_ignore_ascii_case(&b'b') {
                    spec.binary(out, c, v);
                } else {
                    spec.integer(out, c, v);
                }
            }
            Some(b'p') => spec.pointer(out, self.values.integer()),
            Some(c @ (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A')) => {
                // No argument is a `long double`; an H100's driver printed `-nan` for each.
                let v = match spec.size {
                    Size::LongDouble => -f64::NAN.abs(),
                    _ => self.values.double(),
                };
                spec.float(out, c, v);
            }
            Some(c @ (b'c' | b'C')) => {
                let v = self.values.integer() as u32;
                if c == b'C' || matches!(spec.size, Size::Long | Size::LongDouble) {
                    let wide = char::from_u32(v)?;
                    spec.text(out, wide.encode_utf8(&mut [0; 4]).as_bytes());
                } else {
                    spec.text(out, &[v as u8]);
                }
            }
            Some(c @ (b's' | b'S')) => {
                let wide = c == b'S' || matches!(spec.size, Size::Long | Size::LongDouble);
                let text = match (self.values.text(), spec.precision) {
                    (None, None | Some(6..)) => b"(null)".to_vec(),
                    (None, _) | (_, Some(0)) => Vec::new(),
                    // A kernel's string consists of bytes, not of wide characters.
                    (Some(text), _) if wide && !text.is_empty() => return None,
                    (Some(mut text), precision) => {
                        text.truncate(precision.unwrap_or(usize::MAX));
                        text
                    }
                };
                spec.text(out, &text);
            }
            // On a GPU, the driver would write to an address of the device.
            Some(b'n') => {
                self.values.integer();
            }
            // `strerror(0)`.
            Some(b'm') => spec.text(out, b"Success"),
            Some(c) => {
                self.unknown = true;
                spec.unknown(out);
                out.push(c);
            }
            None if self.unknown => spec.unknown(out),
            None => return None,
        }
        Some(())
    }
}

/// Reads a decimal number: 0 without digits, `None` if it does not fit in an `int`.
fn number(rest: &mut &[u8]) -> Option<usize> {
    let mut v = 0i32;
    while let Some(c) = rest.first().filter(|c| c.is_ascii_digit()) {
        v = v.checked_mul(10)?.checked_add(i32::from(c - b'0'))?;
        *rest = &rest[1..];
    }
    usize::try_from(v).ok()
}

/// Reads a size of an argument.
fn size(rest: &mut &[u8]) -> Size {
    const SIZES: [(&[u8], Size); 18] = [
        (b"hh", Size::Byte),
        (b"h", Size::Short),
        (b"ll", Size::LongDouble),
        (b"l", Size::Long),
        (b"L", Size::LongDouble),
        (b"q", Size::LongDouble),
        (b"z", Size::Long),
        (b"Z", Size::Long),
        (b"t", Size::Long),
        (b"j", Size::Long),
        (b"wf8", Size::Byte),
        (b"wf16", Size::Long),
        (b"wf32", Size::Long),
        (b"wf64", Size::Long),
        (b"w8", Size::Byte),
        (b"w16", Size::Short),
        (b"w32", Size::Word),
        (b"w64", Size::Long),
    ];
    for (name, size) in SIZES {
        if let Some(after) = rest.strip_prefix(name) {
            *rest = after;
            return size;
        }
    }
    Size::Word
}

impl Spec {
    /// The flags, width and precision after `%`. Without flags that depend on the process's locale.
    fn head(&self) -> String {
        let mut s = String::from("%");
        for (set, flag) in [
            (self.alternative, '#'),
            (self.plus, '+'),
            (self.space, ' '),
            (self.left, '-'),
            (self.zeros, '0'),
        ] {
            if set {
                s.push(flag);
            }
        }
        if self.width > 0 {
            let _ = write!(s, "{}", self.width);
        }
        if let Some(p) = self.precision {
            let _ = write!(s, ".{p}");
        }
        s
    }

    /// The specification as glibc prints an unknown one, without its letter. Sizes are left out.
    fn unknown(&self, out: &mut Vec<u8>) {
        let shown = [
            (true, '%'),
            (self.alternative, '#'),
            (self.grouping, '\''),
            (self.plus, '+'),
            (self.space && !self.plus, ' '),
            (self.left, '-'),
            (self.zeros, '0'),
            (self.native_digits, 'I'),
        ];
        out.extend(
            shown
                .iter()
                .filter(|(set, _)| *set)
                .map(|&(_, flag)| flag as u8),
        );
        if self.width > 0 {
            out.extend_from_slice(self.width.to_string().as_bytes());
        }
        if let Some(p) = self.precision {
            out.extend_from_slice(format!(".{p}").as_bytes());
        }
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
        // A number has at most 309 digits before the point, and a precision adds to them.
        let mut buffer = vec![0u8; self.width.max(self.precision.unwrap_or(6)) + 512];
        let n = call(buffer.as_mut_ptr().cast(), buffer.len(), spec.as_ptr());
        let n = usize::try_from(n).unwrap_or(0).min(buffer.len() - 1);
        out.extend_from_slice(&buffer[..n]);
    }

    fn integer(&self, out: &mut Vec<u8>, conversion: u8, v: u64) {
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

    fn pointer(&self, out: &mut Vec<u8>, v: u64) {
        if v == 0 {
            self.text(out, b"(nil)");
            return;
        }
        self.run(out, "p", |p, n, f| {
            // SAFETY: the specification has exactly one conversion, of a pointer, and the buffer has `n` bytes.
            unsafe { libc::snprintf(p, n, f, v) }
        });
    }

    /// `%b` and `%B`, which the C library of this process may not support.
    fn binary(&self, out: &mut Vec<u8>, conversion: u8, v: u64) {
        let mut digits = match (v, self.precision) {
            (0, Some(0)) => String::new(),
            _ => format!("{v:b}"),
        };
        let prefix = match self.alternative && v != 0 {
            true => format!("0{}", conversion as char),
            false => String::new(),
        };
        let least = match self.precision {
            Some(p) => p,
            None if self.zeros => self.width.saturating_sub(prefix.len()),
            None => 0,
        };
        if digits.len() < least {
            digits = format!("{digits:0>least$}");
        }
        self.text(out, (prefix + &digits).as_bytes());
    }

    /// Pads a text with spaces to the width.
    fn text(&self, out: &mut Vec<u8>, s: &[u8]) {
        let pad = self.width.saturating_sub(s.len());
        if !self.left {
            out.resize(out.len() + pad, b' ');
        }
        out.extend_from_slice(s);
        if self.left {
            out.resize(out.len() + pad, b' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PrintfArgument, print};

    /// The texts were printed by glibc 2.36 for the same values.
    #[test]
    fn unknown_and_incomplete_conversions_print_as_in_glibc() {
        let cases: [(&str, &[u64], &str); 14] = [
            ("%d %k %d", &[1, 2], "1 %k 2"),
            ("%8-d|%d", &[1], "%8-d|1"),
            ("%.-3d|%d", &[1], "%.0-3d|1"),
            ("%5.3.2d|%d", &[1], "%5.3.2d|1"),
            ("%-+ #'0I8.3k|%d", &[5], "%#'+-I8.3k|5"),
            ("%zzd|%d", &[1], "%zd|1"),
            ("%hhLd|%lLd|%d", &[1], "%Ld|%Ld|1"),
            ("%5%|%-5%|%.3%|%l%|%08%|%d", &[1], "%|%|%|%|%|1"),
            ("abc %d end %5", &[1], "abc 1 end "),
            ("abc %k %d end %5", &[1], "abc %k 1 end %5"),
            ("%d%99999999999d|", &[1], "1"),
            ("%m|%d", &[5], "Success|5"),
            ("%p|%-8p|%.3p", &[0, 0, 1], "(nil)|(nil)   |0x001"),
            ("%lc|%d", &[0xe4, 1], "\u{e4}|1"),
        ];
        for (format, values, text) in cases {
            let slots = values.iter().map(|&v| PrintfArgument::Bits(v)).collect();
            let printed = print(format.as_bytes(), slots);
            assert_eq!(String::from_utf8_lossy(&printed), text, "{format}");
        }
    }

    #[test]
    fn formats_without_known_conversions_are_copied() {
        for format in ["%zu", "100%", "%", "", "%k and %.*f", "%5"] {
            assert_eq!(print(format.as_bytes(), Vec::new()), format.as_bytes());
        }
        assert_eq!(print(b"100%%", Vec::new()), b"100%");
    }
}
