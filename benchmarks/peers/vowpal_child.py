"""Runs in the peers' own environment: plays Vowpal Wabbit before visitors that were drawn before.

    python vowpal_child.py DATA.npz

DATA.npz holds visitors and uniforms (T, R), categories (R, K) and click probabilities (R, V, K) of
V kinds of visitors. Where visitors have features, it also holds these (R, V, D); otherwise their
kind is their persona. Reads lines "RUN OPTIONS" and answers each with the clicks and the
microseconds of processor time per decision, learning included. Nothing of this project is imported
here."""

from __future__ import annotations

import itertools
import json
import random
import sys
import time

import numpy as np
import vowpalwabbit


def play(
    options: str,
    personas: np.ndarray,
    uniforms: np.ndarray,
    categories: np.ndarray,
    rates: np.ndarray,
    features: np.ndarray | None = None,
) -> int:
    """Return the clicks of one run: predict, draw an action from the probabilities, learn from its
    click.
    """
    model = vowpalwabbit.Workspace(f"{options} -q SA --random_seed 7 --quiet")
    generator = random.Random(7)
    actions = [f"|A category={category}" for category in categories]
    shared = (
        [f"shared |S persona={persona}" for persona in range(len(rates))]
        if features is None
        else [f"shared |S {_numbers(x)}" for x in features]
    )
    everything = range(len(actions))
    clicks = 0
    for persona, uniform in zip(personas.tolist(), uniforms.tolist(), strict=True):
        probabilities = model.predict([shared[persona], *actions])
        sums = list(itertools.accumulate(probabilities))
        action = generator.choices(everything, cum_weights=sums)[0]
        click = uniform < rates[persona, action]
        clicks += click
        shown = f"{action}:{-int(click)}:{probabilities[action]} {actions[action]}"
        model.learn([shared[persona], *actions[:action], shown, *actions[action + 1 :]])
    model.finish()
    return int(clicks)


def _numbers(x: np.ndarray) -> str:
    """Write features as Vowpal Wabbit reads them."""
    return " ".join(f"x{d}:{value:.5g}" for d, value in enumerate(x.tolist()) if value)


def main() -> None:
    """Answer the lines of standard input."""
    data = np.load(sys.argv[1])
    for line in sys.stdin:
        run, options = line.strip().split(" ", 1)
        r = int(run)
        began = time.process_time()
        clicks = play(
            options,
            data["personas"][:, r],
            data["uniforms"][:, r],
            data["categories"][r],
            data["rates"][r],
            data["features"][r] if "features" in data else None,
        )
        spent = 1e6 * (time.process_time() - began) / len(data["personas"])
        print(json.dumps({"clicks": clicks, "microseconds": spent}), flush=True)


if __name__ == "__main__":
    main()
