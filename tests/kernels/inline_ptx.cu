// Inline PTX: scopes, predicates, carries, vectors, labels.
extern "C" __global__ void carries(const unsigned* a, const unsigned* b, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned r0, r1, r2, s0, s1, s2;
    asm("add.cc.u32 %0, %3, %6;\n\taddc.cc.u32 %1, %4, %7;\n\taddc.u32 %2, %5, %8;"
        : "=&r"(r0), "=&r"(r1), "=r"(r2) : "r"(a[3 * i]), "r"(a[3 * i + 1]), "r"(a[3 * i + 2]), "r"(b[3 * i]), "r"(b[3 * i + 1]), "r"(b[3 * i + 2]));
    asm("sub.cc.u32 %0, %3, %6;\n\tsubc.cc.u32 %1, %4, %7;\n\tsubc.u32 %2, %5, %8;"
        : "=&r"(s0), "=&r"(s1), "=r"(s2) : "r"(a[3 * i]), "r"(a[3 * i + 1]), "r"(a[3 * i + 2]), "r"(b[3 * i]), "r"(b[3 * i + 1]), "r"(b[3 * i + 2]));
    out[6 * i] = r0; out[6 * i + 1] = r1; out[6 * i + 2] = r2;
    out[6 * i + 3] = s0; out[6 * i + 4] = s1; out[6 * i + 5] = s2;
    unsigned lo, hi;
    asm("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, 0;" : "=&r"(lo), "=r"(hi) : "r"(a[3 * i]), "r"(b[3 * i]), "r"(a[3 * i + 1]));
    out[6 * n + 2 * i] = lo; out[6 * n + 2 * i + 1] = hi;
}

extern "C" __global__ void scoped(const int* in, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r, q;
    // The same names and the same label in two scopes.
    asm volatile("{\n\t.reg .pred p;\n\t.reg .b32 t<3>;\n\tsetp.gt.s32 p, %1, 0;\n\tmov.b32 t0, 10;\n\tselp.b32 t1, t0, -10, p;\n\t"
                 "@!p bra DONE;\n\tadd.s32 t1, t1, %1;\nDONE:\n\tmov.b32 %0, t1;\n}" : "=r"(r) : "r"(v));
    asm volatile("{\n\t.reg .pred p;\n\t.reg .b32 t<3>;\n\tsetp.gt.s32 p, %1, 5;\n\tmov.b32 t0, 20;\n\tselp.b32 t1, t0, -20, p;\n\t"
                 "@!p bra DONE;\n\tadd.s32 t1, t1, %1;\nDONE:\n\tmov.b32 %0, t1;\n}" : "=r"(q) : "r"(v));
    out[i] = r;
    out[n + i] = q;
}

extern "C" __global__ void bits(const unsigned* a, const unsigned* b, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], r;
    int k = 0;
#define ONE(text) asm(text : "=r"(r) : "r"(x), "r"(y)); out[(k++) * n + i] = r
    ONE("bfe.u32 %0, %1, 5, 9;"); ONE("bfe.s32 %0, %1, 5, 9;"); ONE("bfe.u32 %0, %1, %2, 7;"); ONE("bfi.b32 %0, %1, %2, 4, 12;");
    ONE("bfind.u32 %0, %1;"); ONE("bfind.s32 %0, %1;"); ONE("bfind.shiftamt.u32 %0, %1;"); ONE("lop3.b32 %0, %1, %2, 0x0f0f3355, 0x96;");
    ONE("prmt.b32 %0, %1, %2, 0x7531;"); ONE("prmt.b32.f4e %0, %1, %2, 3;"); ONE("prmt.b32.b4e %0, %1, %2, 2;"); ONE("prmt.b32.rc8 %0, %1, %2, 1;");
    ONE("prmt.b32.ecl %0, %1, %2, 2;"); ONE("prmt.b32.ecr %0, %1, %2, 1;"); ONE("prmt.b32.rc16 %0, %1, %2, 1;"); ONE("prmt.b32 %0, %1, %2, 0x9b8f;");
    ONE("shf.l.clamp.b32 %0, %1, %2, 37;"); ONE("shf.r.wrap.b32 %0, %1, %2, 37;"); ONE("shl.b32 %0, %1, 33;"); ONE("shr.s32 %0, %1, 40;");
    ONE("cnot.b32 %0, %1;"); ONE("popc.b32 %0, %1;"); ONE("fns.b32 %0, %1, 0, 2;"); ONE("szext.clamp.s32 %0, %1, 9;"); ONE("bmsk.clamp.b32 %0, 3, 9;");
    ONE("mul24.lo.s32 %0, %1, %2;"); ONE("mul24.hi.u32 %0, %1, %2;"); ONE("mad24.lo.s32 %0, %1, %2, 7;"); ONE("sad.u32 %0, %1, %2, 3;");
    ONE("{ .reg .pred p, q; setp.lt.and.u32 p|q, %1, %2, 1; selp.u32 %0, 1, 2, q; }"); ONE("set.lt.u32.s32 %0, %1, %2;"); ONE("slct.u32.s32 %0, 5, 6, %1;");
    ONE("{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l}; }"); ONE("{ .reg .v4 .b8 v; mov.u32 %0, %1; }"); ONE("add.sat.s32 %0, %1, %2;");
}

extern "C" __global__ void vectors(const uint4* in, uint4* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a, b, c, d;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4+0];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in + i));
    asm volatile("st.global.v4.u32 [%4], {%3, %2, %1, %0};" : : "r"(a), "r"(b), "r"(c), "r"(d), "l"(out + i) : "memory");
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2+8];" : "=r"(a), "=r"(b) : "l"(in + i));
    asm volatile("st.global.cs.u32 [%0], %1;\n\tred.global.add.u32 [%0], %2;\n\tred.relaxed.gpu.global.max.u32 [%0+4], %2;" : : "l"(out + i), "r"(a), "r"(b) : "memory");
}

// A jump table and a named barrier.
extern "C" __global__ void branch_table(int* out)
{
    int r, t = threadIdx.x & 3;
    asm volatile("{\n\tTS: .branchtargets L0, L1, L2, L3;\n\tbrx.idx %1, TS;\n"
                 "L0: mov.u32 %0, 100; bra.uni L4;\nL1: mov.u32 %0, 200; bra L4;\nL2: mov.u32 %0, 300; bra L4;\nL3: mov.u32 %0, 400;\nL4:\n}" : "=r"(r) : "r"(t));
    asm volatile("barrier.sync 1;\n\tbar.sync 2, %0;" : : "r"(blockDim.x) : "memory");
    out[threadIdx.x] = r;
}

extern "C" __global__ void constants(double* out)
{
    double d; float f; unsigned u; long long l; unsigned p;
    asm("mov.f64 %0, 0d400921FB54442D18;" : "=d"(d)); out[0] = d;
    asm("mov.f32 %0, 0f3FC00000;" : "=f"(f)); out[1] = f;
    asm("mov.f32 %0, 2.5;" : "=f"(f)); out[2] = f;
    asm("mov.f64 %0, -1.5e3;" : "=d"(d)); out[3] = d;
    asm("mov.u32 %0, 0x10 + 3 * (4 - 1);" : "=r"(u)); out[4] = u;
    asm("mov.s64 %0, -(1 << 40);" : "=l"(l)); out[5] = (double)l;
    asm("mov.u32 %0, WARP_SZ;" : "=r"(u)); out[6] = u;
    asm("mov.u32 %0, 0b1011;" : "=r"(u)); out[7] = u;
    asm("mov.u32 %0, 017;" : "=r"(u)); out[8] = u;
    asm("mov.u32 %0, 3U > 2 ? 8 : 9;" : "=r"(u)); out[9] = u;
    asm("{ .shared .align 8 .b8 here[16]; mov.u32 %0, here; mov.u32 %1, here+8; }" : "=r"(u), "=r"(p)); out[10] = p - u;
}
