//! The instruction sets that the compiler emits.

use iced_x86::Register;

use super::homes::SCRATCH;
use crate::settings;

/// An instruction set.
///
/// The translation is written for AVX-512. With [`Isa::Avx2`], the assembler emits [other instructions](super::avx2) for each.
pub use crate::settings::Instructions as Isa;

impl Isa {
    /// The one that the setting selects, otherwise the widest; `None` if this machine has not got it.
    pub fn selected() -> Option<Isa> {
        let wanted = settings::instructions().ok().flatten();
        let mut candidates = [Isa::Avx512, Isa::Avx2].into_iter();
        candidates.find(|isa| wanted.is_none_or(|w| w == *isa) && isa.are_available())
    }

    /// Lanes of a chunk: the 32-bit elements of a vector register.
    pub fn lanes(self) -> usize {
        match self {
            Isa::Avx2 => 8,
            Isa::Avx512 => 16,
        }
    }

    /// A mask of all lanes of a chunk.
    pub fn all_lanes(self) -> u32 {
        (1 << self.lanes()) - 1
    }

    /// Bytes of a vector register.
    pub fn bytes(self) -> i64 {
        4 * self.lanes() as i64
    }

    /// Number of vector registers that can be homes.
    pub fn homes(self) -> u32 {
        match self {
            Isa::Avx2 => super::avx2::FIRST_TEMPORARY - SCRATCH,
            Isa::Avx512 => 32 - SCRATCH,
        }
    }
}

/// The number of a vector register, whatever its width.
pub fn number(r: Register) -> Option<u32> {
    let n = r as u32;
    [Register::XMM0, Register::YMM0, Register::ZMM0]
        .into_iter()
        .map(|first| n.wrapping_sub(first as u32))
        .find(|n| *n < 32)
}
