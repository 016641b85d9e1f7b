"""Handles that a program passes: in lists, of the other API, and addresses that no library has made."""

import pytest
from cuda.bindings import driver, nvrtc, runtime

from helpers.device import check
from helpers.programs import python


@pytest.fixture
def graph(shared_context):
    graph = check(driver.cuGraphCreate(0))
    yield graph
    check(driver.cuGraphDestroy(graph))


@pytest.mark.parametrize("form", [lambda n: n, lambda n: runtime.cudaGraphNode_t(int(n))], ids=["CU", "cuda"])
@pytest.mark.parametrize("sequence", [list, tuple])
def test_lists_take_handles_of_both_apis(graph, form, sequence):
    first = check(driver.cuGraphAddEmptyNode(graph, None, 0))
    given = sequence([form(first)])
    second = check(driver.cuGraphAddEmptyNode(graph, given, 1))
    third = check(runtime.cudaGraphAddEmptyNode(graph, given, 1))
    edges = check(driver.cuGraphNodeGetDependentNodes(first, 2))
    assert {int(node) for node in edges[0]} == {int(second), int(third)}


@pytest.mark.parametrize("wrong", ["a", 1, 1.5, None, driver.CUstream(0)])
def test_other_items_are_refused(graph, wrong):
    for add, name in ((driver.cuGraphAddEmptyNode, "CUgraphNode"), (runtime.cudaGraphAddEmptyNode, "cudaGraphNode_t")):
        with pytest.raises(TypeError, match=rf"a list or tuple of {name}; one item is {type(wrong).__name__}"):
            add(graph, [wrong], 1)


@pytest.mark.parametrize("parameters", [driver.CUgraphNodeParams, runtime.cudaGraphNodeParams])
def test_graphs_of_a_conditional_node_are_null_before_the_node_exists(parameters):
    given = parameters()
    assert given.conditional.phGraph_out == []
    given.conditional.size = 1
    assert [int(graph) for graph in given.conditional.phGraph_out] == [0]
    given.conditional.size = 3
    assert [int(graph) for graph in given.conditional.phGraph_out] == [0, 0, 0]
    given.conditional.size = 0xFFFFFFFF
    assert given.conditional.phGraph_out == []


CALLS = [
    "nvrtcGetPTX({}, b'')",
    "nvrtcGetPTXSize({})",
    "nvrtcCompileProgram({}, 0, [])",
    "nvrtcDestroyProgram(nvrtc.nvrtcProgram({}))",
    "nvrtcGetProgramLogSize({})",
    "nvrtcAddNameExpression({}, b'f')",
    "nvrtcGetProgramLog({}, b'')",
]


@pytest.mark.parametrize("call", CALLS)
def test_an_address_that_is_no_program_is_a_status(call):
    body = f"""
from cuda.bindings import nvrtc
for address in (1, 0x1234, 0x1238, 1 << 63, (1 << 64) - 8):
    for form in ("%d", "nvrtc.nvrtcProgram(%d)"):
        text = "nvrtc." + {call!r}.format(form % address)
        print(eval(text)[0].name)
"""
    done = python(body)
    assert set(done.stdout.split()) == {"NVRTC_ERROR_INVALID_PROGRAM"}, done


def test_the_bindings_that_raise_refuse_such_an_address():
    body = """
from cuda.bindings._v2 import nvrtc
for address in (0x1234, 0x1238):
    for call in (nvrtc.get_ptx_size, nvrtc.get_ptx, nvrtc.compile_program, nvrtc.get_program_log):
        try:
            print(call(address))
        except Exception as error:
            print("INVALID_PROGRAM" in str(error))
"""
    done = python(body)
    assert done.stdout.split() == ["True"] * 8, done


def test_programs_of_nvrtc_are_accepted_in_all_forms():
    program = check(nvrtc.nvrtcCreateProgram(b"__device__ int x;", b"x", 0, None, None))
    for _ in range(3):
        for form in (program, int(program), nvrtc.nvrtcProgram(int(program))):
            check(nvrtc.nvrtcCompileProgram(form, 0, []))
            size = check(nvrtc.nvrtcGetPTXSize(form))
            check(nvrtc.nvrtcGetPTX(form, bytes(size)))
    check(nvrtc.nvrtcDestroyProgram(program))
    assert nvrtc.nvrtcDestroyProgram(program)[0] == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_PROGRAM
