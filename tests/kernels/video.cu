// Packed and video instructions: out has one row of n for each expression.
extern "C" __global__ void packed(const unsigned* a, const unsigned* b, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i], r;
    int k = 0;
#define PUT(e) out[(k++) * n + i] = (unsigned)(e)
#define ONE(text) asm(text : "=r"(r) : "r"(x), "r"(y)); PUT(r)
    PUT(__dp4a((int)x, (int)y, 5)); PUT(__dp4a(x, y, 5u)); PUT(__dp2a_lo((int)x, (int)y, 5)); PUT(__dp2a_hi(x, y, 5u));
    ONE("dp4a.u32.s32 %0, %1, %2, 9;");
    PUT(__vadd2(x, y)); PUT(__vadd4(x, y)); PUT(__vsub2(x, y)); PUT(__vabsdiffu4(x, y)); PUT(__vmaxs2(x, y)); PUT(__vminu4(x, y)); PUT(__vcmpeq4(x, y));
    PUT(__vavgu4(x, y)); PUT(__vsadu4(x, y)); PUT(__vaddss2(x, y)); PUT(__vimax_s16x2_relu(x, y)); PUT(__viaddmax_s32(x, y, 3));
    ONE("vadd.s32.s32.s32 %0, %1.b0, %2.h1;"); ONE("vsub.u32.s32.s32.add %0, %1, %2.b3, 7;");
    ONE("vabsdiff4.u32.u32.u32.add %0, %1, %2, %1;"); ONE("vmad.s32.s32.s32.shr7 %0, %1.h0, %2.h1, 11;"); ONE("vset4.u32.u32.ge %0, %1, %2, %1;");
    ONE("vmax.s32.s32.s32 %0, %1.h0, %2.h0;"); ONE("vmin.u32.u32.u32 %0.h1, %1.b1, %2.b2, 77;"); ONE("vshl.u32.u32.u32.clamp %0, %1, %2;"); ONE("vshr.s32.s32.u32.wrap %0, %1, %2;");
    ONE("vadd2.s32.s32.s32 %0.h10, %1.h32, %2.h10, %1;"); ONE("vavrg4.u32.u32.u32 %0, %1.b3210, %2.b7654, %2;"); ONE("vset.s32.u32.lt %0, %1, %2;");
}
