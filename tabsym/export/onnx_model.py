"""Models and encoders as ONNX: `to_onnx`, a graph of doubles, and converters for skl2onnx."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tabsym.encoders.modl import MODLEncoder
from tabsym.encoders.onehot import OneHotEncoder
from tabsym.encoders.tiws import TIWSEncoder
from tabsym.encoders.wide import WideEncoder
from tabsym.export.onnx_graph import BOOL, DOUBLE, FLOAT, INT64, ML_OPSET, OPSET, STRING, Graph, domain_of
from tabsym.export.onnx_parts import GraphParts, parts_of
from tabsym.models.wide import WideClassifier, WideRegressor
from tabsym.models.wide_sgd import WideSGDClassifier, WideSGDRegressor

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


def _proto(graph: Graph, parts: GraphParts, outputs: dict[str, str], name: str, missing_text: str) -> Any:
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


OPSETS = {"": 13, "ai.onnx.ml": 2}
"""The lowest that have what the nodes need."""
_CLASSIFIERS = (WideClassifier, WideSGDClassifier)
_OTHERS = (WideRegressor, WideSGDRegressor, MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder)


def register_onnx_converters() -> None:
    """Let skl2onnx convert pipelines with steps of tabsym, which `to_onnx` alone would not.

    Afterwards ``skl2onnx.to_onnx`` and ``convert_sklearn`` take `WideClassifier`, `WideRegressor`,
    `WideSGDClassifier`, `WideSGDRegressor`, `MODLEncoder`, `OneHotEncoder`, `TIWSEncoder` and `WideEncoder`. Each of
    their inputs is text, or a number of any type. Outputs are doubles if an input is, else floats, as skl2onnx has it;
    with ``zipmap``, which has no doubles, probabilities are floats. The option ``missing_text`` is that of `to_onnx`.

    Examples
    --------
    >>> import pandas as pd
    >>> import skl2onnx
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from tabsym import OneHotEncoder
    >>> from tabsym.export import register_onnx_converters
    >>> X = pd.DataFrame({"colour": ["red", "blue"] * 20})
    >>> model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X, [1, 0] * 20)
    >>> register_onnx_converters()
    >>> types = [("colour", skl2onnx.common.data_types.StringTensorType([None, 1]))]
    >>> [one.name for one in skl2onnx.to_onnx(model, initial_types=types, options={"zipmap": False}).graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import update_registered_converter
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'register_onnx_converters needs skl2onnx: pip install "tabsym[export]".', name="skl2onnx"
        ) from None
    own: dict[str, Any] = {"missing_text": None}
    of_classes = own | {"zipmap": [True, False, "columns"], "output_class_labels": [False, True], "nocl": [False]}
    for kind in _CLASSIFIERS:
        update_registered_converter(kind, _alias(kind), _set_types, _convert, options=of_classes)
    for other in _OTHERS:
        update_registered_converter(other, _alias(other), _set_types, _convert, options=own, parser=_parse)


def _alias(kind: type) -> str:
    return f"Tabsym{kind.__name__}"


def _parse(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """The output of a step in its type: the following steps choose theirs by it, before types are set."""
    operator = scope.declare_local_operator(_alias(type(model)), model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("variable", _numbers_of(inputs)()))
    return operator.outputs


def _numbers_of(inputs: list[Any]) -> Any:
    from skl2onnx.common import data_types as types

    has_doubles = any(isinstance(one.type, types.DoubleTensorType) for one in inputs)
    return types.DoubleTensorType if has_doubles else types.FloatTensorType


def _parts(operator: Any) -> GraphParts:
    options = operator.scope_inst.get_options(operator.raw_operator, {"missing_text": ""}, fail=False)
    return parts_of(operator.raw_operator, options["missing_text"] or "")


def _set_types(operator: Any) -> None:
    """The types and shapes of the outputs."""
    from skl2onnx.common import data_types as types

    options = operator.scope_inst.get_options(operator.raw_operator, {"zipmap": True}, fail=False)
    zipped = isinstance(operator.raw_operator, _CLASSIFIERS) and options["zipmap"] is True
    numbers = types.FloatTensorType if zipped else _numbers_of(operator.inputs)
    n = operator.inputs[0].get_first_dimension()
    for variable, (name, (kind, width)) in zip(operator.outputs, _parts(operator).outputs.items(), strict=True):
        made = numbers if kind == DOUBLE else types.StringTensorType if kind == STRING else types.Int64TensorType
        if name == "label" and kind == DOUBLE:
            _refuse_fractions(operator.raw_operator)
            made = types.Int64TensorType
        variable.set_type(made([n] if width is None else [n, width]))


def _refuse_fractions(model: Any) -> None:
    odd = next((one for one in model.classes_.tolist() if one != int(one)), None)
    if odd is not None:
        raise ValueError(f"The class {odd!r} is no label of skl2onnx, which are whole numbers or text.")


def _convert(scope: Any, operator: Any, container: Any) -> None:
    low = next((domain for domain, own in OPSETS.items() if container.target_opset_any_domain(domain) < own), None)
    if low is not None:
        raise ValueError(f"tabsym's nodes need target_opset={OPSETS} or higher.")
    parts = _parts(operator)
    graph = Graph(scope.get_unique_variable_name("tabsym") + "_")
    outputs = parts.build(graph, _columns(graph, operator.inputs, parts))
    for (name, tensor), variable in zip(outputs.items(), operator.outputs, strict=True):
        to = _type_of(variable)
        text = parts.outputs[name][0] == STRING
        graph.nodes.append(("Identity" if text else "Cast", (tensor,), variable.full_name, {} if text else {"to": to}))
    for name, values in graph.constants.items():
        kind = {"O": STRING, "f": DOUBLE, "i": INT64, "b": BOOL}[values.dtype.kind]
        container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
    for node, inputs, output, attributes in graph.nodes:
        domain = domain_of(node)
        container.add_node(
            node,
            list(inputs),
            [output],
            op_domain=domain,
            op_version=OPSETS[domain] if domain else None,  # the default is one that skl2onnx itself refuses
            name=scope.get_unique_operator_name(node),
            **attributes,
        )


def _columns(graph: Graph, variables: list[Any], parts: GraphParts) -> dict[str, str]:
    """The tensors (n, 1) of the inputs, by name where the variables are the columns of fit, else by their order."""
    if {one.raw_name for one in variables} == set(parts.features) and len(variables) == len(parts.features):
        positions: dict[str, tuple[Any, int | None]] = {one.raw_name: (one, None) for one in variables}
    else:
        widths = [one.type.shape[1] if len(one.type.shape) > 1 else 1 for one in variables]
        if len(variables) == 1:
            widths = [len(parts.features)]  # which the variable may not say
        if None in widths or sum(widths) != len(parts.features):
            raise ValueError(
                f"The step was fitted on {len(parts.features)} columns, and its inputs have {widths}; give each column "
                "its type in initial_types, [None, 1]."
            )
        order = [
            (one, position if width > 1 else None) for one, width in zip(variables, widths) for position in range(width)
        ]
        positions = dict(zip(parts.features, order, strict=True))
    found = {}
    for name, (variable, position) in positions.items():
        if name in parts.inputs or not parts.inputs:
            own = variable.full_name
            own = own if position is None else graph.add("Gather", own, graph.constant([position]), axis=1)
            found[name] = _converted(graph, own, name, _type_of(variable), parts)
    return found


def _converted(graph: Graph, tensor: str, name: str, given: int, parts: GraphParts) -> str:
    """A tensor as the type that the column needs, which it takes from the tensor where any will do."""
    if parts.inputs.get(name) is None:
        parts.inputs[name] = STRING if given == STRING else DOUBLE
    needed = parts.inputs[name]
    if (given == STRING) != (needed == STRING):
        raise ValueError(
            f"Column {name!r} was {'text' if needed == STRING else 'numbers'} in fit, and its input is "
            f"{'text' if given == STRING else 'numbers'}; give it its type in initial_types."
        )
    return tensor if needed in (given, STRING) else graph.cast(tensor, DOUBLE)


def _type_of(variable: Any) -> int:
    from skl2onnx.common import data_types as types

    for kind, own in (
        (types.StringTensorType, STRING),
        (types.DoubleTensorType, DOUBLE),
        (types.FloatTensorType, FLOAT),
        (types.BooleanTensorType, BOOL),
    ):
        if isinstance(variable.type, kind):
            return own
    return INT64
