//! The field, without devices and messages: which rank computes which rows, where they start, and what they become on
//! the host.

use std::ops::Range;

use mpi::Rank;

/// The rows of a field of `size` rows that a rank computes. The first and the last row belong to no rank.
pub(crate) fn rows_of(rank: Rank, ranks: Rank, size: usize) -> Range<usize> {
    let start = |rank: Rank| 1 + (size - 2) * rank as usize / ranks as usize;
    start(rank)..start(rank + 1)
}

/// Rows of the field before the first step: hot at the top, less and less hot down the left side.
pub(crate) fn initial(size: usize, rows: Range<usize>) -> Vec<f32> {
    let temperature = |row: usize, column: usize| match (row, column) {
        (0, _) => 100.0,
        (_, 0) => 100.0 * (size - 1 - row) as f32 / (size - 1) as f32,
        _ => 0.0,
    };
    rows.flat_map(|row| (0..size).map(move |column| temperature(row, column)))
        .collect()
}

/// The field after all steps, computed on the host with the same order of additions.
fn expected(size: usize, steps: usize) -> Vec<f32> {
    let mut now = initial(size, 0..size);
    let mut next = now.clone();
    for _ in 0..steps {
        for row in 1..size - 1 {
            for i in row * size + 1..(row + 1) * size - 1 {
                next[i] = 0.25 * (now[i - 1] + now[i + 1] + now[i - size] + now[i + size]);
            }
        }
        std::mem::swap(&mut now, &mut next);
    }
    now
}

/// Compares the rows of this rank, bit by bit, and the heat of all ranks with the host's.
pub(crate) fn check(
    size: usize,
    steps: usize,
    own: Range<usize>,
    rows: &[f32],
    heat: f64,
) -> Result<(), String> {
    let wanted = expected(size, steps);
    let pairs = rows.iter().zip(&wanted[own.start * size..own.end * size]);
    for (i, (value, wanted)) in pairs.enumerate() {
        if value.to_bits() != wanted.to_bits() {
            let (row, column) = (own.start + i / size, i % size);
            return Err(format!(
                "wrong result: {value} in row {row}, column {column}; expected {wanted}"
            ));
        }
    }
    let inside = &wanted[size..size * (size - 1)];
    let sum: f64 = inside.iter().copied().map(f64::from).sum();
    // Threads and ranks add in any order.
    if (heat - sum).abs() > 1e-12 * sum {
        return Err(format!("wrong result: heat {heat}; expected {sum}"));
    }
    Ok(())
}
