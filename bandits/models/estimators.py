"""Scikit-learn's regressors and classifiers by name, and whether they can be resumed to the bit."""

from __future__ import annotations

import ast
import warnings
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from bandits.base.types import FloatArray

# of a number in the options, so that a link cannot start a fit without end
LARGEST = 1000
# where most estimators are; all of scikit-learn takes 200 MB and two seconds more
COMMON = ("ensemble", "linear_model", "naive_bayes", "neighbors", "neural_network", "svm", "tree")
REFUSALS = (
    ValueError,
    TypeError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
)


def options_of(text: str) -> dict[str, Any]:
    """Return what ``n_estimators=50, max_depth=3`` states.

    Raises
    ------
    ValueError
    """
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        found = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        plain = not call.args and "None" not in found
    except (SyntaxError, ValueError, AssertionError, MemoryError, RecursionError):
        plain = False
    if not plain or not all(isinstance(v, (int, float, str, type(None))) for v in found.values()):
        raise ValueError("options: must be like n_estimators=50, max_depth=3")
    for name, value in found.items():
        if isinstance(value, (int, float)) and not abs(value) <= LARGEST:
            raise ValueError(f"options: {name} is {value:g}; allowed are up to {LARGEST:,}")
    return found


@cache
def estimator_class(name: str) -> type[Any]:
    """Return a class of scikit-learn.

    Raises
    ------
    ValueError
    """
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    for package in COMMON:
        found = getattr(import_module(f"sklearn.{package}"), name, None)
        kinds = BaseEstimator, (ClassifierMixin, RegressorMixin)
        if isinstance(found, type) and all(issubclass(found, kind) for kind in kinds):
            return found
    from sklearn.utils import all_estimators

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = dict(all_estimators(type_filter=["classifier", "regressor"]))
    if name not in known:
        raise ValueError(f"estimator: scikit-learn has no regressor or classifier named {name!r}")
    other: type[Any] = known[name]
    return other


def is_classifier(name: str) -> bool:
    """Return whether an estimator predicts the probability of a reward of 1."""
    from sklearn.base import ClassifierMixin

    return issubclass(estimator_class(name), ClassifierMixin)


def make_estimator(name: str, options: str, seed: int) -> Any:
    """Create an estimator that has not been fitted.

    Raises
    ------
    ValueError
    """
    try:
        made = estimator_class(name)(**options_of(options))
    except TypeError as error:
        raise ValueError(f"options: {name}: {error}") from None
    if "random_state" in made.get_params(deep=False):
        made.set_params(random_state=seed)
    return made


def predicted(model: Any, x: FloatArray) -> FloatArray:
    """Predict the expected reward of features ``x (n, D)``, float64 (n,)."""
    if not hasattr(model, "classes_"):
        return np.asarray(model.predict(x), np.float64).reshape(len(x))
    return np.asarray(model.predict_proba(x)[:, list(model.classes_).index(1.0)], np.float64)


def fitted(name: str, options: str, seed: int, x: FloatArray, rewards: FloatArray) -> Any:
    """Fit an estimator, or return the mean where the rewards are all the same.

    Parameters
    ----------
    name, options : str
    seed : int
    x : float64 (n, D)
    rewards : float64 (n,)

    Returns
    -------
    estimator or float
    """
    if len(set(rewards.tolist())) < 2:
        return float(rewards.mean())
    with warnings.catch_warnings():
        # an iteration that has not converged is a model all the same
        warnings.simplefilter("ignore")
        return make_estimator(name, options, seed).fit(x, rewards)


@cache
def check_estimator(name: str, options: str) -> None:
    """Check that an estimator can be fitted, and that a second fit gives the same bits.

    Raises
    ------
    ValueError
        One sentence that names the field.
    """
    made = make_estimator(name, options, 0)
    if is_classifier(name) and not hasattr(made, "predict_proba"):
        raise ValueError(f"estimator: {name} lacks predict_proba, from which rewards are estimated")
    generator = np.random.default_rng(0)
    x = generator.random((40, 3))
    rewards = (generator.random(40) < 0.5).astype(np.float64)
    try:
        first, second = (predicted(fitted(name, options, 0, x, rewards), x) for _ in range(2))
    # whatever an estimator refuses
    except (
        ValueError,
        TypeError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RuntimeError,
    ) as error:
        reason = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
        raise ValueError(f"estimator: {name} cannot be fitted: {reason}") from None
    if first.tobytes() != second.tobytes():
        raise ValueError(
            f"estimator: {name} is different at a second fit, so that a run could not be resumed "
            "to the bit"
        )
