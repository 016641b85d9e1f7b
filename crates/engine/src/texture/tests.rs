//! Compares the sampler with a scalar reference written from the programming guide's formulas.

use std::convert::Infallible;
use std::sync::Arc;

use cupyrite_sys::driver as sys;

use super::*;

/// Pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// From -1 to 1.
    fn number(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// An array of `f32` with known contents: level, slice, row, column, channel.
struct Numbers {
    storage: Arc<Storage>,
    values: Vec<Vec<f32>>,
    channels: usize,
}

impl Numbers {
    fn new(size: [u64; 3], flags: u32, levels: u32, channels: u8) -> Self {
        let format = Format::plain(ChannelKind::Float, 32, channels);
        let storage = Storage::new(format, size, flags, levels).unwrap();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let channels = usize::from(channels);
        let mut values = Vec::new();
        for n in 0..levels {
            let level = storage.level(n).unwrap();
            let row = level.columns as usize * channels;
            let count = row * level.rows as usize * level.slices as usize;
            let list: Vec<f32> = (0..count).map(|_| random.number()).collect();
            for (k, line) in list.chunks(row).enumerate() {
                let (slice, y) = (
                    k as u64 / u64::from(level.rows),
                    k as u64 % u64::from(level.rows),
                );
                let at = level.base + slice * level.slice_pitch + y * level.row_pitch;
                // SAFETY: the row lies in the level, which has no other user.
                unsafe { std::ptr::copy_nonoverlapping(line.as_ptr(), at as *mut f32, row) };
            }
            values.push(list);
        }
        Self {
            storage,
            values,
            channels,
        }
    }

    fn texel(&self, level: u32, slice: i32, y: i32, x: i32, channel: usize) -> f32 {
        let l = self.storage.level(level).unwrap();
        let row = (slice as usize * l.rows as usize + y as usize) * l.columns as usize + x as usize;
        self.values[level as usize][row * self.channels + channel]
    }

    fn texture(&self, descriptor: TextureDescriptor) -> Texture {
        let storage = self.storage.clone();
        Texture::new(Resource::Mipmapped { storage }, descriptor, None).unwrap()
    }
}

fn admit_all(_: &Row<u64>, _: u32) -> Result<(), Infallible> {
    Ok(())
}

fn run(t: &Texture, f: &Fetch) -> [[f32; 4]; LANES] {
    let mut rows = [[0; LANES]; 4];
    assert!(t.accepts(f.view, matches!(f.coordinates, Coordinates::Texel(_))));
    // SAFETY: the fetch is accepted, and the texture reads an array.
    let Ok(()) = unsafe { t.fetch(f, u32::MAX, &mut rows, &mut admit_all) };
    std::array::from_fn(|l| std::array::from_fn(|k| f32::from_bits(rows[k][l])))
}

fn fetch(dimensions: u8, position: [Row<f32>; 3]) -> Fetch {
    Fetch {
        view: View {
            dimensions,
            layered: false,
            cube: false,
        },
        coordinates: Coordinates::Position(position),
        layer: [0; LANES],
        detail: Detail::Base,
        offset: [0; 3],
    }
}

/// The guide's address modes applied to a texel index; `None` is the border.
fn reference_address(mode: AddressMode, normalized: bool, i: i64, n: i64) -> Option<i64> {
    match mode {
        AddressMode::Border => (0..n).contains(&i).then_some(i),
        AddressMode::Wrap if normalized => Some(i.rem_euclid(n)),
        AddressMode::Mirror if normalized => {
            let m = i.rem_euclid(2 * n);
            Some(if m < n { m } else { 2 * n - 1 - m })
        }
        _ => Some(i.clamp(0, n - 1)),
    }
}

/// The guide's formulas in real numbers, without rounded weights.
fn reference(a: &Numbers, d: &TextureDescriptor, dims: usize, at: [f32; 3], channel: usize) -> f64 {
    let l = a.storage.level(0).unwrap();
    let n = [l.columns, l.rows, l.slices].map(i64::from);
    let x: [f64; 3] = std::array::from_fn(|k| {
        let x = f64::from(at[k]);
        if d.normalized { x * n[k] as f64 } else { x }
    });
    let get = |i: [i64; 3]| {
        let mut at = [0; 3];
        for k in 0..dims {
            match reference_address(d.address[k], d.normalized, i[k], n[k]) {
                Some(i) => at[k] = i as i32,
                None => {
                    return f64::from(if channel < a.channels {
                        d.border[channel]
                    } else {
                        0.0
                    });
                }
            }
        }
        f64::from(a.texel(0, at[2], at[1], at[0], channel))
    };
    if d.filter == Filter::Point {
        return get(x.map(|x| x.floor() as i64));
    }
    let mut sum = 0.0;
    for corner in 0..1 << dims {
        let mut weight = 1.0;
        let mut i = [0; 3];
        for k in 0..dims {
            let b = x[k] - 0.5;
            let (whole, part) = (b.floor(), b - b.floor());
            let second = corner >> k & 1;
            i[k] = whole as i64 + second;
            weight *= if second == 1 { part } else { 1.0 - part };
        }
        if weight != 0.0 {
            sum += weight * get(i);
        }
    }
    sum
}

#[test]
fn every_filter_and_address_mode_follows_the_formulas() {
    use AddressMode::{Border, Clamp, Mirror, Wrap};
    let mut random = Random(7);
    let mut compared = 0;
    for (dims, size) in [(1, [13, 0, 0]), (2, [9, 7, 0]), (3, [5, 4, 3])] {
        let a = Numbers::new(size, 0, 1, 4);
        for mode in [Wrap, Clamp, Mirror, Border] {
            for normalized in [false, true] {
                for filter in [Filter::Point, Filter::Linear] {
                    let d = TextureDescriptor {
                        // A dimension that the array lacks must not be the border.
                        address: [mode, if dims == 1 { Clamp } else { mode }, mode],
                        filter,
                        normalized,
                        border: [0.25, -1.5, 3.0, 0.625],
                        ..TextureDescriptor::default()
                    };
                    let t = a.texture(d);
                    let position: [Row<f32>; 3] = std::array::from_fn(|k| {
                        std::array::from_fn(|_| {
                            let n = size[k].max(1) as f32;
                            // From -1.5 to 2.5 times the extent in 64ths, which the rounded weights represent exactly.
                            let x = ((random.number() * 2.0 + 0.5) * n * 64.0).floor() / 64.0;
                            if normalized { x / n } else { x }
                        })
                    });
                    let got = run(&t, &fetch(dims as u8, position));
                    for l in 0..LANES {
                        let at = [position[0][l], position[1][l], position[2][l]];
                        for (k, &v) in got[l].iter().enumerate() {
                            let want = reference(&a, &d, dims, at, k);
                            // Products of weights are rounded to 256ths: each texel may deviate by one.
                            let near = if filter == Filter::Linear {
                                8.0 * 3.0 / 256.0
                            } else {
                                0.0
                            };
                            let edge = normalized && filter == Filter::Point;
                            let ok = (f64::from(v) - want).abs() <= near;
                            // A quotient may be just below a texel's edge.
                            let on_edge = edge
                                && (0..dims).any(|k| {
                                    let x = f64::from(at[k]) * size[k] as f64;
                                    (x - x.round()).abs() < 1e-4
                                });
                            assert!(ok || on_edge, "{dims} {d:?} {at:?} {k}: {v} {want}");
                            compared += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(compared, 3 * 4 * 2 * 2 * 32 * 4);
}

#[test]
fn one_dimension_is_exact_and_ties_go_away_from_zero() {
    let a = Numbers::new([13, 0, 0], 0, 1, 1);
    let t = a.texture(TextureDescriptor {
        address: [AddressMode::Clamp; 3],
        filter: Filter::Linear,
        ..TextureDescriptor::default()
    });
    let x: Row<f32> = std::array::from_fn(|l| 1.5 + l as f32 / 256.0 + 1.0 / 4096.0);
    let got = run(&t, &fetch(1, [x, [0.0; LANES], [0.0; LANES]]));
    let (p, q) = (
        f64::from(a.texel(0, 0, 0, 1, 0)),
        f64::from(a.texel(0, 0, 0, 2, 0)),
    );
    for (l, v) in got.iter().enumerate() {
        let exact = (p * (256 - l) as f64 + q * l as f64) / 256.0;
        assert!((f64::from(v[0]) - exact).abs() <= exact.abs() * f64::from(f32::EPSILON) / 2.0);
        assert_eq!(v[1..], [0.0; 3]);
    }
}

#[test]
fn integers_are_returned_or_normalised() {
    let make = |kind, bits, bytes: &[u8], integer| {
        let s = Storage::new(Format::plain(kind, bits, 2), [1, 0, 0], 0, 1).unwrap();
        let at = s.level(0).unwrap().base;
        // SAFETY: one element of that many bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        let d = TextureDescriptor {
            address: [AddressMode::Clamp; 3],
            read_as_integer: integer,
            ..TextureDescriptor::default()
        };
        let t = Texture::new(
            Resource::Array {
                storage: s,
                level: 0,
            },
            d,
            None,
        )
        .unwrap();
        let v = run(&t, &fetch(1, [[0.0; LANES]; 3]))[5];
        [v[0], v[1]]
    };
    use ChannelKind::{Float, Signed, Unsigned};
    let bits = |v: [f32; 2]| v.map(f32::to_bits);
    assert_eq!(bits(make(Unsigned, 8, &[200, 255], true)), [200, 255]);
    assert_eq!(make(Unsigned, 8, &[51, 255], false), [0.2, 1.0]);
    assert_eq!(bits(make(Signed, 8, &[0x80, 5], true)), [-128i32 as u32, 5]);
    assert_eq!(make(Signed, 8, &[0x80, 127], false), [-1.0, 1.0]);
    assert_eq!(make(Unsigned, 16, &[0, 0, 255, 255], false), [0.0, 1.0]);
    assert_eq!(make(Signed, 16, &[1, 128, 0, 0], false), [-1.0, 0.0]);
    assert_eq!(make(Float, 16, &[0, 0x3c, 0, 0xc0], false), [1.0, -2.0]);
    // 32-bit integers are never normalised.
    let word = make(Unsigned, 32, &[1, 2, 3, 4, 5, 6, 7, 8], false);
    assert_eq!(bits(word), [0x0403_0201, 0x0807_0605]);
}

#[test]
fn levels_bias_clamp_and_mixture() {
    let a = Numbers::new([16, 16, 0], 0, 5, 1);
    let centre = [[0.5; LANES]; 3];
    let of = |d: TextureDescriptor, lod: f32| {
        let f = Fetch {
            detail: Detail::Level([lod; LANES]),
            ..fetch(2, centre)
        };
        run(&a.texture(d), &f)[3][0]
    };
    let texel = |level: u32| a.texel(level, 0, 8 >> level, 8 >> level, 0);
    let d = TextureDescriptor {
        address: [AddressMode::Clamp; 3],
        normalized: true,
        max_mip: 100.0,
        ..TextureDescriptor::default()
    };
    assert_eq!(of(d, 0.0), texel(0));
    assert_eq!(of(d, 2.0), texel(2));
    assert_eq!(of(d, 2.4), texel(2));
    assert_eq!(of(d, 2.6), texel(3));
    assert_eq!(of(d, 99.0), texel(4));
    assert_eq!(of(d, -3.0), texel(0));
    assert_eq!(of(d, f32::NAN), texel(0));
    let biased = TextureDescriptor { mip_bias: 1.0, ..d };
    assert_eq!(of(biased, 1.0), texel(2));
    let clamped = TextureDescriptor {
        min_mip: 1.0,
        max_mip: 2.0,
        ..d
    };
    assert_eq!(of(clamped, 0.0), texel(1));
    assert_eq!(of(clamped, 4.0), texel(2));
    let mixed = TextureDescriptor {
        mip_filter: Filter::Linear,
        ..d
    };
    let want = 0.75 * f64::from(texel(1)) + 0.25 * f64::from(texel(2));
    assert!((f64::from(of(mixed, 1.25)) - want).abs() < 1e-7);
    assert_eq!(of(mixed, 3.0), texel(3));
    // A gradient of four texels selects level two.
    let f = Fetch {
        detail: Detail::Gradient(Box::new([
            [[0.25; LANES], [0.0; LANES], [0.0; LANES]],
            [[0.0; LANES], [0.125; LANES], [0.0; LANES]],
        ])),
        ..fetch(2, centre)
    };
    assert_eq!(run(&a.texture(d), &f)[9][0], texel(2));
    // With anisotropic filtering, the shorter axis selects the level, and samples lie along the longer one.
    let t = a.texture(TextureDescriptor {
        max_anisotropy: 4,
        ..d
    });
    let want = [1.0 / 3.0, 2.0 / 3.0]
        .map(|p: f64| a.texel(1, 0, 4, ((0.5 + (p - 0.5) * 0.25) * 8.0) as i32, 0))
        .iter()
        .map(|v| f64::from(*v) / 2.0)
        .sum::<f64>();
    assert!((f64::from(run(&t, &f)[0][0]) - want).abs() < 1e-6);
}

#[test]
fn layers_are_clamped_and_views_start_at_their_first_layer() {
    let a = Numbers::new([4, 4, 3], sys::CUDA_ARRAY3D_LAYERED, 3, 1);
    let d = TextureDescriptor {
        address: [AddressMode::Clamp; 3],
        ..TextureDescriptor::default()
    };
    let f = Fetch {
        view: View {
            dimensions: 2,
            layered: true,
            cube: false,
        },
        layer: std::array::from_fn(|l| l as u32),
        ..fetch(2, [[1.5; LANES], [2.5; LANES], [0.0; LANES]])
    };
    let got = run(&a.texture(d), &f);
    for (l, v) in got.iter().enumerate() {
        assert_eq!(v[0], a.texel(0, l.min(2) as i32, 2, 1, 0));
    }
    let view = ResourceView {
        format: None,
        size: [2, 2, 0],
        first_level: 1,
        last_level: 2,
        first_layer: 1,
        last_layer: 2,
    };
    let storage = a.storage.clone();
    let t = Texture::new(Resource::Mipmapped { storage }, d, Some(&view)).unwrap();
    let got = run(&t, &f);
    assert_eq!(got[0][0], a.texel(1, 1, 1, 1, 0));
    assert_eq!(got[31][0], a.texel(1, 2, 1, 1, 0));
    for wrong in [
        ResourceView {
            last_level: 3,
            ..view
        },
        ResourceView {
            first_level: 3,
            ..view
        },
        ResourceView {
            last_layer: 3,
            ..view
        },
        ResourceView {
            size: [4, 2, 0],
            ..view
        },
    ] {
        let storage = a.storage.clone();
        let made = Texture::new(Resource::Mipmapped { storage }, d, Some(&wrong));
        assert_eq!(made.err(), Some(TextureError::Combination), "{wrong:?}");
    }
}

#[test]
fn cubemaps_have_faces_and_seams() {
    let a = Numbers::new([4, 4, 6], sys::CUDA_ARRAY3D_CUBEMAP, 1, 1);
    let mut d = TextureDescriptor {
        address: [AddressMode::Clamp; 3],
        normalized: true,
        ..TextureDescriptor::default()
    };
    let cube = |direction: [f32; 3]| Fetch {
        view: View {
            dimensions: 2,
            layered: false,
            cube: true,
        },
        ..fetch(2, direction.map(|v| [v; LANES]))
    };
    // +x: s = -z, t = -y: (0.3 + 1) / 2 * 4 = 2.6, (-0.6 + 1) / 2 * 4 = 0.8.
    let got = run(&a.texture(d), &cube([2.0, 1.2, -0.6]));
    assert_eq!(got[0][0], a.texel(0, 0, 0, 2, 0));
    // Halfway across the edge between +z and +x: between the last column of +z and the first of +x.
    d.filter = Filter::Linear;
    let edge = cube([1.0, -0.25, 1.0]);
    let own = run(&a.texture(d), &edge)[0][0];
    assert_eq!(own, a.texel(0, 4, 2, 3, 0));
    d.seamless = true;
    let both = run(&a.texture(d), &edge)[0][0];
    let want = (a.texel(0, 4, 2, 3, 0) + a.texel(0, 0, 2, 0, 0)) / 2.0;
    assert!((both - want).abs() < 1e-6);
    // In the corner, three texels are averaged.
    let corner = run(&a.texture(d), &cube([1.0, 1.0, 1.0]))[0][0];
    let want = (a.texel(0, 4, 0, 3, 0) + a.texel(0, 0, 0, 0, 0) + a.texel(0, 2, 3, 3, 0)) / 3.0;
    assert!((corner - want).abs() < 1e-6, "{corner} {want}");
}

#[test]
fn gather_takes_four_texels_counterclockwise_from_below_left() {
    let a = Numbers::new([9, 7, 0], 0, 1, 4);
    let t = a.texture(TextureDescriptor {
        address: [AddressMode::Clamp; 3],
        ..TextureDescriptor::default()
    });
    let mut rows = [[0; LANES]; 4];
    // SAFETY: a two-dimensional array.
    let Ok(()) = unsafe {
        t.gather(
            &fetch(2, [[3.2; LANES], [4.9; LANES], [0.0; LANES]]),
            2,
            1 << 7,
            &mut rows,
            &mut admit_all,
        )
    };
    let got = rows.map(|r| f32::from_bits(r[7]));
    let want = [(5, 2), (5, 3), (4, 3), (4, 2)].map(|(y, x)| a.texel(0, 0, y, x, 2));
    assert_eq!(got, want);
    assert_eq!(rows[0][6], 0);
}

#[test]
fn linear_and_pitched_memory() {
    let memory: Vec<f32> = (0..60).map(|v| v as f32).collect();
    let address = memory.as_ptr() as u64;
    let format = Format::plain(ChannelKind::Float, 32, 1);
    let d = TextureDescriptor {
        address: [AddressMode::Clamp; 3],
        ..TextureDescriptor::default()
    };
    let linear = Resource::Linear {
        address,
        bytes: 4 * 50 + 3,
        format,
    };
    let t = Texture::new(linear, d, None).unwrap();
    assert_eq!(t.memory(), Some((address, 203)));
    let texels: Row<i32> = std::array::from_fn(|l| 3 * l as i32 - 3);
    let f = Fetch {
        coordinates: Coordinates::Texel([texels, [0; LANES], [0; LANES]]),
        ..fetch(1, [[0.0; LANES]; 3])
    };
    for (l, v) in run(&t, &f).iter().enumerate() {
        let want = texels[l];
        assert_eq!(
            v[0],
            if (0..50).contains(&want) {
                want as f32
            } else {
                0.0
            }
        );
    }
    let pitched = Resource::Pitch2D {
        address,
        width: 7,
        height: 6,
        pitch: 40,
        format,
    };
    let t = Texture::new(pitched, d, None).unwrap();
    assert_eq!(t.memory(), Some((address, 5 * 40 + 28)));
    let got = run(&t, &fetch(2, [[9.0; LANES], [4.5; LANES], [0.0; LANES]]));
    assert_eq!(got[0][0], 46.0);
    for (pitch, width) in [(42, 7), (24, 7), (40, 0)] {
        let bad = Resource::Pitch2D {
            address,
            width,
            height: 6,
            pitch,
            format,
        };
        assert!(Texture::new(bad, d, None).is_err());
    }
}

#[test]
fn formatted_stores_convert() {
    let store = |format: u32, channels: u32, values: [u32; 4]| {
        let s = Storage::new(Format::new(format, channels).unwrap(), [2, 0, 0], 0, 1).unwrap();
        let surface = Surface::new(SurfaceDescriptor {
            storage: s.clone(),
            level: 0,
        })
        .unwrap();
        let places = SurfaceAccess {
            view: View {
                dimensions: 1,
                layered: false,
                cube: false,
            },
            coordinates: [[1; LANES]; 3],
            layer: [0; LANES],
            bytes: 0,
            outside: BoundaryMode::Trap,
        };
        let sites = surface.sites(&places, 1).unwrap();
        // SAFETY: the sites are those of this surface.
        unsafe { surface.store_formatted(&sites, &values.map(|v| [v; LANES]), 1) };
        let bytes = s.format().element_bytes();
        // SAFETY: the second of two elements.
        unsafe { read_element(s.level(0).unwrap().base + u64::from(bytes), bytes) as u32 }
    };
    let f = |v: f32| v.to_bits();
    assert_eq!(store(32, 1, [f(1.5), 0, 0, 0]), f(1.5));
    assert_eq!(store(16, 2, [f(1.0), f(-2.0), 0, 0]), 0xc000_3c00);
    assert_eq!(store(194, 4, [f(0.0), f(1.0), f(2.0), f(0.5)]), 0x80ff_ff00);
    assert_eq!(store(199, 2, [f(-1.0), f(1.0), 0, 0]), 0x7f81);
    assert_eq!(store(1, 4, [1, 2, 3, 4]), 0x0403_0201);
    assert_eq!(store(1, 4, [256, u32::MAX, 255, 0]), 0x00ff_ffff);
    assert_eq!(store(8, 4, [128, u32::MAX, -200i32 as u32, 5]), 0x0580_ff7f);
}
