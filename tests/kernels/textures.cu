// Texture and surface objects.
extern "C" __global__ void sample(cudaTextureObject_t t1, cudaTextureObject_t t2, cudaTextureObject_t t3, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float u = (i + 0.5f) / n;
    out[i] = tex1Dfetch<float>(t1, i);
    out[n + i] = tex2D<float>(t2, u, 0.25f);
    float4 v = tex3D<float4>(t3, u, u, u);
    out[2 * n + i] = v.x + v.w;
    out[3 * n + i] = tex2DLod<float>(t2, u, u, 1.0f);
    out[4 * n + i] = tex2DLayered<unsigned>(t2, u, u, 3);
    out[5 * n + i] = tex2DGrad<float>(t2, u, u, make_float2(0.1f, 0.0f), make_float2(0.0f, 0.1f));
    out[6 * n + i] = texCubemap<float>(t3, u, 0.5f, 0.25f);
    out[7 * n + i] = tex2Dgather<float4>(t2, u, u, 1).y;
}

extern "C" __global__ void surfaces(cudaSurfaceObject_t s, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    unsigned v;
    surf2Dread(&v, s, x * 4, y);
    surf2Dwrite(v + 1, s, x * 4, y);
    surf2Dwrite(make_uchar4(1, 2, 3, 4), s, x * 4, y, cudaBoundaryModeClamp);
    unsigned short q;
    surf1Dread(&q, s, x * 2, cudaBoundaryModeZero);
    surf3Dwrite(q, s, x * 2, y, 0);
}
