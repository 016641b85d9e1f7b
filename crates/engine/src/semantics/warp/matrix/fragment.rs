//! Fragments: how the elements of a matrix are spread over the registers of a warp (PTX ISA, "Matrix Fragments").
//!
//! Lane `l` is in group `l / 4` at place `l % 4`. Along one axis of the matrix, the group axis, consecutive groups hold
//! consecutive elements; along the other, the depth axis, consecutive places hold consecutive runs of elements. The remaining
//! elements are in further registers. This is the layout of `mma`; that of `wmma`, which the manual leaves open, is the same on
//! an H100.

use super::element::Element;

/// The axes of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axes {
    /// Extent of the group axis: 8, 16 or 32.
    pub group: usize,
    /// Extent of the depth axis.
    pub depth: usize,
    /// Elements of a run.
    pub run: usize,
    /// Elements of a register: `run`, or 1 if a run of two needs two registers.
    pub packed: usize,
    /// Whether the registers step along the group axis before they step along the depth axis.
    pub group_first: bool,
    /// Whether the group axis is that of the rows.
    pub by_row: bool,
}

impl Axes {
    /// Those of matrix A with `m` rows and `k` columns.
    pub fn of_a(e: Element, m: usize, k: usize) -> Self {
        Self::of_factor(e, m, k, true, true)
    }

    /// Those of matrix B with `k` rows and `n` columns.
    pub fn of_b(e: Element, k: usize, n: usize) -> Self {
        Self::of_factor(e, n, k, n == 32, false)
    }

    fn of_factor(e: Element, group: usize, depth: usize, group_first: bool, by_row: bool) -> Self {
        let run = (32 / e.bits()).max(1) as usize;
        // A register holds 32 elements of one bit, which are one element here.
        let depth = if e == Element::Bits {
            depth / 32
        } else {
            depth
        };
        Self {
            group,
            depth,
            run,
            packed: run,
            group_first,
            by_row,
        }
    }

    /// Those of an accumulator with `m` rows and `n` columns.
    pub fn of_accumulator(e: Element, m: usize, n: usize) -> Self {
        let by_row = n != 32;
        let (group, depth) = if by_row { (m, n) } else { (n, m) };
        Self {
            group,
            depth,
            run: 2,
            packed: if e == Element::F16 { 2 } else { 1 },
            group_first: true,
            by_row,
        }
    }
}

/// A matrix in the registers of a warp.
#[derive(Debug)]
pub struct Fragment {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Registers of a lane. Those beyond the matrix repeat it.
    pub registers: usize,
    /// Bits of an element.
    bits: u32,
    /// Row-major index of each element, by register, element of the register, and lane.
    index: Vec<u16>,
}

impl Fragment {
    /// The fragment of a matrix with elements of `bits` bits.
    pub fn new(axes: Axes, registers: usize, bits: u32) -> Self {
        let Axes { group, depth, .. } = axes;
        // Steps along the group axis and the depth axis, by bit of the register's number.
        let mut steps = Vec::new();
        if axes.packed < axes.run {
            steps.push((0, 1));
        }
        let along_depth = (2..)
            .map(|n| axes.run << n)
            .take_while(|step| *step < depth);
        let along_depth = along_depth.map(|step| (0, step));
        if axes.group_first {
            steps.extend((group > 8).then_some((8, 0)));
            steps.extend(along_depth);
        } else {
            steps.extend(along_depth);
            steps.extend((group > 8).then_some((8, 0)));
        }
        steps.extend((group > 16).then_some((16, 0)));
        let (rows, columns) = if axes.by_row {
            (group, depth)
        } else {
            (depth, group)
        };
        let mut index = Vec::with_capacity(registers * axes.packed * 32);
        for register in 0..registers {
            for element in 0..axes.packed {
                for lane in 0..32 {
                    let (mut g, mut d) = (lane / 4, lane % 4 * axes.run + element);
                    for (bit, step) in steps.iter().enumerate() {
                        if register >> bit & 1 != 0 {
                            (g, d) = (g + step.0, d + step.1);
                        }
                    }
                    let at = if axes.by_row {
                        g * columns + d
                    } else {
                        d * columns + g
                    };
                    index.push(at as u16);
                }
            }
        }
        Self {
            rows,
            columns,
            registers,
            bits,
            index,
        }
    }

    /// Elements of a register.
    fn packed(&self) -> usize {
        self.index.len() / (32 * self.registers)
    }

    /// Bits of an element.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// For each element of a register: the register, its lowest bit there, and the row-major index in each lane.
    #[inline(always)]
    pub fn places(&self) -> impl Iterator<Item = (usize, u32, &[u16; 32])> {
        let (packed, bits) = (self.packed(), self.bits);
        let places = self.index.as_chunks::<32>().0.iter().enumerate();
        places.map(move |(n, lanes)| (n / packed, (n % packed) as u32 * bits, lanes))
    }

    /// The matrix, row by row.
    pub fn unpack(&self, registers: &[[u64; 32]]) -> Vec<u64> {
        let mut matrix = vec![0; self.rows * self.columns];
        let keep = u64::MAX >> (64 - self.bits);
        for (register, shift, lanes) in self.places() {
            for (at, word) in lanes.iter().zip(&registers[register]) {
                matrix[usize::from(*at)] = word >> shift & keep;
            }
        }
        matrix
    }

    /// The registers that hold a matrix.
    pub fn pack(&self, matrix: &[u64]) -> Vec<[u64; 32]> {
        let mut registers = vec![[0; 32]; self.registers];
        for (register, shift, lanes) in self.places() {
            for (at, word) in lanes.iter().zip(&mut registers[register]) {
                *word |= matrix[usize::from(*at)] << shift;
            }
        }
        registers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_matrix_is_unpacked() {
        for (group, depth, run, packed, registers, bits) in [
            (16, 16, 2, 2, 4, 16),
            (16, 64, 8, 8, 4, 4),
            (32, 16, 2, 2, 8, 16),
            (16, 16, 2, 1, 8, 32),
            (16, 16, 1, 1, 8, 64),
        ] {
            for (group_first, by_row) in [(true, true), (false, true), (true, false)] {
                let axes = Axes {
                    group,
                    depth,
                    run,
                    packed,
                    group_first,
                    by_row,
                };
                let f = Fragment::new(axes, registers, bits);
                let keep = u64::MAX >> (64 - bits);
                let matrix: Vec<u64> = (0..(group * depth) as u64)
                    .map(|v| (v * 2_654_435_761) & keep)
                    .collect();
                assert_eq!(f.unpack(&f.pack(&matrix)), matrix, "{axes:?}");
            }
        }
    }
}
