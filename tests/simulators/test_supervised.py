"""What a majority guess and a classifier reach on a table, against scikit-learn's own functions."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from bandits import run
from bandits.base.formatting import percent
from bandits.results.caveats import beside_table
from bandits.results.comparison.conclusion import learning_summary
from bandits.simulators.datasets import csv_table, uploads
from bandits.simulators.datasets.supervised import ROWS, cross_validated, supervised_note
from tests.support import experiment


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_the_classifier_is_as_good_as_that_of_scikit_learn(load: object) -> None:
    x, labels = load(return_X_y=True)  # type: ignore[operator]
    x = StandardScaler().fit_transform(x)
    theirs = cross_val_score(LogisticRegression(max_iter=500), x, labels, cv=5).mean()
    order = np.random.default_rng(1).permutation(len(x))
    # other folds: three standard errors of a share of about 150 rows
    error = np.sqrt(theirs * (1 - theirs) / len(x))
    assert abs(cross_validated(x[order], labels[order]) - theirs) < 3 * error


def test_classes_that_features_do_not_explain_are_not_predicted() -> None:
    g, n = np.random.default_rng(2), 1000
    share = cross_validated(g.normal(size=(n, 3)), g.integers(0, 2, n))
    assert abs(share - 0.5) < 4 * np.sqrt(0.25 / n)


def test_the_sentence_states_both_shares_and_the_rows() -> None:
    labels = np.array([0, 1, 1, 1] * 1000)
    brief, said = supervised_note(labels[:, None] * 2.0 - 1, labels)
    assert brief.startswith(f"most frequent class {percent(0.75)}, trained classifier ")
    assert f"the most frequent class is right in {percent(0.75)} of the rows" in said
    assert f"cross-validation, {ROWS:,} of 4,000 rows" in said
    assert "5-fold cross-validation)" in supervised_note(labels[:40, None] * 2.0, labels[:40])[1]


@pytest.mark.parametrize("labels", [[0, 1, 0, 1], [0, 0, 0, 0, 1], [0, 1, 2] * 2])
def test_the_smallest_tables_have_a_share(labels: list[int]) -> None:
    share = cross_validated(np.arange(len(labels), dtype=float)[:, None], np.array(labels))
    assert 0 <= share <= 1


def test_a_run_that_is_longer_than_its_table_says_how_often_it_goes_through() -> None:
    lines = ["x,kind", *(f"{i % 7},{'ab'[i % 2]}" for i in range(40))]
    table = csv_table.inspect("\n".join(lines).encode())
    name = uploads.save_dataset(table, target="kind", title="Mine")
    simulator = {"kind": "classification", "data": name}
    (compared,) = beside_table(experiment("random", simulator=simulator, steps=40))
    assert compared.startswith("For comparison: most frequent class")
    assert beside_table(experiment("random", simulator=simulator, steps=100)) == [
        compared,
        "The run goes through the 40 rows 2.5 times",
    ]
    arms = csv_table.inspect("\n".join(["x,a,b", *(f"{i},1,0" for i in range(40))]).encode())
    rewards = {
        "kind": "rewards",
        "data": uploads.save_dataset(arms, rewards=["a", "b"], title="All"),
    }
    e = experiment("epsilon_greedy", "random", simulator=rewards, steps=100)
    assert beside_table(e) == [
        "For comparison: always choosing a earns 1",
        "The run goes through the 40 rows 2.5 times",
    ]
    assert (
        "between random choice and the oracle, which knows what every arm would earn in every row ("
    ) in learning_summary(run(e, workers=0))
