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
    .reg .b16 %h<4>;
    .shared .align 16 .b8 s[64];
    mov.u32 %r1, %cluster_ctarank;
    xor.b32 %r2, %r1, 1;
    mov.u32 %r4, s;
    mapa.shared::cluster.u32 %r3, %r4, %r2;
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
    mapa.shared::cluster.u32 %r9, %r4, %r1;
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
    mapa.shared::cluster.u32 %r6, m, %r2;
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
    let no_rank = "mapa.shared::cluster.u32 %r3, %r4, 2; st.shared::cluster.u32 [%r3], 1; ret;";
    let large_rank = "mapa.shared::cluster.u32 %r3, %r4, -1; st.shared::cluster.u32 [%r3], 1; ret;";
    let multicast = "
        .shared .align 8 .b64 m;
        mov.b16 %h1, 7;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%rd2], 16, [m], %h1;
        ret;";
    // Block 0 reads from block 1, which has exited.
    let exited = "
        setp.eq.u32 %p2, %r1, 1;
        @%p2 exit;
        nanosleep.u32 1000000;
        ld.shared::cluster.u32 %r5, [%r3];
        ret;";
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
        (
            no_block,
            FaultKind::ClusterBlockNotPresent,
            "the number of blocks of the cluster is 2",
        ),
        (
            no_rank,
            FaultKind::ClusterBlockNotPresent,
            "is of rank 2; the number of blocks of the cluster is 2",
        ),
        (
            large_rank,
            FaultKind::ClusterBlockNotPresent,
            "the number of blocks of the cluster is 2",
        ),
        (multicast, FaultKind::ClusterBlockNotPresent, "is of rank"),
        (
            exited,
            FaultKind::ClusterBlockNotPresent,
            "the block of rank 1 of the cluster has exited",
        ),
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

/// Runs a kernel in clusters of `blocks` blocks of `threads` threads, and returns the word of each thread.
fn words(body: &str, clusters: u32, blocks: u32, threads: u32) -> Result<Vec<u32>, Fault> {
    let ptx = module("", 1, &format!("{THREAD}{body}")).replace("sm_89", "sm_90");
    let grid = clusters * blocks;
    let out = Buffer::zeros((grid * threads) as usize);
    let launch = Launch {
        cluster: Some([blocks, 1, 1]),
        ..Launch::new(grid, threads)
    };
    launch.run(&ptx, &[out.addr])?;
    Ok(out.get())
}

/// Registers, and `%rd1`: the address of the word of the thread; `%r1`, `%r2`: its rank and number in the block.
const THREAD: &str = "
    .reg .pred %p<8>;
    .reg .b32 %r<24>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %cluster_ctarank;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mad.lo.u32 %r3, %r3, %r4, %r2;
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd1, %rd1, %rd2;
";

#[test]
fn a_cluster_barrier_orders_accesses_to_shared_memory() {
    // Ten times, each thread adds the value of its counterpart in the next block. Between the barriers all have the same.
    let body = "
    .shared .u32 v[64];
    mov.u32 %r5, v;
    shl.b32 %r6, %r2, 2;
    add.u32 %r5, %r5, %r6;
    mov.u32 %r7, %cluster_nctarank;
    add.u32 %r8, %r1, 1;
    rem.u32 %r8, %r8, %r7;
    mapa.shared::cluster.u32 %r8, %r5, %r8;
    add.u32 %r9, %r2, 1;
    st.shared.u32 [%r5], %r9;
    mov.u32 %r10, 0;
LOOP:
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    ld.shared::cluster.u32 %r11, [%r8];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    add.u32 %r9, %r9, %r11;
    st.shared.u32 [%r5], %r9;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p1, %r10, 10;
    @%p1 bra LOOP;
    st.global.u32 [%rd1], %r9;
    ret;";
    for (blocks, threads) in [(1, 33), (2, 64), (3, 1), (8, 47), (16, 32)] {
        let found = words(body, 40, blocks, threads).unwrap();
        let of_block: Vec<u32> = (1..=threads).map(|n| n << 10).collect();
        assert_eq!(
            found,
            of_block.repeat(40 * blocks as usize),
            "{blocks} x {threads}"
        );
    }
}

#[test]
fn threads_arrive_at_a_cluster_barrier_apart() {
    // Half of the lanes arrive early, and the others wait for them in a shuffle, in whichever order blocks run.
    let body = "
    and.b32 %r5, %r2, 1;
    setp.eq.u32 %p1, %r5, 0;
    @%p1 bra EVEN;
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    bra JOINED;
EVEN:
    mov.u32 %r6, %r1;
    barrier.cluster.arrive;
    add.u32 %r6, %r6, 1;
    barrier.cluster.wait.acquire;
JOINED:
    shfl.sync.idx.b32 %r7, %r2, 1, 31, -1;
    @!%p1 bra LATE;
    barrier.cluster.arrive;
    bra WAIT;
LATE:
    barrier.cluster.arrive;
WAIT:
    add.u32 %r7, %r7, 4;
    barrier.cluster.wait;
    st.global.u32 [%rd1], %r7;
    ret;";
    for blocks in [1, 2, 5] {
        let found = words(body, 10, blocks, 32).unwrap();
        assert_eq!(found, vec![5; 320 * blocks as usize]);
    }
}

#[test]
fn a_cluster_barrier_does_not_wait_for_threads_that_have_exited() {
    // Block 0, and every fourth thread of the others, exit; some before and some after they arrive.
    let body = "
    setp.eq.u32 %p1, %r1, 0;
    @%p1 exit;
    and.b32 %r5, %r2, 3;
    setp.eq.u32 %p2, %r5, 0;
    @%p2 exit;
    barrier.cluster.arrive;
    setp.eq.u32 %p3, %r5, 1;
    @%p3 exit;
    barrier.cluster.wait;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.global.u32 [%rd1], 1;
    ret;";
    let found = words(body, 10, 4, 64).unwrap();
    let of_block = |rank: u32| (0..64).map(move |n: u32| u32::from(rank > 0 && n % 4 > 1));
    let expected: Vec<u32> = (0..4).flat_map(of_block).collect();
    assert_eq!(found, expected.repeat(10));
}

#[test]
fn misuse_of_a_cluster_barrier_is_a_fault() {
    let twice = "barrier.cluster.arrive; barrier.cluster.arrive; ret;";
    let no_arrival = "barrier.cluster.wait; ret;";
    // Lanes 0 to 15 wait for the others, which wait for them at a barrier of the block.
    let deadlock = "
    setp.lt.u32 %p1, %r2, 16;
    @%p1 bra FIRST;
    bar.sync 0;
    ret;
FIRST:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    bar.sync 0;
    ret;";
    // Block 1 never arrives, because it waits for threads that it does not have.
    let never = "
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra OTHER;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
OTHER:
    bar.sync 0, 64;
    ret;";
    // A thread waits for its own block's other threads at the next phase.
    let ahead = "
    barrier.cluster.arrive;
    barrier.cluster.wait;
    setp.eq.u32 %p1, %r1, 1;
    @%p1 bra OTHER;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
OTHER:
    setp.lt.u32 %p1, %r2, 8;
    @%p1 bra STAYS;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    bar.sync 0;
    ret;
STAYS:
    bar.sync 0;
    ret;";
    for (body, kind, text) in [
        (
            twice,
            FaultKind::IllegalInstruction,
            "has not executed `barrier.cluster.wait`",
        ),
        (
            no_arrival,
            FaultKind::IllegalInstruction,
            "has not executed `barrier.cluster.arrive`",
        ),
        (
            deadlock,
            FaultKind::Trap,
            "deadlock of the cluster: 16 of 32 threads at barrier 0, 32 of 64 threads at barrier.cluster",
        ),
        (
            never,
            FaultKind::Trap,
            "deadlock of the block: 32 of 64 threads at barrier 0",
        ),
        (
            ahead,
            FaultKind::Trap,
            "deadlock of the cluster: 56 of 64 threads at barrier.cluster",
        ),
    ] {
        let fault = words(body, 1, 2, 32).unwrap_err();
        assert_eq!(fault.kind, kind, "{}", fault.report);
        assert!(fault.report.contains(text), "{}", fault.report);
    }
}

#[test]
fn addresses_of_variables_name_their_block() {
    // Block 0 passes the address of its variable through memory of block 1, as a generic and as a shared address.
    let body = "
    .shared .align 8 .u64 passed[2];
    .shared .u32 own;
    add.u32 %r5, %r1, 70;
    st.shared.u32 [own], %r5;
    mov.u32 %r6, own;
    cvta.shared.u64 %rd3, own;
    mapa.u64 %rd4, %rd3, 1;
    cvta.shared.u64 %rd5, passed;
    mapa.u64 %rd5, %rd5, 1;
    cvt.u64.u32 %rd6, %r6;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 st.u64 [%rd5], %rd3;
    @%p1 st.u64 [%rd5+8], %rd6;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.u64 %rd7, [%rd5];
    ld.u64 %rd8, [%rd5+8];
    cvt.u32.u64 %r7, %rd8;
    ld.u32 %r8, [%rd7];
    ld.shared::cluster.u32 %r9, [%r7];
    ld.u32 %r10, [%rd4];
    ld.shared.u32 %r11, [%r6];
    getctarank.u64 %r12, %rd7;
    getctarank.shared::cluster.u32 %r13, %r7;
    getctarank.u64 %r14, %rd4;
    getctarank.shared::cluster.u32 %r15, own;
    mad.lo.u32 %r16, %r8, 100, %r9;
    mad.lo.u32 %r16, %r16, 100, %r10;
    mad.lo.u32 %r16, %r16, 100, %r11;
    shl.b32 %r12, %r12, 3;
    shl.b32 %r13, %r13, 2;
    shl.b32 %r14, %r14, 1;
    add.u32 %r12, %r12, %r13;
    add.u32 %r14, %r14, %r15;
    add.u32 %r12, %r12, %r14;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mad.lo.u32 %r16, %r12, 100000000, %r16;
    st.global.u32 [%rd1], %r16;
    ret;";
    assert_eq!(
        words(body, 1, 2, 1).unwrap(),
        [2_70_70_71_70, 3_70_70_71_71].map(|n: u64| n as u32)
    );
}

#[test]
fn a_launch_without_clusters_has_clusters_of_one_block() {
    let body = "
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .u32 own;
    ld.param.u64 %rd1, [p0];
    st.shared.u32 [own], 7;
    mapa.shared::cluster.u32 %r1, own, 0;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared::cluster.u32 %r2, [%r1];
    getctarank.shared::cluster.u32 %r3, own;
    getctarank.shared::cluster.u32 %r4, %r1;
    st.global.v4.u32 [%rd1], {%r2, %r3, %r4, 1};
    ret;";
    let ptx = module("", 1, body).replace("sm_89", "sm_90");
    let out = Buffer::new(&[9; 4]);
    Launch::new(1, 1).run(&ptx, &[out.addr]).unwrap();
    assert_eq!(out.get(), [7, 0, 0, 1]);
}

#[test]
fn asynchronous_stores_complete_transactions_of_another_block() {
    // Each block expects 28 bytes of the other block.
    let body = "
    .shared .align 8 .b64 m;
    mbarrier.init.shared::cta.b64 [m], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], 28;
    mapa.shared::cluster.u32 %r6, m, %r2;
    st.shared.u32 [s+24], 5;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    add.u32 %r7, %r1, 40;
    add.u32 %r8, %r1, 50;
    cvt.u64.u32 %rd5, %r7;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r7, [%r6];
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r3+8], {%r7, %r8}, [%r6];
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%r3+16], %rd5, [%r6];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r3+24], %r8, [%r6];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r3+28], %r8, [%r6];
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [m], 0;
    @!%p1 bra WAIT;
    ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [s];
    st.global.v4.u32 [%rd2], {%r8, %r9, %r10, %r11};
    ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [s+16];
    st.global.v4.u32 [%rd2+16], {%r8, %r9, %r10, %r11};
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;";
    let [first, second] = two_blocks(body).unwrap();
    assert_eq!(first[..8], [41, 0, 41, 51, 41, 0, 56, 51]);
    assert_eq!(second[..8], [40, 0, 40, 50, 40, 0, 55, 50]);
}

#[test]
fn a_multicast_copy_reaches_the_blocks_of_its_mask() {
    // Block 1 copies the flags `p0` to blocks 0 and 2 of four; each of these waits for them.
    let body = "
    .reg .b16 %h<2>;
    .shared .align 16 .b32 got[4];
    .shared .align 8 .b64 m;
    mbarrier.init.shared::cta.b64 [m], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], 16;
    mov.u64 %rd3, 0;
    st.shared.v2.u64 [got], {%rd3, %rd3};
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    ld.param.u64 %rd3, [p0];
    setp.eq.u32 %p1, %r1, 1;
    @!%p1 bra COPIED;
    st.global.u32 [%rd3], 12;
    mov.b16 %h1, 5;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [got], [%rd3], 16, [m], %h1;
    bra DONE;
COPIED:
    setp.eq.u32 %p2, %r1, 3;
    @%p2 bra DONE;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [m], 0;
    @!%p3 bra WAIT;
DONE:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared.u32 %r8, [got];
    st.global.u32 [%rd1], %r8;
    ret;";
    assert_eq!(words(body, 1, 4, 1).unwrap(), [12, 0, 12, 0]);
}
