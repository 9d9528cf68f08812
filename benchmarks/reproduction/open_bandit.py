"""The Open Bandit sample: what its six logs can answer, and the example of obp on one of them.

The example estimates Thompson sampling's value on the uniform log. A bootstrap sample of the log is
evaluated 20 or 30 times; an estimator's relative error is averaged over them. obp
(requirements-reference.txt) draws the probabilities of the target and fits the rewards; the
estimates are ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import LabelEncoder

from bandits.base.formatting import percent, rounded
from bandits.base.types import FloatArray
from bandits.offpolicy import Matrix, evaluate, read_log
from bandits.offpolicy.open_bandit import NAMES
from bandits.offpolicy.support import decisions_required
from benchmarks.measure import table

ESTIMATORS = ("ips", "snips", "dm", "dr", "sndr")
# mean reward of Thompson sampling's own sample
TRUTH = 0.0042
# mean and standard deviation of the relative error, by bootstrap samples: obp 0.5.7 (IPW, SNIPW),
# obp 0.4 (IPW, DM, DR)
PUBLISHED = {
    30: {"ips": (0.311082, 0.311170), "snips": (0.311795, 0.334736)},
    20: {"ips": (0.333113, 0.350425), "dm": (0.180288, 0.114694), "dr": (0.304401, 0.347842)},
}


def draws(n: int = 1_000_000) -> FloatArray:
    """Return obp's probabilities of the production policy from n draws, float64 (K, S)."""
    from obp.policy import BernoulliTS

    policy = BernoulliTS(
        n_actions=80, len_list=3, random_state=12345, is_zozotown_prior=True, campaign="all"
    )
    found: FloatArray = policy.compute_batch_action_dist(n_sim=n, n_rounds=1)[0]
    return found


def errors(target: FloatArray, runs: int = 30, *, item_number: bool = True) -> FloatArray:
    """Return the relative error of each estimator on each bootstrap sample, float64 (runs,
    len(ESTIMATORS)).

    Parameters
    ----------
    target : float64 (K, S)
    runs : int
    item_number : bool
        The item's number is one of its features, as in obp 0.4; obp 0.5.7 leaves it out.
    """
    from obp.ope import RegressionModel

    dataset, log = (
        _dataset(item_number),
        replace(read_log("open_bandit/random/all"), event_ids=None),
    )
    assert log.positions is not None
    found, n = np.empty((runs, len(ESTIMATORS))), len(log)
    for b in range(runs):
        sample = dataset.sample_bootstrap_bandit_feedback(random_state=b)
        model = RegressionModel(
            n_actions=80,
            len_list=3,
            action_context=dataset.action_context,
            base_model=LogisticRegression(C=100.0, max_iter=10_000, random_state=12345),
        )
        q = model.fit_predict(
            context=sample["context"],
            action=sample["action"],
            reward=sample["reward"],
            position=sample["position"],
            pscore=sample["pscore"],
            n_folds=3,
            random_state=12345,
        )
        mine = log.select(np.random.RandomState(b).choice(n, size=n))
        assert np.array_equal(mine.rewards, sample["reward"])
        place = np.asarray(mine.positions) - 1
        p, q = np.ascontiguousarray(target[:, place].T), q[np.arange(n), :, place]
        estimates = evaluate(mine, Matrix(p), q=q, estimators=ESTIMATORS).estimates
        found[b] = [abs(estimates[name].value - TRUTH) / TRUTH for name in ESTIMATORS]
    return found


def _dataset(item_number: bool) -> Any:
    from obp.dataset import OpenBanditDataset

    left_out = ["item_feature_0"] if item_number else ["item_id", "item_feature_0"]

    class Dataset(OpenBanditDataset):  # type: ignore[misc]
        """With the same features; obp's own code for them does not run with today's pandas."""

        def pre_process(self) -> None:
            users = self.data.columns.str.contains("user_feature")
            self.context = pd.get_dummies(self.data.loc[:, users], drop_first=True).to_numpy(
                np.float64
            )
            items = self.item_context.drop(columns=left_out).apply(LabelEncoder().fit_transform)
            self.action_context = pd.concat(
                [items, self.item_context[["item_feature_0"]]], axis=1
            ).to_numpy()

    return Dataset(behavior_policy="random", campaign="all")


def open_bandit_text() -> str:
    """Compare with obp's printed figures."""
    target = draws()
    found, rows = errors(target), []
    for runs, published in PUBLISHED.items():
        for name, (mean, deviation) in published.items():
            mine = found[:runs, ESTIMATORS.index(name)]
            ours = f"{mine.mean():.6f} ± {mine.std(ddof=1):.6f}"
            apart = f"{mine.mean() - mean:+.6f}"
            rows.append((str(runs), f"`{name}`", f"{mean:.6f} ± {deviation:.6f}", ours, apart))
    later = errors(target, 20, item_number=False)
    spread = zip(ESTIMATORS, later.mean(axis=0), later.std(axis=0, ddof=1), strict=True)
    differ = [
        f"`{name}` {mean:.3f} ± {deviation:.3f}"
        for name, mean, deviation in spread
        if name in ("dm", "dr")
    ]
    return (
        "Thompson sampling evaluated on the uniform log of the campaign *all* (10,000 rows), as "
        "in the example of obp: relative error of the estimate, mean ± standard deviation over "
        "bootstrap samples. With 1,000,000 draws of the target and obp's own bootstrap samples, "
        "`ips` and `snips` agree to all printed digits. `dm` and `dr` rest on predicted rewards, "
        "fitted here by obp 0.5.7 with scikit-learn's logistic regression (C = 100, three folds); "
        "the printed figures are of obp 0.4, whose library versions are not stated. Both agree "
        "within 0.02.\n\n"
        + table(("samples", "estimator", "printed", "here", "difference"), rows)
        + (
            "\n\nobp 0.4 has the number of an item among its features, and so have the rows "
            f"above. obp 0.5.7 leaves it out, which gives {' and '.join(differ)}: its `dm` is not "
            "the printed one."
        )
    )


def logs_text() -> str:
    """State what each of the six logs can answer about three targets."""
    rows, worst = [], (0.0, "", "")
    for name in NAMES:
        log, campaign = read_log(name), name.rpartition("/")[2]
        shown = np.bincount(log.actions, minlength=log.n_actions)
        rates = np.bincount(log.actions, weights=log.rewards, minlength=log.n_actions) / np.maximum(
            shown, 1
        )
        best = log.names[int(rates.argmax())]
        for target in ("random", f"bts:{campaign}", f"always:{best}"):
            found = evaluate(log, target, estimators=["ips", "snips"])
            s, e = found.support, found.estimates
            worst = max(worst, (s.largest_share, name.removeprefix("open_bandit/"), target))
            values = (
                f"{e[k].value:.4f} ({e[k].low:.4f} to {e[k].high:.4f})" for k in ("ips", "snips")
            )
            required = decisions_required(found.n, found.logged, found.gain.standard_error)
            rows.append(
                (
                    f"`{name.removeprefix('open_bandit/')}`, {int(log.rewards.sum())} clicks",
                    f"`{target}`",
                    *values,
                    f"{s.ess:,.0f}",
                    f"{percent(s.largest_share, 2)}",
                    f"{s.mean_weight:.3f}",
                    ", ".join(f"`{alarm.kind}`" for alarm in found.alarms) or "–",
                    "its own policy" if found.same else rounded(required),
                )
            )
    return (
        "Clicks per decision of three targets on each of the six logs of 10,000 rows: uniformly "
        "random choice, the shop's Thompson sampling with its published prior (on `bts` logs a "
        "policy of the kind that made them), and always the item with the most clicks per show in "
        "this log, of several the first. That rests on few clicks, and on the log that judges it: "
        "on `random` logs its value is biased upwards. ESS: effective sample size. Largest "
        "weight: the share of one decision in the sum of all. Last column: decisions that such a "
        "log would need to find a difference of 10 % from its own policy in 80 % of cases. With a "
        "few dozen clicks, no log of this size does; *What if?* states which difference each "
        f"would find, except where too few decisions carry an estimate for an interval. `{worst[1]}` can answer least, for the target `{worst[2]}`: one decision has "
        f"{percent(worst[0])} of the sum of all weights.\n\n"
        + table(
            (
                "log",
                "target",
                "IPS",
                "SNIPS",
                "ESS",
                "largest weight",
                "mean weight",
                "alarms",
                "needed for 10 %",
            ),
            rows,
        )
    )
