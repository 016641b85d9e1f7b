//! Clusters: their special registers, blocks that are resident together, shared memory of other blocks.

use cupyrite_engine::{Fault, FaultKind};

use crate::harness::{Buffer, Launch, module};

/// Stores the special registers of each block, 16 words a block.
const SPECIALS: &str = "
    .reg .pred %p<2>;
    .reg .b32 %r<24>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;
    mad.lo.u32 %r6, %r3, %r5, %r2;
    mad.lo.u32 %r6, %r6, %r4, %r1;
    mul.wide.u32 %rd2, %r6, 64;
    add.u64 %rd1, %rd1, %rd2;
    mov.u32 %r7, %clusterid.x; st.global.u32 [%rd1], %r7;
    mov.u32 %r7, %clusterid.y; st.global.u32 [%rd1+4], %r7;
    mov.u32 %r7, %clusterid.z; st.global.u32 [%rd1+8], %r7;
    mov.u32 %r7, %nclusterid.x; st.global.u32 [%rd1+12], %r7;
    mov.u32 %r7, %nclusterid.y; st.global.u32 [%rd1+16], %r7;
    mov.u32 %r7, %nclusterid.z; st.global.u32 [%rd1+20], %r7;
    mov.u32 %r7, %cluster_ctaid.x; st.global.u32 [%rd1+24], %r7;
    mov.u32 %r7, %cluster_ctaid.y; st.global.u32 [%rd1+28], %r7;
    mov.u32 %r7, %cluster_ctaid.z; st.global.u32 [%rd1+32], %r7;
    mov.u32 %r7, %cluster_nctaid.x; st.global.u32 [%rd1+36], %r7;
    mov.u32 %r7, %cluster_nctaid.y; st.global.u32 [%rd1+40], %r7;
    mov.u32 %r7, %cluster_nctaid.z; st.global.u32 [%rd1+44], %r7;
    mov.u32 %r7, %cluster_ctarank; st.global.u32 [%rd1+48], %r7;
    mov.u32 %r7, %cluster_nctarank; st.global.u32 [%rd1+52], %r7;
    mov.pred %p1, %is_explicit_cluster;
    selp.u32 %r7, 1, 0, %p1;
    st.global.u32 [%rd1+56], %r7;
    st.global.u32 [%rd1+60], %r6;
    ret;";

/// The values of [`SPECIALS`].
fn specials(grid: [u32; 3], cluster: Option<[u32; 3]>) -> Vec<u32> {
    let size = cluster.unwrap_or([1; 3]);
    let mut words = Vec::new();
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                let at = [x, y, z];
                let inner: [u32; 3] = std::array::from_fn(|a| at[a] % size[a]);
                words.extend((0..3).map(|a| at[a] / size[a]));
                words.extend((0..3).map(|a| grid[a] / size[a]));
                words.extend(inner);
                words.extend(size);
                words.push(inner[0] + size[0] * (inner[1] + size[1] * inner[2]));
                words.push(size.iter().product());
                words.push(u32::from(cluster.is_some()));
                words.push(x + grid[0] * (y + grid[1] * z));
            }
        }
    }
    words
}

#[test]
fn special_registers_describe_the_cluster() {
    let ptx = module("", 1, SPECIALS).replace("sm_89", "sm_90");
    for (grid, cluster) in [
        ([6, 4, 2], None),
        ([3, 1, 1], Some([1, 1, 1])),
        ([6, 4, 2], Some([2, 1, 1])),
        ([6, 4, 2], Some([3, 2, 2])),
        ([2, 4, 6], Some([1, 4, 3])),
        ([16, 1, 3], Some([16, 1, 1])),
    ] {
        let out = Buffer::zeros(16 * grid.iter().product::<u32>() as usize);
        let launch = Launch {
            grid,
            cluster,
            ..Launch::new(1, 1)
        };
        launch.run(&ptx, &[out.addr]).unwrap();
        assert_eq!(
            out.get(),
            specials(grid, cluster),
            "{cluster:?} of {grid:?}"
        );
    }
}

#[test]
fn blocks_of_a_cluster_wait_for_each_other() {
    // Each block sets its own flag, and waits for that of the next block of its cluster.
    let body = "
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, %cluster_nctarank;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    sub.u32 %r4, %r1, %r2;
    add.u32 %r5, %r2, 1;
    rem.u32 %r5, %r5, %r3;
    add.u32 %r4, %r4, %r5;
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd3, %rd1, %rd3;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra SET;
WAIT:
    ld.acquire.gpu.global.u32 %r6, [%rd3];
    setp.eq.u32 %p1, %r6, 0;
    @%p1 bra WAIT;
SET:
    st.release.gpu.global.u32 [%rd2], 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra END;
AGAIN:
    ld.acquire.gpu.global.u32 %r6, [%rd3];
    setp.eq.u32 %p1, %r6, 0;
    @%p1 bra AGAIN;
END:
    ret;";
    let ptx = module("", 1, body).replace("sm_89", "sm_90");
    for blocks in [2, 3, 16] {
        // More clusters than are in progress at once.
        let grid = blocks * 300;
        let flags = Buffer::zeros(grid as usize);
        let launch = Launch {
            cluster: Some([blocks, 1, 1]),
            ..Launch::new(grid, 64)
        };
        launch.run(&ptx, &[flags.addr]).unwrap();
        assert_eq!(flags.get(), vec![1; grid as usize]);
    }
}

#[test]
fn clusters_that_do_not_fit_are_refused() {
    let ptx = module("", 0, "ret;");
    for (cluster, text) in [
        ([0, 1, 1], "a cluster of 0 blocks"),
        ([17, 1, 1], "a cluster of 17 blocks"),
        ([u32::MAX; 3], "the number must be 1 to 16"),
        ([4, 1, 1], "multiples of those of the cluster"),
        ([2, 2, 1], "multiples of those of the cluster"),
    ] {
        let launch = Launch {
            cluster: Some(cluster),
            ..Launch::new(6, 32)
        };
        let fault = launch.run(&ptx, &[]).unwrap_err();
        assert_eq!(fault.kind, FaultKind::LaunchOutOfResources);
        assert!(fault.report.contains(text), "{}", fault.report);
    }
}

/// Registers, and `%r3`: the address of the shared memory of the other block of a cluster of two, whose variable `s` it
/// contains at the same offset. Every block has zeros in `s`, and has read the flags `p0` of both blocks, before it goes on.
const TWO_BLOCKS: &str = "
    .reg .pred %p<4>;
    .reg .b32 %r<24>;
    .reg .b64 %rd<16>;
    .reg .f32 %f<4>;
    .shared .align 16 .b8 s[64];
    mov.u32 %r1, %cluster_ctarank;
    xor.b32 %r2, %r1, 1;
    add.u32 %r3, %r2, 1;
    shl.b32 %r3, %r3, 19;
    mov.u32 %r4, s;
    add.u32 %r3, %r3, %r4;
    mov.u64 %rd1, 0;
    st.shared.v2.u64 [s], {%rd1, %rd1};
    st.shared.v2.u64 [s+16], {%rd1, %rd1};
    st.shared.v2.u64 [s+32], {%rd1, %rd1};
    st.shared.v2.u64 [s+48], {%rd1, %rd1};
    ld.param.u64 %rd1, [p0];
    ld.param.u64 %rd2, [p1];
    mul.wide.u32 %rd3, %r1, 64;
    add.u64 %rd2, %rd2, %rd3;
    atom.add.acq_rel.gpu.global.u32 %r5, [%rd1], 1;
READY:
    ld.acquire.gpu.global.u32 %r5, [%rd1];
    setp.lt.u32 %p1, %r5, 2;
    @%p1 bra READY;
";

/// Runs [`TWO_BLOCKS`] and `body`, and returns the 16 words that each of the two blocks has stored at `%rd2`.
fn two_blocks(body: &str) -> Result<[Vec<u32>; 2], Fault> {
    let ptx = module("", 2, &format!("{TWO_BLOCKS}{body}")).replace("sm_89", "sm_90");
    let (flags, out) = (Buffer::zeros(1), Buffer::zeros(32));
    let launch = Launch {
        cluster: Some([2, 1, 1]),
        ..Launch::new(2, 1)
    };
    launch.run(&ptx, &[flags.addr, out.addr])?;
    let (first, second) = (out.get()[..16].to_vec(), out.get()[16..].to_vec());
    Ok([first, second])
}

#[test]
fn a_block_waits_for_a_store_of_another_to_its_shared_memory() {
    // Block 1 stores to block 0, which answers.
    let body = "
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra WAIT;
    st.shared::cluster.u32 [%r3], 7;
    st.release.cluster.shared::cluster.u32 [%r3+4], 1;
WAIT:
    ld.acquire.cluster.shared::cta.u32 %r6, [s+4];
    setp.eq.u32 %p3, %r6, 0;
    @%p3 bra WAIT;
    ld.shared.u32 %r7, [s];
    @!%p2 bra END;
    add.u32 %r8, %r7, 4;
    st.shared::cluster.u32 [%r3], %r8;
    st.release.cluster.shared::cluster.u32 [%r3+4], 1;
END:
    st.global.u32 [%rd2], %r7;
    ret;";
    let [first, second] = two_blocks(body).unwrap();
    assert_eq!((first[0], second[0]), (7, 11));
}

#[test]
fn accesses_of_every_kind_reach_another_block() {
    // Each block stores to the other; `%r9` is the address of its own memory in the cluster.
    let body = "
    add.u32 %r9, %r1, 1;
    shl.b32 %r9, %r9, 19;
    add.u32 %r9, %r9, %r4;
    add.u32 %r6, %r1, 100;
    st.shared::cluster.u8 [%r3], %r6;
    st.shared::cluster.v2.u32 [%r3+8], {%r6, %r1};
    cvt.u64.u32 %rd5, %r3;
    cvta.shared::cluster.u64 %rd4, %rd5;
    st.u32 [%rd4+16], %r6;
    atom.shared::cluster.add.u32 %r7, [%r3+20], %r6;
    atom.add.u32 %r8, [%rd4+20], 1;
    red.shared::cluster.add.f32 [%r3+24], 0f00000001;
    ld.shared::cluster.v2.u32 {%r10, %r11}, [%r3+16];
    ld.shared::cluster.u32 %r14, [%r3+20];
    isspacep.shared::cta %p1, %rd4;
    isspacep.shared::cluster %p2, %rd4;
    selp.u32 %r12, 1, 0, %p1;
    selp.u32 %r13, 1, 0, %p2;
    st.global.v4.u32 [%rd2+32], {%r7, %r8, %r10, %r11};
    cvt.u64.u32 %rd5, %r9;
    cvta.shared::cluster.u64 %rd4, %rd5;
    isspacep.shared::cta %p1, %rd4;
    isspacep.shared::cluster %p2, %rd4;
    selp.u32 %r15, 1, 0, %p1;
    selp.u32 %r16, 1, 0, %p2;
    st.global.v4.u32 [%rd2+48], {%r12, %r13, %r15, %r16};
    atom.add.acq_rel.gpu.global.u32 %r5, [%rd1], 1;
DONE:
    ld.acquire.gpu.global.u32 %r5, [%rd1];
    setp.lt.u32 %p1, %r5, 4;
    @%p1 bra DONE;
    ld.shared.u8 %r6, [s];
    ld.shared::cluster.u32 %r7, [%r9+8];
    ld.shared.u32 %r8, [s+12];
    ld.u32 %r10, [%rd4+16];
    st.global.v4.u32 [%rd2], {%r6, %r7, %r8, %r10};
    ld.shared.u32 %r6, [s+20];
    ld.shared.u32 %r7, [s+24];
    st.global.v4.u32 [%rd2+16], {%r6, %r7, %r14, 0};
    ret;";
    let blocks = two_blocks(body).unwrap();
    for (words, own) in blocks.iter().zip(0..) {
        let (theirs, ours) = (101 - own, 100 + own);
        // Addition to shared memory keeps subnormal values.
        let stored = [theirs, theirs, 1 - own, theirs, theirs + 1, 1];
        assert_eq!(words[..6], stored);
        assert_eq!(words[6], ours + 1);
        assert_eq!(words[8..12], [0, ours, ours, ours + 1]);
        assert_eq!(words[12..], [0, 1, 1, 1]);
    }
}

#[test]
fn arrivals_and_copies_reach_the_mbarrier_of_another_block() {
    // Each block expects an arrival and 16 bytes of the other block.
    let body = "
    .shared .align 8 .b64 m;
    mbarrier.init.shared::cta.b64 [m], 1;
    st.shared.v4.u32 [s+16], {%r1, 5, 6, 7};
    mov.u32 %r6, m;
    sub.u32 %r6, %r6, %r4;
    add.u32 %r6, %r6, %r3;
    atom.add.acq_rel.gpu.global.u32 %r5, [%rd1], 1;
INITIALIZED:
    ld.acquire.gpu.global.u32 %r5, [%rd1];
    setp.lt.u32 %p1, %r5, 4;
    @%p1 bra INITIALIZED;
    mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r6], 16;
    mov.u32 %r7, s;
    add.u32 %r7, %r7, 16;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3], [%r7], 16, [%r6];
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [m], 0;
    @!%p1 bra WAIT;
    ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [s];
    st.global.v4.u32 [%rd2], {%r8, %r9, %r10, %r11};
    ret;";
    let [first, second] = two_blocks(body).unwrap();
    assert_eq!(first[..4], [1, 5, 6, 7]);
    assert_eq!(second[..4], [0, 5, 6, 7]);
}

#[test]
fn accesses_outside_of_the_cluster_are_faults() {
    let outside = "st.shared::cluster.u32 [%r3+64], 1; ret;";
    let misaligned = "ld.shared::cluster.u32 %r5, [%r3+2]; ret;";
    let no_block = "ld.shared::cluster.u32 %r5, [%r3+1048576]; ret;";
    for (body, kind, text) in [
        (
            outside,
            FaultKind::IllegalAddress,
            "shared::cluster address",
        ),
        (
            misaligned,
            FaultKind::MisalignedAddress,
            "shared::cluster address",
        ),
        (no_block, FaultKind::IllegalAddress, "shared address"),
    ] {
        let fault = two_blocks(body).unwrap_err();
        assert_eq!(fault.kind, kind, "{}", fault.report);
        assert!(fault.report.contains(text), "{}", fault.report);
    }
    // Without clusters, the address of the own block is no address either.
    let body = ".shared .b32 s; .reg .b32 %r<2>; ld.shared.u32 %r1, [s+524288]; ret;";
    let fault = Launch::new(1, 1)
        .run(&module("", 0, body), &[])
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
}
