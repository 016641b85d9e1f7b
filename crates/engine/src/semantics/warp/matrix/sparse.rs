//! Sparse matrices: `mma.sp` (PTX ISA, "Sparse matrix storage").

use super::element::Element;
use super::fragment::Fragment;

/// The nonzero elements of a sparse matrix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sparsity {
    /// Which lanes hold the metadata (PTX ISA, "Sparse matrix storage").
    pub selector: usize,
    /// Elements of a group of A, and of those, the ones that are stored: 4 and 2, or 8 and 4 in pairs, or 2 and 1.
    pub group: usize,
}

impl Sparsity {
    /// The column of A, which is the row of B, of each stored element.
    pub fn columns(self, a: &Fragment, e: Element, metadata: &[u32; 32]) -> Vec<u16> {
        let groups = a.columns / (self.group / 2);
        // Four bits for each group of a row.
        let bits_of_row = 4 * groups;
        let wide = matches!(e, Element::F16 | Element::BF16 | Element::TF32);
        let mut out = Vec::with_capacity(a.rows * a.columns);
        for r in 0..a.rows {
            let (quad, upper) = (4 * (r % 8), r / 8);
            for n in 0..groups {
                let bit = 4 * n;
                let (lane, bit) = match (bits_of_row, wide) {
                    (16, _) => (quad + self.selector, bit + 16 * upper),
                    (_, true) => (quad + 2 * self.selector + bit / 16, bit % 16 + 16 * upper),
                    (32, false) => (quad + 2 * self.selector + upper, bit),
                    (_, false) => (quad + upper + 2 * (bit / 32), bit % 32),
                };
                let found = metadata[lane & 31] >> bit & 15;
                let (first, second) = ((found & 3) as u16, (found >> 2) as u16);
                let at = (self.group * n) as u16;
                match self.group {
                    2 => out.push(at + u16::from(found == 0b1110)),
                    4 => out.extend([at + first, at + second]),
                    _ => out.extend([first, second].iter().flat_map(|pair| {
                        let at = at + 2 * pair;
                        [at, at + 1]
                    })),
                }
            }
        }
        out
    }
}
