//! From the words after an opcode to [`Mods`] and types.
//!
//! [`OpClass::checks_modifiers`] tells which opcodes reject an unknown word; the others keep it in [`Mods::other`].

use crate::ir::*;

/// The type with this name.
pub(crate) fn type_of(word: &str) -> Option<Type> {
    use Type::*;
    Some(match word {
        "pred" => Pred,
        "b8" => B8,
        "b16" => B16,
        "b32" => B32,
        "b64" => B64,
        "b128" => B128,
        "u8" => U8,
        "u16" => U16,
        "u32" => U32,
        "u64" => U64,
        "s8" => S8,
        "s16" => S16,
        "s32" => S32,
        "s64" => S64,
        "u16x2" => U16x2,
        "s16x2" => S16x2,
        "f16" => F16,
        "f16x2" => F16x2,
        "bf16" => BF16,
        "bf16x2" => BF16x2,
        "tf32" => TF32,
        "f32" => F32,
        "f32x2" => F32x2,
        "f64" => F64,
        "e4m3" => E4M3,
        "e5m2" => E5M2,
        "e4m3x2" => E4M3x2,
        "e5m2x2" => E5M2x2,
        "texref" => TexRef,
        "samplerref" => SamplerRef,
        "surfref" => SurfRef,
        _ => Packed(packed_bits(word)?),
    })
}

/// Width of the formats without a [`Type`] of their own.
fn packed_bits(word: &str) -> Option<u16> {
    Some(match word {
        "b1" => 1,
        "s2" | "u2" => 2,
        "s4" | "u4" | "b4" | "e2m1" => 4,
        "e2m3" | "e3m2" | "b6" => 6,
        "ue8m0" | "ue4m3" | "e2m1x2" => 8,
        "ue8m0x2" | "e2m3x2" | "e3m2x2" | "e2m1x4" | "s2f6x2" => 16,
        "e4m3x4" | "e5m2x4" | "e2m3x4" | "e3m2x4" | "u8x4" | "s8x4" | "b8x4" | "b16x2" => 32,
        "u32x2" | "s32x2" | "b32x2" => 64,
        "b1024" => 1024,
        _ => return None,
    })
}

/// The state space with this name.
pub(crate) fn space_of(word: &str) -> Option<Space> {
    Some(match word {
        "reg" => Space::Reg,
        "const" => Space::Const,
        "global" => Space::Global,
        "local" => Space::Local,
        "param" | "param::entry" | "param::func" => Space::Param,
        "shared" | "shared::cta" => Space::Shared,
        "shared::cluster" => Space::SharedCluster,
        "tex" => Space::Tex,
        _ => return None,
    })
}

fn cmp_of(word: &str) -> Option<Cmp> {
    Some(match word {
        "eq" => Cmp::Eq,
        "ne" => Cmp::Ne,
        "lt" => Cmp::Lt,
        "le" => Cmp::Le,
        "gt" => Cmp::Gt,
        "ge" => Cmp::Ge,
        "lo" => Cmp::Lo,
        "ls" => Cmp::Ls,
        "hi" => Cmp::Hi,
        "hs" => Cmp::Hs,
        "equ" => Cmp::Equ,
        "neu" => Cmp::Neu,
        "ltu" => Cmp::Ltu,
        "leu" => Cmp::Leu,
        "gtu" => Cmp::Gtu,
        "geu" => Cmp::Geu,
        "num" => Cmp::Num,
        "nan" => Cmp::Nan,
        _ => return None,
    })
}

fn atom_of(word: &str) -> Option<AtomOp> {
    Some(match word {
        "and" => AtomOp::And,
        "or" => AtomOp::Or,
        "xor" => AtomOp::Xor,
        "cas" => AtomOp::Cas,
        "exch" => AtomOp::Exch,
        "add" => AtomOp::Add,
        "inc" => AtomOp::Inc,
        "dec" => AtomOp::Dec,
        "min" => AtomOp::Min,
        "max" => AtomOp::Max,
        "popc" => AtomOp::Popc,
        _ => return None,
    })
}

fn bool_of(word: &str) -> Option<BoolOp> {
    Some(match word {
        "and" => BoolOp::And,
        "or" => BoolOp::Or,
        "xor" => BoolOp::Xor,
        _ => return None,
    })
}

fn rounding_of(word: &str) -> Option<Rounding> {
    Some(match word {
        "rn" => Rounding::Rn,
        "rna" => Rounding::Rna,
        "rz" => Rounding::Rz,
        "rm" => Rounding::Rm,
        "rp" => Rounding::Rp,
        "rni" => Rounding::Rni,
        "rzi" => Rounding::Rzi,
        "rmi" => Rounding::Rmi,
        "rpi" => Rounding::Rpi,
        "rs" => Rounding::Rs,
        _ => return None,
    })
}

fn semantics_of(word: &str) -> Option<Semantics> {
    Some(match word {
        "weak" => Semantics::Weak,
        "relaxed" => Semantics::Relaxed,
        "acquire" => Semantics::Acquire,
        "release" => Semantics::Release,
        "acq_rel" => Semantics::AcqRel,
        "sc" => Semantics::Sc,
        _ => return None,
    })
}

fn scope_of(word: &str) -> Option<Scope> {
    Some(match word {
        "cta" => Scope::Cta,
        "cluster" => Scope::Cluster,
        "gpu" => Scope::Gpu,
        "sys" => Scope::Sys,
        _ => return None,
    })
}

fn clamp_of(word: &str) -> Option<ClampMode> {
    Some(match word {
        "clamp" => ClampMode::Clamp,
        "wrap" => ClampMode::Wrap,
        "zero" => ClampMode::Zero,
        "trap" => ClampMode::Trap,
        _ => return None,
    })
}

fn testp_of(word: &str) -> Option<TestpOp> {
    Some(match word {
        "finite" => TestpOp::Finite,
        "infinite" => TestpOp::Infinite,
        "number" => TestpOp::Number,
        "notanumber" => TestpOp::NotANumber,
        "normal" => TestpOp::Normal,
        "subnormal" => TestpOp::Subnormal,
        _ => return None,
    })
}

fn prmt_of(word: &str) -> Option<PrmtMode> {
    Some(match word {
        "f4e" => PrmtMode::F4e,
        "b4e" => PrmtMode::B4e,
        "rc8" => PrmtMode::Rc8,
        "ecl" => PrmtMode::Ecl,
        "ecr" => PrmtMode::Ecr,
        "rc16" => PrmtMode::Rc16,
        _ => return None,
    })
}

/// Sets a field unless it is set; returns whether it did.
fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    if value.is_some() && field.is_none() {
        *field = value;
        true
    } else {
        false
    }
}

/// Applies one word. Returns false if the opcode does not have it.
pub(crate) fn apply(op: Op, word: &str, mods: &mut Mods, types: &mut Vec<Type>) -> bool {
    if let Some(ty) = type_of(word) {
        if let Type::Packed(_) = ty {
            mods.other.push(word.to_string());
        }
        types.push(ty);
        return true;
    }
    if special(op, word, mods) || general(op, word, mods) {
        return true;
    }
    let kept = keeps(op, word);
    if kept {
        mods.other.push(word.to_string());
    }
    kept
}

/// Words with a meaning that is specific to an opcode.
fn special(op: Op, word: &str, mods: &mut Mods) -> bool {
    use Op::*;
    match op {
        Setp | Set => set(&mut mods.cmp, cmp_of(word)) || set(&mut mods.bool_op, bool_of(word)),
        Vset | Vset2 | Vset4 => {
            set(&mut mods.cmp, cmp_of(word)) || set(&mut mods.atom, atom_of(word))
        }
        Atom | Red | Redux | Multimem | CpReduceAsync => set(&mut mods.atom, atom_of(word)),
        Bar | Barrier => mods.has("red") && set(&mut mods.atom, atom_of(word)),
        Lop3 => set(&mut mods.bool_op, bool_of(word)),
        Mul | Mad | Mul24 | Mad24 | Madc | Dp2a => {
            let half = match word {
                "lo" => Some(MulHalf::Lo),
                "hi" => Some(MulHalf::Hi),
                "wide" => Some(MulHalf::Wide),
                _ => None,
            };
            set(&mut mods.mul, half)
        }
        Shf => {
            let left = match word {
                "l" => Some(true),
                "r" => Some(false),
                _ => None,
            };
            set(&mut mods.shift_left, left) || set(&mut mods.clamp, clamp_of(word))
        }
        Shfl => {
            let mode = match word {
                "up" => Some(ShflMode::Up),
                "down" => Some(ShflMode::Down),
                "bfly" => Some(ShflMode::Bfly),
                "idx" => Some(ShflMode::Idx),
                _ => None,
            };
            set(&mut mods.shfl, mode)
        }
        Vote => {
            let mode = match word {
                "all" => Some(VoteMode::All),
                "any" => Some(VoteMode::Any),
                "uni" => Some(VoteMode::Uni),
                "ballot" => Some(VoteMode::Ballot),
                _ => None,
            };
            set(&mut mods.vote, mode)
        }
        Testp => set(&mut mods.testp, testp_of(word)),
        Prmt => set(&mut mods.prmt, prmt_of(word)),
        Membar if word == "gl" => set(&mut mods.scope, Some(Scope::Gpu)),
        Szext | Bmsk | Suld | Sust => set(&mut mods.clamp, clamp_of(word)),
        Vshl | Vshr | Sured => {
            set(&mut mods.clamp, clamp_of(word)) || set(&mut mods.atom, atom_of(word))
        }
        _ if op.class() == OpClass::Video => set(&mut mods.atom, atom_of(word)),
        _ => false,
    }
}

/// Words that have one meaning for all opcodes.
fn general(op: Op, word: &str, mods: &mut Mods) -> bool {
    use Op::*;
    let flag = match word {
        "ftz" => &mut mods.ftz,
        "sat" => &mut mods.sat,
        "satfinite" => &mut mods.satfinite,
        "relu" => &mut mods.relu,
        "approx" => &mut mods.approx,
        "full" => &mut mods.full,
        "NaN" => &mut mods.nan,
        "xorsign" => &mut mods.xorsign,
        "abs" => &mut mods.abs,
        "noftz" => &mut mods.noftz,
        "cc" => &mut mods.cc,
        "shiftamt" => &mut mods.shiftamt,
        "to" => &mut mods.to,
        "volatile" => &mut mods.volatile,
        "nc" => &mut mods.nc,
        "sync" => &mut mods.sync,
        "aligned" => &mut mods.aligned,
        "uni" => &mut mods.uni,
        _ => return valued(op, word, mods),
    };
    let fits = match word {
        "to" => op == Cvta,
        "volatile" => matches!(op, Ld | St | Tcgen05),
        "nc" => op == Ld,
        "cc" => matches!(op, Add | Addc | Sub | Subc | Mad | Madc),
        "shiftamt" => op == Bfind,
        "uni" => matches!(op, Bra | BrxIdx | Call | Ret),
        "full" | "approx" | "ftz" | "sat" | "satfinite" | "relu" | "NaN" | "xorsign" | "abs" => {
            op.class().is_computation() || !op.class().checks_modifiers() || op == Redux
        }
        "noftz" => matches!(op, Atom | Red | Multimem | CpReduceAsync),
        _ => !op.class().is_computation(),
    };
    if fits {
        *flag = true;
    }
    fits
}

/// Words that are one of several values.
fn valued(op: Op, word: &str, mods: &mut Mods) -> bool {
    use Op::*;
    if let Some(r) = rounding_of(word) {
        return (op.class().is_computation() || !op.class().checks_modifiers())
            && set(&mut mods.rounding, Some(r));
    }
    if op.class().is_computation() && !matches!(op, Mov | Cvta | Isspacep | Mapa | Getctarank) {
        return false;
    }
    if let Some(space) = space_of(word) {
        if matches!(
            op.class(),
            OpClass::Barrier | OpClass::ControlFlow | OpClass::WarpCollective
        ) {
            return false;
        }
        if mods.space.is_none() {
            mods.space = Some(space);
        } else if !set(&mut mods.space2, Some(space)) {
            mods.other.push(word.to_string());
        }
        return true;
    }
    match word {
        "v2" | "v4" | "v8" if mods.vector == 0 => {
            mods.vector = u32::from(word.as_bytes()[1] - b'0');
            true
        }
        _ if matches!(
            op,
            Bra | Call | Ret | Shfl | Vote | Match | Redux | Mov | Cvta | Isspacep
        ) =>
        {
            false
        }
        _ => set(&mut mods.semantics, semantics_of(word)) || set(&mut mods.scope, scope_of(word)),
    }
}

/// Words of an opcode that have no field in [`Mods`].
fn keeps(op: Op, word: &str) -> bool {
    use Op::*;
    if !op.class().checks_modifiers() {
        return true;
    }
    let cached =
        || word.starts_with("L1::") || word.starts_with("L2::") || word.starts_with("level::");
    match op {
        Fma => word == "oob",
        Cvt => word.starts_with("scaled::"),
        Vmad => matches!(word, "po" | "shr7" | "shr15"),
        Ld | Ldu => {
            matches!(word, "ca" | "cg" | "cs" | "lu" | "cv" | "mmio" | "unified") || cached()
        }
        St => {
            matches!(word, "wb" | "cg" | "cs" | "wt" | "mmio" | "async" | "bulk")
                || cached()
                || word.starts_with("mbarrier::")
        }
        Atom | Red => {
            matches!(word, "async" | "mmio") || cached() || word.starts_with("mbarrier::")
        }
        Bar | Barrier => matches!(word, "arrive" | "red"),
        BarrierCluster => matches!(word, "arrive" | "wait"),
        Match => matches!(word, "any" | "all"),
        Membar | Fence => {
            matches!(
                word,
                "proxy" | "alias" | "async" | "tensormap" | "mbarrier_init"
            ) || word.contains("::")
        }
        Pmevent => word == "mask",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::apply;
    use crate::ir::*;
    use crate::parse::opcode_lookup;

    /// The parser accepts every instruction form found in the output of NVRTC and keeps all of its words.
    #[test]
    fn forms_emitted_by_nvrtc_keep_every_word() {
        let mut count = 0;
        for form in include_str!("../../tests/data/forms.txt").lines() {
            let mut words = form.split('.');
            let first = words.next().unwrap_or("");
            let words: Vec<&str> = words.collect();
            let (op, used) = opcode_lookup::find(first, &words[..words.len().min(2)])
                .unwrap_or_else(|| panic!("{form}"));
            let (mut mods, mut types) = (Mods::default(), Vec::new());
            for word in &words[used..] {
                assert!(apply(op, word, &mut mods, &mut types), "{form}: {word}");
            }
            let instr = Instr {
                guard: None,
                op,
                mods,
                types,
                operands: vec![],
                pos: Pos::default(),
                loc: None,
            };
            let sorted = |text: &str| {
                let text = text
                    .replace("shared::cta", "shared")
                    .replace("membar.gl", "membar.gpu");
                let mut words: Vec<String> = text.split('.').map(str::to_string).collect();
                words.sort();
                words
            };
            assert_eq!(sorted(form), sorted(&instr.mnemonic()));
            count += 1;
        }
        assert_eq!(count, 909);
    }
}
