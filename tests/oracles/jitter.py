"""Unseen symbols by brute force: slow, obvious, from the specification."""

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
            choices.append([(fitted.categories[k], w) for k, w in zip(fitted.donors, weights, strict=True)])
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
