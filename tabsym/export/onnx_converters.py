"""`register_onnx_converters`: models and encoders as steps of the pipelines that skl2onnx converts."""

from __future__ import annotations

from typing import Any

from tabsym.encoders.modl import MODLEncoder
from tabsym.encoders.onehot import OneHotEncoder
from tabsym.encoders.tiws import TIWSEncoder
from tabsym.encoders.wide import WideEncoder
from tabsym.export.onnx_graph import BOOL, DOUBLE, FLOAT, INT64, STRING, Graph, domain_of
from tabsym.export.onnx_parts import Parts, parts_of
from tabsym.models.wide import WideClassifier, WideRegressor
from tabsym.models.wide_sgd import WideSGDClassifier, WideSGDRegressor

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


def _parts(operator: Any) -> Parts:
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


def _columns(graph: Graph, variables: list[Any], parts: Parts) -> dict[str, str]:
    """The tensors (n, 1) of the inputs, by name where the variables are the columns of fit, else by their order."""
    if {one.raw_name for one in variables} == set(parts.features) and len(variables) == len(parts.features):
        places: dict[str, tuple[Any, int | None]] = {one.raw_name: (one, None) for one in variables}
    else:
        widths = [one.type.shape[1] if len(one.type.shape) > 1 else 1 for one in variables]
        if len(variables) == 1:
            widths = [len(parts.features)]  # which the variable may not say
        if None in widths or sum(widths) != len(parts.features):
            raise ValueError(
                f"The step was fitted on {len(parts.features)} columns, and its inputs have {widths}; give each column "
                "its type in initial_types, [None, 1]."
            )
        order = [(one, place if width > 1 else None) for one, width in zip(variables, widths) for place in range(width)]
        places = dict(zip(parts.features, order, strict=True))
    found = {}
    for name, (variable, place) in places.items():
        if name in parts.inputs or not parts.inputs:
            own = variable.full_name
            own = own if place is None else graph.add("Gather", own, graph.constant([place]), axis=1)
            found[name] = _converted(graph, own, name, _type_of(variable), parts)
    return found


def _converted(graph: Graph, tensor: str, name: str, given: int, parts: Parts) -> str:
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
