"""What is reached on a table of classes without exploration: what agents are compared with."""

from __future__ import annotations

import warnings

import numpy as np

from bandits.base.formatting import count, percent
from bandits.base.types import FloatArray, IntArray

# rows that are used, a random sample, so that the time is bounded
ROWS = 2000
FOLDS = 5
ITERATIONS = 50


def supervised_note(features: FloatArray, labels: IntArray) -> tuple[str, str]:
    """State how often the most frequent class is right, and a classifier that knows all classes: in
    a few words, and in full.

    Parameters
    ----------
    features : float64 (n, D)
        Standardised.
    labels : int64 (n,)
    """
    n = len(labels)
    rows = np.random.default_rng(0).permutation(n)[:ROWS]
    most, right = np.bincount(labels).max() / n, cross_validated(features[rows], labels[rows])
    some = f", {count(ROWS)} of {count(n)} rows" if n > ROWS else ""
    brief = f"most frequent class {percent(float(most))}, trained classifier {percent(right)}"
    return brief, (
        f"On this table the most frequent class is right in {percent(float(most))} of the rows, "
        "and a logistic regression that is trained on the classes themselves in "
        f"{percent(right)} of rows it has not seen ({FOLDS}-fold cross-validation{some}). Agents "
        "observe only whether the class they chose is right. In a run that is longer than the "
        "table the rows come again, in a new order, so that an agent can also remember them."
    )


def cross_validated(features: FloatArray, labels: IntArray) -> float:
    """Return the share of rows that a logistic regression on the other folds classifies right.

    Parameters
    ----------
    features : float64 (n, D)
        In random order: row i is in fold i modulo `FOLDS`.
    labels : int64 (n,)
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    fold, right = np.arange(len(labels)) % FOLDS, 0
    for f in np.unique(fold):
        train, test = fold != f, fold == f
        if np.ptp(labels[train]) == 0:
            # one class is left: nothing to fit
            right += int((labels[test] == labels[train][0]).sum())
            continue
        with warnings.catch_warnings():
            # a bounded time matters more than the last digit
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(tol=1e-3, max_iter=ITERATIONS).fit(
                features[train], labels[train]
            )
        right += int((model.predict(features[test]) == labels[test]).sum())
    return right / len(labels)
