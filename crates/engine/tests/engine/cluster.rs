//! Clusters: their special registers, blocks that are resident together.

use cupyrite_engine::FaultKind;

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
