//! `multimem`: accesses to the memory of several devices at one address.

use std::sync::{Arc, Mutex};

use cupyrite_engine::memory::{Access, AddressSpace, Bindable, Multicast, Physical, checked};
use cupyrite_engine::{
    AccessKind, Fault, FaultKind, LaneFault, MemoryModel, StateSpace, WarpAccess,
};
use half::{bf16, f16};

use crate::harness::{Buffer, Launch};

const UNIT: u64 = 2 << 20;

/// A multicast object of two units with memory of three devices: mapped at `base` for device 0, and each device's memory
/// at an address of its own.
struct Team {
    base: u64,
    object: Arc<Multicast>,
    memory: Vec<(u64, Arc<Physical>)>,
}

fn space() -> &'static Arc<AddressSpace> {
    AddressSpace::global()
}

fn mapped(size: u64) -> u64 {
    space().reserve(size, UNIT, 0).unwrap()
}

fn allow(at: u64, size: u64, access: Access) {
    space()
        .set_mapping_reach(at, size, |r| r.with(0, access))
        .unwrap();
}

impl Team {
    /// The units are bound one by one, in exchanged order for device 1.
    fn new() -> Team {
        let object = space().create_multicast(2 * UNIT, 3, 0).unwrap();
        let mut memory = Vec::new();
        for device in 0..3 {
            assert!(object.add(device));
        }
        for device in 0..3 {
            let physical = space().create_physical(2 * UNIT, "test", 0).unwrap();
            let at = mapped(2 * UNIT);
            space().map(at, 2 * UNIT, &physical, 0).unwrap();
            allow(at, 2 * UNIT, Access::ReadWrite);
            for unit in 0..2 {
                let from = if device == 1 { 1 - unit } else { unit };
                let part = Bindable::Physical(physical.clone(), from * UNIT);
                object.bind(device, unit * UNIT, &part, UNIT).unwrap();
            }
            memory.push((at, physical));
        }
        let base = mapped(2 * UNIT);
        space().map(base, 2 * UNIT, &object, 0).unwrap();
        allow(base, 2 * UNIT, Access::ReadWrite);
        Team {
            base,
            object,
            memory,
        }
    }

    /// Address of byte `at` of the object in the memory of a device.
    fn place(&self, device: usize, at: u64) -> u64 {
        let from = if device == 1 { at ^ UNIT } else { at };
        self.memory[device].0 + from
    }

    fn put(&self, device: usize, at: u64, bytes: &[u8]) {
        for (n, b) in bytes.iter().enumerate() {
            checked::write(self.place(device, at) + n as u64, b).unwrap();
        }
    }

    fn get(&self, device: usize, at: u64, len: usize) -> Vec<u8> {
        let from = self.place(device, at);
        // SAFETY: any byte is a valid integer.
        (0..len as u64)
            .map(|n| unsafe { checked::read::<u8>(from + n) }.unwrap())
            .collect()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for at in std::iter::once(self.base).chain(self.memory.iter().map(|m| m.0)) {
            space().unmap(at, 2 * UNIT).unwrap();
            space().unreserve(at, 2 * UNIT).unwrap();
        }
    }
}

/// A kernel with the address `a`, the address `b`, and registers of all types.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.1\n.target sm_90a\n.address_size 64\n.shared .align 16 .b8 shared[1024];\n\
         .visible .entry k(.param .u64 p0, .param .u64 p1)\n{{\n.reg .b64 a, b, l<10>;\n.reg .b32 r<10>;\n\
         .reg .b16 h<10>;\n.reg .f32 f<10>;\n.reg .f64 d<10>;\n.reg .pred p;\nld.param.u64 a, [p0];\nld.param.u64 b, [p1];\n\
         {body}\nret;\n}}\n"
    )
}

/// The letter of a type's registers, and the type with which to move them.
fn class(ty: &str) -> (char, &'static str) {
    match ty {
        "f32" => ('f', "b32"),
        "f64" => ('d', "b64"),
        "f16" | "bf16" => ('h', "b16"),
        _ if ty.ends_with("64") => ('l', "b64"),
        _ => ('r', "b32"),
    }
}

/// The registers of a vector, and the loads or stores of all of them at `b`.
fn registers(vector: &str, ty: &str, load: bool) -> (String, String) {
    let count: usize = vector.trim_start_matches(".v").parse().unwrap_or(1);
    let (letter, bits) = class(ty);
    let size = bits[1..].parse::<usize>().unwrap() / 8;
    let names: Vec<String> = (0..count).map(|n| format!("{letter}{n}")).collect();
    let moves = names.iter().enumerate().map(|(n, name)| match load {
        true => format!("ld.global.{bits} {name}, [b+{}];\n", n * size),
        false => format!("st.global.{bits} [b+{}], {name};\n", n * size),
    });
    let moves = moves.collect();
    let list = match count {
        1 => names[0].clone(),
        _ => format!("{{{}}}", names.join(", ")),
    };
    (list, moves)
}

/// The bytes of an element with a small value, which every type has.
fn element(ty: &str, value: i32) -> Vec<u8> {
    match ty {
        "f32" => (value as f32).to_le_bytes().to_vec(),
        "f64" => f64::from(value).to_le_bytes().to_vec(),
        "f16" => f16::from_f32(value as f32).to_le_bytes().to_vec(),
        "bf16" => bf16::from_f32(value as f32).to_le_bytes().to_vec(),
        "f16x2" | "bf16x2" => {
            let half = ty.trim_end_matches("x2");
            [element(half, value), element(half, 1 - value)].concat()
        }
        _ if ty.ends_with("64") => i64::from(value).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

/// Values of the three devices, and the result of an operation on them. Those of the upper halves of a pair are mirrored.
fn result(op: &str, ty: &str, values: [i32; 3]) -> Vec<u8> {
    let unsigned = ty.starts_with('u');
    let key = |v: &i32| {
        if unsigned {
            i64::from(*v as u32)
        } else {
            i64::from(*v)
        }
    };
    let fold = |values: [i32; 3]| match op {
        "add" => values.iter().sum(),
        "min" => *values.iter().min_by_key(|v| key(v)).unwrap(),
        "max" => *values.iter().max_by_key(|v| key(v)).unwrap(),
        "and" => values.iter().fold(-1, |a, b| a & b),
        "or" => values.iter().fold(0, |a, b| a | b),
        _ => values.iter().fold(0, |a, b| a ^ b),
    };
    let low = fold(values);
    if let Some(half) = ty.strip_suffix("x2") {
        return [
            element(half, low),
            element(half, fold(values.map(|v| 1 - v))),
        ]
        .concat();
    }
    element(ty, low)
}

const LOADS: &[(&str, &[&str], &[&str])] = &[
    (
        "",
        &["add"],
        &["u32", "s32", "u64", "f32", "f64", "f16x2", "bf16x2"],
    ),
    (
        "",
        &["min", "max"],
        &["u32", "s32", "u64", "s64", "f16x2", "bf16x2"],
    ),
    ("", &["and", "or", "xor"], &["b32", "b64"]),
    (".v2", &["add"], &["f32"]),
    (".v4", &["add"], &["f32"]),
    (
        ".v2",
        &["add", "min", "max"],
        &["f16x2", "bf16x2", "f16", "bf16"],
    ),
    (
        ".v4",
        &["add", "min", "max"],
        &["f16x2", "bf16x2", "f16", "bf16"],
    ),
    (".v8", &["add", "min", "max"], &["f16", "bf16"]),
];

/// Calls `f` with vector, operation and type of each reduction.
fn each_reduction(mut f: impl FnMut(&str, &str, &str)) {
    for (vector, ops, types) in LOADS {
        for op in *ops {
            for ty in *types {
                f(vector, op, ty);
            }
        }
    }
}

#[test]
fn ld_reduce_combines_the_memory_of_all_devices() {
    let team = Team::new();
    let run = |spelling: &str, vector: &str, ty: &str| {
        let (list, stores) = registers(vector, ty, false);
        let out = Buffer::zeros(4);
        let ptx = kernel(&format!("multimem.{spelling} {list}, [a];\n{stores}"));
        Launch::new(1, 1).run(&ptx, &[team.base, out.addr]).unwrap();
        let words = out.get();
        words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect::<Vec<_>>()
    };
    let mut forms = 0;
    each_reduction(|vector, op, ty| {
        let count = vector.trim_start_matches(".v").parse().unwrap_or(1);
        let mut expected = Vec::new();
        let mut contents = [Vec::new(), Vec::new(), Vec::new()];
        for n in 0..count {
            // Negative numbers tell signed and unsigned types apart.
            let values = [5 + n, 1 - n, 3];
            let values = if op == "add" || n > 0 {
                values
            } else {
                [12, -2, 6]
            };
            expected.extend(result(op, ty, values));
            for (bytes, v) in contents.iter_mut().zip(values) {
                bytes.extend(element(ty, v));
            }
        }
        for (device, bytes) in contents.iter().enumerate() {
            team.put(device, 0, bytes);
        }
        let halves = ty.contains("f16");
        let accumulators = if halves && op == "add" {
            &["", ".acc::f32"][..]
        } else {
            &[""]
        };
        for order in [
            "",
            ".weak",
            ".relaxed.gpu",
            ".acquire.sys",
            ".relaxed.cta",
            ".acquire.cluster",
        ] {
            for space in ["", ".global"] {
                for accumulator in accumulators {
                    let spelling =
                        format!("ld_reduce{order}{space}.{op}{accumulator}{vector}.{ty}");
                    let found = run(&spelling, vector, ty);
                    assert_eq!(found[..expected.len()], expected[..], "{spelling}");
                    forms += 1;
                }
            }
        }
    });
    assert!(forms > 600, "{forms}");
}

#[test]
fn halves_are_added_in_their_type_or_in_f32() {
    let team = Team::new();
    let run = |ty: &str, accumulator: &str, large: u16, one: u16| {
        for (device, half) in [large, one, one].into_iter().enumerate() {
            team.put(device, 0, &half.to_le_bytes().repeat(4));
        }
        let out = Buffer::zeros(2);
        let (list, stores) = registers(".v4", ty, false);
        let body = format!("multimem.ld_reduce.add{accumulator}.v4.{ty} {list}, [a];\n{stores}");
        Launch::new(1, 1)
            .run(&kernel(&body), &[team.base, out.addr])
            .unwrap();
        out.get()[1] >> 16
    };
    let (large, one) = (f16::from_f32(2048.0), f16::ONE);
    let sum = |acc| f16::from_bits(run("f16", acc, large.to_bits(), one.to_bits()) as u16).to_f32();
    assert_eq!((sum(""), sum(".acc::f32")), (2048.0, 2050.0));
    let (large, one) = (bf16::from_f32(256.0), bf16::ONE);
    let sum =
        |acc| bf16::from_bits(run("bf16", acc, large.to_bits(), one.to_bits()) as u16).to_f32();
    assert_eq!((sum(""), sum(".acc::f32")), (256.0, 258.0));
}

#[test]
fn st_and_red_change_the_memory_of_all_devices() {
    let team = Team::new();
    let run = |spelling: &str, vector: &str, ty: &str, value: &[u8]| {
        let words: Vec<u32> = value
            .chunks(4)
            .map(|c| c.iter().rev().fold(0, |a, b| a << 8 | u32::from(*b)))
            .collect();
        let value = Buffer::new(&words);
        let (list, loads) = registers(vector, ty, true);
        let ptx = kernel(&format!("{loads}multimem.{spelling} [a+64], {list};"));
        Launch::new(1, 1)
            .run(&ptx, &[team.base + UNIT - 64, value.addr])
            .unwrap();
    };
    let mut forms = 0;
    let plain = [
        "b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64", "f16x2", "bf16x2",
    ];
    let stores = plain.map(|ty| ("", ty)).into_iter().chain([
        (".v2", "f32"),
        (".v4", "f32"),
        (".v2", "f16x2"),
        (".v4", "bf16x2"),
        (".v2", "f16"),
        (".v4", "bf16"),
        (".v8", "f16"),
        (".v8", "bf16"),
    ]);
    for (vector, ty) in stores {
        let count = vector.trim_start_matches(".v").parse().unwrap_or(1);
        for (k, order) in ["", ".weak", ".relaxed.gpu", ".release.sys"]
            .into_iter()
            .enumerate()
        {
            let value: Vec<u8> = (0..count)
                .flat_map(|n| element(ty, n + 3 + k as i32))
                .collect();
            for device in 0..3 {
                team.put(device, UNIT, &[0xCD; 32]);
            }
            run(
                &format!("st{order}.global{vector}.{ty}"),
                vector,
                ty,
                &value,
            );
            for device in 0..3 {
                let found = team.get(device, UNIT, 32);
                assert_eq!(found[..value.len()], value[..], "st{order}{vector}.{ty}");
                assert!(found[value.len()..].iter().all(|b| *b == 0xCD));
            }
            forms += 1;
        }
    }
    each_reduction(|vector, op, ty| {
        if vector.is_empty() && op != "add" && ty.ends_with("x2") {
            return;
        }
        let count = vector.trim_start_matches(".v").parse().unwrap_or(1);
        for order in ["", ".relaxed.gpu", ".release.sys"] {
            let before = |device: usize, n: i32| [n, -7, 9][device];
            for device in 0..3 {
                let bytes: Vec<u8> = (0..count)
                    .flat_map(|n| element(ty, before(device, n)))
                    .collect();
                team.put(device, UNIT, &bytes);
            }
            let value: Vec<u8> = (0..count).flat_map(|n| element(ty, n + 2)).collect();
            run(
                &format!("red{order}.global.{op}{vector}.{ty}"),
                vector,
                ty,
                &value,
            );
            for device in 0..3 {
                let expected: Vec<u8> = (0..count)
                    .flat_map(|n| {
                        // Three values of which one does not matter.
                        let (old, new) = (before(device, n), n + 2);
                        match op {
                            "add" if ty.ends_with("x2") => {
                                let half = ty.trim_end_matches("x2");
                                [element(half, old + new), element(half, 2 - old - new)].concat()
                            }
                            "add" => element(ty, old + new),
                            "xor" => element(ty, old ^ new),
                            _ => result(op, ty, [old, new, new]),
                        }
                    })
                    .collect();
                let found = team.get(device, UNIT, expected.len());
                assert_eq!(
                    found, expected,
                    "red{order}.{op}{vector}.{ty} on device {device}"
                );
            }
            forms += 1;
        }
    });
    assert!(forms > 150, "{forms}");
}

#[test]
fn reductions_of_many_threads_are_atomic_on_each_device() {
    let team = Team::new();
    team.put(2, 0, &7u32.to_le_bytes());
    let body = "multimem.red.relaxed.sys.global.add.u32 [a], 1;\nmultimem.red.release.gpu.add.u32 [a+4], 2;\n\
                multimem.red.add.f32 [a+8], 0f3F800000;";
    Launch::new(64, 256)
        .run(&kernel(body), &[team.base, 0])
        .unwrap();
    for device in 0..3 {
        let first = 64 * 256 + if device == 2 { 7 } else { 0u32 };
        let expected = [
            first.to_le_bytes(),
            (2 * 64 * 256u32).to_le_bytes(),
            16384f32.to_le_bytes(),
        ];
        assert_eq!(team.get(device, 0, 12), expected.concat());
    }
}

#[test]
fn bulk_copies_and_reductions_cross_the_units_of_an_object() {
    let team = Team::new();
    let fill = "mov.u32 r1, %tid.x;\nmul.lo.u32 r2, r1, 4;\nmov.u32 r3, shared;\nadd.u32 r3, r3, r2;\nst.shared.u32 [r3], r1;\n\
                bar.sync 0;\nsetp.ne.u32 p, r1, 0;\n@p ret;\nfence.proxy.async;\n";
    let end = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;";
    let run = |instruction: &str, at: u64| {
        let ptx = kernel(&format!("{fill}{instruction}\n{end}"));
        Launch::new(1, 64).run(&ptx, &[team.base + at, 0])
    };
    let from = UNIT - 128;
    run(
        "multimem.cp.async.bulk.global.shared::cta.bulk_group [a], [shared], 256;",
        from,
    )
    .unwrap();
    let words = |factor: u32| {
        (0..64)
            .flat_map(|n| (n * factor).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let found = |device| [team.get(device, from, 128), team.get(device, UNIT, 128)].concat();
    for device in 0..3 {
        assert_eq!(found(device), words(1), "device {device}");
    }
    team.put(1, from, &9u32.to_le_bytes());
    for (op, factor) in [
        ("add.u32", 2),
        ("max.s32", 2),
        ("or.b32", 3),
        ("add.u64", 4),
    ] {
        run(&format!("multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [a], [shared], 256;"), from).unwrap();
        if op != "or.b32" && op != "add.u64" {
            let mut expected = words(factor);
            expected[..4].copy_from_slice(&9u32.to_le_bytes());
            assert_eq!(found(1), expected, "{op}");
            assert_eq!(found(2), words(factor), "{op}");
        }
    }
    let bulk = "multimem.cp.async.bulk.global.shared::cta.bulk_group [a], [shared]";
    for (instruction, at, kind, text) in [
        (
            format!("{bulk}, 24;"),
            0,
            FaultKind::IllegalInstruction,
            "24 bytes",
        ),
        (
            format!("{bulk}, 32;"),
            8,
            FaultKind::MisalignedAddress,
            "multiple of",
        ),
        (
            format!("{bulk}, 256;"),
            2 * UNIT - 128,
            FaultKind::IllegalAddress,
            "not in a mapping of a multicast object",
        ),
        (
            format!("{bulk}, 2048;"),
            0,
            FaultKind::IllegalAddress,
            "shared",
        ),
    ] {
        let fault = run(&instruction, at).unwrap_err();
        assert_eq!(fault.kind, kind, "{}", fault.report);
        assert!(fault.report.contains(text), "{}", fault.report);
    }
}

fn fails(team: &Team, body: &str, at: u64) -> Fault {
    Launch::new(1, 1)
        .run(&kernel(body), &[at, team.memory[0].0])
        .unwrap_err()
}

#[test]
fn wrong_accesses_are_reported() {
    let team = Team::new();
    let check = |body: &str, at: u64, kind: FaultKind, text: &str| {
        let fault = fails(&team, body, at);
        assert_eq!(fault.kind, kind, "{}", fault.report);
        assert!(fault.report.contains(text), "{}", fault.report);
    };
    use FaultKind::{IllegalAddress, MisalignedAddress};
    let only = "only multimem instructions may access it";
    for body in [
        "ld.global.u32 r0, [a];\nst.global.u32 [b], r0;",
        "st.global.u32 [a], 1;",
        "ld.volatile.u32 r0, [a];",
        "st.release.sys.u32 [a], 1;",
        "atom.global.add.u32 r0, [a], 1;",
        "red.global.add.f32 [a], 0f00000000;",
    ] {
        check(body, team.base + 8, IllegalAddress, only);
        check(
            body,
            team.base + 8,
            IllegalAddress,
            "byte 8 of a 4194304-byte mapping",
        );
    }
    let load = "multimem.ld_reduce.add.u32 r0, [a];";
    let ordinary = "not in a mapping of a multicast object";
    for at in [
        team.memory[0].0,
        0,
        team.base + 2 * UNIT,
        team.base - 4,
        u64::MAX - 3,
    ] {
        check(load, at, IllegalAddress, ordinary);
        check("multimem.st.u32 [a], 1;", at, IllegalAddress, ordinary);
        check("multimem.red.add.u32 [a], 1;", at, IllegalAddress, ordinary);
    }
    check(
        "mov.u32 r0, shared;\ncvt.u64.u32 l0, r0;\ncvta.shared.u64 l0, l0;\nmultimem.st.u32 [l0], 1;",
        0,
        IllegalAddress,
        ordinary,
    );
    check(load, team.base + 2, MisalignedAddress, "multiple of 4");
    check(
        "multimem.ld_reduce.add.v4.f32 {f0, f1, f2, f3}, [a];",
        team.base + 8,
        MisalignedAddress,
        "multiple of 16",
    );
    allow(team.base, 2 * UNIT, Access::Read);
    Launch::new(1, 1)
        .run(&kernel(load), &[team.base, 0])
        .unwrap();
    check(
        "multimem.st.u32 [a], 1;",
        team.base,
        IllegalAddress,
        "may not write",
    );
    allow(team.base, 2 * UNIT, Access::None);
    check(
        load,
        team.base,
        IllegalAddress,
        "may not access: call cuMemSetAccess",
    );
    allow(team.base, 2 * UNIT, Access::ReadWrite);
    team.object.unbind(1, UNIT, UNIT).unwrap();
    Launch::new(1, 1)
        .run(&kernel(load), &[team.base, 0])
        .unwrap();
    check(
        load,
        team.base + UNIT,
        IllegalAddress,
        "no memory of device 1 is bound",
    );
}

/// Lists space, address, bytes and kind of each access to global memory but parameters, and refuses the access to one
/// address.
struct Listing(Mutex<Vec<(u64, u32, AccessKind, String)>>, u64);

impl MemoryModel for Listing {
    type Worker = ();

    fn begin(&self) {}

    fn check(&self, (): &mut (), access: &WarpAccess<'_>) -> Result<(), Box<LaneFault>> {
        for lane in access.lanes() {
            if access.opcode().starts_with("multimem") {
                assert_eq!(lane.space, StateSpace::Global);
                let order = format!("{:?} {:?}", access.order, access.scope());
                self.0
                    .lock()
                    .unwrap()
                    .push((lane.address, access.bytes, access.kind, order));
                if lane.address == self.1 {
                    return Err(Box::new(LaneFault {
                        kind: FaultKind::IllegalAddress,
                        lane: lane.lane,
                        detail: cupyrite_engine::FaultDetail::Text("refused".into()),
                    }));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn the_memory_model_admits_the_access_to_each_device() {
    let team = Team::new();
    let body = "multimem.red.relaxed.sys.add.u32 [a+8], 1;\nmultimem.ld_reduce.add.v2.f32 {f0, f1}, [a+16];\n\
                multimem.st.release.gpu.u32 [a+32], 3;";
    let arguments = [team.base as u32, (team.base >> 32) as u32, 0, 0];
    let run =
        |model: &Listing| Launch::new(1, 1).run_under(model, space(), &kernel(body), &arguments);
    let model = Listing(Mutex::default(), 0);
    run(&model).unwrap();
    let list = model.0.into_inner().unwrap();
    // The third kind of access per device, at three different addresses.
    let kinds: Vec<_> = list
        .iter()
        .map(|(_, bytes, kind, order)| (*bytes, *kind, order.as_str()))
        .collect();
    let red = (4, AccessKind::Atomic, "Relaxed Some(Sys)");
    let load = (8, AccessKind::Load, "Weak None");
    let store = (4, AccessKind::Store, "Release Some(Gpu)");
    assert_eq!(
        kinds,
        [red, red, red, load, load, load, store, store, store]
    );
    let mut places: Vec<u64> = list.iter().map(|a| a.0).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 9);
    // A refused access changes no device.
    let refused = Listing(Mutex::default(), list[1].0);
    let before = team.get(0, 8, 4);
    assert!(run(&refused).unwrap_err().report.contains("refused"));
    assert_eq!(team.get(0, 8, 4), before);
}
