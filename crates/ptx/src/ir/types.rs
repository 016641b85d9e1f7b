//! State spaces and fundamental types.

/// State spaces (PTX ISA, "State Spaces").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Space {
    Reg,
    Const,
    Global,
    Local,
    /// `.param`, `.param::entry` and `.param::func`.
    Param,
    /// `.shared` and `.shared::cta`.
    Shared,
    /// `.shared::cluster`.
    SharedCluster,
    Tex,
}

/// Fundamental types (PTX ISA, "Fundamental Types" and "Alternate Floating-Point Data Formats").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    U16x2,
    S16x2,
    F16,
    F16x2,
    BF16,
    BF16x2,
    TF32,
    F32,
    F32x2,
    F64,
    E4M3,
    E5M2,
    E4M3x2,
    E5M2x2,
    /// Any other sub-byte or packed format, by its width in bits. [`Mods::other`](super::Mods::other) holds its name.
    Packed(u16),
    TexRef,
    SamplerRef,
    SurfRef,
}

impl Type {
    /// Width in bits: 1 for a predicate, 64 for an opaque reference.
    pub const fn bits(self) -> u32 {
        use Type::*;
        match self {
            Pred => 1,
            B8 | U8 | S8 | E4M3 | E5M2 => 8,
            B16 | U16 | S16 | F16 | BF16 | E4M3x2 | E5M2x2 => 16,
            B32 | U32 | S32 | F32 | TF32 | F16x2 | BF16x2 | U16x2 | S16x2 => 32,
            B64 | U64 | S64 | F64 | F32x2 | TexRef | SamplerRef | SurfRef => 64,
            B128 => 128,
            Packed(n) => n as u32,
        }
    }
    /// Size in memory in bytes; zero for a predicate.
    pub const fn bytes(self) -> u32 {
        if let Type::Pred = self {
            0
        } else {
            self.bits().div_ceil(8)
        }
    }
    /// Whether this is a signed integer type, `.s16x2` included.
    pub const fn is_signed(self) -> bool {
        matches!(
            self,
            Type::S8 | Type::S16 | Type::S32 | Type::S64 | Type::S16x2
        )
    }
    /// Whether this is a floating-point format, packed ones included.
    pub const fn is_float(self) -> bool {
        use Type::*;
        matches!(
            self,
            F16 | F16x2 | BF16 | BF16x2 | TF32 | F32 | F32x2 | F64 | E4M3 | E5M2 | E4M3x2 | E5M2x2
        )
    }
}
