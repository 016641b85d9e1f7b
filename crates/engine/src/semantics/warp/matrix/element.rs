//! The types of the elements of matrices.

use cupyrite_ptx::ir::{Instr, Type, Word};

use super::float::Format;
use crate::semantics::lane::{from_e4m3, from_e5m2};

/// The type of the elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    F16,
    BF16,
    /// 19 bits of an `f32`.
    TF32,
    F32,
    F64,
    E4M3,
    E5M2,
    S32,
    S8,
    U8,
    S4,
    U4,
    /// A word of 32 elements of one bit.
    Bits,
}

impl Element {
    /// Bits in a register.
    pub fn bits(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::TF32 | Self::F32 | Self::S32 | Self::Bits => 32,
            Self::F16 | Self::BF16 => 16,
            Self::E4M3 | Self::E5M2 | Self::S8 | Self::U8 => 8,
            Self::S4 | Self::U4 => 4,
        }
    }

    /// The format that numbers are multiplied in.
    pub fn format(self) -> Format {
        match self {
            // Numbers of eight bits are converted to half precision.
            Self::F16 | Self::E4M3 | Self::E5M2 => Format::F16,
            Self::BF16 => Format::BF16,
            Self::TF32 => Format::TF32,
            _ => Format::F32,
        }
    }

    /// The bits of a number in that format.
    #[inline(always)]
    pub fn converted(self, bits: u32) -> u32 {
        match self {
            Self::TF32 => bits >> 13,
            Self::E4M3 => u32::from(from_e4m3(bits as u16)),
            Self::E5M2 => u32::from(from_e5m2(bits as u16)),
            _ => bits,
        }
    }

    /// The value of an integer in the low bits of a word.
    #[inline(always)]
    pub fn integer(self, word: u32) -> i32 {
        let unused = 32 - self.bits();
        match self {
            Self::U8 | Self::U4 => (word << unused >> unused).cast_signed(),
            _ => word.cast_signed() << unused >> unused,
        }
    }

    /// The elements of registers of this type.
    fn of_type(ty: Type) -> Option<Self> {
        Some(match ty {
            Type::F16 => Self::F16,
            Type::BF16 => Self::BF16,
            Type::TF32 => Self::TF32,
            Type::F32 => Self::F32,
            Type::F64 => Self::F64,
            Type::E4M3 => Self::E4M3,
            Type::E5M2 => Self::E5M2,
            Type::S32 => Self::S32,
            Type::S8 => Self::S8,
            Type::U8 => Self::U8,
            _ => return None,
        })
    }

    /// The elements that a modifier names: `s4`, `u4` and `b1` are not types of registers.
    fn of_word(word: &Word) -> Option<Self> {
        Some(match word {
            Word::S4 => Self::S4,
            Word::U4 => Self::U4,
            Word::B1 => Self::Bits,
            _ => return None,
        })
    }
}

/// The type of the matrix of `wmma.load` or `wmma.store`.
pub fn element_type(i: &Instr) -> Option<Element> {
    let narrow = i.mods.other.iter().find_map(Element::of_word);
    narrow.or_else(|| Element::of_type(*i.types.first()?))
}

/// The types of D, A, B and C of a product.
pub fn element_types(i: &Instr) -> Option<[Element; 4]> {
    let mut narrow = i.mods.other.iter().filter_map(Element::of_word);
    if let (Some(a), Some(b)) = (narrow.next(), narrow.next()) {
        return Some([Element::S32, a, b, Element::S32]);
    }
    let types = i.types.iter().map(|ty| Element::of_type(*ty));
    match types.collect::<Option<Vec<_>>>()?[..] {
        [d, a, b, c] => Some([d, a, b, c]),
        // `wgmma` adds to D.
        [d, a, b] => Some([d, a, b, d]),
        // `wmma.mma` of half-precision matrices names the accumulators only.
        [d, c] => Some([d, Element::F16, Element::F16, c]),
        _ => None,
    }
}
