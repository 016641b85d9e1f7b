//! Texture fetches of a warp (CUDA Programming Guide, "Texture Fetching").
//!
//! A fetch computes the level of detail of each lane, then for each mipmap level that some lane needs: the texel
//! indices of all its lanes, their addresses, one loader call per corner of the filter, and the weighted sum. Weights
//! have eight fractional bits as on a GPU; the sum is exact until it is rounded to `f32`. Where the guide leaves room,
//! the behaviour is that of an H200, compared by `tests/differential/textures.py`.
//!
//! Behaviour that the guide leaves open: a fetch without level of detail uses level zero (clamped by the descriptor).
//! Anisotropic filtering, for two-dimensional images with explicit gradients only, averages up to `maxAnisotropy`
//! samples along the longer axis of the footprint, as in the OpenGL extension. The corner texel of a seamless cubemap,
//! shared by three faces, is the average of the three existing texels.

use super::address::{Axis, InterpolatedTexels, OUTSIDE};
use super::cube;
use super::descriptor::{AddressMode, Filter, Geometry, Image, Texture};
use super::sparse::Tiles;
use super::texel::{LANES, Loader, Precision, Row, Rows, TEXEL_SHIFT};

/// The texture shape that a fetch assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Dimensions of an image, 1 to 3.
    pub dimensions: u8,
    /// Whether a layer is given.
    pub layered: bool,
    /// Whether the coordinates are a direction.
    pub cube: bool,
}

/// Coordinates of all lanes.
#[derive(Clone, Copy, Debug)]
pub enum Coordinates {
    /// Positions; unused dimensions are ignored.
    Position([Row<f32>; 3]),
    /// Texel indices.
    Texel([Row<i32>; 3]),
}

/// Level of detail of all lanes.
#[derive(Clone, Debug)]
pub enum Detail {
    /// The finest level.
    Base,
    /// The given level.
    Level(Row<f32>),
    /// Derived from the horizontal and vertical derivatives of the coordinates.
    Gradient(Box<[[Row<f32>; 3]; 2]>),
}

/// A fetch of a warp.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The shape that the instruction specifies.
    pub view: View,
    /// Coordinates.
    pub coordinates: Coordinates,
    /// Layer (of cubemaps: cube), if there are layers.
    pub layer: Row<u32>,
    /// Level of detail.
    pub detail: Detail,
    /// Offset in texels.
    pub offset: [i32; 3],
}

/// Sums of all lanes, by component.
type Sums = [Row<f64>; 4];

/// Positions in one level.
struct LevelPosition {
    position: [Row<f32>; 3],
    /// Slice of the level: layer, or layer times six plus face.
    slice: Row<u32>,
}

/// Reads the texels of a fetch.
struct TexelReader<'a, A> {
    /// Decodes the texels.
    loader: Loader,
    /// The value of a texel outside the image.
    border: &'a [u32; 4],
    /// See [`Texture::fetch`].
    admit: &'a mut A,
}

impl<A: FnMut(&Row<u64>, u32) -> Result<(), E>, E> TexelReader<'_, A> {
    /// Reads the texels at `sites` for the lanes of `mask`.
    ///
    /// # Safety
    /// As for [`Loader`].
    unsafe fn read(&mut self, sites: &Row<u64>, mask: u32, out: &mut Rows) -> Result<(), E> {
        (self.admit)(sites, mask)?;
        // SAFETY: guaranteed by the caller.
        unsafe { (self.loader)(sites, mask, self.border, out) };
        Ok(())
    }
}

/// The lanes of a mask.
#[inline(always)]
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |l| mask >> l & 1 != 0)
}

impl Texture {
    /// Whether a fetch of this shape is valid for this texture: the same dimensions, and cube fetches only for
    /// cubemaps. A missing layer is the first one; a surplus layer is ignored.
    pub fn accepts(&self, view: View, texels: bool) -> bool {
        match self.geometry {
            Geometry::Buffer => view.dimensions == 1 && !view.cube && !view.layered,
            Geometry::Array(shape) => {
                view.dimensions == shape.dimensions && (!view.cube || shape.cubemap && !texels)
            }
        }
    }

    /// Fetches for the lanes of `mask`; the rows of other lanes are unchanged. Before it reads texels, it passes their
    /// sites (as for [`Loader`]) and the lanes that read them to `admit`.
    ///
    /// # Errors
    /// The error of `admit`. The rows are then unspecified.
    ///
    /// # Safety
    /// [`Self::accepts`] the fetch, and the memory of [`Self::memory`] is readable during the call.
    pub unsafe fn fetch<E>(
        &self,
        f: &Fetch,
        mask: u32,
        out: &mut Rows,
        admit: &mut impl FnMut(&Row<u64>, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let position = match &f.coordinates {
            Coordinates::Position(p) => p,
            Coordinates::Texel(t) => {
                // SAFETY: guaranteed by the caller.
                return unsafe { self.fetch_texels(f, t, mask, out, admit) };
            }
        };
        if self.geometry == Geometry::Buffer {
            // Linear memory is read by element index; a position yields zeros, as on an H200.
            for row in out.iter_mut() {
                lanes(mask).for_each(|l| row[l] = 0);
            }
            return Ok(());
        }
        let at_level = self.at_level(f, position, mask);
        let integers = self.reads_integers();
        if self.images.len() == 1 && (integers || self.descriptor.max_anisotropy <= 1) {
            if self.descriptor.filter == Filter::Point || integers {
                let mut reader = self.reader(admit);
                // SAFETY: guaranteed by the caller.
                return unsafe { self.point(0, f, &at_level, mask, &mut reader, out) };
            }
            let mut sums = [[0.0; LANES]; 4];
            let one = [1.0; LANES];
            // SAFETY: guaranteed by the caller.
            unsafe { self.add(0, f, &at_level, (mask, &one), admit, &mut sums)? };
            self.finish(&sums, mask, out);
            return Ok(());
        }
        let foot = self.footprint(f, position, mask);
        let d = &self.descriptor;
        // The result is a single texel, returned unchanged, as from a texture with one level.
        let whole = d.filter == Filter::Point && !foot.linear && d.max_anisotropy <= 1;
        if integers || whole {
            for level in 0..self.images.len() {
                let m = foot.nearest(level, mask);
                if m != 0 {
                    let mut reader = self.reader(admit);
                    // SAFETY: guaranteed by the caller.
                    unsafe { self.point(level, f, &at_level, m, &mut reader, out)? };
                }
            }
            return Ok(());
        }
        let mut sums = [[0.0; LANES]; 4];
        let most = lanes(mask).map(|l| foot.samples[l]).max().unwrap_or(1);
        for n in 0..most {
            let m = lanes(mask).fold(0, |m, l| m | u32::from(n < foot.samples[l]) << l);
            let mut moved = LevelPosition {
                position: at_level.position,
                slice: at_level.slice,
            };
            if most > 1 {
                for l in lanes(m) {
                    let part = (n + 1) as f32 / (foot.samples[l] + 1) as f32 - 0.5;
                    for (p, step) in moved.position.iter_mut().zip(&foot.along) {
                        p[l] += part * step[l];
                    }
                }
            }
            for level in 0..self.images.len() {
                let (m, weight) = foot.weights(level, m);
                if m != 0 {
                    // SAFETY: guaranteed by the caller.
                    unsafe { self.add(level, f, &moved, (m, &weight), admit, &mut sums)? };
                }
            }
        }
        self.finish(&sums, mask, out);
        Ok(())
    }

    /// One component of each of the four texels that linear filtering would use at level zero: lower left, lower right,
    /// upper right, upper left (PTX ISA, `tld4`).
    ///
    /// # Errors
    /// As for [`Self::fetch`].
    ///
    /// # Safety
    /// As for [`Self::fetch`]; in addition, the texture's images are two-dimensional.
    pub unsafe fn gather<E>(
        &self,
        f: &Fetch,
        component: usize,
        mask: u32,
        out: &mut Rows,
        admit: &mut impl FnMut(&Row<u64>, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let Coordinates::Position(position) = &f.coordinates else {
            return Ok(());
        };
        let mut reader = self.reader(admit);
        let at_level = self.at_level(f, position, mask);
        let corners = self.corners(0, f, &at_level, mask);
        for (k, corner) in [2, 3, 1, 0].into_iter().enumerate() {
            let mut rows = [[0; LANES]; 4];
            // SAFETY: the sites are texels of the image; the rest is guaranteed by the caller.
            unsafe { reader.read(&corners.sites[corner], mask, &mut rows)? };
            for l in lanes(mask) {
                out[k][l] = rows[component & 3][l];
            }
        }
        Ok(())
    }

    /// Reads texels as a fetch without filtering returns them.
    fn reader<'a, A>(&'a self, admit: &'a mut A) -> TexelReader<'a, A> {
        TexelReader {
            loader: self.loader,
            border: &self.border,
            admit,
        }
    }

    fn finish(&self, sums: &Sums, mask: u32, out: &mut Rows) {
        for (k, (row, sum)) in out.iter_mut().zip(sums).enumerate() {
            let unit = self.precision.unit(k);
            for l in lanes(mask) {
                let v = match self.precision {
                    Precision::Single => rounded::<24>(sum[l]),
                    Precision::Half | Precision::Srgb { .. } if unit == 1.0 => {
                        rounded::<11>(sum[l])
                    }
                    _ => (sum[l] + 0.5).floor() as f32 / unit,
                };
                row[l] = if v.is_nan() {
                    NAN
                } else if v.is_subnormal() {
                    v.to_bits() & (1 << 31)
                } else {
                    v.to_bits()
                };
            }
        }
    }

    /// The slice of each lane, and for cubemaps the position on the face.
    fn at_level(&self, f: &Fetch, position: &[Row<f32>; 3], mask: u32) -> LevelPosition {
        let mut at_level = LevelPosition {
            position: *position,
            slice: [0; LANES],
        };
        if f.view.cube {
            for l in lanes(mask) {
                let place = cube::project([position[0][l], position[1][l], position[2][l]]);
                at_level.position[0][l] = place.s;
                at_level.position[1][l] = place.t;
                let last = self.layers / 6 - 1;
                let cube = if f.view.layered {
                    f.layer[l].min(last)
                } else {
                    0
                };
                at_level.slice[l] = 6 * cube + place.face;
            }
        } else if f.view.layered {
            for l in lanes(mask) {
                at_level.slice[l] = f.layer[l].min(self.layers - 1);
            }
        }
        at_level
    }

    fn axis(&self, image: &Image, k: usize, f: &Fetch) -> Axis {
        Axis {
            extent: image.extent[k],
            // Positions on a face are always normalised.
            normalized: self.descriptor.normalized || f.view.cube,
            mode: self.descriptor.address[k],
            offset: f.offset[k],
        }
    }

    /// Address of a texel; zero outside.
    #[inline(always)]
    fn site(&self, image: &Image, slice: u32, x: i32, y: i32, z: i32) -> u64 {
        if x == OUTSIDE || y == OUTSIDE || z == OUTSIDE {
            return 0;
        }
        let (x, y, z) = (x as u64, y as u64, z as u64);
        let element = u64::from(self.format.element_bytes());
        if let Some(tiles) = &image.tiles {
            return self.tiled_site(image, tiles, slice, x, y, z);
        }
        // Three-dimensional images have no layers and layered ones no depth: one of the two is zero.
        let slice = image.base + (u64::from(slice) + z) * image.slice_pitch;
        if self.format.is_compressed() {
            let texel = ((y & 3) << 2) | (x & 3);
            let block = slice + (y >> 2) * image.row_pitch + (x >> 2) * element;
            return block | (texel << TEXEL_SHIFT);
        }
        slice + y * image.row_pitch + x * element
    }

    /// [`Self::site`] in an image that consists of tiles.
    #[cold]
    fn tiled_site(&self, image: &Image, tiles: &Tiles, slice: u32, x: u64, y: u64, z: u64) -> u64 {
        let layer = image.base + u64::from(slice) * image.slice_pitch;
        if self.format.is_compressed() {
            let texel = ((y & 3) << 2) | (x & 3);
            return (layer + tiles.offset(x >> 2, y >> 2, z)) | (texel << TEXEL_SHIFT);
        }
        layer + tiles.offset(x, y, z)
    }

    /// Loads the nearest texels of one level.
    unsafe fn point<E>(
        &self,
        level: usize,
        f: &Fetch,
        at_level: &LevelPosition,
        mask: u32,
        reader: &mut TexelReader<'_, impl FnMut(&Row<u64>, u32) -> Result<(), E>>,
        out: &mut Rows,
    ) -> Result<(), E> {
        let image = &self.images[level];
        let mut texels = [[0; LANES]; 3];
        let axes = usize::from(f.view.dimensions);
        for (k, row) in texels.iter_mut().enumerate().take(axes) {
            *row = self.axis(image, k, f).point(&at_level.position[k]);
        }
        let [x, y, z] = texels;
        let mut sites = [0; LANES];
        for l in lanes(mask) {
            sites[l] = self.site(image, at_level.slice[l], x[l], y[l], z[l]);
        }
        // SAFETY: the sites are texels of the image; the rest is guaranteed by the caller.
        unsafe { reader.read(&sites, mask, out) }
    }

    /// Adds the filtered value of one level, times `scale`, for the lanes of `mask`.
    unsafe fn add<E>(
        &self,
        level: usize,
        f: &Fetch,
        at_level: &LevelPosition,
        (mask, scale): (u32, &Row<f64>),
        admit: &mut impl FnMut(&Row<u64>, u32) -> Result<(), E>,
        sums: &mut Sums,
    ) -> Result<(), E> {
        let mut rows = [[0; LANES]; 4];
        let mut reader = TexelReader {
            loader: self.blend,
            border: &self.blend_border,
            admit,
        };
        if self.descriptor.filter == Filter::Point {
            // SAFETY: guaranteed by the caller.
            unsafe { self.point(level, f, at_level, mask, &mut reader, &mut rows)? };
            accumulate(sums, &rows, scale, mask);
            return Ok(());
        }
        let corners = self.corners(level, f, at_level, mask);
        if self.edged(f) {
            let border = self.blend_border.map(|b| [b; LANES]);
            accumulate(sums, &border, &scale.map(|s| s / 2.0), mask);
        }
        for (sites, weight) in corners
            .sites
            .iter()
            .zip(&corners.weights)
            .take(corners.count)
        {
            // A texel of zero weight is not loaded: infinity times zero would be NaN.
            let m = lanes(mask).fold(0, |m, l| m | u32::from(weight[l] != 0.0) << l);
            if m == 0 {
                continue;
            }
            let mut all = *weight;
            for (w, s) in all.iter_mut().zip(scale) {
                *w *= s;
            }
            // SAFETY: the sites are texels of the image; the rest is guaranteed by the caller.
            unsafe { reader.read(sites, m, &mut rows)? };
            accumulate(sums, &rows, &all, m);
        }
        Ok(())
    }

    /// Whether half of a linear fetch comes from the border: a GPU filters one dimension like two, with a second
    /// coordinate of zero, which is half outside.
    fn edged(&self, f: &Fetch) -> bool {
        f.view.dimensions == 1
            && !f.view.layered
            && self.descriptor.address[1] == AddressMode::Border
    }

    /// The texels of linear filtering: x fastest, then y, then z.
    fn corners(&self, level: usize, f: &Fetch, at_level: &LevelPosition, mask: u32) -> Corners {
        let image = &self.images[level];
        if f.view.cube && self.descriptor.seamless {
            return self.seamless_corners(image, f, at_level, mask);
        }
        let dimensions = usize::from(f.view.dimensions);
        let nothing = InterpolatedTexels {
            texels: [[0; LANES]; 2],
            weight: [0; LANES],
        };
        let mut axes = [nothing; 3];
        for (k, axis) in axes.iter_mut().enumerate().take(dimensions) {
            *axis = self.axis(image, k, f).linear(&at_level.position[k]);
        }
        let edged = self.edged(f);
        let mut out = Corners::new(1 << dimensions);
        for l in lanes(mask) {
            let mut weights = products(dimensions, [0, 1, 2].map(|k| axes[k].weight[l]));
            if edged {
                // The weights of the upper row of two.
                let [_, _, left, right, ..] = products(2, [axes[0].weight[l], 128, 0]);
                weights[..2].copy_from_slice(&[left, right]);
            }
            for (n, weight) in weights.into_iter().enumerate().take(out.count) {
                let texel = |k: usize| axes[k].texels[n >> k & 1][l];
                out.sites[n][l] = self.site(image, at_level.slice[l], texel(0), texel(1), texel(2));
                out.weights[n][l] = f64::from(weight) / 256.0;
            }
        }
        out
    }

    /// [`Self::corners`] for a seamless cubemap, whose faces continue in each other.
    fn seamless_corners(
        &self,
        image: &Image,
        f: &Fetch,
        at_level: &LevelPosition,
        mask: u32,
    ) -> Corners {
        let n = image.extent[0] as i32;
        let inside = 0..n;
        let axis = |k: usize| Axis {
            mode: AddressMode::Clamp,
            ..self.axis(image, k, f)
        };
        let mut out = Corners::new(4);
        for l in lanes(mask) {
            let (i, u) = axis(0).split(at_level.position[0][l]);
            let (j, v) = axis(1).split(at_level.position[1][l]);
            let (face, first) = (at_level.slice[l] % 6, at_level.slice[l] / 6 * 6);
            let weights = products(2, [u, v, 0]);
            let mut missing = None;
            for (c, weight) in weights.into_iter().enumerate().take(4) {
                let (x, y) = (i + (c & 1) as i32, j + (c >> 1) as i32);
                out.weights[c][l] = f64::from(weight) / 256.0;
                let (to, x, y) = match (inside.contains(&x), inside.contains(&y)) {
                    (true, true) => (face, x, y),
                    (false, false) => {
                        missing = Some(c);
                        continue;
                    }
                    _ => cube::across(face, x, y, n),
                };
                out.sites[c][l] = self.site(image, first + to, x, y, 0);
            }
            if let Some(missing_corner) = missing {
                let share = out.weights[missing_corner][l] / 3.0;
                // A gather needs a texel there: its neighbour in the row.
                out.sites[missing_corner][l] = out.sites[missing_corner ^ 1][l];
                for c in 0..4 {
                    out.weights[c][l] = if c == missing_corner {
                        0.0
                    } else {
                        out.weights[c][l] + share
                    };
                }
            }
        }
        out
    }

    /// Fetches texels by index: zero outside whatever the address mode, as on an H200. One-dimensional arrays yield
    /// only zeros, because `tex1Dfetch` is for linear memory.
    unsafe fn fetch_texels<E>(
        &self,
        f: &Fetch,
        texel: &[Row<i32>; 3],
        mask: u32,
        out: &mut Rows,
        admit: &mut impl FnMut(&Row<u64>, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let sites = match self.geometry {
            Geometry::Buffer => self.buffer_sites(&texel[0], mask),
            Geometry::Array(_) => self.texel_sites(f, texel, mask),
        };
        let mut reader = TexelReader {
            border: &[0; 4],
            ..self.reader(admit)
        };
        // SAFETY: the sites are texels of the images or elements of the memory; the rest is guaranteed by the caller.
        unsafe { reader.read(&sites, mask, out) }
    }

    /// Sites of the texels with the given indices; zero outside.
    fn texel_sites(&self, f: &Fetch, texel: &[Row<i32>; 3], mask: u32) -> Row<u64> {
        let nothing = f.view.dimensions == 1 && !f.view.layered;
        let mut sites = [0; LANES];
        for l in lanes(mask) {
            let level = match &f.detail {
                Detail::Level(lod) => lod[l] as i64,
                _ => 0,
            };
            let Some(image) = usize::try_from(level).ok().and_then(|n| self.images.get(n)) else {
                continue;
            };
            let mut at = [0; 3];
            let mut inside = !nothing;
            for k in 0..usize::from(f.view.dimensions) {
                let i = i64::from(texel[k][l]) + i64::from(f.offset[k]);
                inside &= (0..i64::from(image.extent[k])).contains(&i);
                at[k] = i as i32;
            }
            let slice = if f.view.layered { f.layer[l] } else { 0 };
            if inside && slice < self.layers {
                sites[l] = self.site(image, slice, at[0], at[1], at[2]);
            }
        }
        sites
    }

    /// Sites of the elements of linear memory with the given indices; zero outside.
    fn buffer_sites(&self, texel: &Row<i32>, mask: u32) -> Row<u64> {
        let image = &self.images[0];
        let element = u64::from(self.format.element_bytes());
        let mut sites = [0; LANES];
        for l in lanes(mask) {
            // A negative index wraps to a large one.
            let n = texel[l] as u32;
            if n < image.extent[0] {
                sites[l] = image.base + u64::from(n) * element;
            }
        }
        sites
    }

    /// Level of detail and anisotropy of each lane.
    fn footprint(&self, f: &Fetch, position: &[Row<f32>; 3], mask: u32) -> Footprint {
        let d = &self.descriptor;
        let mut foot = Footprint {
            lod: [0; LANES],
            linear: d.mip_filter == Filter::Linear,
            samples: [1; LANES],
            along: [[0.0; LANES]; 2],
        };
        for l in lanes(mask) {
            let mut lod = 0.0;
            match &f.detail {
                Detail::Base => {}
                Detail::Level(given) => lod = given[l] + d.mip_bias,
                Detail::Gradient(gradient) => {
                    let [right, down] = &**gradient;
                    let at = |v: &[Row<f32>; 3]| [v[0][l], v[1][l], v[2][l]];
                    let (mut right, mut down) = (at(right), at(down));
                    if f.view.cube {
                        let direction = at(position);
                        let flat = |c: [f32; 3]| {
                            let [s, t] = cube::derivative(direction, c);
                            [s, t, 0.0]
                        };
                        (right, down) = (flat(right), flat(down));
                    }
                    let long = self.length(f, right);
                    let short = self.length(f, down);
                    let (long, short, axis) = if long >= short {
                        (long, short, right)
                    } else {
                        (short, long, down)
                    };
                    let mut wide = long;
                    if d.max_anisotropy > 1 && f.view.dimensions == 2 && !f.view.cube && long > 0.0
                    {
                        let most = f64::from(d.max_anisotropy);
                        let samples = (long / short).ceil().clamp(1.0, most);
                        foot.samples[l] = samples as u32;
                        wide = long / samples;
                        foot.along[0][l] = axis[0];
                        foot.along[1][l] = axis[1];
                    }
                    lod = libm::log2(wide) as f32 + d.mip_bias;
                }
            }
            // `max` before `min`, so that NaN becomes the minimum level.
            let lod = lod.max(d.min_mip).min(d.max_mip);
            let last = (self.images.len() - 1) as f32;
            let lod = lod.max(0.0).min(last);
            foot.lod[l] = (lod * 256.0) as u32;
        }
        foot
    }

    /// The length of a gradient in texels of level zero.
    fn length(&self, f: &Fetch, gradient: [f32; 3]) -> f64 {
        let image = &self.images[0];
        let mut sum = 0.0;
        let axes = usize::from(f.view.dimensions);
        for (k, part) in gradient.iter().enumerate().take(axes) {
            let scale = if self.descriptor.normalized || f.view.cube {
                f64::from(image.extent[k])
            } else {
                1.0
            };
            sum += (f64::from(*part) * scale).powi(2);
        }
        sum.sqrt()
    }
}

/// The NaN that interpolation produces.
const NAN: u32 = 0x7fff_ffff;

/// The weight of one of two neighbours.
#[inline(always)]
fn part(weight: u32, second: usize) -> f64 {
    let w = if second == 1 { weight } else { 256 - weight };
    f64::from(w) / 256.0
}

/// Rounds to that many significant bits; ties round away from zero, as on an H200.
#[inline(always)]
fn rounded<const DIGITS: u32>(v: f64) -> f32 {
    let more = f64::MANTISSA_DIGITS - DIGITS;
    let bits = v.to_bits() + (1 << (more - 1));
    f64::from_bits(bits >> more << more) as f32
}

/// The product `weight * w / 256`.
#[inline(always)]
fn share(weight: u32, w: u32) -> u32 {
    (weight * w + 128) >> 8
}

/// Weights of two, four or eight texels in 256ths, x fastest, from those of the upper texel in each dimension.
///
/// The products are rounded to 256ths in the order and manner of an H200, derived from its results, which this
/// reproduces exactly.
#[inline(always)]
fn products(dimensions: usize, [x, y, z]: [u32; 3]) -> [u32; 8] {
    match dimensions {
        1 => [256 - x, x, 0, 0, 0, 0, 0, 0],
        2 => {
            let both = share(x, y);
            [256 + both - x - y, x - both, y - both, both, 0, 0, 0, 0]
        }
        _ => {
            let mut out = [0; 8];
            for (k, slab) in [256 - z, z].into_iter().enumerate() {
                let right = share(slab, x);
                let left = slab - right;
                let below_right = share(right, y);
                let above_left = share(left, 256 - y);
                out[4 * k] = above_left;
                out[4 * k + 1] = right - below_right;
                out[4 * k + 2] = left - above_left;
                out[4 * k + 3] = below_right;
            }
            out
        }
    }
}

#[inline(always)]
fn accumulate(sums: &mut Sums, rows: &Rows, weight: &Row<f64>, mask: u32) {
    for (sum, row) in sums.iter_mut().zip(rows) {
        for l in lanes(mask) {
            sum[l] += weight[l] * f64::from(f32::from_bits(row[l]));
        }
    }
}

struct Corners {
    count: usize,
    sites: [Row<u64>; 8],
    weights: [Row<f64>; 8],
}

impl Corners {
    fn new(count: usize) -> Self {
        Self {
            count,
            sites: [[0; LANES]; 8],
            weights: [[0.0; LANES]; 8],
        }
    }
}

struct Footprint {
    /// In 256ths of a level.
    lod: Row<u32>,
    /// Whether levels are interpolated.
    linear: bool,
    /// Number of samples to average.
    samples: Row<u32>,
    /// The axis along which the samples lie.
    along: [Row<f32>; 2],
}

impl Footprint {
    /// Lanes for which this is the nearest level.
    fn nearest(&self, level: usize, mask: u32) -> u32 {
        lanes(mask).fold(0, |m, l| {
            m | u32::from((self.lod[l] + 128) as usize >> 8 == level) << l
        })
    }

    /// Lanes that need this level, and its weight in each.
    fn weights(&self, level: usize, mask: u32) -> (u32, Row<f64>) {
        let mut weight = [0.0; LANES];
        let mut m = 0;
        let near = self.nearest(level, mask);
        for l in lanes(mask) {
            let (below, share) = (self.lod[l] as usize >> 8, self.lod[l] & 255);
            let w = match (self.linear, level) {
                (false, _) => f64::from(near >> l & 1),
                (true, n) if n == below => part(share, 0),
                (true, n) if n == below + 1 => part(share, 1),
                _ => 0.0,
            };
            weight[l] = w / f64::from(self.samples[l]);
            m |= u32::from(w != 0.0) << l;
        }
        (m, weight)
    }
}
