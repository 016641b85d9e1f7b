"""A stencil with a process for each band of rows: neighbours copy edge rows from each other's memory, not through the host.

Each worker allocates its fields from a shareable pool, and sends them to its neighbours once. In each step, it sends them an event
that completes when its edge rows are computed; their streams wait for the event and copy the rows.

Every few steps the workers send their rows to the main process. When a worker dies, its neighbours find their connections closed
and end; the main process starts all again from the rows that it has. To show it, a worker is killed in the middle.

    CUPYRITE_CPU_DEVICES=2 python halo_processes.py [--workers N] [--size N] [--steps N] [--every N] [--no-crash]

Workers share the devices evenly. Memory is shared between processes on one device, and between devices with peer access.
"""

import argparse
import collections
import multiprocessing
import multiprocessing.connection
import sys

import numpy as np
from cuda.core import Buffer, Device, DeviceMemoryResource, EventOptions, LaunchConfig, Program, launch

# Writes `rows` rows of a field from row `first` on. The sides of the plate keep their temperatures.
SOURCE = r"""
extern "C" __global__ void step(const float *in, float *out, int width, int first, int rows)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= rows)
        return;
    long long i = (long long)(first + y) * width + x;
    bool side = x == 0 || x == width - 1;
    out[i] = side ? in[i] : 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}
"""
BLOCK = (32, 8)
FLOAT = 4
# The status of a worker whose neighbour has died.
NEIGHBOUR_DIED = 3
# Seconds after which a silent worker counts as dead.
TIMEOUT = 60


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def row(field, number, width):
    """A row of a field, without its memory."""
    return Buffer.from_handle(int(field.handle) + number * width * FLOAT, width * FLOAT)


class Neighbour:
    """What a worker knows of a neighbour: a connection, its fields, and which row of it borders on this band."""

    def __init__(self, connection, fields, border, target):
        self.connection = connection
        # The row that the neighbour's rows are copied to.
        self.target = target
        connection.send((fields, border))

    def receive_fields(self, device):
        """Opens the neighbour's fields for copies in streams of `device`."""
        self.fields, self.border = self.connection.recv()
        for memory in {field.memory_resource for field in self.fields}:
            if memory.device_id != device.device_id:
                memory.peer_accessible_by = [device]

    def send(self, number, event=None):
        self.connection.send((number, event))

    def receive(self, number):
        """The event of a step."""
        if not self.connection.poll(TIMEOUT):
            raise EOFError
        found, event = self.connection.recv()
        if found != number:
            raise RuntimeError(f"the neighbour is in step {found} instead of {number}")
        return event


def work(place, rows, first_step, steps, every, above, below, parent):
    """Computes a band from a step on: `rows` are its rows with one of each neighbour."""
    try:
        compute(place, rows, first_step, steps, every, above, below, parent)
    except (EOFError, OSError):
        sys.exit(NEIGHBOUR_DIED)


def compute(place, rows, first_step, steps, every, above, below, parent):
    device = Device(place)
    device.set_current()
    stream = device.create_stream()
    kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("step")
    memory = DeviceMemoryResource(device, {"ipc_enabled": True})
    count, width = len(rows) - 2, rows.shape[1]
    fields = [memory.allocate(rows.nbytes, stream=stream) for _ in range(2)]
    for field in fields:
        field.copy_from(rows, stream=stream)
    # Allocation and the first copy are stream-ordered: neighbours must not read before them.
    stream.sync()
    neighbours = []
    if above:
        neighbours.append(Neighbour(above, fields, 1, 0))
    if below:
        neighbours.append(Neighbour(below, fields, count, count + 1))
    for neighbour in neighbours:
        neighbour.receive_fields(device)

    def advance(source, target, first, rows):
        if rows > 0:
            config = LaunchConfig(grid=(-(-width // BLOCK[0]), -(-rows // BLOCK[1])), block=BLOCK)
            launch(stream, config, kernel, source, target, *(np.int32(v) for v in (width, first, rows)))

    # A neighbour that has sent the event of a step has opened those of all earlier steps.
    events = collections.deque(maxlen=2)
    for number in range(first_step, steps):
        source, target = fields[number % 2], fields[1 - number % 2]
        advance(source, target, 1, 1)
        advance(source, target, count, min(1, count - 1))
        edges = stream.record(options=EventOptions(ipc_enabled=True))
        events.append(edges)
        for neighbour in neighbours:
            neighbour.send(number, edges)
        advance(source, target, 2, count - 2)
        for neighbour in neighbours:
            computed = neighbour.receive(number)
            stream.wait(computed)
            computed.close()
            theirs = row(neighbour.fields[1 - number % 2], neighbour.border, width)
            row(target, neighbour.target, width).copy_from(theirs, stream=stream)
        if (number + 1) % every == 0 or number + 1 == steps:
            result = np.empty_like(rows)
            target.copy_to(result, stream=stream)
            stream.sync()
            parent.send((number + 1, result[1:-1]))
    # The neighbours' streams may still read the fields.
    for neighbour in neighbours:
        for field in neighbour.fields:
            field.close(stream)
    stream.sync()
    for neighbour in neighbours:
        neighbour.send(steps)
    for neighbour in neighbours:
        neighbour.receive(steps)
    for field in fields:
        field.close(stream)
    stream.sync()


class Team:
    """The workers of one attempt."""

    def __init__(self, field, step, steps, every, count, devices):
        context = multiprocessing.get_context("spawn")
        bands = np.array_split(np.arange(1, len(field) - 1), count)
        between = [context.Pipe() for _ in range(count - 1)]
        self.step, self.workers, self.reports = step, [], []
        for n, band in enumerate(bands):
            mine, theirs = context.Pipe(duplex=False)
            above = between[n - 1][1] if n > 0 else None
            below = between[n][0] if n < count - 1 else None
            rows = np.ascontiguousarray(field[band[0] - 1 : band[-1] + 2])
            place = n * devices // count
            arguments = (place, rows, step, steps, every, above, below, theirs)
            worker = context.Process(target=work, args=arguments, daemon=True)
            worker.start()
            theirs.close()
            self.workers.append(worker)
            self.reports.append(mine)
        # Only the workers have these ends: a connection closes when one of them dies.
        for ends in between:
            for end in ends:
                end.close()

    def next_rows(self):
        """The next step of which all workers have sent their rows, and these; `None` if a worker has died."""
        parts = []
        for report in self.reports:
            try:
                if not report.poll(TIMEOUT):
                    return None
                parts.append(report.recv())
            except (EOFError, OSError):
                # OSError: the worker died while it was sending.
                return None
        self.step = parts[0][0]
        return self.step, np.concatenate([rows for _, rows in parts])

    def end(self):
        """Waits for the workers; those that do not end are killed. Returns their statuses."""
        for worker in self.workers:
            worker.join(TIMEOUT)
            if worker.exitcode is None:
                worker.kill()
                worker.join()
        return [worker.exitcode for worker in self.workers]


def run(field, options, devices):
    """The field after all steps, and how often the workers were started."""
    step, attempts, crash = 0, 0, options.crash
    while step < options.steps:
        attempts += 1
        if attempts > 3:
            sys.exit("the workers died three times")
        team = Team(field, step, options.steps, options.every, options.workers, devices)
        while (arrived := team.next_rows()) is not None:
            step, rows = arrived
            field[1:-1] = rows
            if step == options.steps:
                break
            if crash and step >= options.steps // 2:
                crash = False
                team.workers[len(team.workers) // 2].kill()
        statuses = team.end()
        if step < options.steps:
            print(f"workers ended with {statuses} after step {step}: starting again")
        elif any(statuses):
            sys.exit(f"workers ended with {statuses}")
    return attempts


def expected(field, steps):
    """The same on the host, with the same order of additions."""
    for _ in range(steps):
        inside = (field[1:-1, :-2] + field[1:-1, 2:]) + field[:-2, 1:-1] + field[2:, 1:-1]
        field = field.copy()
        field[1:-1, 1:-1] = np.float32(0.25) * inside
    return field


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=3, help="number of processes")
    parser.add_argument("--devices", type=int, default=0, help="number of devices (default: all)")
    parser.add_argument("--size", type=int, default=96, help="rows and columns")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=10, help="steps between the rows that the main process keeps")
    parser.add_argument("--no-crash", dest="crash", action="store_false", help="kill no worker")
    options = parser.parse_args()
    try:
        devices = Device.get_all_devices()
        properties = [device.properties for device in devices]
    except Exception as reason:
        skip(f"no device: {reason}")
    if options.devices > len(devices):
        skip(f"{options.devices} devices are needed, and there are {len(devices)}")
    devices = devices[: options.devices or None]
    print(f"on {', '.join(device.name for device in devices)}")
    if not all(p.memory_pools_supported and p.mempool_supported_handle_types & 1 for p in properties):
        skip("a device does not support shareable memory pools")
    if options.workers < 1:
        parser.error(f"--workers {options.workers}: expected at least 1")
    if options.size < options.workers + 2:
        parser.error(
            f"--size {options.size}: expected at least {options.workers + 2}, a row for each worker and two edges"
        )
    for name in ("steps", "every"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: expected at least 1")
    field = np.zeros((options.size, options.size), np.float32)
    field[0], field[:, 0] = 100, np.linspace(100, 0, options.size)
    start = field.copy()
    attempts = run(field, options, len(devices))
    if not np.array_equal(field, expected(start, options.steps)):
        sys.exit("wrong result: the temperatures")
    print(f"{options.steps} steps by {options.workers} workers on {len(devices)} devices, started {attempts} times")
    print("done: the results are right")


if __name__ == "__main__":
    main()
