//! Cubemaps: conversion of a direction to a face and a position on it (CUDA Programming Guide, "Cubemap Textures").

/// A position on a face.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnFace {
    /// 0 to 5: +x, -x, +y, -y, +z, -z.
    pub face: u32,
    /// Horizontal coordinate, from 0 to 1.
    pub s: f32,
    /// Vertical coordinate, from 0 to 1.
    pub t: f32,
}

/// The face that a direction selects. Among components of equal magnitude, z takes precedence over y, and y over x.
fn face_of([x, y, z]: [f64; 3]) -> u32 {
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    if az >= ax && az >= ay {
        4 + u32::from(z < 0.0)
    } else if ay >= ax {
        2 + u32::from(y < 0.0)
    } else {
        u32::from(x < 0.0)
    }
}

/// A direction in a face's axes: horizontal, vertical, outward.
fn in_axes(face: u32, [x, y, z]: [f64; 3]) -> [f64; 3] {
    match face {
        0 => [-z, -y, x],
        1 => [z, -y, -x],
        2 => [x, z, y],
        3 => [x, -z, -y],
        4 => [x, -y, z],
        _ => [-x, -y, -z],
    }
}

/// Converts a direction from a face's axes.
fn from_axes(face: u32, [s, t, m]: [f64; 3]) -> [f64; 3] {
    match face {
        0 => [m, -t, -s],
        1 => [-m, -t, s],
        2 => [s, m, t],
        3 => [s, -m, -t],
        4 => [s, -t, m],
        _ => [-s, -t, -m],
    }
}

fn fraction(part: f64, whole: f64) -> f32 {
    if whole == 0.0 {
        // The zero direction: the centre.
        return 0.5;
    }
    ((part / whole + 1.0) / 2.0) as f32
}

/// The intersection of a direction with the cube. NaN and subnormal components count as zero.
pub fn project(direction: [f32; 3]) -> OnFace {
    let d = direction.map(|v| {
        if v.is_nan() || v.abs() < f32::MIN_POSITIVE {
            0.0
        } else {
            f64::from(v)
        }
    });
    let face = face_of(d);
    let [s, t, m] = in_axes(face, d);
    OnFace {
        face,
        s: fraction(s, m),
        t: fraction(t, m),
    }
}

/// The derivative of the position on the face with respect to `change` of the direction.
pub fn derivative(direction: [f32; 3], change: [f32; 3]) -> [f32; 2] {
    let d = direction.map(f64::from);
    let face = face_of(d);
    let [s, t, m] = in_axes(face, d);
    let [ds, dt, dm] = in_axes(face, change.map(f64::from));
    if m == 0.0 {
        return [0.0; 2];
    }
    // The quotient rule on (s / m + 1) / 2.
    [(ds, s), (dt, t)].map(|(dp, p)| ((dp * m - p * dm) / (m * m) / 2.0) as f32)
}

/// The texel across an edge: either `i` or `j`, but not both, lies just outside a face of `n` by `n` texels.
pub fn across(face: u32, i: i32, j: i32, n: i32) -> (u32, i32, i32) {
    let centre = |k: i32| (2.0 * f64::from(k) + 1.0) / f64::from(n) - 1.0;
    // On the cube's surface, half a texel beyond the edge: the outer coordinate stays at the edge, and the depth
    // decreases by half a texel, which is 1 / n of half the cube.
    let (s, t) = if i < 0 || i >= n {
        (if i < 0 { -1.0 } else { 1.0 }, centre(j))
    } else {
        (centre(i), if j < 0 { -1.0 } else { 1.0 })
    };
    let d = from_axes(face, [s, t, 1.0 - 1.0 / f64::from(n)]);
    let to = face_of(d);
    let [s, t, m] = in_axes(to, d);
    let texel = |p: f64| {
        let at = (p / m + 1.0) / 2.0 * f64::from(n);
        (at.floor() as i32).clamp(0, n - 1)
    };
    (to, texel(s), texel(t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces() {
        // The programming guide's table: face, and (s / m + 1) / 2, (t / m + 1) / 2.
        let at = |d: [f32; 3]| {
            let p = project(d);
            (p.face, p.s, p.t)
        };
        assert_eq!(at([2.0, 1.0, -1.0]), (0, 0.75, 0.25));
        assert_eq!(at([-2.0, 1.0, -1.0]), (1, 0.25, 0.25));
        assert_eq!(at([1.0, 2.0, -1.0]), (2, 0.75, 0.25));
        assert_eq!(at([1.0, -2.0, -1.0]), (3, 0.75, 0.75));
        assert_eq!(at([1.0, -1.0, 2.0]), (4, 0.75, 0.75));
        assert_eq!(at([1.0, -1.0, -2.0]), (5, 0.25, 0.75));
        assert_eq!(at([0.0, 0.0, 0.0]), (4, 0.5, 0.5));
        assert_eq!(at([f32::NAN; 3]), (4, 0.5, 0.5));
    }

    #[test]
    fn axes_are_inverse() {
        for face in 0..6 {
            let d = [0.3, -0.5, 0.7];
            assert_eq!(in_axes(face, from_axes(face, d)), d);
            assert_eq!(face_of(from_axes(face, [0.1, 0.2, 1.0])), face);
        }
    }

    #[test]
    fn crossing_an_edge_is_reversible() {
        // Crossing an edge twice returns to the start.
        let n = 5;
        for face in 0..6 {
            for k in 0..n {
                for (i, j, (bi, bj)) in [
                    (-1, k, (0, k)),
                    (n, k, (n - 1, k)),
                    (k, -1, (k, 0)),
                    (k, n, (k, n - 1)),
                ] {
                    let (to, x, y) = across(face, i, j, n);
                    assert_ne!(to, face);
                    assert_ne!(to ^ 1, face);
                    assert!(x == 0 || y == 0 || x == n - 1 || y == n - 1);
                    let back = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
                        .into_iter()
                        .filter(|&(x, y)| !(0..n).contains(&x) || !(0..n).contains(&y))
                        .map(|(x, y)| across(to, x, y, n))
                        .any(|place| place == (face, bi, bj));
                    assert!(back, "{face} {i} {j}: {to} {x} {y}");
                }
            }
        }
        // A known case: left of +z is the right column of -x.
        assert_eq!(across(4, -1, 2, n), (1, n - 1, 2));
    }

    #[test]
    fn derivatives() {
        let d = [0.4, -0.2, 1.5];
        let change = [0.3, 0.1, -0.2];
        let h = 1e-3f32;
        let moved = std::array::from_fn(|k| d[k] + h * change[k]);
        let (a, b) = (project(d), project(moved));
        let [ds, dt] = derivative(d, change);
        assert!(((b.s - a.s) / h - ds).abs() < 1e-3);
        assert!(((b.t - a.t) / h - dt).abs() < 1e-3);
    }
}
