"""Vectorised implementation of the ranking simulator and three agents, for one replication.

It is what a competent user writes: one forward pass scores all candidates, the posterior variance
of all candidates is one batched quadratic form, the pseudo-inverse is computed once per training,
and only the embeddings of a batch are updated (sparse gradients)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

USERS, ITEMS, RETRIEVED, SLATE, WIDTH, TEMPERATURE = 1000, 10_000, 500, 10, 32, 0.001
BUFFER, RATE, SIGMA2, EPSILON = 32, 1e-3, 1e-4, 1e-6


class Network(torch.nn.Module):
    """Embeddings initialised with the vectors, two layers, a head without intercept."""

    def __init__(self, users: Any, items: Any) -> None:
        super().__init__()
        vectors = [torch.tensor(of, dtype=torch.float32) for of in (users, items)]
        self.users, self.items = (
            torch.nn.Embedding.from_pretrained(of, freeze=False, sparse=True) for of in vectors
        )
        self.body = torch.nn.Sequential(
            torch.nn.Linear(2 * WIDTH, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16)
        )
        self.head = torch.nn.Linear(16, 1, bias=False)

    def embed(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Compute phi (n, 16) of n users with n items; one user is paired with every item."""
        chosen = self.items(items)
        x = torch.cat([self.users(users).expand(len(chosen), -1), chosen], dim=1)
        out: torch.Tensor = self.body(x)
        return out


def simulate(kind: str, rounds: int, seed: int = 0) -> float:
    """Run one replication of an agent (popularity, neural_greedy, neural_click_ts).

    Return the mean regret.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    users, items = rng.uniform(-0.1, 0.1, (USERS, WIDTH)), rng.uniform(-0.1, 0.1, (ITEMS, WIDTH))
    network = Network(users, items)
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE)
    S = EPSILON * torch.eye(16)
    inverse = torch.linalg.pinv(S)
    clicks, shows = np.zeros(ITEMS), np.zeros(ITEMS)
    buffer: list[tuple[int, int, float]] = []
    discount = 1 / np.arange(1, SLATE + 1)
    lost = 0.0
    for _ in range(rounds):
        user = int(rng.integers(USERS))
        candidates = rng.choice(ITEMS, RETRIEVED, replace=False, shuffle=False)
        utility = items @ users[user] / TEMPERATURE
        p = np.exp(utility - utility.max())
        p /= p.sum()
        if kind == "popularity":
            scores = (clicks[candidates] + 1) / (shows[candidates] + 2)
        else:
            with torch.inference_mode():
                phi = network.embed(torch.tensor(user), torch.from_numpy(candidates))
                logits = network.head(phi)[:, 0]
                if kind == "neural_click_ts":
                    variance = SIGMA2 * ((phi @ inverse) * phi).sum(1)
                    logits += variance.clamp_min(0).sqrt() * torch.randn(RETRIEVED)
                scores = logits.numpy()
        slate, best = candidates[_top(scores)], candidates[_top(p[candidates])]
        chances = p[slate] * discount
        clicked_at = np.flatnonzero(rng.random(SLATE) < chances)
        seen = int(clicked_at[0]) + 1 if len(clicked_at) else SLATE
        rewards = np.zeros(seen)
        rewards[-1] = float(len(clicked_at) > 0)
        shows[slate[:seen]] += 1
        clicks[slate[:seen]] += rewards
        lost += 1 - np.prod(1 - p[best] * discount) - rewards[-1]
        if kind != "popularity":
            buffer += [
                (user, int(item), reward) for item, reward in zip(slate, rewards, strict=False)
            ]
            if len(buffer) >= BUFFER:
                batch, buffer = np.array(buffer[:BUFFER]), buffer[BUFFER:]
                phis = network.embed(*torch.from_numpy(batch[:, :2].astype(np.int64)).T)
                target = torch.from_numpy(batch[:, 2]).float()
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    network.head(phis)[:, 0], target
                )
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                features = phis.detach()
                S += features.T @ features
                if kind == "neural_click_ts":
                    inverse = torch.linalg.pinv(S)
    return lost / rounds


def _top(scores: Any) -> Any:
    """Return the positions of the SLATE highest scores, highest first."""
    found = np.argpartition(-scores, SLATE)[:SLATE]
    return found[np.argsort(-scores[found])]
