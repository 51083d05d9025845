"""Unseen symbols by brute force, and trees walked one row at a time: slow, obvious, from the specification."""

import json
from itertools import product

import numpy as np


def replace_and_average(model, encoder, X, columns, method):
    """Each row alone: every combination of donors put in its place, answers averaged by the product of weights."""
    out, spread = [], []
    found = {name: encoder.unseen_rows(X, name) for name in columns}
    for row in range(len(X)):
        choices = []
        for name in columns:
            place = np.flatnonzero(found[name].rows == row)
            if not len(place):
                choices.append([(X[name].iloc[row], 1.0)])
                continue
            fitted = encoder.columns_[name].fitted
            weights = fitted.weights(found[name].unseen)[found[name].which[place[0]]]
            choices.append([(fitted.symbols[k], w) for k, w in zip(fitted.donors, weights, strict=True)])
        combinations = list(product(*choices))
        tried = X.iloc[[row] * len(combinations)].copy()
        for place, name in enumerate(columns):
            tried[name] = np.array([combination[place][0] for combination in combinations], dtype=object)
        answers = np.asarray(getattr(model, method)(tried), dtype=float)
        weights = [np.prod([w for _, w in combination]) for combination in combinations]
        mean = sum(w * a for w, a in zip(weights, answers, strict=True))
        out.append(mean)
        spread.append(np.sqrt(sum(w * (a - mean) ** 2 for w, a in zip(weights, answers, strict=True))))
    return np.array(out), np.array(spread)


# -- trees, from the libraries' own dumps -------------------------------------------------------


def lightgbm_tree(node):
    """(kind of split, feature, what it splits by, rule for missing, left, right, value, cover), or ("leaf", value)."""
    if "split_feature" not in node:
        return {"leaf": node["leaf_value"], "cover": node.get("leaf_count", 0)}
    return {
        "feature": node["split_feature"],
        "left_codes": set(map(int, node["threshold"].split("||"))) if node["decision_type"] == "==" else None,
        "threshold": node["threshold"],
        "strict": False,
        "missing": node["missing_type"],
        "default_left": node["default_left"] and node["decision_type"] != "==",
        "children": [lightgbm_tree(node["left_child"]), lightgbm_tree(node["right_child"])],
        "cover": node["internal_count"],
        "value": node["internal_value"],
    }


def lightgbm_trees(booster):
    dump = booster.booster_.dump_model()
    k = dump["num_tree_per_iteration"]
    return [(i % k, lightgbm_tree(tree["tree_structure"])) for i, tree in enumerate(dump["tree_info"])], k


def xgboost_trees(booster, n_codes):
    model = json.loads(bytes(booster.get_booster().save_raw("json")))["learner"]["gradient_booster"]["model"]

    def read(tree, i):
        cover = tree["sum_hessian"][i]
        if tree["left_children"][i] == -1:
            return {"leaf": float(np.float32(tree["split_conditions"][i])), "cover": cover}
        codes = None
        if tree["split_type"][i]:
            at = tree["categories_nodes"].index(i)
            first = tree["categories_segments"][at]
            right = set(tree["categories"][first : first + tree["categories_sizes"][at]])
            codes = set(range(n_codes)) - right
        children = [read(tree, tree["left_children"][i]), read(tree, tree["right_children"][i])]
        value = sum(c["cover"] * c.get("leaf", c.get("value")) for c in children) / sum(c["cover"] for c in children)
        return {
            "feature": tree["split_indices"][i], "left_codes": codes, "strict": True, "missing": "NaN",
            "threshold": np.float32(tree["split_conditions"][i]), "default_left": tree["default_left"][i],
            "children": children, "cover": cover, "value": value,
        }  # fmt: skip

    return [(info, read(tree, 0)) for info, tree in zip(model["tree_info"], model["trees"], strict=True)]


def side(node, x):
    """0 for left, 1 for right."""
    if node["left_codes"] is not None:
        if np.isnan(x):
            return 0 if node["default_left"] else 1
        return 0 if int(x) in node["left_codes"] else 1
    if np.isnan(x) and node["missing"] == "None":
        x = 0.0
    if np.isnan(x) or (node["missing"] == "Zero" and abs(x) <= 1e-35):
        return 0 if node["default_left"] else 1
    below = np.float32(x) < node["threshold"] if node["strict"] else x <= node["threshold"]
    return 0 if below else 1


def walk(node, x):
    """The leaf of a row."""
    while "leaf" not in node:
        node = node["children"][side(node, x[node["feature"]])]
    return node["leaf"]


def spread_over(node, x, unseen, route):
    """A tree's value of a row; `unseen`: {feature: {code (NaN for missing): weight}}."""
    if "leaf" in node:
        return node["leaf"]
    feature, children = node["feature"], node["children"]
    if feature not in unseen:
        return spread_over(children[side(node, x[feature])], x, unseen, route)
    if route == "stop":
        return node["value"]
    if route == "cover":
        shares = [child["cover"] / sum(c["cover"] for c in children) for child in children]
    else:
        shares = [sum(w for code, w in unseen[feature].items() if side(node, code) == s) for s in (0, 1)]
    return sum(share * spread_over(child, x, unseen, route) for share, child in zip(shares, children, strict=True))


def mixture_over(node, x, unseen):
    """A tree's value averaged over all combinations of donors."""
    total = 0.0
    for combination in product(*(list(donors.items()) for donors in unseen.values())):
        row = np.array(x, dtype=float)
        for feature, (code, _) in zip(unseen, combination, strict=True):
            row[feature] = code
        total += np.prod([w for _, w in combination]) * walk(node, row)
    return total
