"""A pipeline over several devices: each stage runs on a device and a stream of its own, and batches go from one to the next.

Four stages process signals: a moving average, the power spectrum of a few frequencies, its logarithm, and the strongest frequency. While
one batch is in the last stage, others are in the stages before it. Each stage has two buffers for what it receives: events
say when a batch has arrived, and when its buffer is free again.

    CUPYRITE_CPU_DEVICES=4 python pipeline.py [--devices N] [--batches N] [--staged]

Batches are copied directly where both devices can access each other's memory, otherwise by page-locked host memory; --staged
forces that. With fewer devices than stages, stages share them.
"""

import argparse
import itertools
import sys

import numpy as np
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, LegacyPinnedMemoryResource, Program, launch

SIGNALS, SAMPLES, FREQUENCIES, BLOCK = 64, 256, 32, 64
SOURCE = r"""
extern "C" __global__ void smooth(const float *in, float *out, int signals, int samples, int frequencies)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= signals * samples)
        return;
    int t = i % samples;
    float before = t > 0 ? in[i - 1] : in[i], after = t < samples - 1 ? in[i + 1] : in[i];
    out[i] = 0.25f * before + 0.5f * in[i] + 0.25f * after;
}
extern "C" __global__ void power(const float *in, float *out, int signals, int samples, int frequencies)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= signals * frequencies)
        return;
    int f = i % frequencies;
    const float *signal = in + i / frequencies * samples;
    float re = 0, im = 0;
    for (int t = 0; t < samples; t++) {
        float angle = 2 * (float)(f * t % samples) / samples;
        re += signal[t] * cospif(angle);
        im -= signal[t] * sinpif(angle);
    }
    out[i] = re * re + im * im;
}
extern "C" __global__ void decibels(const float *in, float *out, int signals, int samples, int frequencies)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < signals * frequencies)
        out[i] = 10 * log10f(in[i] + 1e-12f);
}
extern "C" __global__ void strongest(const float *in, float *out, int signals, int samples, int frequencies)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= signals)
        return;
    int best = 0;
    for (int f = 1; f < frequencies; f++)
        if (in[i * frequencies + f] > in[i * frequencies + best])
            best = f;
    out[i] = best;
}
"""
# Stages: kernel, and elements for each signal of what it receives and of what it makes.
STAGES = [
    ("smooth", SAMPLES, SAMPLES),
    ("power", SAMPLES, FREQUENCIES),
    ("decibels", FREQUENCIES, FREQUENCIES),
    ("strongest", FREQUENCIES, 1),
]


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def all_devices(count):
    """The first `count` devices, or all of them."""
    try:
        devices = Device.get_all_devices()
        devices[0].set_current()
    except Exception as reason:
        skip(f"no device: {reason}")
    if count and count > len(devices):
        skip(
            f"{count} devices are needed, and there are {len(devices)} (CUPYRITE_CPU_DEVICES={count} configures CPU devices)"
        )
    devices = devices[: count or None]
    print(f"on {', '.join(device.name for device in devices)}")
    return devices


class Stage:
    """A kernel on a device, and the two buffers that it receives batches in."""

    def __init__(self, device, following, name, received, made, staged):
        device.set_current()
        self.device, self.name = device, name
        # One stream for the kernel, one for copies from the stage before.
        self.stream, self.copies = device.create_stream(), device.create_stream()
        self.kernel = Program(SOURCE, "c++").compile("cubin").get_kernel(name)
        self.threads = SIGNALS * made
        self.memory = DeviceMemoryResource(device)
        both = device.can_access_peer(following) and following.can_access_peer(device)
        self.is_direct = device == following or (both and not staged)
        if self.is_direct and device != following:
            self.memory.peer_accessible_by = [following]
        self.received = [self.memory.allocate(4 * SIGNALS * received, stream=self.stream) for _ in range(2)]
        self.made = [self.memory.allocate(4 * SIGNALS * made, stream=self.stream) for _ in range(2)]
        self.host = [LegacyPinnedMemoryResource().allocate(buffer.size) for buffer in self.made]
        # For each buffer: when its batch has arrived, has been processed, and when the next stage has taken the result.
        self.arrived, self.processed, self.taken = [None] * 2, [None] * 2, [None] * 2

    def receive(self, n, source, *events):
        """Copies a batch to buffer `n`, when these events have happened and the buffer is free."""
        self.device.set_current()
        wait(self.copies, self.processed[n], *events)
        self.received[n].copy_from(source, stream=self.copies)
        self.arrived[n] = self.copies.record()

    def process(self, n):
        """Processes the batch in buffer `n`."""
        self.device.set_current()
        wait(self.stream, self.arrived[n], self.taken[n])
        sizes = (np.int32(v) for v in (SIGNALS, SAMPLES, FREQUENCIES))
        config = LaunchConfig(grid=-(-self.threads // BLOCK), block=BLOCK)
        launch(self.stream, config, self.kernel, self.received[n], self.made[n], *sizes)
        self.processed[n] = self.stream.record()

    def send(self, n, following):
        """Lets the next stage copy the result of buffer `n`."""
        source, ready = self.made[n], self.processed[n]
        if not self.is_direct:
            self.copy_to_host(n)
            source, ready = self.host[n], self.taken[n]
        following.receive(n, source, ready)
        self.taken[n] = following.arrived[n]

    def copy_to_host(self, n):
        """Copies the result of buffer `n` to the host, when the last one has been taken from there."""
        self.device.set_current()
        wait(self.stream, self.taken[n])
        self.host[n].copy_from(self.made[n], stream=self.stream)
        self.taken[n] = self.stream.record()


def wait(stream, *events):
    """Lets a stream wait for those of the events that exist."""
    for event in filter(None, events):
        stream.wait(event)


def run(stages, batches):
    """The results of all batches."""
    for stage in stages:
        # Allocation is stream-ordered: the other streams must not use the buffers before it.
        stage.stream.sync()
    source = [LegacyPinnedMemoryResource().allocate(batches[0].nbytes) for _ in range(2)]
    results = []

    def collect(n):
        stages[-1].taken[n].sync()
        results.append(np.from_dlpack(stages[-1].host[n]).view(np.float32).copy())

    for number, batch in enumerate(batches):
        n = number % 2
        if stages[0].arrived[n]:
            # The host buffers are used again: waits until the batch before the last one has been read and its result written.
            stages[0].arrived[n].sync()
            collect(n)
        np.from_dlpack(source[n]).view(np.float32)[:] = batch.ravel()
        stages[0].receive(n, source[n])
        for stage, following in itertools.pairwise(stages):
            stage.process(n)
            stage.send(n, following)
        stages[-1].process(n)
        stages[-1].copy_to_host(n)
    for number in range(max(len(batches) - 2, 0), len(batches)):
        collect(number % 2)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=0, help="number of devices (default: all)")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--staged", action="store_true", help="copy batches by host memory")
    options = parser.parse_args()
    devices = all_devices(options.devices)
    if options.batches < 1:
        parser.error(f"--batches {options.batches}: expected at least 1")
    used = devices[: len(STAGES)]
    places = [used[n * len(used) // len(STAGES)] for n in range(len(STAGES))]
    stages = [
        Stage(place, following, *stage, options.staged)
        for place, following, stage in zip(places, places[1:] + places[-1:], STAGES, strict=True)
    ]
    random = np.random.default_rng(1)
    time = np.arange(SAMPLES) / SAMPLES
    wanted = random.integers(1, FREQUENCIES, (options.batches, SIGNALS))
    noise = random.normal(0, 0.3, (options.batches, SIGNALS, SAMPLES))
    batches = (np.cos(2 * np.pi * wanted[..., None] * time) + noise).astype(np.float32)
    results = run(stages, batches)
    if not np.array_equal(np.array(results), wanted):
        sys.exit("wrong result: the strongest frequencies")
    direct = sum(stage.is_direct for stage in stages[:-1])
    print(
        f"{options.batches} batches in {len(stages)} stages on {len(set(places))} devices; {direct} of 3 copies between stages are direct"
    )
    print("done: the results are right")


if __name__ == "__main__":
    main()
