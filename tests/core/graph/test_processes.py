"""Graphs at the end of a process, in a forked child, and over many repetitions."""

import resource
import subprocess
import sys

import numpy as np
import pytest
from cuda.core import launch
from cuda.core.graph import GraphDefinition

START = """
import os, threading, time
from cuda.core import Device
from cuda.core.graph import GraphDefinition
device = Device(0)
device.set_current()
stream = device.create_stream()
started = threading.Event()
calls = []
def callback():
    calls.append(1)
    started.set()
    time.sleep(0.01)
definition = GraphDefinition()
last = definition
for _ in range(20):
    last = last.callback(callback).join()
graph = definition.instantiate()
"""


def run(program):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + program],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.parametrize("end", ["", "del graph, definition, last", "del stream", "graph.close()", "os._exit(0)"])
def test_exit_while_callbacks_run(end):
    run(f"""
for _ in range(3):
    graph.launch(stream)
started.wait()
{end}
""")


def test_exit_while_a_thread_waits():
    run("""
graph.launch(stream)
threading.Thread(target=stream.sync, daemon=True).start()
started.wait()
""")


def test_a_forked_child_leaves_the_graphs_of_its_parent():
    out = run("""
graph.launch(stream)
stream.sync()
child = os.fork()
if child == 0:
    failed = 0
    for use in (lambda: graph.launch(stream), definition.empty, definition.instantiate, definition.nodes):
        try:
            use()
            failed = 1
        except Exception:
            pass
    del graph, definition, last
    import gc
    gc.collect()
    os._exit(failed)
assert os.waitpid(child, 0)[1] == 0
graph.launch(stream)
stream.sync()
print(len(calls))
""")
    assert out == "40\n"


def test_a_child_forked_while_threads_use_graphs_can_close_them():
    out = run("""
ended = threading.Event()

def work():
    device.set_current()
    own = device.create_stream()
    while not ended.is_set():
        graph.launch(own)
        other = GraphDefinition().callback(lambda: None).graph.instantiate()
        other.launch(own)
        other.close()
        own.sync()

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(40):
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(30)
        graph.close()
        stream.close()
        del graph, definition, last
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ended.set()
for thread in threads:
    thread.join()
print("end")
""")
    assert out == "end\n"


def test_many_builds_do_not_grow(device, stream, code, one, numbers):
    x = numbers(0)
    add = code.get_kernel("add")

    def repeat(count):
        for _ in range(count):
            builder = stream.create_graph_builder().begin_building()
            launch(builder, one, add, x.buffer, np.int32(1))
            graph = builder.end_building().complete()
            graph.close()
            builder.close()
            definition = GraphDefinition()
            graph = definition.launch(one, add, x.buffer, np.int32(1)).graph.instantiate()
            graph.update(definition)
            graph.launch(stream)
        stream.sync()

    repeat(500)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    repeat(2500)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 4096, f"{grown} KiB"
    assert x.get() == [3000]
