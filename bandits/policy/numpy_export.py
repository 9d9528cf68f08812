"""Write a policy as a short program that needs numpy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bandits import __version__
from bandits.base.errors import UserError
from bandits.base.files import atomic_write, pack
from bandits.base.formatting import listed
from bandits.base.randomness import block_length

from .policy import Policy

# score of every candidate, by kind: from mean and width, or from exposures and clicks
SCORES = {
    "linucb": "mean + {alpha!r} * width",
    "lints": "mean + {sigma!r} * width * normals",
    "epsilon_greedy": "mean",
    "logistic_ucb": "mean + {alpha!r} * width",
    "logistic_ts": "mean + {sigma!r} * width * normals",
    "ucb1": "np.where(shown > 0, clicks / seen + {alpha!r} * np.sqrt(2 * np.log(max(self.step, 1)) / seen), np.inf)",  # noqa: E501
    "popularity": "(clicks + 1) / (shown + 2)",
}
LINEAR = {"linucb", "lints", "epsilon_greedy"}
LOGISTIC = {"logistic_ucb", "logistic_ts"}
# parameters for which the program is written
ONLY: dict[str, Any] = {
    "gamma": 1.0,
    "window": None,
    "prior": "zero",
    "fourier": 0,
    "private": None,
    "noise": "fixed",
    "covariance": "full",
    "width": "laplace",
    "bonus": "logit",
    "alpha_schedule": "fixed",
    "forced": 0,
    "guards": (),
}
SHARED = ("per_arm", "shared")

HEAD = '''"""{title} as it was after {steps:,} decisions, written by bandits {version}.

It needs numpy, and its numbers in the npz file beside it.

    policy = Policy()
    item = policy.choose({call})
{learning}"""

from pathlib import Path

import numpy as np

MASK = 2**64 - 1


def hashed(key, counter):
    """Return a number of SplitMix64: ties are broken by it."""
    word = (key + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MASK
    return word ^ word >> 31


class Policy:
    def __init__(self, step={steps}):
        with np.load(Path(__file__).with_name({arrays!r})) as stored:
            self.items = stored["items"].tolist()
{load}
        self.step, self.block = step, -1
'''
DRAWN = '''
    def draws(self):
        """Return the random numbers of this decision: those of the agent."""
        block, place = divmod(self.step, {length})
        if block != self.block:
            key = np.random.SeedSequence({seed}, spawn_key=(2, {row}, 0, block))
            self.block, self.drawn = block, np.random.Generator(np.random.PCG64(key)).{draw}
        return self.drawn[place]
'''
BEST = '''
    def best(self, scores):
        """Return the index of the highest score; ties by a hash of the decision."""
        highest = scores.max()
        floor = highest - 2.0**-40 * abs(highest) if np.isfinite(highest) else highest
        decision = hashed({ties}, self.step)
        return max(np.flatnonzero(scores >= floor), key=lambda k: hashed(decision, int(k)))

    def choose(self, {argument}candidates=None):
        """Return the item to show{about}."""
{scores}
        if candidates is not None:
            left = [self.items.index(item) for item in candidates]
            out = np.full(len(self.items), -np.inf)
            out[left] = scores[left]
            scores = out
{pick}
        self.step += 1
        return self.items[k]
'''


def write_numpy(policy: Policy, path: str | Path) -> Path:
    """Write a policy as a program in numpy, and its numbers to an npz file beside it.

    Parameters
    ----------
    policy : Policy
        With a linear, logistic or context-free agent. Logistic ones choose, and do not learn on.
    path : str or Path
        Ends in .py.

    Returns
    -------
    Path
        The file of the numbers.

    Raises
    ------
    UserError
        The policy's agent cannot be written so.
    """
    target = Path(path)
    if target.suffix != ".py":
        raise UserError(f"{target.name} must end in .py")
    _check(policy)
    arrays = target.with_suffix(".npz")
    text = _program(policy, arrays.name)
    atomic_write(arrays, pack(_numbers(policy), compressed=False))
    atomic_write(target, text.encode())
    return arrays


def _check(policy: Policy) -> None:
    params, agent = policy.params, policy.agent
    title = policy.agent_class.title
    if agent is None:
        raise UserError(f"{title} has not chosen yet; it can be written after its first decision")
    if params.kind not in SCORES:
        raise UserError(
            f"{title} cannot be written with numpy alone; {listed(SCORES)} can (kinds of agents)"
        )
    for name, value in ONLY.items():
        if (found := getattr(params, name, value)) != value:
            raise UserError(
                f"{title} cannot be written with numpy alone: {name} is {found}, not {value}"
            )
    if (sharing := getattr(params, "sharing", "shared")) not in SHARED:
        raise UserError(f"{title} cannot be written with numpy alone: sharing is {sharing}")
    if policy.agent.spec.n_candidates != policy.agent.spec.n_items:
        raise UserError("a policy that chooses among some of its items cannot be written")
    if policy.items.have_features or (policy.schema is not None and policy.schema.scale):
        raise UserError(
            "only a policy of a run, or one with scale=False and items without features, can be "
            "written with numpy alone: its contexts are arrays as they are"
        )


def _numbers(policy: Policy) -> dict[str, Any]:
    """Return the arrays of the agent's one row."""
    found: dict[str, Any] = {"items": np.array(policy.items.names)}
    agent, kind = policy.agent, policy.params.kind
    if kind in LINEAR:
        model = agent.model
        return found | {"inverse": model.inverse[0], "b": model.b[0], "theta": model.theta[0]}
    if kind in LOGISTIC:
        p = agent.model.posterior
        return found | {"inverse": p.inverse[0], "theta": p.theta[0]}
    return found | {"shown": agent.shown[0], "clicks": agent.clicks[0]}


def _program(policy: Policy, arrays: str) -> str:
    params, agent, kind = policy.params, policy.agent, policy.params.kind
    contextual = kind in LINEAR | LOGISTIC
    shared = getattr(params, "sharing", "") == "shared"
    K, D = agent.spec.n_items, agent.spec.n_features
    names = [name for name in _numbers(policy) if name != "items"]
    text = HEAD.format(
        title=policy.agent_class.title,
        steps=policy.decisions,
        version=__version__,
        arrays=arrays,
        call="x" if contextual else "",
        learning=""
        if kind in LOGISTIC
        else f"    policy.update(item{', x' if contextual else ''}, reward)\n",
        load="\n".join(f'            self.{name} = stored["{name}"]' for name in names),
    )
    draw = {
        "lints": f"standard_normal(({{n}}, {D if shared else K}))",
        "logistic_ts": f"standard_normal(({{n}}, {D if shared else K}))",
        "epsilon_greedy": "random(({n}, 1, 2))",
    }.get(kind)
    if draw:
        n = block_length({"epsilon_greedy": 2}.get(kind, D if shared else K))
        row = agent.streams.rows[0]
        text += DRAWN.format(length=n, seed=policy.seed, row=row, draw=draw.format(n=n))
    values = {name: float(getattr(params, name, 0)) for name in ("alpha", "epsilon", "decay")}
    values["sigma"] = float(np.sqrt(getattr(params, "sigma2", 0)))
    score = SCORES[kind].format(**values)
    pick = "        k = self.best(scores)"
    if contextual:
        body = [
            f"x = np.broadcast_to(np.asarray(x, float), ({K}, {D}))",
            f"model = {'np.zeros(' + str(K) + ', int)' if shared else 'np.arange(' + str(K) + ')'}",
        ]
        if kind in ("lints", "logistic_ts") and shared:
            body += [
                "factor = np.linalg.cholesky(np.linalg.inv(self.inverse[0]))",
                "noise = np.linalg.solve(factor.T, self.draws())",
                f"scores = x @ (self.theta[0] + {values['sigma']!r} * noise)",
            ]
        else:
            body.append('mean = np.einsum("kd,kd->k", x, self.theta[model])')
            if kind != "epsilon_greedy":
                spread = 'np.einsum("kd,kde,ke->k", x, self.inverse[model], x)'
                body.append(f"width = np.sqrt({spread})")
            if draw and kind != "epsilon_greedy":
                body.append("normals = self.draws()")
            body.append(f"scores = {score}")
    else:
        body = [
            "shown, clicks = self.shown, self.clicks",
            "seen = np.where(shown > 0, shown, 1)",
            f"scores = {score}",
        ]
    if kind == "epsilon_greedy":
        rate = f"{values['epsilon']!r} / (1 + {values['decay']!r} * self.step)"
        pick = "\n".join(
            [
                "        explores, which = self.draws()[0]",
                "        left = np.flatnonzero(scores > -np.inf)",
                "        random = left[min(int(which * len(left)), len(left) - 1)]",
                f"        k = random if explores < {rate} else self.best(scores)",
            ]
        )
    about = " for features (D,), or (K, D) with one row per item" if contextual else ""
    text += BEST.format(
        ties=int(agent.streams.ties[0]),
        argument="x, " if contextual else "",
        about=about,
        scores="\n".join(f"        {line}" for line in body),
        pick=pick,
    )
    return text + _learning(kind, "0" if shared else "k")


def _learning(kind: str, model: str) -> str:
    if kind in LOGISTIC:
        return ""
    if kind in LINEAR:
        lines = [
            "def update(self, item, x, reward):",
            '    """Learn a reward."""',
            "    k, x = self.items.index(item), np.asarray(x, float)",
            "    x = x[k] if x.ndim == 2 else x",
            f"    inverse, turned = self.inverse[{model}], self.inverse[{model}] @ x",
            "    inverse -= np.outer(turned, turned) / (1 + x @ turned)",
            f"    self.b[{model}] += reward * x",
            f"    self.theta[{model}] = inverse @ self.b[{model}]",
        ]
    else:
        lines = [
            "def update(self, item, reward):",
            '    """Learn a reward."""',
            "    k = self.items.index(item)",
            "    self.shown[k] += 1",
            "    self.clicks[k] += reward",
        ]
    return "\n" + "\n".join(f"    {line}" for line in lines) + "\n"
