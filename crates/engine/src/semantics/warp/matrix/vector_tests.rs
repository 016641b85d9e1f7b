//! Compares [`super::vector`] with the general functions, bit by bit.

use super::Shape;
use super::element::Element::{self, *};
use super::multiply::{Arithmetic, Multiply, REGISTERS};

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut v = self.0;
        v = (v ^ v >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        v = (v ^ v >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (v ^ v >> 31) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }

    /// A number of this format, by `kind` of data: any bits, numbers around one, of one sign, close to the largest of an
    /// exponent, with some zeros, over the range of exponents, almost all zero, or small integers.
    fn number(&mut self, exponent: u32, fraction: u32, kind: u32) -> u32 {
        let bias = (1 << (exponent - 1)) - 1;
        let all = (1u32 << fraction) - 1;
        let sign = self.below(2) << (exponent + fraction);
        let (random, spread) = (self.next() & all, self.below(8));
        match kind {
            0 => self.next() & (2u32 << (exponent + fraction)).wrapping_sub(1),
            1 => sign | (bias + 2 - spread) << fraction | random,
            2 => bias << fraction | random,
            3 => sign | (bias + self.below(2)) << fraction | (all - self.below(2)),
            4 if spread < 4 => sign,
            4 => sign | (bias - spread) << fraction | random,
            5 => sign | self.below(2 * bias + 1) << fraction | random,
            6 if self.below(40) != 0 => sign,
            6 => sign | self.below(2 * bias + 1) << fraction | random,
            7 => sign | (bias + self.below(3)) << fraction | (random & all << (fraction - 1) & all),
            8 => self.below(4) << (fraction - 2) | sign,
            _ => (bias + bias / 2) << fraction | all,
        }
    }

    /// A word of elements.
    fn word(&mut self, e: Element, kind: u32) -> u32 {
        match e {
            F16 => self.number(5, 10, kind) | self.number(5, 10, kind) << 16,
            BF16 => self.number(8, 7, kind) | self.number(8, 7, kind) << 16,
            TF32 | F32 => self.number(8, 23, kind),
            _ if kind == 0 => 0x8080_8080,
            _ if kind == 1 => 0x7f7f_7f7f,
            S32 if kind == 2 => i32::MAX.cast_unsigned() - self.below(1000),
            S32 if kind == 3 => i32::MIN.cast_unsigned() + self.below(1000),
            _ => self.next(),
        }
    }
}

fn assert_same(shape: (usize, usize, usize), elements: [Element; 4], registers: [usize; 4]) {
    let (m, n, k) = shape;
    let shape = Shape { m, n, k };
    let kinds = match elements[1] {
        S8 | U8 => [0, 1].map(|s| Arithmetic::Integer { saturate: s == 1 }),
        TF32 if n == 16 => [Arithmetic::Aligned { step: 4 }; 2],
        _ => [Arithmetic::Aligned { step: k }; 2],
    };
    let mut random = Random(m as u64 * 1000 + n as u64);
    for arithmetic in kinds {
        let product = Multiply::new(shape, elements, registers, arithmetic, None).expect("a shape");
        let [_, of_a, of_b, of_c] = registers;
        let (mut vectored, total) = (0, 3000);
        for round in 0..total {
            let kinds: [u32; 3] = match round % 3 {
                0 => [round / 3 % 10; 3],
                1 => [round / 3 % 10, round / 30 % 10, round / 300 % 10],
                _ => std::array::from_fn(|_| random.below(10)),
            };
            let mut rows = Vec::new();
            for (matrix, count) in [of_a, of_b, of_c].into_iter().enumerate() {
                let e = elements[matrix + 1];
                let area = [m * k, k * n, m * n][matrix];
                let first = rows.len();
                for register in 0..count {
                    // Registers beyond the matrix repeat it.
                    let distinct = area * e.bits() as usize / 1024;
                    if register >= distinct.max(1) {
                        rows.push(rows[first + register % distinct]);
                        continue;
                    }
                    let mut word = |_| random.word(e, kinds[matrix]);
                    rows.push(std::array::from_fn::<u32, 32, _>(&mut word));
                }
            }
            let rows: Vec<&[u32; 32]> = rows.iter().collect();
            let mut results = [[0; 32]; REGISTERS];
            if !product.vector_results(&rows, &mut results) {
                continue;
            }
            vectored += 1;
            let expected = product.general(&rows, None);
            for register in 0..registers[0] {
                for lane in 0..32 {
                    assert_eq!(
                        results[register][lane], expected[register][lane],
                        "{shape:?} {elements:?} {arithmetic:?}, data {kinds:?}: register {register}, lane {lane}"
                    );
                }
            }
        }
        assert!(
            vectored > total / 4,
            "{shape:?} {elements:?}: {vectored} of {total}"
        );
    }
}

#[test]
fn half_precision_is_that_of_the_general_functions() {
    for (c, of_c) in [(F32, 4), (F16, 2)] {
        let elements = [c, F16, F16, c];
        assert_same((16, 8, 16), elements, [of_c, 4, 2, of_c]);
        assert_same((16, 8, 8), elements, [of_c, 2, 1, of_c]);
        assert_same((16, 16, 16), elements, [2 * of_c, 8, 8, 2 * of_c]);
        assert_same((32, 8, 16), elements, [2 * of_c, 8, 8, 2 * of_c]);
        assert_same((8, 32, 16), elements, [2 * of_c, 8, 8, 2 * of_c]);
    }
}

#[test]
fn bfloat16_is_that_of_the_general_functions() {
    let elements = [F32, BF16, BF16, F32];
    assert_same((16, 8, 16), elements, [4, 4, 2, 4]);
    assert_same((16, 8, 8), elements, [4, 2, 1, 4]);
    assert_same((16, 16, 16), elements, [8, 4, 4, 8]);
    assert_same((32, 8, 16), elements, [8, 8, 2, 8]);
    assert_same((8, 32, 16), elements, [8, 2, 8, 8]);
}

#[test]
fn tf32_is_that_of_the_general_functions() {
    let elements = [F32, TF32, TF32, F32];
    assert_same((16, 8, 8), elements, [4, 4, 2, 4]);
    assert_same((16, 8, 4), elements, [4, 2, 1, 4]);
    assert_same((16, 16, 8), elements, [8, 4, 4, 8]);
}

#[test]
fn integers_are_those_of_the_general_functions() {
    for a in [S8, U8] {
        for b in [S8, U8] {
            let elements = [S32, a, b, S32];
            assert_same((8, 8, 16), elements, [2, 1, 1, 2]);
            assert_same((16, 8, 16), elements, [4, 2, 1, 4]);
            assert_same((16, 8, 32), elements, [4, 4, 2, 4]);
            assert_same((16, 16, 16), elements, [8, 2, 2, 8]);
            assert_same((32, 8, 16), elements, [8, 4, 1, 8]);
            assert_same((8, 32, 16), elements, [8, 1, 4, 8]);
        }
    }
}
