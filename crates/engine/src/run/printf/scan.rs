//! Conversions that a GPU and its driver support, with the kinds of their arguments.

/// Kind of an argument that a conversion takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    /// None: `%%`.
    Nothing,
    /// An integer of 4 bytes; also a width from an argument.
    Word,
    /// An integer of 8 bytes or a pointer.
    Long,
    /// A floating-point number.
    Double,
    /// The address of a string.
    Text,
}

impl ArgumentKind {
    /// Size in the arguments of the call, in bytes.
    pub(super) const fn bytes(self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Word => 4,
            Self::Long | Self::Double | Self::Text => 8,
        }
    }
}

/// The parser of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The kernel's, which copies the arguments.
    Device,
    /// The driver's, which reads them back. It also supports `hh`.
    Host,
}

/// The kinds of arguments that the conversions of `format` take, in order.
///
/// A conversion is `%`, flags of `-+ #0`, a width of digits or `*`, a precision of digits, a size of `h`, `l` or `ll`,
/// and one of `%cdiouxXpeEfFgGaAs`. Neither parser supports a precision of `*`, the sizes `z`, `t`, `j`, `L` and `q`,
/// and other letters: such a conversion takes no arguments, not even that of its width, and is searched for the next
/// `%`.
pub(super) fn conversions(format: &[u8], side: Side) -> Vec<ArgumentKind> {
    let mut kinds = Vec::new();
    let mut rest = format;
    while let Some(start) = rest.iter().position(|&c| c == b'%') {
        rest = &rest[start + 1..];
        if let Some((star, kind, length)) = conversion(rest, side) {
            kinds.extend(star.then_some(ArgumentKind::Word));
            kinds.push(kind);
            rest = &rest[length..];
        }
    }
    kinds
}

/// Whether the width of the conversion after a `%` is an argument, the kind of its argument, and its length.
fn conversion(text: &[u8], side: Side) -> Option<(bool, ArgumentKind, usize)> {
    let digits = |from: usize| {
        let n = text[from..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .count();
        from + n
    };
    let mut n = text.iter().take_while(|c| b"-+ #0".contains(c)).count();
    let star = text.get(n) == Some(&b'*');
    n = if star { n + 1 } else { digits(n) };
    if text.get(n) == Some(&b'.') {
        n = digits(n + 1);
    }
    let sizes: &[&[u8]] = match side {
        Side::Device => &[b"ll", b"l", b"h"],
        Side::Host => &[b"ll", b"l", b"hh", b"h"],
    };
    let size = sizes
        .iter()
        .find(|s| text[n..].starts_with(s))
        .copied()
        .unwrap_or_default();
    n += size.len();
    let kind = match text.get(n)? {
        b'%' => ArgumentKind::Nothing,
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' if size.starts_with(b"l") => ArgumentKind::Long,
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' => ArgumentKind::Word,
        b'p' => ArgumentKind::Long,
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => ArgumentKind::Double,
        b's' => ArgumentKind::Text,
        _ => return None,
    };
    Some((star, kind, n + 1))
}
