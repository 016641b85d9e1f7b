"""An object closed by one thread while another uses it is destroyed by the last use, without the GIL: the driver may
wait.

A driver that does nothing serves here: its calls can be suspended, and it observes who holds the GIL.
"""

import shutil
import subprocess
import textwrap

import pytest

from helpers.programs import output

DRIVER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
typedef unsigned long long u64;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int stop, stopped;
static _Thread_local u64 context;
static u64 next = 0x10000;
/* Observed calls: with the GIL, without it. */
int with_gil, without_gil;

static int ok(void) { return 0; }
static int give(u64 *out) { *out = next += 0x1000; return 0; }
static int one(int *out) { *out = 1; return 0; }
static int zero(int *out) { *out = 0; return 0; }
static int version(int *out) { *out = 13000; return 0; }
static int get_context(u64 *out) { *out = context; return 0; }
static int set_context(u64 value) { context = value; return 0; }
static int retain(u64 *out) { *out = 0x5000; return 0; }
static int capturing(u64 stream, int *out) { (void)stream; *out = 0; return 0; }

/* Calls that block until released. */
static int use(void)
{
    pthread_mutex_lock(&lock);
    if (stop) {
        stopped = 1;
        pthread_cond_broadcast(&changed);
        while (stop)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static int watch(void)
{
    int (*holds)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
    *(!holds || holds() ? &with_gil : &without_gil) += 1;
    return 0;
}

/* A kernel without parameters. */
static int parameter(void) { watch(); return 1; }

void fake_stop(void)
{
    pthread_mutex_lock(&lock);
    stop = 1;
    stopped = 0;
    pthread_mutex_unlock(&lock);
}

void fake_wait(void)
{
    pthread_mutex_lock(&lock);
    while (!stopped)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void fake_go(void)
{
    pthread_mutex_lock(&lock);
    stop = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static const struct { const char *name; void *function; } KNOWN[] = {
    {"cuDriverGetVersion", version}, {"cuDeviceGetCount", one}, {"cuDeviceGet", zero}, {"cuDeviceGetAttribute", one},
    {"cuCtxGetCurrent", get_context}, {"cuCtxSetCurrent", set_context}, {"cuCtxPushCurrent", set_context},
    {"cuCtxGetDevice", zero}, {"cuDevicePrimaryCtxRetain", retain}, {"cuStreamCreate", give}, {"cuEventCreate", give},
    {"cuDeviceGetMemPool", give}, {"cuDeviceGetDefaultMemPool", give}, {"cuMemAllocFromPoolAsync", give},
    {"cuStreamIsCapturing", capturing}, {"cuStreamSynchronize", use}, {"cuEventSynchronize", use}, {"cuEventQuery", use},
    {"cuEventRecord", use}, {"cuStreamWaitEvent", use}, {"cuMemsetD8Async", use}, {"cuMemcpyAsync", use},
    {"cuMemcpyWithAttributesAsync", use}, {"cuStreamDestroy", watch}, {"cuEventDestroy", watch},
    {"cuLibraryLoadData", give}, {"cuLibraryGetKernel", give}, {"cuKernelGetParamInfo", parameter}, {"cuLaunchKernel", use},
};

int cuGetProcAddress_v2(const char *name, void **function, int wanted, u64 flags, int *status)
{
    (void)wanted, (void)flags;
    *function = strcmp(name, "cuGetProcAddress") ? (void *)ok : (void *)cuGetProcAddress_v2;
    for (unsigned n = 0; n < sizeof KNOWN / sizeof *KNOWN; n++)
        if (strcmp(name, KNOWN[n].name) == 0)
            *function = KNOWN[n].function;
    if (status)
        *status = 0;
    return 0;
}

int cuGetProcAddress(const char *name, void **function, int wanted, u64 flags)
{
    return cuGetProcAddress_v2(name, function, wanted, flags, 0);
}

int cuInit(unsigned flags) { (void)flags; return 0; }
int cuDriverGetVersion(int *out) { return version(out); }
"""

PROGRAM = """
    import ctypes, sys
    from helpers.threads import join_all
    import threading
    from cuda.core import Device, LaunchConfig, ObjectCode, launch
    fake = ctypes.CDLL({driver!r})
    device = Device(0)
    device.set_current()
    count = lambda: [ctypes.c_int.in_dll(fake, name).value for name in ("with_gil", "without_gil")]
    kept, stream = device.create_stream(), device.create_stream()
    event, buffer, other = stream.record(), device.allocate(64, stream=kept), device.allocate(64, stream=kept)
    kernel, one = ObjectCode.from_ptx(b".version 8.0").get_kernel("k"), LaunchConfig(grid=1, block=1)
    before = count()
    raised = []

    def use():
        try:
            device = Device(0)
            device.set_current()
            {use}
        except BaseException as error:
            raised.append(error)

    fake.fake_stop()
    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    fake.fake_wait()
    # The thread is inside the driver, with what is closed here.
    {close}.close()
    if not {asks}:
        assert count() == before, "ended in use"
    fake.fake_go()
    join_all([thread], raised)
    assert not raised, raised
    # Where the memory outlives the stream's work, the buffer has the stream, too.
    buffer.close()
    other.close()
    assert count()[0] == before[0], "the GIL was held"
    print(count()[1] - before[1])
"""

CASES = {
    "launch": ("launch(stream, one, kernel)", "stream"),
    "Stream.sync": ("stream.sync()", "stream"),
    "Stream.record": ("stream.record(event)", "stream"),
    "Stream.record of an event": ("stream.record(event)", "event"),
    "Stream.wait": ("stream.wait(event)", "stream"),
    "Stream.wait for an event": ("kept.wait(event)", "event"),
    "Stream.wait for a stream": ("kept.wait(stream)", "stream"),
    "Event.sync": ("event.sync()", "event"),
    "Buffer.fill": ("buffer.fill(1, stream=stream)", "stream"),
    "Buffer.copy_to": ("buffer.copy_to(other, stream=stream)", "stream"),
    "Buffer.copy_from": ("buffer.copy_from(other, stream=stream)", "stream"),
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("driver")
    source, made = folder / "driver.c", folder / "libcuda.so.1"
    source.write_text(DRIVER)
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl", "-lpthread"], check=True)
    return made


def run(driver, script):
    return int(output(script, environment={"CUPYRITE_DEVICE": "gpu", "LD_LIBRARY_PATH": driver.parent}))


@pytest.mark.parametrize("case", CASES)
def test_last_use_destroys_without_the_gil(driver, case):
    use, close = CASES[case]
    names = {"driver": str(driver), "asks": case == "launch"}
    made = run(driver, textwrap.dedent(PROGRAM).format(use=use, close=close, **names))
    # The launch also queries the kernel's parameters, for which the driver may compile code.
    assert made >= 1 + (case == "launch")


OWNED = """
    import ctypes, gc
    from cuda.core import Buffer, Device, MemoryResource
    fake = ctypes.CDLL({driver!r})
    device = Device(0)
    device.set_current()

    class Mine(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def allocate(self, size, *, stream=None):
            return Buffer.from_handle(4096, size, mr=self, stream=stream)

        def deallocate(self, ptr, size, *, stream=None):
            pass

    class Node:
        pass

    def in_a_cycle():
        node = Node()
        node.node, node.stream = node, device.create_stream()
        del node
        gc.collect()

    def of_a_resource():
        stream = device.create_stream()
        buffer = Mine().allocate(8, stream=stream)
        stream.close()
        buffer.close()

    {what}()
    assert ctypes.c_int.in_dll(fake, "with_gil").value == 0, "the GIL was held"
    print(ctypes.c_int.in_dll(fake, "without_gil").value)
"""


@pytest.mark.parametrize("what", ["in_a_cycle", "of_a_resource"])
def test_last_owner_destroys_without_the_gil(driver, what):
    assert run(driver, textwrap.dedent(OWNED).format(driver=str(driver), what=what)) == 1
