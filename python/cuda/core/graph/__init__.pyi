"""Graphs: work that is described once and launched many times."""

from cuda.core.graph._subclasses import AllocNode as AllocNode
from cuda.core.graph._subclasses import ChildGraphNode as ChildGraphNode
from cuda.core.graph._subclasses import ConditionalNode as ConditionalNode
from cuda.core.graph._subclasses import EmptyNode as EmptyNode
from cuda.core.graph._subclasses import EventRecordNode as EventRecordNode
from cuda.core.graph._subclasses import EventWaitNode as EventWaitNode
from cuda.core.graph._subclasses import ExecutableChildGraphNode as ExecutableChildGraphNode
from cuda.core.graph._subclasses import ExecutableEventRecordNode as ExecutableEventRecordNode
from cuda.core.graph._subclasses import ExecutableEventWaitNode as ExecutableEventWaitNode
from cuda.core.graph._subclasses import ExecutableGraphNode as ExecutableGraphNode
from cuda.core.graph._subclasses import ExecutableHostCallbackNode as ExecutableHostCallbackNode
from cuda.core.graph._subclasses import ExecutableKernelNode as ExecutableKernelNode
from cuda.core.graph._subclasses import ExecutableMemcpyNode as ExecutableMemcpyNode
from cuda.core.graph._subclasses import ExecutableMemsetNode as ExecutableMemsetNode
from cuda.core.graph._subclasses import FreeNode as FreeNode
from cuda.core.graph._subclasses import HostCallbackNode as HostCallbackNode
from cuda.core.graph._subclasses import IfElseNode as IfElseNode
from cuda.core.graph._subclasses import IfNode as IfNode
from cuda.core.graph._subclasses import KernelNode as KernelNode
from cuda.core.graph._subclasses import MemcpyNode as MemcpyNode
from cuda.core.graph._subclasses import MemsetNode as MemsetNode
from cuda.core.graph._subclasses import SwitchNode as SwitchNode
from cuda.core.graph._subclasses import WhileNode as WhileNode
from cuda.core.graph._graph_builder import Graph as Graph
from cuda.core.graph._graph_builder import GraphBuilder as GraphBuilder
from cuda.core.graph._graph_builder import GraphCompleteOptions as GraphCompleteOptions
from cuda.core.graph._graph_builder import GraphDebugPrintOptions as GraphDebugPrintOptions
from cuda.core.graph._graph_definition import GraphCondition as GraphCondition
from cuda.core.graph._graph_definition import GraphDefinition as GraphDefinition
from cuda.core.graph._graph_node import GraphNode as GraphNode

__all__ = ["AllocNode", "ChildGraphNode", "ConditionalNode", "EmptyNode", "EventRecordNode", "EventWaitNode", "ExecutableChildGraphNode", "ExecutableEventRecordNode", "ExecutableEventWaitNode", "ExecutableGraphNode", "ExecutableHostCallbackNode", "ExecutableKernelNode", "ExecutableMemcpyNode", "ExecutableMemsetNode", "FreeNode", "Graph", "GraphBuilder", "GraphCompleteOptions", "GraphCondition", "GraphDebugPrintOptions", "GraphDefinition", "GraphNode", "HostCallbackNode", "IfElseNode", "IfNode", "KernelNode", "MemcpyNode", "MemsetNode", "SwitchNode", "WhileNode"]
