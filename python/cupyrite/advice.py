"""What to do about the statuses that programs meet most and the doctor's problems, for `cupyrite explain`.

Keys are C names. A status of the runtime API without an entry has that of the driver's status of the same value: the two
number their common errors alike. `{program}` is the command as the user started it.
"""

UNUSABLE = (
    "The context is unusable from then on: every later call returns the same status, also where nothing is wrong with it. "
    "Look for the first call that failed, and continue in a new process."
)
LATE = (
    "Kernels run asynchronously: the call that returned this is often a later one. CUDA_LAUNCH_BLOCKING=1 makes the launch "
    "itself wait and fail."
)
ON_CPU = (
    "Run the program on the CPU device: it stops at the instruction and prints kernel, block, thread and address, and the source line "
    "if the kernel was compiled with line information: {program} run --device cpu PROGRAM"
)
INSTALL = "{program} doctor shows which driver and libraries are found, and the command that fixes what is missing."

ADVICE = {
    "CUDA_ERROR_INVALID_VALUE": (
        "Check the arguments of the call that failed: null or freed pointers, sizes beyond an allocation, the type and "
        "number of kernel arguments, flags that exclude each other.",
    ),
    "CUDA_ERROR_OUT_OF_MEMORY": (
        "Free what is no longer needed, or use smaller batches. cuMemGetInfo returns free and total memory; on a GPU, nvidia-smi "
        "shows what other processes use.",
        "Memory of a pool stays reserved until the pool is trimmed (cuMemPoolTrimTo).",
        "On the CPU device: CUPYRITE_CPU_MEMORY limits it ({program} explain CUPYRITE_CPU_MEMORY).",
    ),
    "CUDA_ERROR_NOT_INITIALIZED": (
        "Call cuInit(0) before any other driver call. cuda.core does it.",
        "After os.fork() the child process cannot use the driver of its parent: start processes with "
        'multiprocessing.get_context("spawn").',
    ),
    "CUDA_ERROR_DEINITIALIZED": (
        "A call was made while the process exits, for example in a destructor of a global object. Release CUDA objects "
        "before the program ends.",
    ),
    "CUDA_ERROR_STUB_LIBRARY": (
        "A toolkit's libcuda.so for linking (in a folder `stubs`) was loaded in place of the driver. Remove that folder from "
        "LD_LIBRARY_PATH.",
        INSTALL,
    ),
    "CUDA_ERROR_NO_DEVICE": (
        "Check CUDA_VISIBLE_DEVICES: an empty value and -1 hide all devices. In a container, pass the GPU into it "
        "(docker run --gpus all).",
        "Without a GPU: CUPYRITE_DEVICE=cpu selects the CPU device.",
        INSTALL,
    ),
    "CUDA_ERROR_INVALID_DEVICE": (
        "cuDeviceGetCount returns the number of devices; ordinals begin at 0. CUDA_VISIBLE_DEVICES renumbers them.",
        "The CPU device is one device by default: CUPYRITE_CPU_DEVICES=2 makes it two.",
    ),
    "CUDA_ERROR_INVALID_IMAGE": (
        "The module is neither PTX, a cubin nor a fat binary, or it is damaged. PTX must be complete text; pass the bytes "
        "that the compiler returned.",
    ),
    "CUDA_ERROR_INVALID_CONTEXT": (
        "Make a context current in this thread: Device().set_current() of cuda.core, or cuCtxSetCurrent. Each thread has its own "
        "current context.",
        "Objects of a destroyed context can no longer be used.",
    ),
    "CUDA_ERROR_NO_BINARY_FOR_GPU": (
        "Compile for this device's compute capability, or to PTX, which the driver compiles for any later one.",
        "The CPU device runs PTX only: compile with --gpu-architecture=compute_89 instead of sm_89, or through Cupyrite's modules, "
        "whose cubins carry their PTX.",
    ),
    "CUDA_ERROR_INVALID_PTX": (
        "The driver's log names the line. cuda.core appends it to the message; with cuModuleLoadDataEx pass "
        "CU_JIT_ERROR_LOG_BUFFER. For NVRTC's output it may mean that the driver is older than NVRTC.",
    ),
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": (
        "The compiler is newer than the driver. Update the driver, install the compiler of the driver's CUDA version, or "
        "compile to a cubin (sm_89 instead of compute_89).",
        INSTALL,
    ),
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": (
        "The driver's libnvidia-ptxjitcompiler.so is missing. In a container, pass all of the driver into it; else install the driver again.",
    ),
    "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED": (INSTALL,),
    "CUDA_ERROR_INVALID_HANDLE": (
        "The handle was destroyed, belongs to another context, or is of another kind. Check that the object is not closed before "
        "its last use.",
    ),
    "CUDA_ERROR_NOT_FOUND": (
        'The module has no symbol of that name. Without extern "C", a C++ kernel has a mangled name: add extern "C", or compile '
        "with name_expressions and ask for the lowered name. A __device__ variable without a reference may be removed.",
    ),
    "CUDA_ERROR_NOT_READY": (
        "No failure: the stream or event has work left. Wait for it (cuStreamSynchronize, cuEventSynchronize) or ask again later.",
    ),
    "CUDA_ERROR_ILLEGAL_ADDRESS": (
        "A kernel accessed memory outside of an allocation, or memory that was freed. Check the index against the length "
        "(if (i < n)), the types of the kernel's arguments, and that buffers live until the kernel has completed.",
        LATE,
        ON_CPU,
        "On a GPU: compute-sanitizer PROGRAM, of the CUDA toolkit.",
        UNUSABLE,
    ),
    "CUDA_ERROR_MISALIGNED_ADDRESS": (
        "An access of 2, 4, 8 or 16 bytes must have an address that is a multiple of its size: check casts to wider types such as float4.",
        ON_CPU,
        UNUSABLE,
    ),
    "CUDA_ERROR_ASSERT": (
        "An assert() in a kernel failed. Its message, with file, line, block and thread, is on standard error.",
        UNUSABLE,
    ),
    "CUDA_ERROR_LAUNCH_FAILED": (
        "The kernel executed trap, or failed in a way that has no status of its own.",
        LATE,
        ON_CPU,
        UNUSABLE,
    ),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": (LATE, UNUSABLE),
    "CUDA_ERROR_HARDWARE_STACK_ERROR": (
        "Recursion or large local arrays exceeded a thread's stack: raise CU_LIMIT_STACK_SIZE (cuCtxSetLimit).",
        UNUSABLE,
    ),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": (
        "A block needs more than a multiprocessor has: use fewer threads a block, less shared memory, or fewer registers a "
        "thread (__launch_bounds__, maxrregcount). cuFuncGetAttribute with CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK returns "
        "what this kernel allows.",
    ),
    "CUDA_ERROR_LAUNCH_TIMEOUT": (
        "A GPU that drives a display stops long kernels: split the work, or use another GPU. An endless loop gives the same.",
        UNUSABLE,
    ),
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": (
        "All blocks of a cooperative launch must be resident at once: at most "
        "cuOccupancyMaxActiveBlocksPerMultiprocessor times the number of multiprocessors.",
    ),
    "CUDA_ERROR_NOT_PERMITTED": (
        "Host functions and callbacks of a stream must not call CUDA functions that wait. Otherwise see the call's page in the manual.",
    ),
    "CUDA_ERROR_NOT_SUPPORTED": (
        "The device or the driver lacks the feature: query the device attribute that belongs to it.",
        "On the CPU device: {program} explain cpu-device lists the functions that it lacks; CUDA_LOG_FILE=stderr prints the reason.",
    ),
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": (
        "The driver library and the kernel module have different versions: restart the machine after an update of the driver.",
        INSTALL,
    ),
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": (
        "While a stream is captured, calls that wait, allocate, free or unload are refused and invalidate the capture. Make them "
        "before it begins, or use their stream-ordered forms.",
    ),
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": (
        "An earlier call during the capture was refused. Its status names the reason; end the capture and begin again.",
    ),
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": (
        "A stream that joined the capture has work that the first one does not wait for: record an event in it, and let the "
        "first stream wait for that event before the capture ends.",
    ),
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": (
        "The legacy default stream was used during a capture. Use a stream of your own, or a non-blocking one.",
    ),
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": (
        "The context of the object was destroyed or reset. Create the objects again in a new context.",
    ),
    "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED": (
        "cuDeviceCanAccessPeer tells which devices can access each other; otherwise copy through host memory.",
    ),
    "CUDA_ERROR_UNKNOWN": (INSTALL, "On a GPU, the kernel log (dmesg, lines with Xid) may name the cause."),
    "cudaErrorInvalidConfiguration": (
        "Blocks have at most 1,024 threads, grids at least one block, and shared memory a limit: check grid and block of the launch.",
    ),
    "cudaErrorInsufficientDriver": (
        "Install NVIDIA's driver, or a newer one. Without a GPU: CUPYRITE_DEVICE=cpu selects the CPU device.",
        INSTALL,
    ),
    "cudaErrorInvalidDeviceFunction": ("Compile for this device's compute capability; check the kernel's name.",),
    "NVRTC_ERROR_COMPILATION": (
        "The compiler's log names file and line: cuda.core has it in the message; in cuda.bindings call nvrtcGetProgramLog.",
        "A missing header: headers of the toolkit are installed with cupyrite[all]. Headers of the C++ library do not exist for NVRTC; "
        "<cuda/std/...> has device versions.",
    ),
    "NVRTC_ERROR_INVALID_OPTION": (
        'Each option is one string: "--gpu-architecture=compute_89", or the option and its value as two strings. NVRTC\'s log '
        "names the option.",
    ),
    "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE": (
        "libnvrtc-builtins must be of NVRTC's version and beside it: install nvidia-cuda-nvrtc again.",
        INSTALL,
    ),
    "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID": (
        "Add each name with nvrtcAddNameExpression before compiling, spelled as it is asked for later.",
    ),
    "NVJITLINK_ERROR_PTX_COMPILE": (
        "nvJitLink's error log names the line: nvJitLinkGetErrorLog, Linker.get_error_log().",
    ),
    "NVJITLINK_ERROR_MISSING_ARCH": ("Pass the option -arch=sm_89, with the device's compute capability.",),
    "NVJITLINK_ERROR_LTO_NOT_ENABLED": ("Pass the option -lto to the linker, or compile without --dlto.",),
    "NVML_ERROR_UNINITIALIZED": ("Call nvmlInit_v2 (init_v2 in cuda.bindings.nvml) before any other function.",),
    "NVML_ERROR_NOT_SUPPORTED": (
        "This device does not have the value. Catch NotSupportedError where it is optional; the CPU device has few of them.",
    ),
    "NVML_ERROR_NO_PERMISSION": ("Settings of a GPU need root, or an administrator who allows them.",),
    "NVML_ERROR_LIBRARY_NOT_FOUND": ("libnvidia-ml.so.1 comes with NVIDIA's driver.", INSTALL),
    "NVML_ERROR_DRIVER_NOT_LOADED": ("The kernel module nvidia is not loaded: nvidia-smi, lsmod.", INSTALL),
}

NEWER_DRIVER = "Install a newer driver of NVIDIA."
ON_CPU_DEVICE = "Or use the CPU device: CUPYRITE_DEVICE=cpu."
KERNEL_LOG = "The kernel log may name the cause: sudo dmesg | grep -iE 'nvrm|xid'."
NVRTC_AGAIN = "Install NVRTC again: pip install --force-reinstall --no-deps nvidia-cuda-nvrtc. If CUPYRITE_LIB_NVRTC names another file, unset it."
STAND_IN = "To use Cupyrite: {program} stand-in. It needs no network."
WHEEL_AGAIN = "Install Cupyrite's wheel again from where it came: pip install --force-reinstall --no-deps WHEEL."

#: What to do about the doctor's problems, by their codes: what holds on every machine.
PROBLEMS = {
    "hang": (
        "Try NVIDIA's own tool: if nvidia-smi hangs too, the driver is the cause, and a restart of the machine may help.",
        "On a slow machine: {program} doctor --deadline 300.",
        ON_CPU_DEVICE,
    ),
    "crash": (
        "The report names the library that crashed: install that package again. A driver that crashes: restart the machine, then "
        "install the driver again.",
        ON_CPU_DEVICE,
    ),
    "interrupted": ("Run {program} doctor again and let it finish.",),
    "driver-missing": (
        "Install NVIDIA's driver with the system's package manager; on WSL install it on Windows.",
        "In a container, pass the GPU into it: docker run --gpus all, or podman run --device nvidia.com/gpu=all.",
        ON_CPU_DEVICE,
    ),
    "driver-broken": (
        "If CUPYRITE_LIB_CUDA names the file, unset it. Otherwise install NVIDIA's driver again.",
        ON_CPU_DEVICE,
    ),
    "driver-fails": (
        "{program} explain STATUS, with the status in the report, says what it means. nvidia-smi shows whether NVIDIA's own tool works.",
        ON_CPU_DEVICE,
    ),
    "no-device": (
        "If CUDA_VISIBLE_DEVICES is set, unset it. In a container, pass the GPU into it: docker run --gpus all.",
        "See what is there and who may open it: ls -l /dev/nvidia*; lspci -d 10de:",
        ON_CPU_DEVICE,
    ),
    "driver-mismatch": (
        "After an update of the driver, restart the machine. In a container, the host's driver counts: start the container anew.",
        ON_CPU_DEVICE,
    ),
    "driver-stub": (
        "Remove the toolkit's folder `stubs` from LD_LIBRARY_PATH, or unset CUPYRITE_LIB_CUDA if it names the file.",
        ON_CPU_DEVICE,
    ),
    "driver-too-old": (NEWER_DRIVER, ON_CPU_DEVICE),
    "driver-older": (
        "Install an NVRTC that is not newer than the driver's CUDA: pip install 'nvidia-cuda-nvrtc-cu12<=12.8.9999' for CUDA 12.8; where "
        "CUDA 13 stays installed, also set CUPYRITE_CUDA_MAJOR=12.",
        "Or install a newer driver of NVIDIA.",
    ),
    "gpu-without-driver": (
        "To use the GPU, install NVIDIA's driver; in a container, pass the GPU into it (docker run --gpus all).",
        "To keep the CPU device without this warning: CUPYRITE_DEVICE=cpu.",
    ),
    "device-setting": ("Unset CUPYRITE_DEVICE, or set it to auto, gpu or cpu.",),
    "cpu-device-missing": (WHEEL_AGAIN,),
    "cpu-device-fails": (
        "Unset CUPYRITE_CPU_DEVICES, CUPYRITE_CPU_COMPUTE_CAPABILITY, CUPYRITE_CPU_MEMORY and CUPYRITE_CPU_THREADS, or correct the one that the "
        "report names: {program} explain NAME says which values are allowed.",
    ),
    "nvrtc-missing": (
        "pip install nvidia-cuda-nvrtc, or in a conda environment: conda install -c conda-forge cuda-nvrtc.",
        "An installed one in another place: CUPYRITE_LIB_NVRTC=/path/to/libnvrtc.so.13.",
    ),
    "nvrtc-broken": (NVRTC_AGAIN,),
    "nvrtc-setting": ("Unset CUPYRITE_LIB_NVRTC and CUPYRITE_CUDA_MAJOR, or correct the one that the report names.",),
    "nvrtc-incomplete": (NVRTC_AGAIN,),
    "nvrtc-architecture": (
        "GPUs before compute capability 7.5 need CUDA 12: pip install --upgrade nvidia-cuda-nvrtc-cu12. For a GPU that is newer than "
        "NVRTC: pip install --upgrade nvidia-cuda-nvrtc.",
    ),
    "nvrtc-fails": (NVRTC_AGAIN,),
    "compile-fails": (NVRTC_AGAIN,),
    "load-fails": (KERNEL_LOG, ON_CPU_DEVICE),
    "launch-fails": (KERNEL_LOG, ON_CPU_DEVICE),
    "result-wrong": (
        "On a GPU: " + KERNEL_LOG[0].lower() + KERNEL_LOG[1:] + " On the CPU device, report it as a bug of Cupyrite.",
        ON_CPU_DEVICE,
    ),
    "ptx-fails": (NVRTC_AGAIN,),
    "library-broken": (
        "Install the package of the library again. If a variable CUPYRITE_LIB_ names the file, unset it.",
    ),
    "majors-mixed": (
        "Install the packages of one CUDA version for all libraries, or take CUDA 12 for everything: CUPYRITE_CUDA_MAJOR=12.",
    ),
    "two-majors": ("Nothing to do, unless the other version is wanted: CUPYRITE_CUDA_MAJOR=12 or 13.",),
    "headers-differ": (
        "Install headers of NVRTC's version: pip install 'nvidia-cuda-runtime==13.5.*' for NVRTC 13.5.",
    ),
    "peer-mixed": (
        STAND_IN,
        "To use NVIDIA's: pip uninstall cupyrite, then install its packages again with --force-reinstall --no-deps.",
    ),
    "stand-in-missing": (STAND_IN,),
    "peer-first": (
        "Remove the folder with NVIDIA's packages from PYTHONPATH, or uninstall them there.",
        STAND_IN,
    ),
    "peer-overwritten": (
        STAND_IN,
        "To use NVIDIA's: pip uninstall cupyrite, then install its packages again with --force-reinstall --no-deps.",
    ),
    "peer-installed": ("Nothing to do. So that it stays so, uninstall NVIDIA's packages from that folder.",),
    "cuda-shadowed": ("An old cuda-python: pip uninstall cuda-python. A folder or file of your own: rename it.",),
    "module-shadowed": ("Remove or rename that file, or start Python from another folder.",),
    "files-damaged": (WHEEL_AGAIN, STAND_IN),
    "native-module": (WHEEL_AGAIN,),
    "version-mixed": (WHEEL_AGAIN, STAND_IN),
    "two-copies": (
        "Uninstall the one that is not wanted, or remove its folder from PYTHONPATH. Two versions in one folder: pip uninstall cupyrite, "
        "then install it again.",
    ),
    "client-without-run": ("Start the program with {program} run --device cpu PROGRAM.",),
    "numpy-missing": ("pip install numpy",),
    "variable-path": ("Unset the variable, or set it to an existing file or folder.",),
    "variable-relative": ("Set the variable to an absolute path, or unset it.",),
    "variable-value": ("Unset the variable, or correct it: {program} explain NAME says which values are allowed.",),
    "variable-unknown": ("Unset the variable, or correct its name: {program} explain environment lists all.",),
    "toolkits-differ": ("Unset CUDA_HOME or CUDA_PATH, or let both name the same folder.",),
}
