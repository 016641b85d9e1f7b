//! The operands of texture and surface instructions by role (PTX ISA, "Texture Instructions" and "Surface Instructions").
//!
//! The parser checks each such instruction with [`TextureForm::of`], and the CPU device lowers it with the same function.
//! Objects are 64-bit handles in registers or parameters, or the names of `.texref`, `.samplerref` and `.surfref` variables.

use crate::ir::*;

/// Geometry of a texture or surface instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Geometry {
    D1,
    D2,
    D3,
    /// `.a1d`: one-dimensional layers.
    A1,
    /// `.a2d`: two-dimensional layers.
    A2,
    Cube,
    ACube,
    /// `.2dms`: two dimensions with several samples per pixel.
    Ms2,
    /// `.a2dms`.
    AMs2,
}

impl Geometry {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "1d" => Self::D1,
            "2d" => Self::D2,
            "3d" => Self::D3,
            "a1d" => Self::A1,
            "a2d" => Self::A2,
            "cube" => Self::Cube,
            "acube" => Self::ACube,
            "2dms" => Self::Ms2,
            "a2dms" => Self::AMs2,
            _ => return None,
        })
    }

    /// Whether the first coordinate is a layer.
    pub const fn layered(self) -> bool {
        matches!(self, Self::A1 | Self::A2 | Self::ACube | Self::AMs2)
    }

    /// Number of components of a position, without layer and sample; of a direction for cubemaps.
    pub const fn components(self) -> usize {
        match self {
            Self::D1 | Self::A1 => 1,
            Self::D2 | Self::A2 | Self::Ms2 | Self::AMs2 => 2,
            Self::D3 | Self::Cube | Self::ACube => 3,
        }
    }

    /// Number of elements of the coordinate vector that are used.
    const fn coordinates(self) -> usize {
        let sample = matches!(self, Self::Ms2 | Self::AMs2) as usize;
        self.components() + self.layered() as usize + sample
    }
}

/// Source of the level of detail.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// `.base`, or no modifier.
    Base,
    /// `.level`: the operand.
    Level(Operand),
    /// `.grad`: the derivatives of the coordinates in x and in y.
    Gradient(Vec<Operand>, Vec<Operand>),
}

/// Attribute that `txq` or `suq` queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Query {
    Width,
    Height,
    Depth,
    ChannelDataType,
    ChannelOrder,
    NormalizedCoords,
    ArraySize,
    NumMipmapLevels,
    NumSamples,
    ForceUnnormalizedCoords,
    FilterMode,
    AddrMode(u8),
    MemoryLayout,
}

/// Access of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// `tex`.
    #[allow(missing_docs)]
    Fetch {
        /// Whether coordinates are texel numbers (`.s32`) instead of positions (`.f32`).
        texels: bool,
        /// Type of the results.
        ty: Type,
        detail: Detail,
        /// Offset in texels; empty if not written.
        offset: Vec<Operand>,
        /// Reference value of a depth comparison.
        compare: Option<Operand>,
    },
    /// `tld4`.
    #[allow(missing_docs)]
    Gather {
        /// 0 to 3 for `.r`, `.g`, `.b`, `.a`.
        component: u8,
        ty: Type,
        offset: Vec<Operand>,
        compare: Option<Operand>,
    },
    /// `txq`, `suq`; with a level of detail for `txq.level`.
    #[allow(missing_docs)]
    Query {
        what: Query,
        level: Option<Operand>,
        surface: bool,
    },
    /// `suld.b`.
    #[allow(missing_docs)]
    Load { ty: Type, outside: ClampMode },
    /// `sust.b`, and `sust.p` (`formatted`).
    #[allow(missing_docs)]
    Store {
        formatted: bool,
        ty: Type,
        outside: ClampMode,
    },
    /// `sured.b`, and `sured.p` (`formatted`).
    #[allow(missing_docs)]
    Reduce {
        formatted: bool,
        op: AtomOp,
        ty: Type,
        outside: ClampMode,
    },
}

/// A texture or surface instruction with its operands by role.
#[derive(Clone, Debug, PartialEq)]
pub struct TextureForm {
    /// Access of an instruction.
    pub access: Access,
    /// Geometry; `None` for queries.
    pub geometry: Option<Geometry>,
    /// Results of a fetch or load, sources of a store or reduction.
    pub values: Vec<Operand>,
    /// The predicate after `|`, which tells whether the texels are resident.
    pub resident: Option<Operand>,
    /// The texture or surface: [`Operand::Reg`], [`Operand::Var`] or (queries) [`Operand::Addr`].
    pub object: Operand,
    /// The separate sampler, if there is one.
    pub sampler: Option<Operand>,
    /// Layer of a layered geometry.
    pub layer: Option<Operand>,
    /// Position or direction, with [`Geometry::components`] elements.
    pub coordinates: Vec<Operand>,
}

/// An error in an instruction, and the operand that it concerns.
#[derive(Clone, Debug, PartialEq)]
pub struct Malformed {
    /// Index into [`Instr::operands`].
    pub operand: usize,
    /// Message.
    pub message: String,
}

type ReadResult<T> = std::result::Result<T, Malformed>;

fn malformed<T>(operand: usize, message: impl Into<String>) -> ReadResult<T> {
    Err(Malformed {
        operand,
        message: message.into(),
    })
}

/// Whether an opcode is a texture or surface instruction with a [`TextureForm`].
pub fn is_texture(op: Op) -> bool {
    matches!(
        op,
        Op::Tex | Op::Tld4 | Op::Txq | Op::Suq | Op::Suld | Op::Sust | Op::Sured
    )
}

/// Reads the operands of an instruction in order.
struct Reader<'a> {
    instr: &'a Instr,
    body: &'a Body,
    next: usize,
}

impl Reader<'_> {
    fn operand(&mut self, what: &str) -> ReadResult<Operand> {
        let n = self.next;
        self.next += 1;
        match self.instr.operands.get(n) {
            Some(o) => Ok(o.clone()),
            None => malformed(n, format!("'{}' lacks {what}", self.instr.op)),
        }
    }

    /// Whether another operand follows that is a vector (`vector`) or is not (`!vector`).
    fn follows(&self, vector: bool) -> bool {
        self.instr
            .operands
            .get(self.next)
            .is_some_and(|o| self.is_vector(o) == vector)
    }

    fn is_vector(&self, o: &Operand) -> bool {
        match o {
            Operand::Vector(_) => true,
            Operand::Reg(r) => self.body.regs[r.0 as usize].vector > 1,
            _ => false,
        }
    }

    /// The elements of a vector or a vector register; a single value is one element.
    fn elements(&self, o: &Operand) -> Vec<Operand> {
        match o {
            Operand::Vector(list) => list.clone(),
            Operand::Reg(r) => match self.body.regs[r.0 as usize].vector {
                0 | 1 => vec![o.clone()],
                n => (0..n).map(|c| Operand::RegComponent(*r, c as u8)).collect(),
            },
            _ => vec![o.clone()],
        }
    }

    /// Values of `bits` bits (registers may be wider if `wider`).
    fn values(
        &self,
        o: &Operand,
        bits: u32,
        wider: bool,
        written: bool,
    ) -> ReadResult<Vec<Operand>> {
        let at = self.next - 1;
        let list = self.elements(o);
        for e in &list {
            match e {
                Operand::Reg(r) | Operand::RegComponent(r, _) => {
                    let ty = self.body.regs[r.0 as usize].ty;
                    let have = ty.bits();
                    if ty == Type::Pred || have != bits && !(wider && have > bits) {
                        return malformed(
                            at,
                            format!("expected a register of {bits} bits, found one of {have}"),
                        );
                    }
                }
                Operand::Sink if written => {}
                Operand::Int(_) | Operand::F32(_) | Operand::F64(_) if !written => {}
                _ => return malformed(at, "expected registers"),
            }
        }
        Ok(list)
    }

    /// The first `n` elements; further ones are padding.
    fn words(&self, o: &Operand, n: usize, what: &str) -> ReadResult<Vec<Operand>> {
        let mut list = self.values(o, 32, false, false)?;
        if list.len() < n {
            return malformed(
                self.next - 1,
                format!("{what} needs {n} elements, found {}", list.len()),
            );
        }
        list.truncate(n);
        Ok(list)
    }

    fn bounds(&self) -> ClampMode {
        self.instr.mods.clamp.unwrap_or(ClampMode::Trap)
    }

    fn result_type(&self) -> ReadResult<Type> {
        match self.instr.types.first() {
            Some(t @ (Type::U32 | Type::S32 | Type::F32 | Type::F16 | Type::F16x2)) => Ok(*t),
            _ => malformed(0, format!("'{}' has no such result type", self.instr.op)),
        }
    }

    fn element_type(&self, formatted: bool) -> ReadResult<Type> {
        use Type::*;
        match self.instr.types.first() {
            Some(t @ (B8 | B16 | B32 | B64)) if !formatted => Ok(*t),
            Some(t @ (B32 | U32 | S32 | F32)) if formatted => Ok(*t),
            _ => malformed(0, format!("'{}' has no such element type", self.instr.op)),
        }
    }
}

/// The operands in brackets: object, sampler, coordinates.
type BracketOperands = (Operand, Option<Operand>, Operand);

fn brackets(r: &mut Reader<'_>) -> ReadResult<BracketOperands> {
    let o = r.operand("an object in brackets")?;
    let Operand::TexAddr(parts) = &o else {
        return malformed(r.next - 1, "expected an object and coordinates in brackets");
    };
    let (object, sampler, c) = match parts.as_slice() {
        [object, c] => (object, None, c),
        [object, sampler, c] => (object, Some(sampler), c),
        _ => return malformed(r.next - 1, "too much in the brackets"),
    };
    for o in [Some(object), sampler].into_iter().flatten() {
        handle(r, o)?;
    }
    Ok((object.clone(), sampler.cloned(), c.clone()))
}

/// Checks that an object is a 64-bit register or a variable.
fn handle(r: &Reader<'_>, o: &Operand) -> ReadResult<()> {
    match o {
        Operand::Reg(reg) | Operand::Addr(Base::Reg(reg), 0)
            if r.body.regs[reg.0 as usize].ty.bits() == 64 =>
        {
            Ok(())
        }
        Operand::Var(_, 0) | Operand::Addr(Base::Var(_), 0) => Ok(()),
        _ => malformed(
            r.next - 1,
            "an object is a register of 64 bits or the name of a variable",
        ),
    }
}

impl TextureForm {
    /// Reads an instruction of a body; `None` if it is not a texture or surface instruction.
    ///
    /// # Errors
    /// Modifiers or operands that the instruction does not have.
    pub fn of(instr: &Instr, body: &Body) -> Option<ReadResult<Self>> {
        if !is_texture(instr.op) {
            return None;
        }
        let mut r = Reader {
            instr,
            body,
            next: 0,
        };
        let form = Self::read(&mut r).and_then(|form| {
            if r.next < instr.operands.len() {
                return malformed(r.next, format!("'{}' takes no such operand", instr.op));
            }
            Ok(form)
        });
        Some(form)
    }

    fn read(r: &mut Reader<'_>) -> ReadResult<Self> {
        let mods = &r.instr.mods;
        if matches!(r.instr.op, Op::Txq | Op::Suq) {
            return Self::query(r);
        }
        let Some(geometry) = mods.other.iter().find_map(|w| Geometry::of(w.text())) else {
            return malformed(0, format!("'{}' needs a geometry", r.instr.op));
        };
        match r.instr.op {
            Op::Tex | Op::Tld4 => Self::fetch(r, geometry),
            _ => Self::surface(r, geometry),
        }
    }

    fn fetch(r: &mut Reader<'_>, geometry: Geometry) -> ReadResult<Self> {
        let mods = &r.instr.mods;
        let ty = r.result_type()?;
        let texels = match r.instr.types.get(1) {
            Some(Type::S32) if r.instr.op == Op::Tex => true,
            Some(Type::F32) => false,
            _ => return malformed(1, format!("'{}' has no such coordinate type", r.instr.op)),
        };
        let result = r.operand("a result")?;
        let (result, resident) = match result {
            Operand::Pair(values, p) => (*values, Some(*p)),
            other => (other, None),
        };
        if let Some(p) = &resident {
            let is_pred = match p {
                Operand::Reg(p) => body_type(r.body, *p) == Type::Pred,
                Operand::Sink => true,
                _ => false,
            };
            if !is_pred {
                return malformed(0, "expected a predicate after '|'");
            }
        }
        let values = r.values(&result, ty.bits(), false, true)?;
        let wanted = if ty == Type::F16x2 { 2 } else { 4 };
        if values.len() != wanted || r.instr.mods.vector != wanted as u32 {
            return malformed(0, format!("'{}' has {wanted} results here", r.instr.op));
        }
        let (object, sampler, c) = brackets(r)?;
        let (layer, coordinates) = Self::split(r, geometry, &c)?;
        let n = geometry.components();
        let detail = if mods.has(Word::Level) {
            let lod = r.operand("a level of detail")?;
            Detail::Level(r.words(&lod, 1, "the level of detail")?.remove(0))
        } else if mods.has(Word::Grad) {
            let (x, y) = (r.operand("a gradient")?, r.operand("a second gradient")?);
            Detail::Gradient(r.words(&x, n, "a gradient")?, r.words(&y, n, "a gradient")?)
        } else {
            Detail::Base
        };
        // A vector of offsets may follow, then a reference value. In one dimension, which has no depth textures, a single
        // value is an offset.
        let mut offset = Vec::new();
        if r.follows(true) || n == 1 && r.follows(false) {
            let o = r.operand("an offset")?;
            offset = r.words(
                &o,
                n.min(if geometry == Geometry::D3 { 3 } else { 2 }),
                "an offset",
            )?;
        }
        let mut compare = None;
        if r.follows(false) {
            let o = r.operand("a value to compare with")?;
            compare = Some(r.words(&o, 1, "a comparison")?.remove(0));
        }
        let access = if r.instr.op == Op::Tex {
            Access::Fetch {
                texels,
                ty,
                detail,
                offset,
                compare,
            }
        } else {
            let component = [Word::R, Word::G, Word::B, Word::A]
                .iter()
                .position(|c| mods.has(*c));
            let Some(component) = component else {
                return malformed(0, "'tld4' names no component");
            };
            let two = matches!(
                geometry,
                Geometry::D2 | Geometry::A2 | Geometry::Cube | Geometry::ACube
            );
            if !two || detail != Detail::Base {
                return malformed(0, "'tld4' has no such form");
            }
            Access::Gather {
                component: component as u8,
                ty,
                offset,
                compare,
            }
        };
        Ok(Self {
            access,
            geometry: Some(geometry),
            values,
            resident,
            object,
            sampler,
            layer,
            coordinates,
        })
    }

    /// Layer and position of a coordinate vector. The sample of a multisample image, which comes first, is dropped, because
    /// such instructions are not executed.
    fn split(
        r: &Reader<'_>,
        geometry: Geometry,
        c: &Operand,
    ) -> ReadResult<(Option<Operand>, Vec<Operand>)> {
        let mut list = r.words(c, geometry.coordinates(), "the coordinate")?;
        let position = list.split_off(geometry.coordinates() - geometry.components());
        let layer = if geometry.layered() { list.pop() } else { None };
        Ok((layer, position))
    }

    fn surface(r: &mut Reader<'_>, geometry: Geometry) -> ReadResult<Self> {
        let mods = &r.instr.mods;
        if geometry.components() == 3 && geometry != Geometry::D3
            || matches!(geometry, Geometry::Ms2 | Geometry::AMs2)
        {
            return malformed(0, format!("'{}' has no such geometry", r.instr.op));
        }
        let formatted = mods.has(Word::P);
        if formatted == mods.has(Word::B) || formatted && r.instr.op == Op::Suld {
            return malformed(0, format!("'{}' is of the form '.b' or '.p'", r.instr.op));
        }
        let outside = r.bounds();
        if outside == ClampMode::Wrap {
            return malformed(0, format!("'{}' has no '.wrap'", r.instr.op));
        }
        let vector = r.instr.mods.vector as usize;
        let (values, brackets, access) = if r.instr.op == Op::Suld {
            let ty = r.element_type(false)?;
            let o = r.operand("a result")?;
            let values = r.values(&o, ty.bits(), true, true)?;
            (values, brackets(r)?, Access::Load { ty, outside })
        } else {
            let brackets = brackets(r)?;
            let o = r.operand("a value")?;
            if r.instr.op == Op::Sust {
                let ty = r.element_type(formatted)?;
                let values = r.values(&o, ty.bits(), true, false)?;
                let access = Access::Store {
                    formatted,
                    ty,
                    outside,
                };
                (values, brackets, access)
            } else {
                let Some(op) = mods.atom else {
                    return malformed(0, "'sured' names no operation");
                };
                let ty = match r.instr.types.first() {
                    Some(t @ (Type::B32 | Type::U32 | Type::S32)) => *t,
                    Some(t @ (Type::U64 | Type::S64 | Type::B64)) if !formatted => *t,
                    _ => return malformed(0, "'sured' has no such type"),
                };
                let known = matches!(
                    op,
                    AtomOp::Add | AtomOp::Min | AtomOp::Max | AtomOp::And | AtomOp::Or
                );
                if !known {
                    return malformed(0, "'sured' has no such operation");
                }
                let values = r.values(&o, ty.bits(), false, false)?;
                let access = Access::Reduce {
                    formatted,
                    op,
                    ty,
                    outside,
                };
                (values, brackets, access)
            }
        };
        if values.len() != vector {
            return malformed(
                0,
                format!(
                    "'{}' moves {vector} elements, found {}",
                    r.instr.op,
                    values.len()
                ),
            );
        }
        let bytes = values.len() as u32 * r.instr.types.first().map_or(0, |t| t.bytes());
        let one = matches!(access, Access::Reduce { .. });
        if !matches!(vector, 1 | 2 | 4) || bytes > 16 || one && vector != 1 {
            return malformed(0, format!("'{}' has no such vector", r.instr.op));
        }
        let (object, sampler, c) = brackets;
        if sampler.is_some() {
            return malformed(1, "a surface has no sampler");
        }
        let (layer, coordinates) = Self::split(r, geometry, &c)?;
        Ok(Self {
            access,
            geometry: Some(geometry),
            values,
            resident: None,
            object,
            sampler: None,
            layer,
            coordinates,
        })
    }

    fn query(r: &mut Reader<'_>) -> ReadResult<Self> {
        let mods = &r.instr.mods;
        let surface = r.instr.op == Op::Suq;
        let what = mods.other.iter().find_map(|w| {
            Some(match w.text() {
                "width" => Query::Width,
                "height" => Query::Height,
                "depth" => Query::Depth,
                "channel_data_type" => Query::ChannelDataType,
                "channel_order" => Query::ChannelOrder,
                "array_size" => Query::ArraySize,
                "memory_layout" if surface => Query::MemoryLayout,
                _ if surface => return None,
                "normalized_coords" => Query::NormalizedCoords,
                "num_mipmap_levels" => Query::NumMipmapLevels,
                "num_samples" => Query::NumSamples,
                "force_unnormalized_coords" => Query::ForceUnnormalizedCoords,
                "filter_mode" => Query::FilterMode,
                "addr_mode_0" => Query::AddrMode(0),
                "addr_mode_1" => Query::AddrMode(1),
                "addr_mode_2" => Query::AddrMode(2),
                _ => return None,
            })
        });
        let Some(what) = what else {
            return malformed(0, format!("'{}' has no such attribute", r.instr.op));
        };
        let result = r.operand("a result")?;
        let values = r.values(&result, 32, false, true)?;
        let object = r.operand("an object")?;
        handle(r, &object)?;
        let mut level = None;
        if mods.has(Word::Level) {
            if surface || !matches!(what, Query::Width | Query::Height | Query::Depth) {
                return malformed(0, "only extents can be queried by level");
            }
            let o = r.operand("a level of detail")?;
            level = Some(r.words(&o, 1, "the level of detail")?.remove(0));
        }
        Ok(Self {
            access: Access::Query {
                what,
                level,
                surface,
            },
            geometry: None,
            values,
            resident: None,
            object,
            sampler: None,
            layer: None,
            coordinates: Vec::new(),
        })
    }
}

fn body_type(body: &Body, r: RegId) -> Type {
    body.regs[r.0 as usize].ty
}
