"""obp's printed example on the Open Bandit sample, from the same draws of the target and the same
bootstrap samples.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bandits.offpolicy import Matrix, evaluate, read_log, read_target

DRAWS = Path(__file__).parents[1] / "data" / "offpolicy" / "obp_bts_all.json"
# mean reward of Thompson sampling's own sample
TRUTH = 0.0042


def test_the_printed_relative_errors_of_ips_and_snips() -> None:
    counts = np.array(json.loads(DRAWS.read_text(encoding="utf-8"))["counts"])
    log = replace(read_log("open_bandit/random/all"), event_ids=None)
    assert read_log("open_bandit/bts/all").rewards.mean() == pytest.approx(TRUTH)
    errors = []
    for b in range(30):
        # numpy's older generator
        sample = log.select(np.random.RandomState(b).choice(len(log), size=len(log)))
        target = Matrix(counts[:, np.asarray(sample.positions) - 1].T / 1e6)
        found = evaluate(sample, target, estimators=["ips", "snips"]).estimates
        errors.append([abs(found[name].value - TRUTH) / TRUTH for name in ("ips", "snips")])
    np.testing.assert_allclose(np.mean(errors, axis=0), [0.311082, 0.311795], rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        np.std(errors, axis=0, ddof=1), [0.311170, 0.334736], rtol=0, atol=1e-5
    )


def test_the_draws_agree_with_the_integral() -> None:
    """240 shares of a million draws.

    The largest deviation is below 4.5 standard errors with probability .998.
    """
    shares = np.array(json.loads(DRAWS.read_text(encoding="utf-8"))["counts"]) / 1e6
    log = read_log("open_bandit/random/all")
    first = [int((np.asarray(log.positions) == s).argmax()) for s in (1, 2, 3)]
    exact = read_target("bts:all", np.random.default_rng(0)).probabilities(log, np.array(first)).T
    assert (np.abs(shares - exact) / np.sqrt(exact * (1 - exact) / 1e6)).max() < 4.5
