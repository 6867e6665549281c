"""A transformer's layers run by onnxruntime with int8 weights, about twice as fast as in NumPy.

Weights are quantized per output, the inputs of each product per text as it runs, so that a text's
vectors do not depend on the texts beside it. Attention, norms and activations stay float32. The
graph is made of the model's own layers and stored beside them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from qkvsearch._utils.files import write_file
from qkvsearch._utils.threads import available_cores, run_in_threads
from qkvsearch.attention.layers.basic import LayerNorm, Linear
from qkvsearch.attention.layers.fast_encoder import Chunk, chunks_of
from qkvsearch.attention.layers.transformer import Encoder, EncoderLayer
from qkvsearch.errors import DataError, QkvError, need, suggest
from qkvsearch.text.labelled import LEVELS
from qkvsearch.text.pretrained.bert import file_facts
from qkvsearch.text.pretrained.fetch import GRAPH

VARIABLE, AUTO, NUMPY, ONNX = "QKVSEARCH_RUNTIME", "auto", "numpy", "onnxruntime"
NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
# The version of the graph. A stored graph of another one is made again.
VERSION = 2
# The stored file ends in a checksum: onnxruntime computes with changed weights without a word.
CHECKSUM_BYTES = 8
# int8 may serve a model badly, and processors without VNNI may cut sums off. Below this cosine with
# the vectors of NumPy, NumPy is used; MiniLM has .99.
MIN_COSINE = 0.97
CONTRIB = "com.microsoft"
ACTIVATIONS = {
    "gelu": ("Gelu", {"approximate": "none"}),
    "gelu_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
}


def runtime() -> str:
    """Return what runs transformers, "numpy" or "onnxruntime": as the variable `QKVSEARCH_RUNTIME`
    says, and by default onnxruntime where it is installed. Raises `QkvError`.
    """
    chosen = os.environ.get(VARIABLE) or AUTO
    if chosen not in (names := [AUTO, NUMPY, ONNX]):
        raise QkvError(f"{VARIABLE} is {chosen!r}{suggest(chosen, names)} ({', '.join(names)})")
    if chosen == AUTO:
        has_libraries = all(find_spec(library) is not None for library in ("onnxruntime", "onnx"))
        return ONNX if has_libraries else NUMPY
    return chosen


@dataclass(frozen=True)
class OnnxLayers:
    """The layers of an `Encoder` in an onnxruntime session.

    probe: the vector, float32 (d,), that NumPy gives for a fixed text, to recognize the model.
    cosine: the lowest one between vectors of sample texts by int8 and by NumPy.
    """

    session: Any
    probe: np.ndarray
    cosine: float

    def one(self, x: np.ndarray) -> np.ndarray:
        """Take one sequence, float32 (L, d), through the layers."""
        return np.asarray(self.session.run(None, {"x": x[None]})[0][0]) if len(x) else x

    def many(
        self,
        lengths: np.ndarray,
        embed: Callable[[Chunk], np.ndarray],
        take: Callable[[Chunk, np.ndarray], None],
    ) -> None:
        """Take many sequences through the layers: see `fast_encoder.encode_packed`."""

        def run(chunk: Chunk) -> None:
            x = embed(chunk)
            for _, sequence in chunk.sequences(x):
                sequence[:] = self.one(sequence)
            take(chunk, x)

        run_in_threads(lambda: run, chunks_of(lengths), available_cores())


def stored_layers(folder: Path) -> OnnxLayers | None:
    """Return the layers of the graph in a model's folder; None where there is none of this version
    and of the model's present files, or it is damaged.
    """
    try:
        stored = (folder / GRAPH).read_bytes()
        content, checksum = stored[:-CHECKSUM_BYTES], stored[-CHECKSUM_BYTES:]
        if xxhash.xxh3_64_digest(content) != checksum:
            return None
        session = _session(content)
        facts = session.get_modelmeta().custom_metadata_map
        if facts["made_of"] != _state(folder):
            return None
        probe = np.array(json.loads(facts["probe"]), np.float32)
        return OnnxLayers(session, probe, float(facts["cosine"]))
    except QkvError:
        raise
    except Exception:  # no such file, or a damaged one, for which onnxruntime has many errors
        return None


def make_layers(
    folder: Path,
    encoder: Encoder,
    probe: np.ndarray,
    lowest_cosine: Callable[[OnnxLayers], float],
) -> OnnxLayers:
    """Make the graph of an encoder, store it in the model's folder, if that may be written, and
    return its layers. lowest_cosine: measures them. Raises `QkvError`.
    """
    onnx = need("onnx", "fast", "onnxruntime's graph")
    model = graph_of(encoder)
    layers = OnnxLayers(_session(model.SerializeToString()), probe, 1.0)
    layers = OnnxLayers(layers.session, probe, lowest_cosine(layers))
    facts = {
        "made_of": _state(folder),
        "probe": json.dumps(probe.tolist()),
        "cosine": str(layers.cosine),
    }
    onnx.helper.set_model_props(model, facts)
    content = model.SerializeToString()
    with suppress(DataError):
        write_file(folder / GRAPH, content + xxhash.xxh3_64_digest(content))
    return layers


def _state(folder: Path) -> str:
    """Return what a graph is made of."""
    return f"{VERSION} {file_facts(folder)}"


def _import_onnxruntime() -> Any:
    """Import onnxruntime, which would otherwise write a device id and look up a host to report to.

    The variable counts as the library is imported. Where somebody else has imported it before, no
    further events are sent.
    """
    ort = need("onnxruntime", "fast", "this runtime", variables={NO_TELEMETRY: "1"})
    ort.disable_telemetry_events()
    return ort


def _session(content: bytes) -> Any:
    """Return a session of one thread: texts run beside each other, each in its own thread."""
    ort = _import_onnxruntime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # All lengths differ, so that plans of memory are not reused.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    # A higher level joins sums and norms into an operation that takes four times as long.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])


# --- the graph ---


def graph_of(encoder: Encoder) -> Any:
    """Return an `onnx.ModelProto` with the layers of an encoder, x (1, L, d) -> y (1, L, d)."""
    from onnx import TensorProto, helper

    graph, d = _Graph(), len(encoder.layers[0].attention_norm.weight)
    x = "x"
    for i, layer in enumerate(encoder.layers):
        x = _add_layer(graph, f"layer{i}", layer, x)
    graph.node("Identity", [x], "y")
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "tokens", d]) for name in "xy"
    ]
    made = helper.make_graph(graph.nodes, "layers", values[:1], values[1:], graph.constants)
    versions = [helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(made, opset_imports=versions, ir_version=9)


def _add_layer(graph: _Graph, name: str, layer: EncoderLayer, x: str) -> str:
    """Add an encoder layer as in `transformer.EncoderLayer` with its norms last."""
    attention, forward = layer.attention, layer.feed_forward
    projections = (attention.query, attention.key, attention.value)
    joined = Linear(
        np.concatenate([linear.weight for linear in projections]),
        np.concatenate([_bias(linear) for linear in projections]),
    )
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    graph.node("Split", [graph.linear(f"{name}.in", joined, x)], *parts, axis=2, num_outputs=3)
    n_heads = {"num_heads": attention.n_heads, "domain": CONTRIB}
    mixed = graph.node("MultiHeadAttention", parts, f"{name}.mixed", **n_heads)
    added = graph.linear(f"{name}.out", attention.output, mixed)
    x = graph.add_norm(f"{name}.attended", layer.attention_norm, x, added)
    hidden = graph.linear(f"{name}.hidden", forward.hidden, x)
    operation, settings = ACTIVATIONS[forward.activation]
    active = graph.node(operation, [hidden], f"{name}.active", **settings)
    added = graph.linear(f"{name}.forward", forward.output, active)
    return graph.add_norm(f"{name}.done", layer.feed_forward_norm, x, added)


def _bias(linear: Linear) -> np.ndarray:
    return np.zeros(len(linear.weight), np.float32) if linear.bias is None else linear.bias


class _Graph:
    """The nodes and constants of a graph. Each method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, operation: str, inputs: list[str], *outputs: str, **settings: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(operation, inputs, outputs, **settings))
        return outputs[0]

    def constant(self, name: str, array: np.ndarray) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def linear(self, name: str, linear: Linear, x: str) -> str:
        """Add x·Wᵀ + b, with W as int8 times a scale for each output."""
        largest = np.abs(linear.weight).max(axis=1)
        scales = (np.where(largest > 0, largest, 1) / LEVELS).astype(np.float32)
        weight = np.rint(linear.weight / scales[:, None]).astype(np.int8)
        inputs = [
            x,
            self.constant(f"{name}.weight", weight.T),
            self.constant(f"{name}.scales", scales),
            self.constant(f"{name}.zeros", np.zeros(len(scales), np.int8)),
            self.constant(f"{name}.bias", _bias(linear).astype(np.float32)),
        ]
        return self.node("DynamicQuantizeMatMul", inputs, name, domain=CONTRIB)

    def add_norm(self, name: str, norm: LayerNorm, x: str, added: str) -> str:
        """Add norm(x + added)."""
        total = self.node("Add", [x, added], f"{name}.sum")
        constants = [
            self.constant(f"{name}.{part}", array.astype(np.float32))
            for part, array in (("weight", norm.weight), ("bias", norm.bias))
        ]
        inputs = [total, *constants]
        return self.node("LayerNormalization", inputs, name, epsilon=float(norm.epsilon))
