"""Predicted rewards q(x, a) by cross-fitted regression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from bandits.base.errors import UserError
from bandits.base.formatting import count_of, short
from bandits.base.memory import require_memory
from bandits.base.types import FloatArray, IntArray

from .log import DecisionLog
from .targets import BLOCK

FOLDS = 3
# columns of features times actions
MAX_INTERACTIONS = 20_000
# bytes that a model takes for each feature of each row: 55 were measured
PER_CELL = 64
# actions that a tree can split as categories
MAX_CATEGORIES = 255


class Model(ABC):
    """A regression of the reward on features, action and position.

    A linear model has a coefficient for each action, position and feature, and, up to 20,000 of
    them, for each pair of feature and action."""

    kind = ""

    @abstractmethod
    def fit_predict(self, log: DecisionLog, train: IntArray, weights: FloatArray | None) -> Any:
        """Fit the model to the training rows; return a function from rows to q, float64 (m, K)."""


class _Linear(Model):
    """A model with linear scores."""

    @abstractmethod
    def estimator(self) -> Any:
        """Return an unfitted estimator of scikit-learn."""

    def response(self, scores: FloatArray) -> FloatArray:
        """Return expected rewards for scores."""
        return scores

    def fit_predict(self, log: DecisionLog, train: IntArray, weights: FloatArray | None) -> Any:
        x, s = _standardised(log, train), _positions(log)
        K, D, S = log.n_actions, x.shape[1], int(s.max()) + 1
        crossed = K * D <= MAX_INTERACTIONS
        fitted = self.estimator().fit(
            _design(x[train], log.actions[train], s[train], K, S, crossed),
            log.rewards[train],
            sample_weight=None if weights is None else weights[train] / weights[train].mean(),
        )
        beta = np.ravel(fitted.coef_)
        intercept = float(np.ravel(fitted.intercept_)[0])
        shared, by_action, by_position = np.split(beta[: D + K + S], [D, D + K])
        pairs = beta[D + K + S :].reshape(K, D) if crossed else np.zeros((K, D))

        def predict(rows: IntArray) -> FloatArray:
            block = x[rows]
            scores = intercept + block @ (shared + pairs).T + by_action + by_position[s[rows], None]
            return self.response(scores)

        return predict


class Ridge(_Linear):
    """Ridge regression with the penalty 1."""

    kind = "ridge"

    def estimator(self) -> Any:
        from sklearn.linear_model import Ridge as Regression

        return Regression(alpha=1.0, solver="lsqr")


class Logistic(_Linear):
    """Logistic regression with the penalty 1; rewards are 0 or 1."""

    kind = "logistic"

    def estimator(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=1.0, max_iter=1000)

    def response(self, scores: FloatArray) -> FloatArray:
        from scipy.special import expit

        probabilities: FloatArray = expit(scores)
        return probabilities

    def fit_predict(self, log: DecisionLog, train: IntArray, weights: FloatArray | None) -> Any:
        seen = np.unique(log.rewards[train])
        if not np.isin(seen, (0.0, 1.0)).all():
            raise UserError(
                "model logistic: rewards must be 0 or 1; use ridge or gradient_boosting"
            )
        if len(seen) == 1:
            return lambda rows: np.full((len(rows), log.n_actions), seen[0])
        return super().fit_predict(log, train, weights)


class GradientBoosting(Model):
    """Gradient boosted trees; the action is a category of up to 255 values."""

    kind = "gradient_boosting"

    def fit_predict(self, log: DecisionLog, train: IntArray, weights: FloatArray | None) -> Any:
        from sklearn.ensemble import HistGradientBoostingRegressor

        if log.n_actions > MAX_CATEGORIES:
            raise UserError(
                f"model gradient_boosting: a log must have at most {MAX_CATEGORIES} actions; "
                f"got {log.n_actions:,}"
            )
        context = np.column_stack([_features(log), _positions(log)])

        def rows_with(rows: IntArray, actions: IntArray) -> FloatArray:
            return np.column_stack([context[rows], actions])

        categories = [context.shape[1]]
        trees = HistGradientBoostingRegressor(
            categorical_features=categories, max_iter=50, random_state=0
        )
        trees.fit(
            rows_with(train, log.actions[train]),
            log.rewards[train],
            sample_weight=None if weights is None else weights[train],
        )

        def predict(rows: IntArray) -> FloatArray:
            columns = [
                trees.predict(rows_with(rows, np.full(len(rows), k))) for k in range(log.n_actions)
            ]
            return np.column_stack(columns)

        return predict


MODELS: dict[str, type[Model]] = {
    model.kind: model for model in (Logistic, Ridge, GradientBoosting)
}


def read_model(kind: str) -> Model:
    """Make a model of its name.

    Raises
    ------
    UserError
        There is no model of that name.
    """
    if kind not in MODELS:
        raise UserError(f"model '{short(kind)}': must be one of {', '.join(MODELS)}")
    return MODELS[kind]()


def cross_fit(
    model: Model,
    log: DecisionLog,
    generator: np.random.Generator,
    *,
    weights: FloatArray | None = None,
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Predict every row by a model that was fitted to the other folds; events stay whole.

    Parameters
    ----------
    model : Model
    log : DecisionLog
        n rounds, K actions; at least as many events as folds.
    generator : numpy.random.Generator
        Draws the folds.
    weights : float64 (n,), optional
        Of the rows, when the model is fitted.

    Yields
    ------
    rows : int64 (m,)
        Blocks that together are all rows.
    q : float64 (m, K)

    Raises
    ------
    UserError
        The log has fewer events than folds, or the model does not fit the log.

    References
    ----------
    Chernozhukov et al. (2018), Double/debiased machine learning, definition 3.1.
    """
    if log.features is not None:
        require_memory(
            PER_CELL * log.features.size,
            f"a model of rewards with {count_of(log.features.shape[1], 'features')} on "
            f"{count_of(len(log), 'rows')}",
            "choose fewer features, or estimators without a model: ips, snips",
        )
    groups = log.groups
    n_groups = len(log) if groups is None else int(groups.max()) + 1
    if n_groups < FOLDS:
        noun = "decisions" if groups is None else "events"
        raise UserError(
            f"predicted rewards require at least {FOLDS} {noun}; the log has {n_groups}"
        )
    fold = generator.permutation(np.arange(n_groups) % FOLDS)
    fold = fold if groups is None else fold[groups]
    step = max(1, BLOCK // log.n_actions)
    for k in range(FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        predict = model.fit_predict(log, train, weights)
        for start in range(0, len(test), step):
            rows = test[start : start + step]
            yield rows, predict(rows)


def estimated_propensities(log: DecisionLog, generator: np.random.Generator) -> FloatArray:
    """Estimate the propensities of the logged actions by cross-fitted multinomial logistic
    regression.

    Predicted probabilities are mixed with 1 % of the uniform distribution, so that none is 0.

    Returns
    -------
    float64 (n,)
    """
    from sklearn.linear_model import LogisticRegression

    fold = generator.permutation(np.arange(len(log)) % FOLDS)
    found, K = np.full(len(log), 0.01 / log.n_actions), log.n_actions
    s = _positions(log)
    for k in range(FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if len(np.unique(log.actions[train])) < 2:
            raise UserError(
                "propensities cannot be estimated: the log shows fewer than two different actions"
            )
        x = np.column_stack([_standardised(log, train), np.eye(int(s.max()) + 1)[s]])
        fitted = LogisticRegression(max_iter=200).fit(
            x[train],
            log.actions[train],
            sample_weight=None if log.row_weights is None else log.row_weights[train],
        )
        probabilities = np.zeros((len(test), K))
        probabilities[:, fitted.classes_] = fitted.predict_proba(x[test])
        if log.available is not None:
            probabilities *= log.available[test]
            probabilities /= np.maximum(probabilities.sum(axis=1, keepdims=True), 1e-12)
        found[test] += 0.99 * probabilities[np.arange(len(test)), log.actions[test]]
    estimated: FloatArray = np.minimum(found, 1.0)
    return estimated


def _features(log: DecisionLog) -> FloatArray:
    return np.zeros((len(log), 0)) if log.features is None else log.features


def _standardised(log: DecisionLog, train: IntArray) -> FloatArray:
    """Return features with mean 0 and standard deviation 1 in the training rows."""
    x = _features(log)
    spread = x[train].std(axis=0)
    scaled: FloatArray = (x - x[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
    return scaled


def _positions(log: DecisionLog) -> IntArray:
    """Return the rank of each row's position, from 0."""
    if log.positions is None:
        return np.zeros(len(log), np.int64)
    return np.unique(log.positions, return_inverse=True)[1].astype(np.int64)


def _design(x: FloatArray, actions: IntArray, s: IntArray, K: int, S: int, crossed: bool) -> Any:
    """Return the design matrix, sparse (m, D + K + S [+ K D]): features, action, position, features
    of the action.
    """
    from scipy import sparse

    m, D = x.shape
    # built in its last form, in which all rows have as many entries: parts would be copied
    width = D + 2 + crossed * D
    columns, values = np.empty((m, width), np.int32), np.ones((m, width))
    columns[:, :D], values[:, :D] = np.arange(D), x
    columns[:, D], columns[:, D + 1] = D + actions, D + K + s
    if crossed:
        columns[:, D + 2 :] = columns[:, :D]
        columns[:, D + 2 :] += (actions * D + D + K + S)[:, None].astype(np.int32)
        values[:, D + 2 :] = x
    starts = np.arange(m + 1) * width
    shape = (m, D + K + S + crossed * K * D)
    return sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=shape)
