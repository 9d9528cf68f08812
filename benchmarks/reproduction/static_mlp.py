"""Write the notebook's shop, log and static network beside ours into docs/REPRODUCED.md.

``python -m benchmarks.reproduction.static_mlp`` takes about a minute of one core: nine networks are
trained."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from bandits import read, run
from bandits.base.types import FloatArray, LoggedData, OfflineTraining
from bandits.models.neural.offline_training import Fitted, fit_click_model, perfect_loss
from bandits.results import metrics
from bandits.simulators.petshop import CLICK_RATES, PERSONAS
from bandits.simulators.petshop_features import SEED, notebook_shop
from benchmarks.measure import hardware, put, stamp, table

TITLE = "## Static MLP: the notebook's shop, log and losses"
OUT = Path(__file__).parents[2] / "docs" / "REPRODUCED.md"
USERS, PRODUCTS, VISITS, SHOPS = 1000, 50, 200_000, 8
VALIDATION, PERFECT = 0.4130, 0.4009
# difference from a published loss
ALLOWED = 0.005
# user, product and number of rewards that the notebook draws before its log
TRIED = ((0, 4, 100), (0, 3, 100))


class Shop(NamedTuple):
    """The notebook's shop: its shares, expected CTRs and log, with its validation visits last, and
    the losses on these.

    Attributes
    ----------
    shares : float64 (4,)
    oracle, random, logged : float
        CTR of the best and of a random choice, and of the log.
    expected, perfect : float
        Log loss of a perfect model: its expected value, and on the validation visits.
    fitted : Fitted
    """

    shares: FloatArray
    oracle: float
    random: float
    logged: float
    expected: float
    perfect: float
    fitted: Fitted


def main() -> None:
    """Train the networks; the section replaces its predecessor in the report."""
    simulator = {"kind": "petshop", "layout": "per_row"}
    experiment = {
        "simulator": simulator,
        "agents": [{"kind": "static_mlp"}],
        "steps": 200,
        "replications": SHOPS,
    }
    (history,) = run(read(experiment)).histories.values()
    assert history.training is not None
    section = static_mlp(history.training, notebook())
    print(section, flush=True)
    made = f"{hardware()}."
    put(OUT, f"{section}\n\n{made}\n\n{stamp(static_mlp)}")


def notebook_log() -> LoggedData:
    """Draw the notebook's log from its generator, in the state in which its program has left it."""
    users, categories = notebook_shop(USERS, PRODUCTS)
    rates, generator = np.array(CLICK_RATES)[users][:, categories], np.random.default_rng(SEED)
    generator.permutation(PRODUCTS)
    generator.integers(0, len(PERSONAS), size=USERS)
    for user, product, times in TRIED:
        for _ in range(times):
            generator.binomial(1, rates[user, product])
    drawn = np.empty((VISITS, 3), np.int64)
    for row in drawn:
        user, product = generator.integers(0, USERS), generator.integers(0, PRODUCTS)
        row[:] = user, product, generator.binomial(1, rates[user, product])
    user_ids, items, clicks = drawn.T
    none = np.zeros((VISITS, 0))
    return LoggedData(
        user_ids, items, none, none.astype(np.int64), clicks * 1.0, rates[user_ids, items]
    )


def notebook() -> Shop:
    """Train our network on the notebook's own log, in its own split into training and
    validation.
    """
    from sklearn.model_selection import train_test_split

    users, categories = notebook_shop(USERS, PRODUCTS)
    rates, log = np.array(CLICK_RATES)[:, categories], notebook_log()
    train, rest = train_test_split(np.arange(VISITS), test_size=0.2, random_state=SEED)
    order = np.concatenate([train, rest])
    split = LoggedData(*(column[order] for column in log if column is not None))
    fitted = fit_click_model(
        split,
        n_features=0,
        n_users=USERS,
        n_items=PRODUCTS,
        embedding=32,
        hidden=(64, 32),
        learning_rate=1e-3,
        batch=512,
        epochs=10,
        seed=0,
        held_out=len(rest),
    )
    shares = np.bincount(users, minlength=len(PERSONAS)) / USERS
    oracle, random = float(shares @ rates.max(axis=1)), float(shares @ rates.mean(axis=1))
    entropy = -(rates * np.log(rates) + (1 - rates) * np.log(1 - rates)).mean(axis=1)
    losses = float(shares @ entropy), perfect_loss(split, len(rest))
    return Shop(shares, oracle, random, float(log.rewards.mean()), *losses, fitted)


def static_mlp(ours: OfflineTraining, shop: Shop) -> str:
    """Compare the shop, its log and the losses of the static network with the published ones."""
    excess, published = metrics.estimate(ours.excess), VALIDATION - shop.perfect
    own, low, high = shop.fitted.validation_loss, ours.excess.min(), ours.excess.max()
    over_shops = (
        f"{excess.mean:.4f} ({excess.low:.4f} to {excess.high:.4f}), {low:.4f} to {high:.4f}"
    )
    rows = [
        (
            "persona shares",
            ".255, .237, .258, .250",
            ", ".join(f"{share:.3f}" for share in shop.shares),
            _equal(shop.shares.round(3).tolist() == [0.255, 0.237, 0.258, 0.25]),
        ),
        (
            "CTR of the oracle",
            ".51105",
            f"{shop.oracle:.5f}",
            _equal(round(shop.oracle, 5) == 0.51105),
        ),
        (
            "CTR of random choice",
            ".2106",
            f"{shop.random:.4f}",
            _equal(round(shop.random, 4) == 0.2106),
        ),
        (
            "CTR in the log of 200,000 visits",
            ".2101",
            f"{shop.logged:.4f}",
            _equal(round(shop.logged, 4) == 0.2101),
        ),
        (
            "expected loss of a perfect model",
            ".4009",
            f"{shop.expected:.4f}",
            _equal(round(shop.expected, 4) == PERFECT),
        ),
        (
            "loss of a perfect model on the validation visits",
            "–",
            f"{shop.perfect:.4f}",
            "not stated there",
        ),
        ("validation loss, its log", ".4130", f"{own:.4f}", _near(own - VALIDATION)),
        (
            "excess on the same visits, its log",
            f"{published:.4f}",
            f"{own - shop.perfect:.4f}",
            _near(own - VALIDATION),
        ),
        (
            f"excess on the same visits, {len(ours.excess)} shops of ours",
            f"{published:.4f}",
            over_shops,
            _near(excess.mean - published),
        ),
        (
            f"excess, {len(ours.excess)} shops of ours",
            ".0121 (.4130 - .4009)",
            over_shops,
            _near(excess.mean - VALIDATION + PERFECT),
        ),
    ]
    return "\n\n".join(
        [
            TITLE,
            "Layout `notebook` draws the shop as the notebook's program does. Its log is drawn "
            "on from the same generator and split as there (a fifth is held out); our shops hold "
            "a tenth out. The excess is the validation log loss of the network minus that of a "
            "model that predicts the true click probabilities, on the same visits; of our shops: "
            "mean (95 % interval over shops), smallest to largest. A loss agrees if it is within "
            ".005 of the published one. The .4009 is the expected loss of a perfect model in the "
            "notebook's shop; on its own validation visits such a model does better, so its "
            "excess on the same visits is larger.",
            table(("quantity", "published", "ours", "verdict"), rows),
            "Validation loss by epoch on the notebook's log: "
            f"{_losses(shop.fitted.validation_curve)}; published: .5082, .5060, .4990, .4707, "
            ".4396, .4258, .4185, .4156, .4136, .4130.",
        ]
    )


def _equal(same: bool) -> str:
    return "equal" if same else "differs"


def _near(difference: float) -> str:
    return (
        f"{difference:+.4f}, allowed {ALLOWED:.3f}: "
        f"{'agrees' if abs(difference) <= ALLOWED else 'differs'}"
    )


def _losses(values: FloatArray) -> str:
    return ", ".join(f"{value:.4f}".removeprefix("0") for value in values)


if __name__ == "__main__":
    main()
