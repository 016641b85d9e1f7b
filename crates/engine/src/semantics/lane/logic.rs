//! Logic, shifts, bit fields and moves (PTX ISA, "Logic and Shift Instructions", the bit instructions of "Integer
//! Arithmetic Instructions", `mov`, `prmt`).

use super::lanes::lane;
use super::operation::{OpFn, OperandRef, OperandSlot, Selected, Slot};
use cupyrite_ptx::ir::{BoolOp, ClampMode, Instr, Op, Operand, PrmtMode, Type};

/// Selects the function of a logic, shift, bit-field or move instruction.
pub(super) fn select(i: &Instr) -> Option<Selected> {
    let t = *i.types.first()?;
    let m = &i.mods;
    let same = |code: OpFn, sources: usize| Some(Selected::new(code, t, &[t; 4][..sources]));
    match i.op {
        Op::And | Op::Or | Op::Xor => same(binary(i.op, t)?, 2),
        Op::Not => same(not(t)?, 1),
        Op::Cnot => same(cnot(t)?, 1),
        Op::Lop3 => lop3(i),
        Op::Shl => Some(Selected::new(shl(t)?, t, &[t, Type::U32])),
        Op::Shr => Some(Selected::new(shr(t)?, t, &[t, Type::U32])),
        Op::Shf => same(shf(m.shift_left?, m.clamp? == ClampMode::Wrap), 3),
        Op::Prmt => same(prmt(m.prmt), 3),
        Op::Popc => Some(Selected::new(popc(t)?, Type::U32, &[t])),
        Op::Clz => Some(Selected::new(clz(t)?, Type::U32, &[t])),
        Op::Bfind => Some(Selected::new(bfind(t, m.shiftamt)?, Type::U32, &[t])),
        Op::Fns => Some(Selected::new(
            fns(),
            Type::B32,
            &[Type::B32, Type::B32, Type::S32],
        )),
        Op::Brev => same(brev(t)?, 1),
        Op::Bfe => Some(Selected::new(bfe(t)?, t, &[t, Type::U32, Type::U32])),
        Op::Bfi => Some(Selected::new(bfi(t)?, t, &[t, t, Type::U32, Type::U32])),
        Op::Bmsk => Some(Selected::new(
            bmsk(m.clamp == Some(ClampMode::Wrap)),
            Type::B32,
            &[Type::U32, Type::U32],
        )),
        Op::Szext => {
            let code = szext(t, m.clamp == Some(ClampMode::Wrap))?;
            Some(Selected::new(code, t, &[t, Type::U32]))
        }
        Op::Mov => mov(i, t),
        _ => None,
    }
}

fn binary(op: Op, t: Type) -> Option<OpFn> {
    macro_rules! ops {
        ($t:ty) => {
            match op {
                Op::And => lane!(|a: $t, b: $t| -> $t { a & b }),
                Op::Or => lane!(|a: $t, b: $t| -> $t { a | b }),
                _ => lane!(|a: $t, b: $t| -> $t { a ^ b }),
            }
        };
    }
    Some(match t {
        Type::Pred => ops!(bool),
        Type::B16 | Type::B32 => ops!(u32),
        Type::B64 => ops!(u64),
        _ => return None,
    })
}

fn not(t: Type) -> Option<OpFn> {
    Some(match t {
        Type::Pred => lane!(|a: bool| -> bool { !a }),
        Type::B16 => lane!(|a: u16| -> u16 { !a }),
        Type::B32 => lane!(|a: u32| -> u32 { !a }),
        Type::B64 => lane!(|a: u64| -> u64 { !a }),
        _ => return None,
    })
}

fn cnot(t: Type) -> Option<OpFn> {
    Some(match t {
        Type::B16 => lane!(|a: u16| -> u16 { u16::from(a == 0) }),
        Type::B32 => lane!(|a: u32| -> u32 { u32::from(a == 0) }),
        Type::B64 => lane!(|a: u64| -> u64 { u64::from(a == 0) }),
        _ => return None,
    })
}

/// A bit of the table, repeated in a word.
#[inline(always)]
fn spread(table: u32, bit: u32) -> u32 {
    (table >> bit & 1).wrapping_neg()
}
/// The bits of `b` where `a` is 1, and of `c` where it is 0.
#[inline(always)]
fn mux(a: u32, b: u32, c: u32) -> u32 {
    (a & b) | (!a & c)
}
/// Bit `4a + 2b + c` of the table for every bit position.
#[inline(always)]
fn lookup(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let with = |n: u32| mux(c, spread(table, n + 1), spread(table, n));
    mux(a, mux(b, with(6), with(4)), mux(b, with(2), with(0)))
}

/// `lop3.b32 d, a, b, c, table` and `lop3.BoolOp.b32 d|p, a, b, c, table, q`.
fn lop3(i: &Instr) -> Option<Selected> {
    let Some(&Operand::Int(table)) = i.operands.get(4) else {
        return None;
    };
    let table = table as u32 & 0xff;
    let word = Type::B32;
    if let Some(op) = i.mods.bool_op {
        let code = match op {
            BoolOp::And => lane!(imm n; |a: u32, b: u32, c: u32, q: bool| -> (u32, bool) {
                let d = lookup(a, b, c, n);
                (d, (d != 0) & (q ^ (n >> 8 != 0)))
            }),
            BoolOp::Or => lane!(imm n; |a: u32, b: u32, c: u32, q: bool| -> (u32, bool) {
                let d = lookup(a, b, c, n);
                (d, (d != 0) | (q ^ (n >> 8 != 0)))
            }),
            BoolOp::Xor => return None,
        };
        let mut s = Selected::new(code, word, &[word, word, word]);
        let flag = |operand| Some(OperandSlot::new(operand, Type::Pred));
        s.dsts[0] = Some(OperandSlot::new(OperandRef::Part(0, 0), word));
        s.dsts[1] = flag(OperandRef::Part(0, 1));
        s.srcs[3] = flag(OperandRef::Operand(5));
        let negated = matches!(i.operands.get(5), Some(Operand::NotReg(_)));
        return Some(s.with_imm(table | u32::from(negated) << 8));
    }
    let code = match table {
        0x80 => lane!(|a: u32, b: u32, c: u32| -> u32 { a & b & c }),
        0xfe => lane!(|a: u32, b: u32, c: u32| -> u32 { a | b | c }),
        0x96 => lane!(|a: u32, b: u32, c: u32| -> u32 { a ^ b ^ c }),
        0xe8 => lane!(|a: u32, b: u32, c: u32| -> u32 { (a & b) | (c & (a | b)) }),
        0xca => lane!(|a: u32, b: u32, c: u32| -> u32 { mux(a, b, c) }),
        0xea => lane!(|a: u32, b: u32, c: u32| -> u32 { (a & b) | c }),
        0xf8 => lane!(|a: u32, b: u32, c: u32| -> u32 { a | (b & c) }),
        0x6a => lane!(|a: u32, b: u32, c: u32| -> u32 { (a & b) ^ c }),
        0x78 => lane!(|a: u32, b: u32, c: u32| -> u32 { a ^ (b & c) }),
        _ => lane!(imm n; |a: u32, b: u32, c: u32| -> u32 { lookup(a, b, c, n) }),
    };
    Some(Selected::new(code, word, &[word, word, word]).with_imm(table))
}

/// Shift amounts are unsigned 32-bit numbers for every type. An amount beyond the width shifts all bits out.
fn shl(t: Type) -> Option<OpFn> {
    Some(match t {
        Type::B16 => lane!(|a: u16, n: u32| -> u16 {
            if n < 16 {
                (u32::from(a) << (n & 15)) as u16
            } else {
                0
            }
        }),
        Type::B32 => lane!(|a: u32, n: u32| -> u32 { if n < 32 { a << (n & 31) } else { 0 } }),
        Type::B64 => lane!(|a: u64, n: u32| -> u64 { if n < 64 { a << (n & 63) } else { 0 } }),
        _ => return None,
    })
}

fn shr(t: Type) -> Option<OpFn> {
    Some(match t {
        Type::B16 | Type::U16 => {
            lane!(|a: u16, n: u32| -> u16 { (u32::from(a) >> n.min(31)) as u16 })
        }
        Type::S16 => lane!(|a: i16, n: u32| -> i16 { (i32::from(a) >> n.min(31)) as i16 }),
        Type::B32 | Type::U32 => {
            lane!(|a: u32, n: u32| -> u32 { if n < 32 { a >> (n & 31) } else { 0 } })
        }
        Type::S32 => lane!(|a: i32, n: u32| -> i32 { a >> n.min(31) }),
        Type::B64 | Type::U64 => {
            lane!(|a: u64, n: u32| -> u64 { if n < 64 { a >> (n & 63) } else { 0 } })
        }
        Type::S64 => lane!(|a: i64, n: u32| -> i64 { a >> n.min(63) }),
        _ => return None,
    })
}

/// `shf d, a, b, c`: shifts the 64-bit value `b:a` by `c`. The result is the upper word of a left shift or the lower word of
/// a right shift.
fn shf(left: bool, wrap: bool) -> OpFn {
    #[inline(always)]
    fn join(a: u32, b: u32) -> u64 {
        u64::from(b) << 32 | u64::from(a)
    }
    match (left, wrap) {
        (true, true) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { (join(a, b) << (c & 31) >> 32) as u32 })
        }
        (true, false) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { (join(a, b) << c.min(32) >> 32) as u32 })
        }
        (false, true) => lane!(|a: u32, b: u32, c: u32| -> u32 { (join(a, b) >> (c & 31)) as u32 }),
        (false, false) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { (join(a, b) >> c.min(32)) as u32 })
        }
    }
}

/// Byte `n & 7` of the eight bytes of `a` (low) and `b`, or its sign repeated eight times if bit 3 of `n` is set.
#[inline(always)]
fn pick(both: u64, n: u32, replicate: bool) -> u32 {
    let byte = (both >> (8 * (n & 7))) as u32 & 0xff;
    if replicate && n & 8 != 0 {
        (byte >> 7).wrapping_neg() & 0xff
    } else {
        byte
    }
}
#[inline(always)]
fn permute(a: u32, b: u32, n: [u32; 4], replicate: bool) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    let p = |k: usize| pick(both, n[k], replicate);
    p(0) | p(1) << 8 | p(2) << 16 | p(3) << 24
}

fn prmt(mode: Option<PrmtMode>) -> OpFn {
    match mode {
        None => lane!(|a: u32, b: u32, c: u32| -> u32 {
            permute(a, b, [c, c >> 4, c >> 8, c >> 12], true)
        }),
        Some(PrmtMode::F4e) => lane!(|a: u32, b: u32, c: u32| -> u32 {
            let c = c & 3;
            permute(a, b, [c, c + 1, c + 2, c + 3], false)
        }),
        Some(PrmtMode::B4e) => lane!(|a: u32, b: u32, c: u32| -> u32 {
            let c = c & 3;
            permute(a, b, [c, c + 7, c + 6, c + 5], false)
        }),
        Some(PrmtMode::Rc8) => {
            lane!(|a: u32, b: u32, c: u32| -> u32 { permute(a, b, [c & 3; 4], false) })
        }
        Some(PrmtMode::Ecl) => lane!(|a: u32, b: u32, c: u32| -> u32 {
            let c = c & 3;
            permute(a, b, [c, c.max(1), c.max(2), 3], false)
        }),
        Some(PrmtMode::Ecr) => lane!(|a: u32, b: u32, c: u32| -> u32 {
            let c = c & 3;
            permute(a, b, [0, c.min(1), c.min(2), c], false)
        }),
        Some(PrmtMode::Rc16) => lane!(|a: u32, b: u32, c: u32| -> u32 {
            let c = 2 * (c & 1);
            permute(a, b, [c, c + 1, c, c + 1], false)
        }),
    }
}

/// Number of ones, in a form that vectorizes without a vector population count.
#[inline(always)]
fn ones(a: u32) -> u32 {
    let a = a - (a >> 1 & 0x5555_5555);
    let a = (a & 0x3333_3333) + (a >> 2 & 0x3333_3333);
    let a = (a + (a >> 4)) & 0x0f0f_0f0f;
    a.wrapping_mul(0x0101_0101) >> 24
}

fn popc(t: Type) -> Option<OpFn> {
    Some(match t {
        Type::B32 => lane!(|a: u32| -> u32 { ones(a) }),
        Type::B64 => lane!(|a: u64| -> u32 { a.count_ones() }),
        _ => return None,
    })
}

fn clz(t: Type) -> Option<OpFn> {
    Some(match t {
        Type::B32 => lane!(|a: u32| -> u32 { a.leading_zeros() }),
        Type::B64 => lane!(|a: u64| -> u32 { a.leading_zeros() }),
        _ => return None,
    })
}

/// `bfind`: position of the most significant bit that differs from the sign, or with `.shiftamt` its distance from the top.
/// All ones if no bit differs.
fn bfind(t: Type, shiftamt: bool) -> Option<OpFn> {
    macro_rules! find {
        ($u:ty, |$a:ident| $e:expr) => {
            if shiftamt {
                lane!(|$a: $u| -> u32 {
                    let v = $e;
                    if v == 0 { u32::MAX } else { v.leading_zeros() }
                })
            } else {
                lane!(|$a: $u| -> u32 {
                    let v = $e;
                    if v == 0 { u32::MAX } else { <$u>::BITS - 1 - v.leading_zeros() }
                })
            }
        };
    }
    Some(match t {
        Type::U32 => find!(u32, |a| a),
        Type::U64 => find!(u64, |a| a),
        Type::S32 => find!(i32, |a| (a ^ (a >> 31)) as u32),
        Type::S64 => find!(i64, |a| (a ^ (a >> 63)) as u64),
        _ => return None,
    })
}

/// `fns`: position of the n-th set bit of `mask`, from bit `base` upwards (n > 0) or downwards (n < 0). For n = 0, `base` if
/// that bit is set. All ones if no such bit exists.
fn fns() -> OpFn {
    #[inline(always)]
    fn find(mask: u32, base: u32, n: i32) -> u32 {
        let base = base & 31;
        if n == 0 {
            return if mask >> base & 1 != 0 {
                base
            } else {
                u32::MAX
            };
        }
        let mut rest = if n > 0 {
            mask >> base << base
        } else {
            mask << (31 - base) >> (31 - base)
        };
        let count = n.unsigned_abs();
        if rest.count_ones() < count {
            return u32::MAX;
        }
        if n > 0 {
            for _ in 1..count {
                rest &= rest - 1;
            }
            rest.trailing_zeros()
        } else {
            for _ in 1..count {
                rest ^= 1 << (31 - rest.leading_zeros());
            }
            31 - rest.leading_zeros()
        }
    }
    lane!(|mask: u32, base: u32, n: i32| -> u32 { find(mask, base, n) })
}

fn brev(t: Type) -> Option<OpFn> {
    Some(match t {
        Type::B32 => lane!(|a: u32| -> u32 { a.reverse_bits() }),
        Type::B64 => lane!(|a: u64| -> u64 { a.reverse_bits() }),
        _ => return None,
    })
}

/// `bfe`. Position and length are the low bytes of their operands. A field that extends beyond the top is sign-extended from
/// its topmost bit, or zero-extended if unsigned.
fn bfe(t: Type) -> Option<OpFn> {
    macro_rules! extract {
        ($u:ty, $s:ty, $signed:literal) => {
            lane!(|a: $u, pos: u32, len: u32| -> $u {
                let (pos, len) = (pos & 0xff, len & 0xff);
                let top = <$u>::BITS - 1;
                if len == 0 {
                    0
                } else if $signed {
                    let v = if pos > top {
                        (a as $s) >> top
                    } else {
                        (a as $s) >> (pos & top)
                    };
                    let gap = <$u>::BITS - len.min(<$u>::BITS);
                    ((v << gap) >> gap) as $u
                } else {
                    let v = if pos > top { 0 } else { a >> (pos & top) };
                    let gap = <$u>::BITS - len.min(<$u>::BITS);
                    (v << gap) >> gap
                }
            })
        };
    }
    Some(match t {
        Type::U32 => extract!(u32, i32, false),
        Type::S32 => extract!(u32, i32, true),
        Type::U64 => extract!(u64, i64, false),
        Type::S64 => extract!(u64, i64, true),
        _ => return None,
    })
}

/// `bfi f, a, b, pos, len`: `b` with a field replaced by the low bits of `a`.
fn bfi(t: Type) -> Option<OpFn> {
    macro_rules! insert {
        ($u:ty) => {
            lane!(|a: $u, b: $u, pos: u32, len: u32| -> $u {
                let (pos, len) = (pos & 0xff, len & 0xff);
                if len == 0 || pos >= <$u>::BITS {
                    b
                } else {
                    let field = (<$u>::MAX >> (<$u>::BITS - len.min(<$u>::BITS))) << pos;
                    (b & !field) | ((a << pos) & field)
                }
            })
        };
    }
    Some(match t {
        Type::B32 => insert!(u32),
        Type::B64 => insert!(u64),
        _ => return None,
    })
}

/// `bmsk d, a, b`: a mask of `b` ones from bit `a` upwards.
fn bmsk(wrap: bool) -> OpFn {
    if wrap {
        lane!(|a: u32, b: u32| -> u32 { ((1u32 << (b & 31)) - 1) << (a & 31) })
    } else {
        lane!(|a: u32, b: u32| -> u32 {
            let ones = if b >= 32 {
                u32::MAX
            } else {
                (1 << (b & 31)) - 1
            };
            if a >= 32 { 0 } else { ones << (a & 31) }
        })
    }
}

/// `szext d, a, b`: extends the low `b` bits of `a`; zero if `b` is zero.
fn szext(t: Type, wrap: bool) -> Option<OpFn> {
    macro_rules! extend {
        ($t:ty, |$b:ident| $n:expr) => {
            lane!(|a: $t, $b: u32| -> $t {
                let n: u32 = $n;
                let gap = 32 - n;
                if n == 0 {
                    0
                } else {
                    (a << (gap & 31)) >> (gap & 31)
                }
            })
        };
    }
    Some(match (t, wrap) {
        (Type::U32, true) => extend!(u32, |b| b & 31),
        (Type::S32, true) => extend!(i32, |b| b & 31),
        (Type::U32, false) => extend!(u32, |b| b.min(32)),
        (Type::S32, false) => extend!(i32, |b| b.min(32)),
        _ => return None,
    })
}

fn mov(i: &Instr, t: Type) -> Option<Selected> {
    if i.mods.vector > 1 {
        return copy_vector(t, i.mods.vector as usize);
    }
    if let Some(Operand::Vector(parts)) = i.operands.first() {
        return unpack(t, parts.len());
    }
    if let Some(Operand::Vector(parts)) = i.operands.get(1) {
        return pack(t, parts.len());
    }
    let code = match Slot::of(t) {
        Slot::Pred => lane!(|a: bool| -> bool { a }),
        Slot::R32 => lane!(|a: u32| -> u32 { a }),
        Slot::R64 => lane!(|a: u64| -> u64 { a }),
        Slot::R128 => lane!(|a: u128| -> u128 { a }),
    };
    Some(Selected::new(code, t, &[t]))
}

/// `mov.v2.b32 {a, b}, {c, d}`: all sources are read before a destination is written.
fn copy_vector(t: Type, parts: usize) -> Option<Selected> {
    let code = match (t.bits(), parts) {
        (16, 2) => lane!(|a: u16, b: u16| -> (u16, u16) { (a, b) }),
        (16, 4) => {
            lane!(|a: u16, b: u16, c: u16, d: u16| -> (u16, u16, u16, u16) { (a, b, c, d) })
        }
        (32, 2) => lane!(|a: u32, b: u32| -> (u32, u32) { (a, b) }),
        (32, 4) => {
            lane!(|a: u32, b: u32, c: u32, d: u32| -> (u32, u32, u32, u32) { (a, b, c, d) })
        }
        (64, 2) => lane!(|a: u64, b: u64| -> (u64, u64) { (a, b) }),
        _ => return None,
    };
    let mut s = Selected::new(code, t, &[]);
    for n in 0..parts {
        s.dsts[n] = Some(OperandSlot::new(OperandRef::Part(0, n as u8), t));
        s.srcs[n] = Some(OperandSlot::new(OperandRef::Part(1, n as u8), t));
    }
    Some(s)
}

/// Bit type of a component of a packed value.
fn part(t: Type, parts: usize) -> Option<Type> {
    Some(match (t.bits(), parts) {
        (16, 2) | (32, 4) => Type::B8,
        (32, 2) | (64, 4) => Type::B16,
        (64, 2) | (128, 4) => Type::B32,
        (128, 2) => Type::B64,
        _ => return None,
    })
}

/// `mov.b64 d, {a, b}`: the first component is the least significant.
fn pack(t: Type, parts: usize) -> Option<Selected> {
    let p = part(t, parts)?;
    let code = match (t.bits(), parts) {
        (16, 2) => lane!(|a: u8, b: u8| -> u16 { u16::from(a) | u16::from(b) << 8 }),
        (32, 2) => lane!(|a: u16, b: u16| -> u32 { u32::from(a) | u32::from(b) << 16 }),
        (32, 4) => lane!(|a: u8, b: u8, c: u8, d: u8| -> u32 { u32::from_le_bytes([a, b, c, d]) }),
        (64, 2) => lane!(|a: u32, b: u32| -> u64 { u64::from(a) | u64::from(b) << 32 }),
        (64, 4) => lane!(|a: u16, b: u16, c: u16, d: u16| -> u64 {
            u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
        }),
        (128, 2) => lane!(|a: u64, b: u64| -> u128 { u128::from(a) | u128::from(b) << 64 }),
        (128, 4) => lane!(|a: u32, b: u32, c: u32, d: u32| -> u128 {
            u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64 | u128::from(d) << 96
        }),
        _ => return None,
    };
    let mut s = Selected::new(code, t, &[]);
    for n in 0..parts {
        s.srcs[n] = Some(OperandSlot::new(OperandRef::Part(1, n as u8), p));
    }
    Some(s)
}

/// `mov.b64 {a, b}, s`.
fn unpack(t: Type, parts: usize) -> Option<Selected> {
    let p = part(t, parts)?;
    let code = match (t.bits(), parts) {
        (16, 2) => lane!(|s: u16| -> (u8, u8) { (s as u8, (s >> 8) as u8) }),
        (32, 2) => lane!(|s: u32| -> (u16, u16) { (s as u16, (s >> 16) as u16) }),
        (32, 4) => lane!(|s: u32| -> (u8, u8, u8, u8) {
            (s as u8, (s >> 8) as u8, (s >> 16) as u8, (s >> 24) as u8)
        }),
        (64, 2) => lane!(|s: u64| -> (u32, u32) { (s as u32, (s >> 32) as u32) }),
        (64, 4) => lane!(|s: u64| -> (u16, u16, u16, u16) {
            (
                s as u16,
                (s >> 16) as u16,
                (s >> 32) as u16,
                (s >> 48) as u16,
            )
        }),
        (128, 2) => lane!(|s: u128| -> (u64, u64) { (s as u64, (s >> 64) as u64) }),
        (128, 4) => lane!(|s: u128| -> (u32, u32, u32, u32) {
            (
                s as u32,
                (s >> 32) as u32,
                (s >> 64) as u32,
                (s >> 96) as u32,
            )
        }),
        _ => return None,
    };
    let mut s = Selected::new(code, t, &[t]);
    for n in 0..parts {
        s.dsts[n] = Some(OperandSlot::new(OperandRef::Part(0, n as u8), p));
    }
    Some(s)
}
