//! The reports that describe faults of kernels to the user.

use std::fmt::Write as _;

use crate::build::PlacedVariable;
use crate::bytecode::Program;
use crate::fault::{Coordinates, FaultDetail, FaultKind, LaneFault};
use crate::kir::Origin;
use crate::memory::{Access, AddressSpace, Mappable, Region, Viewer};

/// `file:line` of an instruction, if known.
pub fn source_line(program: &Program, origin: &Origin) -> Option<String> {
    let loc = origin.loc?;
    let file = program
        .files
        .iter()
        .find(|f| f.0 == loc.file)
        .map_or("?", |f| f.1.as_str());
    Some(format!("{file}:{}", loc.line))
}

/// Describes a region, with its name if it is a variable of the module.
fn describe(region: &Region, variables: &[PlacedVariable]) -> String {
    use crate::memory::RegionKind;
    let what = match region.kind {
        RegionKind::Device => "allocation",
        RegionKind::Host => "host allocation",
        RegionKind::Managed => "managed allocation",
        RegionKind::Global => "global variable",
        RegionKind::Const => "constant variable",
        RegionKind::Registered => "registered host range",
        RegionKind::Graphics => "mapped OpenGL buffer",
        RegionKind::Virtual => "mapping of virtual memory",
        RegionKind::External => "memory of another API",
        RegionKind::Internal => "internal allocation of the device",
    };
    let Region { base, size, .. } = region;
    match variables.binary_search_by_key(base, |v| v.base) {
        Ok(n) => format!("{size}-byte {what} `{}` at {base:#x}", variables[n].name),
        Err(_) => format!("{size}-byte {what} at {base:#x}"),
    }
}

/// The position of an address outside of a region.
fn distance(address: u64, region: &Region, variables: &[PlacedVariable]) -> String {
    let name = describe(region, variables);
    match region.base.checked_sub(address) {
        Some(before @ 1..) => format!("{before} bytes before a {name}"),
        _ => format!(
            "{} bytes past the end of a {name}",
            address.saturating_sub(region.end())
        ),
    }
}

/// A refused access to global memory.
struct RefusedAccess<'a> {
    /// Address that the kernel used.
    address: u64,
    /// Bytes.
    bytes: u32,
    /// Whether it is a store.
    write: bool,
    /// The variable that the address is computed from, if known.
    variable: Option<&'a PlacedVariable>,
    /// The variables of the module, by address.
    variables: &'a [PlacedVariable],
}

impl RefusedAccess<'_> {
    /// Describes the address relative to the intended variable if it is known, otherwise to the allocation that
    /// contains the address or to the nearest one.
    fn describe(&self, space: &AddressSpace, viewer: &Viewer) -> String {
        /// A second allocation is named up to this distance.
        const NEAR: u64 = 1 << 20;
        let Self {
            address, variables, ..
        } = *self;
        if address < 4096 {
            return "a null pointer, or an offset from one".into();
        }
        let mapping = space.mapping_at(address);
        if let Some(m) = &mapping
            && matches!(m.memory, Mappable::Multicast(_))
        {
            return format!(
                "byte {} of a {}-byte mapping of a multicast object at {:#x}: only multimem instructions may access it; \
                 others access the memory that is bound to it at an address of its own",
                address - m.base,
                m.size,
                m.base
            );
        }
        if let Some(m) = mapping
            && m.reach.is_none()
        {
            return format!(
                "byte {} of a {}-byte mapping of virtual memory at {:#x}, which no device may access: call cuMemSetAccess",
                address - m.base,
                m.size,
                m.base
            );
        }
        let [below, above] = space.neighbours(address);
        let inside = below.filter(|r| r.contains(address, 1));
        if let Some(meant) = self.variable.and_then(|v| space.find(v.base))
            && !meant.contains(address, 1)
        {
            let text = distance(address, &meant, variables);
            return match inside {
                Some(other) => format!("{text}, in a {}", describe(&other, variables)),
                None => text,
            };
        }
        if let Some(r) = inside {
            return self.describe_inside(&r, viewer);
        }
        match (below, above) {
            (None, None) => "there are no allocations".into(),
            (Some(r), None) | (None, Some(r)) => distance(address, &r, variables),
            (Some(low), Some(high)) => {
                let (past, before) = (address - low.end(), high.base - address);
                if past <= before {
                    return distance(address, &low, variables);
                }
                let mut text = distance(address, &high, variables);
                if past < NEAR {
                    // Accesses past the end are more common than those before the start.
                    let _ = write!(text, ", {}", distance(address, &low, variables));
                }
                text
            }
        }
    }

    /// Describes the address in the region that contains it.
    fn describe_inside(&self, r: &Region, viewer: &Viewer) -> String {
        let inside = self.address - r.base;
        let name = describe(r, self.variables);
        let end = self.address + u64::from(self.bytes);
        if end > r.end() {
            return format!(
                "byte {inside} of a {name}: {} of its {} bytes lie past the end",
                end - r.end(),
                self.bytes
            );
        }
        let access = viewer.access(r);
        if access == Access::None {
            return format!(
                "byte {inside} of a {name}, which device {} may not access: cuCtxEnablePeerAccess, cuMemSetAccess or \
                 cuMemPoolSetAccess allows it",
                viewer.device
            );
        }
        if self.write && (r.read_only || access == Access::Read) {
            return format!("byte {inside} of a {name}, which is read-only");
        }
        format!("byte {inside} of a {name}")
    }
}

/// The report of a fault.
pub fn report(
    program: &Program,
    space: &AddressSpace,
    viewer: &Viewer,
    pc: u32,
    at: Coordinates,
    fault: &LaneFault,
) -> String {
    let origin = program.origin(pc);
    let op = origin.map_or("?", |o| &*o.opcode);
    let title = match fault.kind {
        FaultKind::IllegalAddress => "illegal memory access",
        FaultKind::MisalignedAddress => "misaligned memory access",
        FaultKind::Assert => "assertion failed",
        FaultKind::IllegalInstruction => "illegal instruction",
        FaultKind::InvalidPc => "invalid program counter",
        FaultKind::InvalidAddressSpace => "operation not supported on this address space",
        FaultKind::Trap => "kernel trapped",
        FaultKind::ClusterBlockNotPresent => "access to a missing block of the cluster",
        FaultKind::StackOverflow => "stack overflow",
        FaultKind::Cancelled => "cancelled",
        FaultKind::LaunchOutOfResources => "too many resources requested for launch",
    };
    let [bx, by, bz] = at.block;
    let [tx, ty, tz] = at.thread;
    let mut s = String::new();
    let _ = writeln!(s, "cupyrite: {title} in kernel `{}`", program.name);
    let _ = writeln!(s, "  block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})");
    match &fault.detail {
        FaultDetail::Access {
            address,
            bytes,
            write,
            space: name,
            limit,
        } => {
            let verb = if *write { "store" } else { "load" };
            let _ = writeln!(
                s,
                "  `{op}`: {verb} of {bytes} bytes at {name} address {address:#x}"
            );
            if fault.kind == FaultKind::MisalignedAddress {
                let _ = writeln!(s, "  the address is not a multiple of {bytes}");
            } else if let Some(limit) = limit {
                let (owner, reserved) = match *name {
                    "shared" => ("block", program.reserved_shared),
                    "shared::cluster" => ("addressed block", program.reserved_shared),
                    _ => ("thread", 0),
                };
                let own = limit - u64::from(reserved);
                let _ = write!(s, "  the {name} memory of the {owner} has {own} bytes");
                if reserved > 0 {
                    let _ = write!(s, ", from address {reserved:#x} on");
                }
                s.push('\n');
            } else {
                let variables = program.variables.as_slice();
                let access = RefusedAccess {
                    address: *address,
                    bytes: *bytes,
                    write: *write,
                    variable: origin
                        .and_then(|o| o.variable)
                        .and_then(|n| variables.get(n as usize)),
                    variables,
                };
                let _ = writeln!(s, "  {}", access.describe(space, viewer));
            }
        }
        FaultDetail::Text(t) => {
            let _ = writeln!(s, "  `{op}`: {t}");
        }
    }
    let function = program.function_at(pc).unwrap_or("?");
    let _ = write!(s, "  PTX line {}", origin.map_or(0, |o| o.line));
    if function != program.name {
        let _ = write!(s, ", in function `{function}`");
    }
    match origin.and_then(|o| source_line(program, o)) {
        Some(source) => {
            let _ = write!(s, ", source {source}");
        }
        None if program.files.is_empty() => {
            s.push_str("; compile with lineinfo=True (-lineinfo) for the source line");
        }
        None => {}
    }
    s.push('\n');
    s
}
