"""Options of the solver that no estimator has: for tests beside dense algebra in the user's units, and of its parts."""

from dataclasses import fields, replace

import numpy as np

from tabsym.losses.loss import LOSSES
from tabsym.models.config import Config

OF_CONFIG = {field.name for field in fields(Config)}


def inner(model, **options):
    """The model with other options in its `Config`, such as standardize=False, or `Newton`; its clones have none."""

    def config():
        found = type(model)._config(model)
        own = {name: value for name, value in options.items() if name in OF_CONFIG and name != "tol"}
        newton = {name: value for name, value in options.items() if name not in own}
        return replace(found, optimizer=replace(found.optimizer, **newton), **own)

    model._config = config
    return model


def by_softmax(classifier):
    """The classifier with a linear predictor for each class, where there are two of them too."""
    classifier._loss_of_classes = lambda n_classes: (LOSSES["multinomial"], n_classes)
    return classifier


def working(model):
    """The dispersion that variances go by; behind a log link Pearson's, which deviations go by, is another."""
    found = model.model_.uncertainty.working
    return model.dispersion_ if np.isnan(found) else found


def precision_of(model, term):
    """What is added to the information of a coefficient, over Pearson's dispersion."""
    return working(model) / model.dispersion_ / model.variances_.loc[term, "variance"]
