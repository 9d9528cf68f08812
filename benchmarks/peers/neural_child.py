"""Runs in the peers' own environment: times calvera's neural bandits, one at a time, at the
settings named here.

    python neural_child.py DATA.npz

DATA.npz holds "NETWORK.contexts" (T, K, D) and "NETWORK.rewards" (T, K), float32. Reads lines
"NETWORK BANDIT MODE DECISIONS" and answers each with the microseconds of processor time per
decision, learning included, or with "failed: ..." in one line. Nothing of this project is imported
here."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

# both sides go by these; all but the number of steps and the head's are those of calvera's own
# NeuralUCB example observations, steps of Adam, observations per step, learning rate
EVERY, UPDATES, BATCH, RATE = 128, 50, 32, 1e-3
# lambda and nu of its neural UCB and TS
PENALTY, EXPLORATION = 1e-3, 1e-5
# lambda of its linear head, and what it adds to the diagonal at each update, above 0
RIDGE, EPSILON = 1.0, 1e-6
NETWORKS = {"20-100-1": (20, 100, 1), "9-128-64-1": (9, 128, 64, 1)}
BANDITS = {
    "NeuralUCBBandit": ("trainer", "loop"),
    "NeuralTSBandit": ("trainer", "loop"),
    "NeuralLinearBandit": ("trainer", "loop", "idle"),
}
"""Its bandits, and the modes in which each is timed; see `decisions`."""


def build(bandit: str, widths: tuple[int, ...]) -> Any:
    """A bandit on a network of these widths."""
    import torch
    from calvera import bandits
    from calvera.utils import AllDataRetrievalStrategy, ListDataBuffer

    torch.manual_seed(7)
    layers: list[Any] = []
    for i in range(len(widths) - 2):
        layers += [torch.nn.Linear(widths[i], widths[i + 1]), torch.nn.ReLU()]
    common = {
        "train_batch_size": BATCH,
        "learning_rate": RATE,
        "min_samples_required_for_training": EVERY,
        # else it trains after every one of the first 1,024
        "initial_train_steps": 0,
        "early_stop_threshold": None,
    }
    # it puts a last layer of its own on the network while that is trained
    if bandit == "NeuralLinearBandit":
        # the faster of its two
        buffer = ListDataBuffer(AllDataRetrievalStrategy())
        head = {"lambda_": RIDGE, "eps": EPSILON, "lazy_uncertainty_update": True}
        return bandits.NeuralLinearBandit(
            torch.nn.Sequential(*layers), buffer, widths[-2], **head, **common
        )
    network = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-2], widths[-1]))
    uncertainty = {"weight_decay": PENALTY, "exploration_rate": EXPLORATION}
    return getattr(bandits, bandit)(widths[0], network, **uncertainty, **common)


def by_trainer(model: Any) -> None:
    """One training as its documentation shows, by a Lightning trainer without anything that costs
    speed.
    """
    import lightning

    trainer = lightning.Trainer(
        max_epochs=-1, max_steps=UPDATES, accelerator="cpu", devices=1, barebones=True
    )
    trainer.fit(model)


def by_hand(model: Any) -> None:
    """The same training in a loop around the model's own steps, without a trainer."""
    optimiser, done = model.configure_optimizers()["optimizer"], 0
    loader = model.train_dataloader()
    while done < UPDATES:
        for batch in loader:
            optimiser.zero_grad()
            model.training_step(batch, done).backward()
            optimiser.step()
            done += 1
            if done == UPDATES:
                break
    model.on_train_end()


def decisions(
    bandit: str, mode: str, widths: tuple[int, ...], X: Any, rewards: Any
) -> Iterator[None]:
    """Choose, earn and learn, one decision after the other.

    trainer: a Lightning trainer trains the network, as documented; the neural-linear bandit's head
    learns from every observation. loop: a loop by hand trains the network in its place. idle: the
    trainer again, but the head learns nothing between trainings."""
    import torch

    model = build(bandit, widths)
    linear, fit = bandit == "NeuralLinearBandit", by_hand if mode == "loop" else by_trainer
    for i in range(len(X)):
        yield
        candidates = X[i : i + 1]
        # the others take gradients to choose
        with torch.set_grad_enabled(not linear):
            chosen, _ = model(candidates)
        arm = int(chosen.argmax())
        x, reward = candidates[:, arm : arm + 1], rewards[i : i + 1, arm : arm + 1]
        with torch.no_grad():
            if linear and mode != "idle" and (i + 1) % EVERY:
                # its docstring: also for use without Lightning; it records the observation, too
                model.training_step((x, model.network(x), reward, None), 0)
            else:
                model.record_feedback(x, reward)
        if model.should_train_network:
            fit(model)


def measure(bandit: str, mode: str, widths: tuple[int, ...], X: Any, rewards: Any) -> float:
    """Microseconds per decision, building and the first decision not counted."""
    steps = decisions(bandit, mode, widths, X, rewards)
    next(steps)
    next(steps)
    began = time.process_time()
    count = sum(1 for _ in steps) + 1
    return 1e6 * (time.process_time() - began) / count


def main() -> None:
    """Answer line by line."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable()
    with np.load(sys.argv[1]) as file:
        data = {name: torch.from_numpy(file[name]) for name in file.files}
    for line in sys.stdin:
        network, bandit, mode, n = line.split()
        seen = (data[f"{network}.contexts"][: int(n)], data[f"{network}.rewards"][: int(n)])
        try:
            print(measure(bandit, mode, NETWORKS[network], *seen), flush=True)
        except Exception as error:  # noqa: BLE001
            print("failed:", repr(error).replace("\n", " ")[:200], flush=True)


if __name__ == "__main__":
    main()
