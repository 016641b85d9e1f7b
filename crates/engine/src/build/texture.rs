//! Translation of texture and surface instructions.

use cupyrite_ptx::ir::{Base, Body, ClampMode, Instr, Module, Operand, Type, VarId};
use cupyrite_ptx::textures::{Access, Detail, Geometry, TextureForm};

use super::function::FunctionBuilder;
use super::placed::CompileError;
use crate::kir::{Action, Fixed, Reg, TexDetail, TexKind, TexOp};
use crate::load::is_reference;
use crate::semantics::lane::Slot;
use crate::texture::{BoundaryMode, View};

fn view(geometry: Geometry) -> View {
    View {
        dimensions: match geometry {
            Geometry::Cube | Geometry::ACube => 2,
            g => g.components() as u8,
        },
        layered: geometry.layered(),
        cube: matches!(geometry, Geometry::Cube | Geometry::ACube),
    }
}

fn outside(mode: ClampMode) -> BoundaryMode {
    match mode {
        ClampMode::Clamp => BoundaryMode::Clamp,
        ClampMode::Zero => BoundaryMode::Zero,
        _ => BoundaryMode::Trap,
    }
}

/// Whether an instruction of a body names a texture, sampler or surface reference.
pub fn names_reference(module: &Module, body: &Body) -> bool {
    let is_named = |v: Option<VarId>| match v {
        Some(VarId::Module(n)) => module.globals.get(n as usize).is_some_and(is_reference),
        _ => false,
    };
    let mut found = false;
    for o in body.instrs.iter().flat_map(|i| &i.operands) {
        o.walk(&mut |o| found |= is_named(o.variable()));
    }
    found
}

impl FunctionBuilder<'_, '_> {
    /// `tex`, `tld4`, `txq`, `suq`, `suld`, `sust`, `sured`.
    pub fn texture(&mut self, i: &Instr) -> Result<(), CompileError> {
        let form = match TextureForm::of(i, self.body) {
            Some(Ok(form)) => form,
            Some(Err(wrong)) => return Err(self.error(&wrong.message)),
            None => return Err(self.error("internal error: the instruction has no form")),
        };
        if matches!(form.geometry, Some(Geometry::Ms2 | Geometry::AMs2)) {
            return Err(self.error("CUDA has no multisample textures"));
        }
        let mut list = Vec::new();
        let zero = self.constant(Slot::R32, 0);
        let mut op = TexOp {
            kind: TexKind::Load,
            object: self.object(&form.object, &mut list)?,
            sampler: match &form.sampler {
                Some(sampler) => Some(self.object(sampler, &mut list)?),
                None => None,
            },
            view: view(form.geometry.unwrap_or(Geometry::D1)),
            coordinates: [zero; 3],
            layer: zero,
            lod: zero,
            gradient: [[zero; 3]; 2],
            offset: [0; 3],
            values: Vec::new(),
            ty: Type::B32,
            resident: Fixed::discarded(Slot::Pred),
            formatted: false,
            outside: BoundaryMode::Trap,
        };
        let mut coordinate_type = Type::S32;
        let mut stores = false;
        match &form.access {
            Access::Fetch {
                texels,
                ty,
                detail,
                offset,
                compare,
            } => {
                if compare.is_some() {
                    return Err(self.error("CUDA has no textures with depth comparison"));
                }
                if !texels {
                    coordinate_type = Type::F32;
                }
                op.ty = *ty;
                op.offset = self.offsets(offset)?;
                let detail = match detail {
                    Detail::Base => TexDetail::Base,
                    Detail::Level(lod) => {
                        op.lod = self.word(lod, coordinate_type, &mut list)?;
                        TexDetail::Level
                    }
                    Detail::Gradient(x, y) => {
                        for (slots, from) in op.gradient.iter_mut().zip([x, y]) {
                            for (slot, o) in slots.iter_mut().zip(from) {
                                *slot = self.word(o, Type::F32, &mut list)?;
                            }
                        }
                        TexDetail::Gradient
                    }
                };
                op.kind = TexKind::Fetch {
                    texels: *texels,
                    detail,
                };
            }
            Access::Gather {
                component,
                ty,
                offset,
                compare,
            } => {
                if compare.is_some() {
                    return Err(self.error("CUDA has no textures with depth comparison"));
                }
                coordinate_type = Type::F32;
                op.ty = *ty;
                op.offset = self.offsets(offset)?;
                op.kind = TexKind::Gather(*component);
            }
            Access::Query {
                what,
                level,
                surface,
            } => {
                if let Some(level) = level {
                    op.lod = self.word(level, Type::U32, &mut list)?;
                }
                op.kind = if *surface {
                    TexKind::SurfaceQuery(*what)
                } else {
                    TexKind::TextureQuery(*what, level.is_some())
                };
            }
            Access::Load { ty, outside: mode } => {
                op.ty = *ty;
                op.outside = outside(*mode);
            }
            Access::Store {
                formatted,
                ty,
                outside: mode,
            } => {
                stores = true;
                op.kind = TexKind::Store;
                op.ty = *ty;
                op.formatted = *formatted;
                op.outside = outside(*mode);
            }
            Access::Reduce {
                formatted,
                op: what,
                ty,
                outside: mode,
            } => {
                stores = true;
                op.kind = TexKind::Reduce(*what);
                op.ty = *ty;
                op.formatted = *formatted;
                op.outside = outside(*mode);
            }
        }
        for (slot, o) in op.coordinates.iter_mut().zip(&form.coordinates) {
            *slot = self.word(o, coordinate_type, &mut list)?;
        }
        if let Some(layer) = &form.layer {
            op.layer = self.word(layer, Type::U32, &mut list)?;
        }
        if let Some(Operand::Reg(p)) = &form.resident {
            op.resident = self.reg(*p)?;
        }
        let values = Operand::Vector(form.values);
        op.values = if stores {
            self.values(&values, op.ty, &mut list)?
        } else {
            self.load_targets(&values)?.0
        };
        list.push(Action::Texture(Box::new(op)));
        self.emit(list, i)
    }

    /// A 32-bit operand.
    fn word(&mut self, o: &Operand, ty: Type, list: &mut Vec<Action>) -> Result<Reg, CompileError> {
        self.source(o, Slot::R32, ty, list)
    }

    /// The handle of an object: the value of a register, or that of a reference.
    fn object(&mut self, o: &Operand, list: &mut Vec<Action>) -> Result<Reg, CompileError> {
        let register = match o {
            Operand::Addr(Base::Reg(r), 0) => Operand::Reg(*r),
            Operand::Addr(Base::Var(v), 0) => Operand::Var(*v, 0),
            other => other.clone(),
        };
        match &register {
            Operand::Reg(_) => self.source(&register, Slot::R64, Type::U64, list),
            Operand::Var(v, 0) => {
                let handle = self.reference_handle(*v).ok_or_else(|| {
                    self.error("the variable is not a texture, sampler or surface reference")
                })?;
                Ok(self.constant(Slot::R64, handle.into()))
            }
            _ => Err(self.error("the texture or surface object is not in a register")),
        }
    }

    /// The handle of a `.texref`, `.samplerref` or `.surfref` variable of the module.
    fn reference_handle(&self, v: VarId) -> Option<u64> {
        let VarId::Module(n) = v else { return None };
        let n = n as usize;
        self.placed
            .module
            .globals
            .get(n)
            .filter(|g| is_reference(g))?;
        *self.placed.globals.get(n)?
    }

    fn offsets(&self, list: &[Operand]) -> Result<[i32; 3], CompileError> {
        let mut out = [0; 3];
        for (slot, o) in out.iter_mut().zip(list) {
            let Operand::Int(n) = o else {
                return Err(self.error("the offset is not a constant"));
            };
            // The low four bits, sign-extended (PTX ISA, `tex`: offsets of -8 to 7).
            *slot = (*n as i32) << 28 >> 28;
        }
        Ok(out)
    }
}
