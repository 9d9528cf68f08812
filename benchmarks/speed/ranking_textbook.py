"""Textbook implementation of the ranking simulator and three agents, item by item."""

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
        self.users = torch.nn.Embedding.from_pretrained(torch.tensor(users, dtype=torch.float32), freeze=False)
        self.items = torch.nn.Embedding.from_pretrained(torch.tensor(items, dtype=torch.float32), freeze=False)
        self.body = torch.nn.Sequential(torch.nn.Linear(2 * WIDTH, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
        self.head = torch.nn.Linear(16, 1, bias=False)

    def embed(self, user: int, items: Any) -> torch.Tensor:
        """Compute phi of one user with some items."""
        chosen = self.items(torch.as_tensor(items))
        x = torch.cat([self.users(torch.tensor(user)).expand(len(chosen), -1), chosen], dim=1)
        out: torch.Tensor = self.body(x)
        return out


def race(kind: str, rounds: int, seed: int = 0) -> float:
    """Run one replication of an agent (popularity, neural_greedy, neural_click_ts); return the mean regret."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    users, items = rng.uniform(-0.1, 0.1, (USERS, WIDTH)), rng.uniform(-0.1, 0.1, (ITEMS, WIDTH))
    network = Network(users, items)
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE)
    S = EPSILON * torch.eye(16)
    clicks: dict[int, float] = {}
    shows: dict[int, int] = {}
    buffer: list[tuple[int, int, float]] = []
    lost = 0.0
    for _ in range(rounds):
        user = int(rng.integers(USERS))
        candidates = [int(item) for item in rng.choice(ITEMS, RETRIEVED, replace=False)]
        utility = items @ users[user] / TEMPERATURE
        p = np.exp(utility - utility.max())
        p /= p.sum()
        scores: dict[int, float] = {}
        if kind == "popularity":
            for item in candidates:
                scores[item] = (clicks.get(item, 0.0) + 1) / (shows.get(item, 0) + 2)
        else:
            with torch.no_grad():
                phi = network.embed(user, candidates)
                logits = network.head(phi)[:, 0]
                inverse = torch.linalg.pinv(S)
                for i, item in enumerate(candidates):
                    scores[item] = float(logits[i])
                    if kind == "neural_click_ts":
                        variance = SIGMA2 * phi[i] @ inverse @ phi[i]
                        scores[item] += float(variance.clamp_min(0).sqrt()) * float(rng.standard_normal())
        slate = sorted(candidates, key=lambda item: scores[item], reverse=True)[:SLATE]
        best = sorted(candidates, key=lambda item: float(p[item]), reverse=True)[:SLATE]
        clicked = 0.0
        for slot, item in enumerate(slate):
            shows[item] = shows.get(item, 0) + 1
            clicked = float(rng.random() < p[item] / (slot + 1))
            clicks[item] = clicks.get(item, 0.0) + clicked
            buffer.append((user, item, clicked))
            if clicked:
                break
        nothing = 1.0
        for slot, item in enumerate(best):
            nothing *= 1 - p[item] / (slot + 1)
        lost += 1 - nothing - clicked
        if kind != "popularity" and len(buffer) >= BUFFER:
            batch, buffer = buffer[:BUFFER], buffer[BUFFER:]
            phis = torch.cat([network.embed(who, [what]) for who, what, _ in batch])
            for one in phis.detach():
                S += torch.outer(one, one)
            target = torch.tensor([click for _, _, click in batch])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(network.head(phis)[:, 0], target)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return lost / rounds
