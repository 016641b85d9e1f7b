//! Instructions of AVX-512 with one counterpart of AVX2.

use iced_x86::{Code, Register};

use super::super::assembler::Source;

/// Width of the elements that a mask selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Four bytes.
    Bits32,
    /// Eight bytes.
    Bits64,
}

use Elements::{Bits32, Bits64};

/// The counterpart of an instruction with one source, and perhaps an immediate.
pub fn unary(code: Code) -> Option<(Code, Elements)> {
    Some(match code {
        Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512 | Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512 => {
            (Code::VEX_Vmovdqu_ymm_ymmm256, Bits32)
        }
        Code::EVEX_Vmovdqu64_zmm_k1z_zmmm512 => (Code::VEX_Vmovdqu_ymm_ymmm256, Bits64),
        Code::EVEX_Vmovd_rm32_xmm => (Code::VEX_Vmovd_rm32_xmm, Bits32),
        Code::EVEX_Vmovq_rm64_xmm => (Code::VEX_Vmovq_rm64_xmm, Bits64),
        Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32 => (Code::VEX_Vpbroadcastd_ymm_xmmm32, Bits32),
        Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64 => (Code::VEX_Vpbroadcastq_ymm_xmmm64, Bits64),
        Code::EVEX_Vbroadcasti32x4_zmm_k1z_m128 => (Code::VEX_Vbroadcasti128_ymm_m128, Bits32),
        Code::EVEX_Vpabsd_zmm_k1z_zmmm512b32 => (Code::VEX_Vpabsd_ymm_ymmm256, Bits32),
        Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er => (Code::VEX_Vcvtdq2ps_ymm_ymmm256, Bits32),
        Code::EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae => (Code::VEX_Vcvttps2dq_ymm_ymmm256, Bits32),
        Code::EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er => (Code::VEX_Vcvtdq2pd_ymm_xmmm128, Bits64),
        Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae => (Code::VEX_Vcvtps2pd_ymm_xmmm128, Bits64),
        Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er => (Code::VEX_Vcvtpd2ps_xmm_ymmm256, Bits32),
        Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er => (Code::VEX_Vsqrtps_ymm_ymmm256, Bits32),
        Code::EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er => (Code::VEX_Vsqrtpd_ymm_ymmm256, Bits64),
        Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae => {
            (Code::VEX_Vroundps_ymm_ymmm256_imm8, Bits32)
        }
        Code::EVEX_Vcvttpd2dq_ymm_k1z_zmmm512b64_sae => (Code::VEX_Vcvttpd2dq_xmm_ymmm256, Bits32),
        Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae => (Code::VEX_Vcvtph2ps_ymm_xmmm128, Bits32),
        Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae => {
            (Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, Bits32)
        }
        Code::EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae => {
            (Code::VEX_Vroundpd_ymm_ymmm256_imm8, Bits64)
        }
        Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128 => (Code::VEX_Vpmovzxbd_ymm_xmmm64, Bits32),
        Code::EVEX_Vpmovsxbd_zmm_k1z_xmmm128 => (Code::VEX_Vpmovsxbd_ymm_xmmm64, Bits32),
        Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256 => (Code::VEX_Vpmovzxwd_ymm_xmmm128, Bits32),
        Code::EVEX_Vpmovsxwd_zmm_k1z_ymmm256 => (Code::VEX_Vpmovsxwd_ymm_xmmm128, Bits32),
        Code::EVEX_Vpmovzxdq_zmm_k1z_ymmm256 => (Code::VEX_Vpmovzxdq_ymm_xmmm128, Bits64),
        Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256 => (Code::VEX_Vpmovsxdq_ymm_xmmm128, Bits64),
        Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8 => (Code::VEX_Vpshufd_ymm_ymmm256_imm8, Bits32),
        Code::EVEX_Vpermq_zmm_k1z_zmmm512b64_imm8 => (Code::VEX_Vpermq_ymm_ymmm256_imm8, Bits64),
        Code::EVEX_Vextracti64x4_ymmm256_k1z_zmm_imm8 => {
            (Code::VEX_Vextracti128_xmmm128_ymm_imm8, Bits64)
        }
        _ => return shift(code),
    })
}

/// The counterpart of a shift by an immediate, whose source is a register.
pub fn shift(code: Code) -> Option<(Code, Elements)> {
    Some(match code {
        Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8 => (Code::VEX_Vpslld_ymm_ymm_imm8, Bits32),
        Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8 => (Code::VEX_Vpsrad_ymm_ymm_imm8, Bits32),
        Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8 => (Code::VEX_Vpsrld_ymm_ymm_imm8, Bits32),
        Code::EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8 => (Code::VEX_Vpsllq_ymm_ymm_imm8, Bits64),
        Code::EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8 => (Code::VEX_Vpsrlq_ymm_ymm_imm8, Bits64),
        _ => return None,
    })
}

/// Whether an instruction copies its source.
pub fn is_copy(vex: Code) -> bool {
    vex == Code::VEX_Vmovdqu_ymm_ymmm256
}

/// The counterpart of an instruction with two sources, and perhaps an immediate.
pub fn binary(code: Code) -> Option<(Code, Elements)> {
    floating(code).or_else(|| integer(code))
}

fn floating(code: Code) -> Option<(Code, Elements)> {
    Some(match code {
        Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er => (Code::VEX_Vaddps_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er => (Code::VEX_Vsubps_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er => (Code::VEX_Vmulps_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er => (Code::VEX_Vdivps_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae => (Code::VEX_Vminps_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae => (Code::VEX_Vmaxps_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er => (Code::VEX_Vaddpd_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er => (Code::VEX_Vsubpd_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er => (Code::VEX_Vmulpd_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er => (Code::VEX_Vdivpd_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae => (Code::VEX_Vminpd_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae => (Code::VEX_Vmaxpd_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er => {
            (Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, Bits32)
        }
        Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er => {
            (Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256, Bits32)
        }
        Code::EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er => {
            (Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256, Bits64)
        }
        _ => return None,
    })
}

/// Whether an instruction on one element is one of AVX as it is.
pub fn is_plain(code: Code) -> bool {
    matches!(
        code,
        Code::VEX_Vmovd_xmm_rm32
            | Code::VEX_Vmovq_xmm_rm64
            | Code::VEX_Vmovd_rm32_xmm
            | Code::VEX_Vmovq_rm64_xmm
            | Code::VEX_Vaddss_xmm_xmm_xmmm32
            | Code::VEX_Vaddsd_xmm_xmm_xmmm64
    )
}

/// Whether an instruction reads its destination.
pub fn reads_destination(code: Code) -> bool {
    matches!(
        code,
        Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er
            | Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er
            | Code::EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er
    )
}

fn integer(code: Code) -> Option<(Code, Elements)> {
    Some(match code {
        Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpaddd_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpaddq_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpsubd_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpsubq_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpmulld_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpmuldq_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpmuludq_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpand_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpandq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpand_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpor_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vporq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpor_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpxor_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpxor_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512 => (Code::VEX_Vpshufb_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpsadbw_zmm_zmm_zmmm512 => (Code::VEX_Vpsadbw_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpandn_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpandnq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpandn_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpminsd_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpminud_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpmaxud_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpsllvd_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpsllvq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpsllvq_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpsrlvd_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpsrlvq_zmm_k1z_zmm_zmmm512b64 => (Code::VEX_Vpsrlvq_ymm_ymm_ymmm256, Bits64),
        Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32 => (Code::VEX_Vpsravd_ymm_ymm_ymmm256, Bits32),
        Code::EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32 => {
            (Code::VEX_Vpunpckldq_ymm_ymm_ymmm256, Bits32)
        }
        Code::EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32 => {
            (Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256, Bits32)
        }
        Code::EVEX_Vpunpcklqdq_zmm_k1z_zmm_zmmm512b64 => {
            (Code::VEX_Vpunpcklqdq_ymm_ymm_ymmm256, Bits64)
        }
        Code::EVEX_Vpunpckhqdq_zmm_k1z_zmm_zmmm512b64 => {
            (Code::VEX_Vpunpckhqdq_ymm_ymm_ymmm256, Bits64)
        }
        Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8 => {
            (Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, Bits64)
        }
        _ => return None,
    })
}

/// Whether an instruction clears its destination: `xor r, r`.
pub fn is_zeroing(code: Code, d: Register, a: Register, b: Source) -> bool {
    let xor = matches!(
        code,
        Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32 | Code::EVEX_Vpxorq_zmm_k1z_zmm_zmmm512b64
    );
    let number = super::super::isa::number;
    xor && d == a && matches!(b, Source::Reg(b) if number(b) == number(d))
}
