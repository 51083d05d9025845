"""`to_onnx`: a fitted model or encoder as an ONNX graph of doubles."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tabsym.export.onnx_graph import ML_OPSET, OPSET, STRING, Graph, domain_of
from tabsym.export.onnx_parts import Parts, parts_of

IR_VERSION = 8


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None, *, missing_text: str = "") -> Any:
    """A fitted model or encoder as ONNX.

    Inputs are the columns that are used, by their names, (n, 1): strings for columns of text, doubles for all others
    (booleans are 0 and 1, dates are days since 1970-01-01 with the time of day as a fraction, durations are days). A
    missing number is NaN, a missing text is `missing_text`. All is computed in double
    precision, with opset 18, and 3 of ai.onnx.ml, which onnxruntime runs from 1.14 on.

    The outputs have the names that skl2onnx gives: ``variable`` (n, 1), the prediction; of a classifier ``label`` (n,)
    and ``probabilities`` (n, classes), or, where it has none, ``scores``; of an encoder ``variable`` (n, columns).
    Nothing raises an error while it runs: a missing number without a fill gives NaN.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison, whose columns of categories are text. Or
        MODLEncoder, OneHotEncoder, TIWSEncoder or WideEncoder, as far as each value of a column has one encoding;
        columns that an encoder passes on are numbers.
    path : path, optional
        Where to write the file as well.
    missing_text : str, default ""
        No category of a column of text may be equal to it.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ValueError, TypeError
        A part of the model has no ONNX, in a sentence that names it.

    Examples
    --------
    >>> import onnxruntime
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.export import to_onnx
    >>> X, y = pd.DataFrame({"town": ["Ulm", "Bonn"] * 9}), [1.0, 3.0] * 9
    >>> onnx_model = to_onnx(WideRegressor().fit(X, y))
    >>> session = onnxruntime.InferenceSession(onnx_model.SerializeToString())
    >>> session.run(None, {"town": X[["town"]].head(2).to_numpy(dtype=object)})[0].round(1).tolist()
    [[1.0], [3.0]]
    """
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError('to_onnx needs onnx: pip install "tabsym[export]".', name="onnx") from None
    parts = parts_of(model, missing_text)
    parts.inputs = {name: STRING if kind is None else kind for name, kind in parts.inputs.items()}
    if not parts.inputs:
        raise ValueError("The model uses no column: its prediction is the same for all rows, and needs no ONNX.")
    for name in parts.outputs:
        if name in parts.inputs:
            raise ValueError(f"The table has a column {name!r}, as an output would be called; rename it before fit.")
    prefix = "tabsym_"
    while any(name.startswith(prefix) for name in parts.inputs):
        prefix += "_"
    graph = Graph(prefix)
    outputs = parts.build(graph, {name: name for name in parts.inputs})
    proto = _proto(graph, parts, outputs, type(model).__name__, missing_text)
    if path is not None:
        Path(path).write_bytes(proto.SerializeToString())
    return proto


def _proto(graph: Graph, parts: Parts, outputs: dict[str, str], name: str, missing_text: str) -> Any:
    from onnx import helper, numpy_helper

    from tabsym import __version__

    nodes = [
        helper.make_node(operator, list(inputs), [output], domain=domain_of(operator), **attributes)
        for operator, inputs, output, attributes in graph.nodes
    ]
    nodes += [helper.make_node("Identity", [tensor], [output]) for output, tensor in outputs.items()]
    inputs = [
        helper.make_tensor_value_info(column, kind, ["n", 1])  # type: ignore[arg-type]
        for column, kind in parts.inputs.items()
    ]
    puts = [
        helper.make_tensor_value_info(output, kind, ["n"] if width is None else ["n", width])
        for output, (kind, width) in parts.outputs.items()
    ]
    constants = [numpy_helper.from_array(value, constant) for constant, value in graph.constants.items()]
    made = helper.make_model(
        helper.make_graph(nodes, name, inputs, puts, constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=IR_VERSION,
        producer_name="tabsym",
        producer_version=__version__,
    )
    helper.set_model_props(made, {"missing_text": missing_text})
    return made
