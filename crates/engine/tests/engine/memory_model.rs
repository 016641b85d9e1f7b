//! Memory models of the tests: each sees every access of a kernel before it happens, and can refuse it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cupyrite_engine::memory::AddressSpace;
use cupyrite_engine::tensor_map;
use cupyrite_engine::texture::{
    AddressMode, ChannelKind, Filter, Format, Resource, Storage, Surface, SurfaceDescriptor,
    Texture, TextureDescriptor, objects,
};
use cupyrite_engine::{
    AccessKind, Fault, FaultDetail, FaultKind, LaneFault, MemoryModel, StateSpace, WarpAccess,
};

use cupyrite_sys::driver::{
    CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle as Swizzle,
};
use cupyrite_sys::tensor_map::{TensorMapDescription, TensorMapMode};

use crate::harness::{Buffer, Launch, module};

/// Bytes that an instruction loads, stores and updates atomically.
type Counts = [u64; 3];

/// Counts the bytes that each instruction accesses.
#[derive(Default)]
struct ByteCounts(Mutex<BTreeMap<u32, Counts>>);

impl MemoryModel for ByteCounts {
    type Worker = BTreeMap<u32, Counts>;

    fn begin(&self) -> Self::Worker {
        BTreeMap::new()
    }

    fn check(
        &self,
        counts: &mut Self::Worker,
        access: &WarpAccess<'_>,
    ) -> Result<(), Box<LaneFault>> {
        let bytes = u64::from(access.active.count_ones() * access.bytes);
        counts.entry(access.pc).or_default()[access.kind as usize] += bytes;
        Ok(())
    }

    fn end(&self, counts: Self::Worker) {
        let mut all = self.0.lock().unwrap();
        for (pc, new) in counts {
            let sum = all.entry(pc).or_default();
            (0..3).for_each(|kind| sum[kind] += new[kind]);
        }
    }
}

/// Lists the accesses of a launch: opcode, block, warp, mask, bytes, kind, order, scope, and the spaces of the lanes with
/// their addresses.
#[derive(Default)]
struct AccessList(Mutex<Vec<Listed>>);

#[derive(Debug, PartialEq)]
struct Listed {
    text: String,
    thread: ([u32; 3], u32, u32),
    lanes: Vec<(u32, StateSpace, u64)>,
}

impl MemoryModel for AccessList {
    type Worker = ();

    fn begin(&self) {}

    fn check(&self, _: &mut (), access: &WarpAccess<'_>) -> Result<(), Box<LaneFault>> {
        let scope = access.scope().map_or("-".into(), |s| format!("{s:?}"));
        self.0.lock().unwrap().push(Listed {
            text: format!(
                "{} {:?} {} {:?} {scope}{}",
                access.opcode(),
                access.kind,
                access.bytes,
                access.order,
                if access.asynchronous { " async" } else { "" }
            ),
            thread: (access.block, access.warp, access.active),
            lanes: access
                .lanes()
                .map(|l| (l.lane, l.space, l.address))
                .collect(),
        });
        Ok(())
    }
}

impl AccessList {
    fn of(launch: &Launch<'_>, ptx: &str, args: &[u64]) -> Vec<Listed> {
        let list = Self::default();
        run(launch, &list, ptx, args).unwrap();
        list.0.into_inner().unwrap()
    }
}

fn run(
    launch: &Launch<'_>,
    model: &impl MemoryModel,
    ptx: &str,
    args: &[u64],
) -> Result<String, Fault> {
    let words: Vec<u32> = args
        .iter()
        .flat_map(|a| [*a as u32, (*a >> 32) as u32])
        .collect();
    launch.run_under(model, AddressSpace::global(), ptx, &words)
}

fn texts(list: &[Listed]) -> Vec<&str> {
    list.iter().map(|l| l.text.as_str()).collect()
}

/// The thread in `%r1`, its own word of the buffer `p0` in `%rd2`.
const INDEX: &str = "
    .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd2, %rd1, %rd2;
";

#[test]
fn a_model_counts_the_bytes_of_each_instruction_over_all_workers() {
    let body = format!(
        "{INDEX}
    .shared .align 16 .b8 s[2048];
    .local .align 16 .b8 l[16];
    mov.u32 %r2, s;
    mad.lo.u32 %r3, %r1, 4, %r2;
    ld.global.u32 %r4, [%rd2];
    st.shared.u32 [%r3], %r4;
    setp.lt.u32 %p1, %r1, 5;
    @%p1 ld.shared.u32 %r5, [%r3];
    @%p1 ld.global.v2.u32 {{%r6, %r7}}, [%rd1];
    @%p1 atom.global.add.u32 %r8, [%rd1+256], 1;
    red.shared.add.u32 [%r2], %r4;
    cvta.local.u64 %rd3, l;
    st.u64 [%rd3], %rd2;
    setp.eq.u32 %p2, %r1, 99;
    @%p2 st.global.u32 [%rd2], %r4;
    ret;"
    );
    let buffer = Buffer::zeros(65);
    let counts = ByteCounts::default();
    let blocks = 100;
    run(
        &Launch::new(blocks, 64),
        &counts,
        &module("", 1, &body),
        &[buffer.addr],
    )
    .unwrap();
    assert_eq!(buffer.get()[64], 5 * blocks);
    let counts: Vec<Counts> = counts.0.into_inner().unwrap().into_values().collect();
    let blocks = u64::from(blocks);
    let of_block = [
        [64 * 4, 0, 0],
        [0, 64 * 4, 0],
        [5 * 4, 0, 0],
        [5 * 8, 0, 0],
        [0, 0, 5 * 4],
        [0, 0, 64 * 4],
        [0, 64 * 8, 0],
    ];
    assert_eq!(counts, of_block.map(|c| c.map(|bytes| bytes * blocks)));
}

#[test]
fn a_refused_access_does_not_happen() {
    struct ReadOnly;
    impl MemoryModel for ReadOnly {
        type Worker = ();
        fn begin(&self) {}
        fn check(&self, _: &mut (), access: &WarpAccess<'_>) -> Result<(), Box<LaneFault>> {
            let stored = access
                .lanes()
                .find(|l| l.lane >= 3 && access.kind != AccessKind::Load);
            stored.map_or(Ok(()), |l| {
                Err(Box::new(LaneFault {
                    kind: FaultKind::IllegalAddress,
                    lane: l.lane,
                    detail: FaultDetail::Text(format!("a store to {:#x}", l.address)),
                }))
            })
        }
    }
    let stores = [
        "st.global.u32 [%rd2], 7;",
        "st.global.v2.u32 [%rd1], {7, 7};",
        "st.volatile.global.u32 [%rd2], 7;",
        "red.global.add.u32 [%rd2], 7;",
    ];
    for store in stores {
        let buffer = Buffer::zeros(32);
        let ptx = module("", 1, &format!("{INDEX} mov.u32 %r2, 7; {store} ret;"));
        let fault = run(&Launch::new(1, 32), &ReadOnly, &ptx, &[buffer.addr]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::IllegalAddress);
        assert!(fault.report.contains("a store to 0x"), "{fault}");
        assert!(fault.report.contains("thread (3, 0, 0)"), "{fault}");
        assert_eq!(buffer.get(), [0; 32], "{store}");
    }
}

#[test]
fn accesses_outside_of_memory_are_faults_under_every_model() {
    let ptx = module("", 1, &format!("{INDEX} st.global.u32 [%rd2], %r1; ret;"));
    let buffer = Buffer::zeros(31);
    let list = AccessList::default();
    let fault = run(&Launch::new(1, 32), &list, &ptx, &[buffer.addr]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    assert_eq!(
        texts(&list.0.into_inner().unwrap()),
        ["st.global.u32 Store 4 Weak -"]
    );
}

#[test]
fn the_order_and_scope_are_those_of_the_instruction() {
    let body = format!(
        "{INDEX}
    .shared .align 8 .b8 s[8];
    ld.volatile.global.u32 %r2, [%rd1];
    ld.acquire.gpu.global.u32 %r2, [%rd1];
    st.release.sys.global.u32 [%rd1], %r2;
    ld.relaxed.cta.shared.u32 %r2, [s];
    atom.global.add.u32 %r2, [%rd1], 1;
    atom.acq_rel.cluster.global.exch.b64 %rd4, [%rd1+8], %rd1;
    mbarrier.init.shared.b64 [s], 1;
    mbarrier.arrive.shared.b64 %rd4, [s];
    mbarrier.test_wait.shared.b64 %p1, [s], %rd4;
    ret;"
    );
    let ptx = module("", 1, &body).replace("sm_89", "sm_90");
    let buffer = Buffer::zeros(4);
    let list = AccessList::of(&Launch::new(1, 1), &ptx, &[buffer.addr]);
    assert_eq!(
        texts(&list),
        [
            "ld.volatile.global.u32 Load 4 Relaxed Sys",
            "ld.acquire.gpu.global.u32 Load 4 Acquire Gpu",
            "st.release.sys.global.u32 Store 4 Release Sys",
            "ld.relaxed.cta.shared.u32 Load 4 Relaxed Cta",
            "atom.global.add.u32 Atomic 4 Relaxed Gpu",
            "atom.acq_rel.cluster.global.exch.b64 Atomic 8 AcqRel Cluster",
            "mbarrier.init.shared.b64 Store 8 Weak -",
            "mbarrier.arrive.shared.b64 Atomic 8 Release Cta",
            "mbarrier.test_wait.shared.b64 Load 8 Acquire Cta",
        ]
    );
}

#[test]
fn generic_addresses_are_resolved_to_their_state_space() {
    let body = format!(
        "{INDEX}
    .shared .align 8 .b8 s[64];
    .local .align 8 .b8 l[16];
    cvta.shared.u64 %rd3, s;
    cvta.local.u64 %rd4, l;
    setp.eq.u32 %p1, %r1, 1;
    selp.b64 %rd5, %rd3, %rd1, %p1;
    setp.eq.u32 %p2, %r1, 2;
    selp.b64 %rd5, %rd4, %rd5, %p2;
    st.u32 [%rd5+8], %r1;
    ret;"
    );
    let buffer = Buffer::zeros(4);
    let list = AccessList::of(&Launch::new(1, 3), &module("", 1, &body), &[buffer.addr]);
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].thread, ([0; 3], 0, 7));
    let [global, shared, local] = list[0].lanes[..] else {
        panic!("{list:?}");
    };
    assert_eq!(global, (0, StateSpace::Global, buffer.addr + 8));
    assert_eq!((shared.0, shared.1), (1, StateSpace::Shared));
    assert_eq!((local.0, local.1), (2, StateSpace::Local));
    assert!(shared.2 < 64 && local.2 < 1024, "{list:?}");
}

#[test]
fn threads_are_named_by_block_and_warp() {
    let ptx = module("", 1, &format!("{INDEX} st.global.u32 [%rd2], %r1; ret;"));
    let buffer = Buffer::zeros(40);
    let list = AccessList::of(&Launch::new(2, 40), &ptx, &[buffer.addr]);
    let mut threads: Vec<_> = list.iter().map(|l| l.thread).collect();
    threads.sort_unstable();
    let warps = |x| [([x, 0, 0], 0, u32::MAX), ([x, 0, 0], 1, 255)];
    assert_eq!(threads, [warps(0), warps(1)].concat());
}

#[test]
fn both_sides_of_an_asynchronous_copy_are_accesses() {
    let body = format!(
        "{INDEX}
    .shared .align 128 .b8 s[256];
    .shared .align 8 .b8 m[8];
    mov.u32 %r2, s;
    mad.lo.u32 %r3, %r1, 16, %r2;
    setp.eq.u32 %p1, %r1, 1;
    selp.u32 %r4, 8, 16, %p1;
    cp.async.cg.shared.global [%r3], [%rd1], 16, %r4;
    cp.async.wait_all;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra DONE;
    mbarrier.init.shared.b64 [m], 1;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 32, [m];
    cp.async.bulk.global.shared::cta.bulk_group [%rd1+32], [s], 32;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1+64], [s], 32;
DONE:
    ret;"
    );
    let ptx = module("", 1, &body).replace("sm_89", "sm_90");
    let words: Vec<u32> = (0..24).collect();
    let buffer = Buffer::new(&words);
    let list = AccessList::of(&Launch::new(1, 3), &ptx, &[buffer.addr]);
    let bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
    let store = "cp.async.bulk.global.shared::cta.bulk_group";
    let reduce = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32";
    let expected = [
        "cp.async.cg.shared.global Store 16 Weak - async".to_string(),
        "cp.async.cg.shared.global Load 16 Weak - async".into(),
        "cp.async.cg.shared.global Load 8 Weak - async".into(),
        "mbarrier.init.shared.b64 Store 8 Weak -".into(),
        format!("{bulk} Store 32 Weak - async"),
        format!("{bulk} Load 32 Weak - async"),
        format!("{bulk} Atomic 8 Relaxed Cluster async"),
        format!("{store} Load 32 Weak - async"),
        format!("{store} Store 32 Weak - async"),
        format!("{reduce} Load 32 Weak - async"),
        format!("{reduce} Atomic 32 Relaxed Gpu async"),
    ];
    assert_eq!(texts(&list), expected);
    let masks: Vec<u32> = list[..3].iter().map(|l| l.thread.2).collect();
    assert_eq!(masks, [0b111, 0b101, 0b010]);
    let sum: Vec<u32> = (0..8).map(|n| n + 16 + n).collect();
    let copied = [&words[..8], &words[..8], &sum].concat();
    assert_eq!(buffer.get(), copied);
}

/// A box of 8 columns and 4 rows at column 12, row 1 of a tensor of 16 columns and 4 rows: a part lies outside.
#[test]
fn a_box_accesses_its_rows_in_shared_memory_and_those_of_the_tensor() {
    let words: Vec<u32> = (0..64).collect();
    let tensor = Buffer::new(&words);
    let out = Buffer::new(&[9; 32]);
    for swizzle in [
        Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
    ] {
        let map = Buffer::new(&map_of(&tensor, swizzle));
        let body = format!(
            "{INDEX}
    .shared .align 128 .b8 s[128];
    .shared .align 8 .b8 m[8];
    ld.param.u64 %rd3, [p1];
    mov.u32 %r2, s; mov.u32 %r3, m; mov.u32 %r4, 12; mov.u32 %r5, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra FILLED;
    mbarrier.init.shared.b64 [%r3], 1;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {{%r4, %r5}}], [%r3];
    cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd1, {{%r4, %r5}}], [%r2];
FILLED:
    bar.sync 0;
    mad.lo.u32 %r6, %r1, 4, %r2;
    ld.shared.u32 %r7, [%r6];
    mul.wide.u32 %rd4, %r1, 4;
    add.u64 %rd4, %rd3, %rd4;
    st.global.u32 [%rd4], %r7;
    ret;"
        );
        let ptx = module("", 2, &body).replace("sm_89", "sm_90");
        let before = tensor.get();
        let list = AccessList::of(&Launch::new(1, 32), &ptx, &[map.addr, out.addr]);
        let column = |row: usize| &before[16 * row + 12..16 * row + 16];
        let inside = |row: usize| -> Vec<u32> { [column(row), &[0; 4]].concat() };
        let filled = out.get();
        if swizzle == Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE {
            let rows = [inside(1), inside(2), inside(3), vec![0; 8]];
            assert_eq!(filled, rows.concat());
        }
        let after = tensor.get();
        for (n, (old, new)) in before.iter().zip(&after).enumerate() {
            let added = n >= 16 && n % 16 >= 12;
            assert_eq!(*new, if added { 2 * old } else { *old });
        }
        let bytes = |opcode: &str, space: StateSpace, kind: &str| -> u32 {
            let of = list.iter().filter(|l| {
                l.text.starts_with(opcode) && l.text.contains(kind) && l.lanes[0].1 == space
            });
            let size = |l: &Listed| l.text.split(' ').nth(2).unwrap().parse::<u32>().unwrap();
            of.map(size).sum()
        };
        let (load, reduce) = ("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor");
        assert_eq!(bytes(load, StateSpace::Shared, "Store"), 128);
        // The tensor map and three rows.
        assert_eq!(bytes(load, StateSpace::Global, "Load"), 128 + 48);
        assert_eq!(bytes(reduce, StateSpace::Shared, "Load"), 48);
        assert_eq!(bytes(reduce, StateSpace::Global, "Atomic"), 48);
    }
}

/// A map is copied to shared memory, changed there, copied back, and used: the usual steps of a grouped matrix product.
#[test]
fn a_kernel_changes_a_tensor_map() {
    let words: Vec<u32> = (0..64).collect();
    let tensor = Buffer::new(&[0; 64]);
    let other = Buffer::new(&words);
    let out = Buffer::new(&[9; 32]);
    let map = Buffer::new(&map_of(&tensor, Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE));
    let body = format!(
        "{INDEX}
    .shared .align 128 .b8 s[128];
    .shared .align 128 .b8 t[128];
    .shared .align 8 .b8 m[8];
    ld.param.u64 %rd3, [p1]; ld.param.u64 %rd5, [p2];
    mov.u32 %r2, s; mov.u32 %r3, m; mov.u32 %r4, 0; mov.u32 %r5, t;
    mad.lo.u32 %r6, %r1, 4, %r5; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd2, %rd1, %rd4;
    ld.global.u32 %r7, [%rd2]; st.shared.u32 [%r6], %r7;
    bar.warp.sync 0xffffffff;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra CHANGED;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r5], %rd5;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r5], 1, 3;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [t], 0, 80;
CHANGED:
    bar.warp.sync 0xffffffff;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r5], 128;
    @%p1 bra FILLED;
    fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
    tensormap.replace.tile.element_stride.global.b1024.b32 [%rd1], 1, 2;
    tensormap.replace.tile.box_dim.b1024.b32 [%rd1], 1, 8;
    mbarrier.init.shared.b64 [%r3], 1;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {{%r4, %r4}}], [%r3];
FILLED:
    bar.sync 0;
    mad.lo.u32 %r6, %r1, 4, %r2;
    ld.shared.u32 %r7, [%r6];
    add.u64 %rd4, %rd3, %rd4;
    st.global.u32 [%rd4], %r7;
    ret;"
    );
    let ptx = module("", 3, &body).replace("sm_89", "sm_90a");
    let addresses = [map.addr, out.addr, other.addr];
    let list = AccessList::of(&Launch::new(1, 32), &ptx, &addresses);
    // Rows 0 and 2 of those of 20 words, of which three exist.
    let row = |n: u32| -> Vec<u32> { (20 * n..20 * n + 8).collect() };
    let filled = [row(0), row(2), vec![0; 16]].concat();
    assert_eq!(out.get(), filled);
    let count = |kind: &str, space: StateSpace| {
        let of = |l: &&Listed| {
            l.text.starts_with("tensormap") && l.text.contains(kind) && l.lanes[0].1 == space
        };
        list.iter().filter(of).count()
    };
    // Three changes in shared memory and a copy from there; a copy to global memory and two changes there.
    assert_eq!(count("Load", StateSpace::Shared), 4);
    assert_eq!(count("Store", StateSpace::Shared), 3);
    assert_eq!(count("Load", StateSpace::Global), 2);
    assert_eq!(count("Store", StateSpace::Global), 3);
}

/// Images of 3 x 2 pixels with 4 channels: a load with offsets (1, 1) from a box of two columns and two rows around the first
/// pixel, and a store without offsets to the box of the last two columns.
#[test]
fn copies_in_im2col_mode_follow_the_bounding_box() {
    let words: Vec<u32> = (0..48).collect();
    let images = Buffer::new(&words);
    let target = Buffer::new(&[99; 48]);
    let out = Buffer::new(&[9; 32]);
    let im2col = |of: &Buffer, lower: [i32; 2], upper: [i32; 2]| {
        let mut map = description(of, Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE);
        map.dims = vec![4, 3, 2, 2];
        map.strides = vec![16, 48, 96];
        map.element_strides = vec![1; 4];
        map.mode = TensorMapMode::Im2col {
            lower: lower.to_vec(),
            upper: upper.to_vec(),
            channels: 4,
            pixels: 8,
        };
        Buffer::new(&encoded(&map))
    };
    let from = im2col(&images, [-1, -1], [-2, -1]);
    let to = im2col(&target, [1, 0], [0, 0]);
    let body = format!(
        "{INDEX}
    .shared .align 128 .b8 s[128];
    .shared .align 8 .b8 m[8];
    .reg .b16 %h<2>;
    ld.param.u64 %rd3, [p1]; ld.param.u64 %rd5, [p2];
    mov.u32 %r2, s; mov.u32 %r3, m; mov.u32 %r4, 0; mov.u32 %r5, -1; mov.u32 %r6, 1; mov.u16 %h1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra FILLED;
    mbarrier.init.shared.b64 [%r3], 1;
    cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes \
        [%r2], [%rd1, {{%r4, %r5, %r5, %r4}}], [%r3], {{%h1, %h1}};
    cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%rd5, {{%r4, %r6, %r6, %r4}}], [%r2];
FILLED:
    bar.sync 0;
    mad.lo.u32 %r6, %r1, 4, %r2;
    ld.shared.u32 %r7, [%r6];
    mul.wide.u32 %rd4, %r1, 4;
    add.u64 %rd4, %rd3, %rd4;
    st.global.u32 [%rd4], %r7;
    ret;"
    );
    let ptx = module("", 3, &body).replace("sm_89", "sm_90");
    AccessList::of(&Launch::new(1, 32), &ptx, &[from.addr, out.addr, to.addr]);
    let pixel = |n: u32| 4 * n..4 * n + 4;
    // The filter is at columns -1 and 0 and rows -1 and 0 of both images.
    let loaded = [0, 1, 3, 4, 6, 7, 9, 10];
    let expected: Vec<u32> = loaded.into_iter().flat_map(pixel).collect();
    assert_eq!(out.get(), expected);
    let mut expected = [99; 48];
    for (n, at) in [4, 5, 7, 8, 10, 11].into_iter().enumerate() {
        for (to, from) in pixel(at).zip(pixel(loaded[n])) {
            expected[to as usize] = from;
        }
    }
    assert_eq!(target.get(), expected);
    // A box that extends beyond the tensor is for loads alone.
    let beyond = im2col(&target, [1, 0], [0, 1]);
    let result = Launch::new(1, 32).run(&ptx, &[from.addr, out.addr, beyond.addr]);
    let text = format!("{:?}", result.unwrap_err());
    assert!(text.contains("extends beyond the tensor"), "{text}");
}

fn map_of(tensor: &Buffer, swizzle: Swizzle) -> Vec<u32> {
    encoded(&description(tensor, swizzle))
}

fn description(tensor: &Buffer, swizzle: Swizzle) -> TensorMapDescription {
    TensorMapDescription {
        data_type: DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        address: tensor.addr,
        dims: vec![16, 4],
        strides: vec![64],
        element_strides: vec![1, 1],
        mode: TensorMapMode::Tiled {
            box_dims: vec![8, 4],
        },
        interleave: CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle,
        l2_promotion: CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
        fill: CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    }
}

fn encoded(map: &TensorMapDescription) -> Vec<u32> {
    let bytes = tensor_map::encode(map);
    let words = bytes.chunks(4);
    words
        .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
        .collect()
}

#[test]
fn the_elements_of_a_surface_and_the_bytes_of_a_string_are_accesses() {
    let format = Format::plain(ChannelKind::Unsigned, 32, 1);
    let storage = Storage::new(format, [16, 0, 0], 0, 1).unwrap();
    let base = storage.level(0).unwrap().base;
    let handle = 0x5500_0000_0010;
    let surface = Surface::new(SurfaceDescriptor { storage, level: 0 }).unwrap();
    objects::insert_surface(handle, Arc::new(surface));
    let head = "
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 word[] = {104, 105, 0};";
    let body = format!(
        "{INDEX}
    sub.u32 %r2, 4, %r1;
    shl.b32 %r2, %r2, 3;
    sust.b.1d.b32.zero [%rd1, {{%r2}}], {{%r1}};
    sured.b.add.1d.u32.trap [%rd1, {{0}}], %r1;
    suld.b.1d.b32.trap {{%r3}}, [%rd1, {{4}}];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    .param .b64 f; .param .b64 a; .param .b32 c;
    mov.u64 %rd3, word;
    st.param.b64 [f], %rd3;
    st.param.b64 [a], 0;
    call (c), vprintf, (f, a);
DONE:
    ret;"
    );
    let list = AccessList::default();
    let ptx = module(head, 1, &body);
    let printed = run(&Launch::new(1, 4), &list, &ptx, &[handle]).unwrap();
    objects::remove_surface(handle);
    assert_eq!(printed, "hi");
    let mut list = list.0.into_inner().unwrap();
    list.retain(|l| !l.text.starts_with("st.param"));
    let string = "call Load 1 Weak -";
    assert_eq!(
        texts(&list),
        [
            "sust.b.1d.b32.zero Store 4 Weak -",
            "sured.b.add.1d.u32.trap Atomic 4 Relaxed Gpu",
            "suld.b.1d.b32.trap Load 4 Weak -",
            string,
            string,
            string,
        ]
    );
    let stored: Vec<_> = (0..4)
        .map(|n| (n, StateSpace::Texture, base + u64::from(8 * (4 - n))))
        .collect();
    assert_eq!(list[0].lanes, stored);
    assert_eq!(list[3].lanes[0].1, StateSpace::Global);
}

#[test]
fn each_texel_that_a_fetch_filters_is_an_access() {
    let format = Format::plain(ChannelKind::Float, 32, 1);
    let storage = Storage::new(format, [8, 8, 0], 0, 1).unwrap();
    let level = storage.level(0).unwrap();
    let handle = 0x5500_0000_0020;
    let descriptor = TextureDescriptor {
        address: [AddressMode::Border; 3],
        filter: Filter::Linear,
        ..TextureDescriptor::default()
    };
    let texture = Texture::new(Resource::Array { storage, level: 0 }, descriptor, None).unwrap();
    objects::insert_texture(handle, Arc::new(texture));
    let body = format!(
        "{INDEX}
    .reg .f32 %f<8>;
    cvt.rn.f32.u32 %f1, %r1;
    mov.f32 %f2, 0f40000000; // y 2.0: half of row 1, half of row 2
    tex.2d.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%rd1, {{%f1, %f2}}];
    tld4.r.2d.v4.f32.f32 {{%f4, %f5, %f6, %f7}}, [%rd1, {{%f1, %f2}}];
    mov.u32 %r2, 3;
    tex.2d.v4.f32.s32 {{%f4, %f5, %f6, %f7}}, [%rd1, {{%r1, %r2}}];
    ret;"
    );
    let ptx = module("", 1, &body);
    let list = AccessList::of(&Launch::new(1, 2), &ptx, &[handle]);

    struct Refusing;
    impl MemoryModel for Refusing {
        type Worker = ();
        fn begin(&self) {}
        fn check(&self, _: &mut (), access: &WarpAccess<'_>) -> Result<(), Box<LaneFault>> {
            Err(Box::new(LaneFault {
                kind: FaultKind::IllegalAddress,
                lane: access.active.trailing_zeros(),
                detail: FaultDetail::Text("not initialized".to_string()),
            }))
        }
    }
    let fault = run(&Launch::new(1, 2), &Refusing, &ptx, &[handle]).unwrap_err();
    objects::remove_texture(handle);
    assert!(fault.report.contains("not initialized"), "{fault}");

    // Column -1, left of x 0.0, is the border: no access.
    let corner = |x: i32, y: u64| {
        let texel = |lane: u32| {
            let x = u64::try_from(x + lane as i32).ok()?;
            let address = level.base + y * level.row_pitch + 4 * x;
            Some((lane, StateSpace::Texture, address))
        };
        (0..2).filter_map(texel).collect::<Vec<_>>()
    };
    let (left, right) = ([corner(-1, 1), corner(-1, 2)], [corner(0, 1), corner(0, 2)]);
    let lanes: Vec<_> = list.iter().map(|l| l.lanes.clone()).collect();
    let filtered = [&left[0], &right[0], &left[1], &right[1]];
    let gathered = [&left[1], &right[1], &right[0], &left[0]];
    assert_eq!(lanes[..4].iter().collect::<Vec<_>>(), filtered);
    assert_eq!(lanes[4..8].iter().collect::<Vec<_>>(), gathered);
    assert_eq!(lanes[8..], [corner(0, 3)]);
    assert!(texts(&list)[0].starts_with("tex.2d.v4.f32.f32 Load 4 Weak"));
}
