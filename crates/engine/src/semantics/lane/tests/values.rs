//! Random and special values of every type.

use cupyrite_ptx::ir::Type;

/// A random number generator (xorshift64*) with a text as seed, so that failures are reproducible.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: &str) -> Rng {
        let hash = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        Rng(hash | 1)
    }
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// An encoding of a format with `fraction` and `exponent` bits: a special one, any, or one near 1.
fn encoding(rng: &mut Rng, fraction: u32, exponent: u32) -> u64 {
    let bits = fraction + exponent;
    let sign = (rng.next() & 1) << bits;
    let infinity = ((1_u64 << exponent) - 1) << fraction;
    let one = (infinity >> 1) & infinity;
    let least = 1 << fraction;
    let magnitude = match rng.below(8) {
        0 => {
            let specials = [
                0,
                1,
                2,
                least - 1,
                least,
                least + 1,
                2 * least,
                one - 1,
                one,
                one + 1,
                one | least >> 1,
                one + least,
                one - least,
                infinity - 1,
                infinity - 2,
                infinity,
                infinity | 1,
                infinity | least >> 1,
                infinity | (least - 1),
                // The fill of tensor copies, 0x7ff7.
                infinity | (least - 1) & !8,
                infinity - least,
            ];
            rng.pick(&specials)
        }
        1 | 2 => rng.next() & ((1 << bits) - 1),
        // A few significant bits: ties, integers, powers of two.
        3 => {
            (rng.next() & ((1 << bits) - 1))
                & !((least - 1) >> rng.below(fraction as usize + 1).min(12))
        }
        // Subnormal.
        4 => rng.next() & (least - 1),
        // Near 1, where sums and quotients round in many ways.
        _ => {
            let spread = (fraction as u64 + 4).min((1 << (exponent - 1)) - 2);
            let e = (one >> fraction) + rng.next() % (2 * spread) - spread;
            e << fraction | (rng.next() & (least - 1))
        }
    };
    sign | magnitude
}

fn integer(rng: &mut Rng, bits: u32) -> u64 {
    let all = if bits == 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    };
    let v = match rng.below(6) {
        0 => {
            let top = 1_u64 << (bits - 1);
            let specials = [
                0,
                1,
                2,
                3,
                7,
                31,
                32,
                33,
                63,
                64,
                65,
                top,
                top - 1,
                top + 1,
                all,
                all - 1,
                all / 3,
                255,
                128,
                127,
            ];
            rng.pick(&specials)
        }
        1 => rng.next() % 67,
        2 => (rng.next() % 67).wrapping_neg(),
        3 => rng.next() >> rng.below(64),
        _ => rng.next(),
    };
    v & all
}

/// An element of the slot of `ty`.
pub fn of(ty: Type, rng: &mut Rng) -> u128 {
    u128::from(match ty {
        Type::Pred => rng.next() & 1,
        Type::F16 => encoding(rng, 10, 5),
        Type::BF16 => encoding(rng, 7, 8),
        Type::F32 | Type::TF32 => encoding(rng, 23, 8),
        Type::F64 => encoding(rng, 52, 11),
        Type::F16x2 => encoding(rng, 10, 5) | encoding(rng, 10, 5) << 16,
        Type::BF16x2 => encoding(rng, 7, 8) | encoding(rng, 7, 8) << 16,
        Type::F32x2 => encoding(rng, 23, 8) | encoding(rng, 23, 8) << 32,
        Type::U16x2 | Type::S16x2 => integer(rng, 16) | integer(rng, 16) << 16,
        Type::B128 => return u128::from(rng.next()) << 64 | u128::from(rng.next()),
        _ => integer(rng, ty.bits()),
    })
}
