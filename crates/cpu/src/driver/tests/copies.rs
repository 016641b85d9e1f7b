//! Copies and fills: every direction and dimension, and errors.

use super::super::Code;
use super::{Session, Word, cu, ok};

const INVALID_VALUE: u32 = Code::INVALID_VALUE.0;

#[test]
fn one_dimension() {
    let s = Session::new();
    let n = 300_000usize;
    let source: Vec<u8> = (0..n).map(|i| (i * 7) as u8).collect();
    let (a, b, h) = (s.alloc(n), s.alloc(n), s.pinned(n));
    let mut back = vec![0u8; n];
    ok!("cuMemcpyHtoD_v2", a, &source[0], n);
    ok!("cuMemcpyDtoD_v2", b, a, n);
    ok!("cuMemcpyDtoH_v2", h, b, n);
    ok!("cuMemcpy", &mut back[0], h, n);
    assert_eq!(back, source);
    // Host-to-host copies work with unified addressing.
    back.fill(0);
    ok!("cuMemcpy", &mut back[0], &source[0], n);
    assert_eq!(back, source);
    // Overlapping ranges.
    ok!("cuMemcpyDtoD_v2", a + 1000, a, n - 1000);
    ok!("cuMemcpyDtoH_v2", &mut back[0], a, n);
    assert_eq!(back[1000..], source[..n - 1000]);
    ok!("cuMemcpyPeer", b, s.0, a, s.0, 100);
    ok!("cuMemcpyHtoD_v2", a, &source[0], 0u64);
}

#[test]
fn bad_ranges() {
    let s = Session::new();
    let d = s.alloc(100);
    let mut host = [0u8; 200];
    assert_eq!(cu!("cuMemcpyHtoD_v2", d, &host, 101), INVALID_VALUE);
    assert_eq!(cu!("cuMemcpyHtoD_v2", d + 50, &host, 51), INVALID_VALUE);
    assert_eq!(cu!("cuMemcpyHtoD_v2", d, &host, u64::MAX), INVALID_VALUE);
    assert_eq!(cu!("cuMemcpyDtoH_v2", &mut host, d, 101), INVALID_VALUE);
    assert_eq!(cu!("cuMemcpyDtoD_v2", d, d, 1u64 << 60), INVALID_VALUE);
    for bad in [0u64, 1, 0xdead_beef, u64::MAX, u64::MAX - 50] {
        assert_eq!(
            cu!("cuMemcpyHtoD_v2", d, bad, 100),
            INVALID_VALUE,
            "{bad:#x}"
        );
        assert_eq!(
            cu!("cuMemcpyHtoD_v2", bad, &host, 100),
            INVALID_VALUE,
            "{bad:#x}"
        );
        assert_eq!(
            cu!("cuMemcpyDtoH_v2", bad, d, 100),
            INVALID_VALUE,
            "{bad:#x}"
        );
        assert_eq!(
            cu!("cuMemcpyHtoDAsync_v2", d, bad, 100, 0u64),
            INVALID_VALUE,
            "{bad:#x}"
        );
        assert_eq!(cu!("cuMemcpy", bad, bad, 100), INVALID_VALUE, "{bad:#x}");
        assert_eq!(
            cu!("cuMemsetD8_v2", bad, 0u8, 100),
            INVALID_VALUE,
            "{bad:#x}"
        );
        assert_eq!(cu!("cuMemcpy2D_v2", bad), INVALID_VALUE);
        assert_eq!(cu!("cuMemcpy3D_v2", bad), INVALID_VALUE);
    }
    // Read-only memory.
    static FIXED: [u8; 64] = [7; 64];
    ok!("cuMemcpyHtoD_v2", d, &FIXED, 64);
    assert_eq!(cu!("cuMemcpyDtoH_v2", &FIXED, d, 64), INVALID_VALUE);
    // The context remains usable.
    ok!("cuCtxSynchronize");
}

#[test]
fn fills() {
    let s = Session::new();
    let d = s.alloc(4096);
    let mut back = [0u32; 1024];
    ok!("cuMemsetD32_v2", d, 0x0102_0304, 1024);
    ok!("cuMemsetD16_v2", d + 2, 0xAAAA, 1);
    ok!("cuMemsetD8_v2", d + 4, 9u8, 4);
    ok!("cuMemcpyDtoH_v2", &mut back, d, 4096);
    assert_eq!(back[..3], [0xAAAA_0304, 0x0909_0909, 0x0102_0304]);
    ok!("cuMemsetD2D32_v2", d, 256u64, 5, 2, 16);
    ok!("cuMemcpyDtoH_v2", &mut back, d, 4096);
    assert_eq!(back[64..67], [5, 5, 0x0102_0304]);
    assert_eq!(back[960..963], [5, 5, 0x0102_0304]);
    assert_eq!(cu!("cuMemsetD32_v2", d + 1, 0, 1), INVALID_VALUE);
    assert_eq!(cu!("cuMemsetD32_v2", d, 0, 1025), INVALID_VALUE);
    assert_eq!(cu!("cuMemsetD32_v2", d, 0, u64::MAX), INVALID_VALUE);
    assert_eq!(cu!("cuMemsetD2D8_v2", d, 4u64, 0, 8, 2), INVALID_VALUE);
    assert_eq!(
        cu!("cuMemsetD2D8_v2", d, 256u64, 0, 8, u64::MAX),
        INVALID_VALUE
    );
    ok!("cuMemsetD32_v2", d, 0, 0u64);
}

/// `CUDA_MEMCPY2D` between two operands as words: x, y, type, host, device, array, pitch each.
pub(super) fn copy2d(from: [u64; 7], to: [u64; 7], width: u64, height: u64) -> [u64; 16] {
    let mut w = [0; 16];
    w[..7].copy_from_slice(&from);
    w[7..14].copy_from_slice(&to);
    w[14] = width;
    w[15] = height;
    w
}

#[test]
fn two_and_three_dimensions() {
    let s = Session::new();
    let (mut d, mut pitch) = (0u64, 0u64);
    ok!("cuMemAllocPitch_v2", &mut d, &mut pitch, 100, 10, 4);
    assert!(pitch >= 100 && pitch.is_multiple_of(256));
    let source: Vec<u8> = (0..1000).map(|i| i as u8).collect();
    let mut back = vec![0u8; 1000];
    let host = |p: &[u8]| [0, 0, 1, p.as_ptr() as u64, 0, 0, 100];
    let device = [0, 0, 2, 0, d, 0, pitch];
    ok!("cuMemcpy2D_v2", &copy2d(host(&source), device, 100, 10));
    ok!("cuMemcpy2D_v2", &copy2d(device, host(&back), 100, 10));
    assert_eq!(back, source);
    back.fill(0);
    // A sub-rectangle.
    let window = copy2d(
        [10, 2, 2, 0, d, 0, pitch],
        [1, 1, 1, Word::word(&mut back[0]), 0, 0, 100],
        5,
        3,
    );
    ok!("cuMemcpy2DUnaligned_v2", &window);
    assert_eq!(back[101..106], source[210..215]);
    assert_eq!(back[301..306], source[410..415]);
    assert_eq!(back[401], 0);
    let bad = [
        copy2d([0, 0, 2, 0, d, 0, 50], host(&source), 100, 10),
        copy2d([0, 0, 2, 0, d, 0, pitch], host(&source), 100, 11),
        copy2d([0, 0, 9, 0, d, 0, pitch], host(&source), 100, 10),
        copy2d([u64::MAX, 0, 2, 0, d, 0, pitch], host(&source), 100, 10),
        copy2d([0, u64::MAX, 2, 0, d, 0, pitch], host(&source), 100, 10),
        copy2d([0, 0, 1, 5, 0, 0, 100], device, 100, 10),
        copy2d(device, [0, 0, 1, 5, 0, 0, 100], 100, 10),
        copy2d(device, host(&source), u64::MAX, u64::MAX),
    ];
    for b in &bad {
        assert_eq!(cu!("cuMemcpy2D_v2", b), INVALID_VALUE);
        assert_eq!(cu!("cuMemcpy2DAsync_v2", b, 0u64), INVALID_VALUE);
    }
    // An invalid array handle.
    let no_array = copy2d([0, 0, 3, 0, 0, 5, 0], device, 4, 4);
    assert_eq!(cu!("cuMemcpy2D_v2", &no_array), INVALID_VALUE);
    // Three dimensions: 4 x 3 x 2 bytes of a 10 x 5 x 4 volume, at (1, 1, 1).
    let box_ = s.alloc(200);
    ok!("cuMemcpyHtoD_v2", box_, &source[0], 200);
    let mut w = [0u64; 25];
    (w[0], w[1], w[2], w[4], w[6], w[9], w[10]) = (1, 1, 1, 2, box_, 10, 5);
    let mut out = [0u8; 24];
    (w[15], w[16], w[20], w[21]) = (1, Word::word(&mut out), 4, 3);
    (w[22], w[23], w[24]) = (4, 3, 2);
    ok!("cuMemcpy3D_v2", &w);
    let expected: Vec<u8> = (0..24)
        .map(|i| source[(1 + i / 12) * 50 + (1 + i / 4 % 3) * 10 + 1 + i % 4])
        .collect();
    assert_eq!(out[..], expected[..]);
    out.fill(0);
    ok!("cuMemcpy3DAsync_v2", &w, 0u64);
    ok!("cuStreamSynchronize", 0u64);
    assert_eq!(out[..], expected[..]);
    w[24] = 4;
    assert_eq!(cu!("cuMemcpy3D_v2", &w), INVALID_VALUE);
    w[24] = u64::MAX;
    assert_eq!(cu!("cuMemcpy3D_v2", &w), INVALID_VALUE);
}
