# Compiled by test_extension.py against the declarations of the Cython modules.
cimport cuda.bindings.cydriver as cydriver
cimport cuda.bindings.cyruntime as cyruntime
cimport cuda.bindings.cynvrtc as cynvrtc
from cuda.bindings.cyruntime cimport cudaError_t, cudaMemcpyKind, cudaMalloc, cudaExtent
cimport cuda.bindings.cycudla as cycudla
cimport cuda.bindings.cynvml as cynvml
def run():
    cdef cydriver.CUresult r
    cdef int v = 0, a = 0, b = 0, n = 7, back = 0
    cdef void *p = NULL
    with nogil:
        r = cydriver.cuInit(0)
        r = cydriver.cuDriverGetVersion(&v)
    assert r == cydriver.CUresult.CUDA_SUCCESS and r == cydriver.CUDA_SUCCESS and v >= 12000
    cdef cudaError_t e = cudaMalloc(&p, 4)
    assert e == cyruntime.cudaSuccess == cyruntime.cudaError.cudaSuccess
    e = cyruntime.cudaMemcpy(p, &n, 4, cudaMemcpyKind.cudaMemcpyHostToDevice)
    assert e == 0
    e = cyruntime.cudaMemcpy(&back, p, 4, cyruntime.cudaMemcpyDeviceToHost)
    assert e == 0 and back == 7
    e = cyruntime.cudaFree(p)
    assert e == 0
    e = cyruntime.cudaFree(<void*>12345)
    assert e == cyruntime.cudaErrorInvalidValue
    assert cynvrtc.nvrtcVersion(&a, &b) == cynvrtc.NVRTC_SUCCESS and a >= 12
    cdef cudaExtent x = cyruntime.make_cudaExtent(1, 2, 3)
    assert (x.width, x.height, x.depth) == (1, 2, 3)
    cdef cydriver.CUDA_MEMCPY2D m
    m.WidthInBytes = 3
    cdef cyruntime.cudaPointerAttributes at
    e = cyruntime.cudaPointerGetAttributes(&at, &n)
    assert e == 0
    cdef cydriver.CUeglFrame f
    f.frame.pArray[0] = NULL
    cdef cydriver.CUkernelNodeAttrValue av
    av.clusterDim.x = 1
    cdef cydriver.CUlaunchConfig lc
    lc.hStream = <cydriver.CUstream>cydriver.CU_STREAM_LEGACY
    # Layouts that the declarations define themselves, and one of the header.
    assert (sizeof(m), sizeof(f), sizeof(cynvml.nvmlMemory_v2_t)) == (128, 64, 40)
    assert at.type == cyruntime.cudaMemoryTypeUnregistered
    assert cydriver.CU_STREAM_LEGACY == 1
def missing():
    cycudla.cudlaGetVersion(NULL)
def missing_nogil():
    with nogil:
        cycudla.cudlaGetVersion(NULL)
