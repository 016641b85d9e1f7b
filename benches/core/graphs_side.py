"""One side of graphs.py: times cuda.core.graph in this interpreter and prints JSON. Runs with Cupyrite and with its peer.

graphs_side.py FILE.ptx ROUNDS
"""

import json
import pathlib
import sys

from cuda.core import Device, LaunchConfig, ObjectCode, launch
from cuda.core.graph import GraphDefinition

from harness.timing import calling, empty, smallest_mean

NODES = 1000
# As in graphs.c. Few enough that launches do not wait for room in the queue of the GPU.
LAUNCHES = 100
# In the order of graphs.c.
ROWS = (
    "build 1,000 kernel nodes, per node",
    "instantiate 1,000 kernel nodes, per node",
    "Graph.launch, 1 node",
    "update of a kernel node",
    "capture 1,000 launches, per launch",
)


def main():
    ptx, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kernel = ObjectCode.from_ptx(ptx.read_bytes()).get_kernel("none")
    config = LaunchConfig(grid=1, block=1)

    def build(loop):
        for _ in loop:
            node = GraphDefinition()
            for _ in range(NODES):
                node = node.launch(config, kernel)

    chain = node = GraphDefinition()
    for _ in range(NODES):
        node = node.launch(config, kernel)

    def instantiate(loop):
        for _ in loop:
            chain.instantiate()

    def capture(loop):
        for _ in loop:
            builder = stream.create_graph_builder()
            builder.begin_building()
            for _ in range(NODES):
                launch(builder, config, kernel)
            builder.end_building()
            builder.close()

    single = GraphDefinition()
    only = single.launch(config, kernel)
    graph = single.instantiate()
    graph.launch(stream)
    stream.sync()
    view = graph[only]

    def update(loop):
        for _ in loop:
            view.update(config=config, kernel=kernel, args=())

    loop = smallest_mean(rounds, 1000, empty)
    figures = [
        smallest_mean(rounds, 2, build) / NODES,
        smallest_mean(rounds, 2, instantiate) / NODES,
        smallest_mean(rounds, LAUNCHES, calling(graph.launch, stream), stream.sync) - loop,
        smallest_mean(rounds, 1000, update) - loop,
        smallest_mean(rounds, 2, capture) / NODES,
    ]
    print(json.dumps({"rows": ROWS, "python": figures, "device": device.name}))


if __name__ == "__main__":
    main()
