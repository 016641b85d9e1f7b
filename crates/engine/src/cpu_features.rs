//! Features of the host processor for which the engine has a version of its code.

/// Whether this machine has AVX-512 with its extensions for bytes, doublewords and shorter vectors (F, BW, CD, DQ, VL).
pub fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        has_x86_64_v3()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Whether this machine is an x86-64-v3: it has AVX2, FMA and the other features that the vector code is compiled for.
pub fn has_x86_64_v3() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // `is_x86_feature_detected` caches its result.
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("f16c")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}
