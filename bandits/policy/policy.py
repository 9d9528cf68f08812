"""An agent that chooses and learns in a loop of one's own, one decision at a time."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from bandits.agents import REGISTRY as AGENTS
from bandits.agents.guards.base import Guard, unguarded
from bandits.agents.guards.stack import build, check
from bandits.agents.params import AgentParams
from bandits.agents.propensity import REDRAWS
from bandits.base.errors import UserError
from bandits.base.files import Arrays, atomic_write, pack, seal, unpack, unseal
from bandits.base.formatting import short
from bandits.base.formatting import size as in_words
from bandits.base.randomness import Streams
from bandits.base.selection import explored_share, shares_of_largest, top_k
from bandits.base.types import (
    BoolArray,
    Contexts,
    Feedback,
    FloatArray,
    IntArray,
    LoggedData,
    Round,
    SimulatorAccess,
    SimulatorSpec,
)

from .agents import OFFERED, read_agent, refuse
from .items import Items, Name
from .schema import Schema

FORMAT = 1
OWNER = "policy"
# decisions whose reward may still come, and the bytes of their contexts
REMEMBERED, REMEMBERED_BYTES = 10_000, 64 * 2**20
# bytes of an agent's state
MAX_MEMORY = 4 * 2**30


class Choice(NamedTuple):
    """What a policy has chosen.

    Attributes
    ----------
    id : int
        Number of the decision: what `Policy.update` needs.
    item : str or int
    propensity : float
        Probability with which the item was chosen, given the context and all rewards so far; see
        `Policy.propensity`.
    explored : bool
        Whether another item has the higher estimate.
    scores : dict, optional
        Score of every candidate, on request.
    """

    id: int
    item: Name
    propensity: float
    explored: bool
    scores: dict[Name, float] | None = None


class _Pending(NamedTuple):
    """A decision whose reward has not come: its features (D,) or (K, D), as they were shown."""

    features: FloatArray
    items: IntArray
    shown: int


class Policy:
    """An agent to choose and learn with, outside of any simulation.

    Parameters
    ----------
    agent : dict, str or AgentParams
        Parameters of the agent with its ``kind``, or the kind alone: ``{"kind": "linucb",
        "alpha": 0.4}``.
    items : sequence of names, or mapping of names to features
        What can be chosen: texts or integers. With features (a dictionary or array each), one
        model can learn for all items.
    features : mapping or int, optional
        Columns of the contexts, see `Schema`; inferred at the first decision by default.
    products : bool
        Multiply the features of user and item, where items have features.
    scale, constant : bool
        See `Schema`.
    rewards : tuple of two floats, optional
        Smallest and largest reward allowed. By default 0 or 1 alone for agents of 0/1 rewards, and
        any finite number for the others.
    redraws : int
        From which the propensity of agents without an exact one is estimated (`propensity` is
        monte_carlo). Each costs as much as a decision; 0: the propensity is then NaN.
    seed : int
        Of all random choices.

    Raises
    ------
    UserError
        The agent cannot act outside of a simulator, or a parameter is not allowed.

    Examples
    --------
    >>> from bandits import Policy
    >>> policy = Policy({"kind": "linucb", "alpha": 0.4}, items=["cat food", "dog food"])
    >>> choice = policy.choose({"age": 41, "pet": "cat"})
    >>> policy.update(choice, 1.0)
    True
    """

    def __init__(
        self,
        agent: Mapping[str, Any] | str | AgentParams,
        items: Sequence[Name] | Mapping[Name, Any],
        features: Mapping[str, Any] | int | Schema | None = None,
        *,
        products: bool = True,
        scale: bool = True,
        constant: bool = True,
        rewards: tuple[float, float] | None = None,
        redraws: int = REDRAWS,
        seed: int = 0,
    ) -> None:
        self.redraws = redraws
        if isinstance(redraws, bool) or not isinstance(redraws, int) or not 0 <= redraws <= 10**6:
            raise UserError(
                f"redraws is {short(redraws)}; it must be a whole number from 0 to 1,000,000"
            )
        self.params = read_agent(agent)
        self.agent_class = AGENTS[self.params.kind]
        self.items = Items(items, products=products)
        self.seed = seed
        self._options = {"scale": scale, "constant": constant}
        self.schema = features if isinstance(features, Schema) else None
        if features is not None and self.schema is None:
            self.schema = Schema(features, **self._options)  # type: ignore[arg-type]
        refuse(self.params)
        self.binary = "binary" in self.agent_class.requires(self.params)
        self.rewards = _range(rewards)
        # decisions made, and rewards learned
        self.decisions = self.learned = 0
        self._pending: OrderedDict[int, _Pending] = OrderedDict()
        self._agent: Any = None
        self._spec: SimulatorSpec | None = None
        self._replication = 0
        if self.schema is not None:
            self._build()

    # choosing

    def choose(
        self,
        context: Any = None,
        candidates: Sequence[Name] | None = None,
        *,
        scores: bool = False,
    ) -> Choice:
        """Choose an item.

        Parameters
        ----------
        context : mapping, array, or row of a data frame, optional
            An array of two axes holds the features of each candidate.
        candidates : sequence of names, optional
            What can be shown this time; by default all items.
        scores : bool
            Give the score of every candidate too.

        Raises
        ------
        UserError
            The context has other columns than the first one, a candidate is not known, or the
            agent has diverged.
        """
        index, features = self._read(context, candidates)
        step = self.decisions
        round = self._round(step, features, index)
        own = self._agent.scores(round)
        alive = np.ones(1, np.bool_)
        slate = top_k(own, round.available, alive, 1, self._agent.streams.ties, step)
        if not alive[0]:
            raise UserError(
                f"{self.agent_class.title} has diverged: its scores are not numbers; load an "
                "earlier file, or put the guard fallback around it"
            )
        k = int(slate[0, 0])
        propensity = self._propensities(round, own)[0, k]
        explored = self._explored(round, slate)
        if isinstance(self._agent, Guard):
            self._agent.shown(round, slate)
        self.decisions += 1
        self._remember(step, _Pending(features, index, k))
        item = self.items.names[int(round.items[0, k])]
        found = None
        if scores:
            places = np.flatnonzero(round.available[0])
            found = {self.items.names[round.items[0, p]]: float(own[0, p]) for p in places}
        return Choice(step, item, float(propensity), explored, found)

    def update(self, choice: Choice | int, reward: float) -> bool:
        """Learn the reward of a decision, now or later; return whether it was learned.

        A reward that comes twice, or after 10,000 other decisions without a reward, changes
        nothing. A decision without a reward is not learned from.

        Parameters
        ----------
        choice : Choice or int
            What `choose` returned, or its ``id``.
        reward : float

        Raises
        ------
        UserError
            The reward is not allowed, or there was no such decision.
        """
        number = choice.id if isinstance(choice, Choice) else choice
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise UserError(f"choice is {short(choice)}; it must be a Choice or its id")
        value = self.check_reward(reward)
        if not 0 <= number < self.decisions:
            raise UserError(
                f"there was no decision {short(number)}; this policy has made {self.decisions:,}"
            )
        if (pending := self._pending.pop(int(number), None)) is None:
            return False
        step = self._step_of(int(number))
        if step != number:
            self._forget_round()
        round = self._round(step, pending.features, pending.items)
        slate = np.array([[pending.shown]])
        feedback = _feedback(value)
        if isinstance(self._agent, Guard):
            self._agent.deliver(round, slate, feedback)
            self._agent.settle()
        else:
            self._agent.learn(round, slate, feedback)
        self.learned += 1
        return True

    def learn(
        self,
        context: Any,
        item: Name,
        reward: float,
        candidates: Sequence[Name] | None = None,
    ) -> None:
        """Learn a decision that was made elsewhere, such as one of a log, with its reward.

        Parameters
        ----------
        context, candidates
            As in `choose`; withdrawn items may be among them.
        item : str or int
            What was shown.
        reward : float

        Raises
        ------
        UserError
            As in `choose` and `update`, or the item was not a candidate.
        """
        value = self.check_reward(reward)
        index, features = self._read(context, candidates, shown=item)
        number = self.decisions
        round = self._round(self._step_of(number), features, index)
        own = self.items.index([item], withdrawn=True)
        place = np.flatnonzero(round.available[0] & (round.items[0] == own))
        self._forget_round()
        self._agent.learn(round, place[:, None], _feedback(value))
        self.decisions += 1
        self.learned += 1

    def probabilities(
        self, context: Any = None, candidates: Sequence[Name] | None = None
    ) -> dict[Name, float]:
        """State the probability with which `choose` would now choose each candidate.

        Nothing is chosen, remembered or learned, the statistics of the contexts included.

        Raises
        ------
        UserError
            As in `choose`.
        """
        index, features = self._read(context, candidates, observe=False)
        self._forget_round()
        round = self._round(self.decisions, features, index)
        found = self._propensities(round, self._agent.scores(round))[0]
        self._forget_round()
        places = np.flatnonzero(round.available[0])
        return {self.items.names[round.items[0, p]]: float(found[p]) for p in places}

    def warm_up(self) -> None:
        """Compile what choosing and learning need, so that no decision waits for it.

        A copy chooses and learns once; the policy stays as it is. One without a schema knows its
        columns, and what to compile, at the first decision.

        Raises
        ------
        UserError
            As in `choose`.
        """
        if self.schema is None or self._spec is None:
            return
        copy = type(self).from_bytes(self.to_bytes())
        names = [name for name in self.items.names if name not in self.items.withdrawn]
        names = names[: self._spec.n_candidates]
        # unknown columns: what is compiled depends on no value
        context: Any = dict.fromkeys(self.schema.names)
        if self.schema.is_array:
            context = np.zeros((len(names), len(self.schema.numbers)))
        low, _ = self.rewards
        copy.update(copy.choose(context, names), low if np.isfinite(low) else 0.0)

    def check_reward(self, reward: Any) -> float:
        """Return a reward that this policy can learn from.

        Raises
        ------
        UserError
            It is no finite number, or not in the allowed range.
        """
        try:
            value = float(reward)
        except (TypeError, ValueError, OverflowError):
            value = np.nan
        low, high = self.rewards
        if np.isfinite(value) and low <= value <= high and (not self.binary or value in (0, 1)):
            return value
        allowed = "a finite number"
        if self.binary:
            allowed = f"0 or 1 for {self.agent_class.title}"
        elif np.isfinite([low, high]).all():
            allowed = f"a number from {low:g} to {high:g}"
        raise UserError(f"the reward is {short(reward)}; it must be {allowed}")

    @property
    def propensity(self) -> str:
        """How propensities are known: exact, deterministic (1 for the best), or monte_carlo
        (estimated by 1,000 redraws).
        """
        return str(self._agent.propensity if self._agent else self.agent_class.propensity)

    # items

    def add(self, item: Name, features: Any = None) -> None:
        """Add an item, or restore a withdrawn one with what was learned of it.

        Raises
        ------
        UserError
            The item is there already, lacks features that the others have, or the agent's models
            cannot grow.
        """
        if item in self.items.withdrawn:
            self.items.restore(item)
            return
        former = self.items.copy()
        self.items.add(item, features)
        try:
            if self._agent is not None:
                self._grow()
        except UserError:
            self.items = former
            raise

    def withdraw(self, item: Name) -> None:
        """Stop choosing an item; rewards of earlier decisions are still learned."""
        self.items.withdraw(item)

    # saving

    def save(self, path: str | Path) -> None:
        """Write the policy, with the decisions that wait for a reward, to one checksummed file."""
        atomic_write(Path(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return what `save` writes."""
        about = {
            "format": FORMAT,
            "agent": self.params.model_dump(mode="json"),
            "items": self.items.to_data(),
            "schema": None if self.schema is None else self.schema.to_data(),
            "options": self._options,
            "rewards": None if np.isinf(self.rewards).any() else list(self.rewards),
            "seed": self.seed,
            "redraws": self.redraws,
            "replication": self._replication,
            "stored": None if self._spec is None else self._spec.n_stored,
            "candidates": None if self._spec is None else self._spec.n_candidates,
            "decisions": self.decisions,
            "learned": self.learned,
        }
        arrays: dict[str, Any] = {"about": np.array(json.dumps(about))}
        if self._agent is not None:
            state = self._agent.state_dict()
            arrays |= {f"agent.{name}": np.asarray(value) for name, value in state.items()}
        waiting = list(self._pending.items())
        arrays["waiting"] = np.array([[n, p.shown, len(p.items)] for n, p in waiting], np.int64)
        arrays["waiting.rows"] = np.array(
            [len(p.features) if p.features.ndim == 2 else 0 for _, p in waiting], np.int64
        )
        flat = [p.features.ravel() for _, p in waiting]
        arrays["waiting.features"] = np.concatenate(flat) if flat else np.empty(0)
        items = [p.items for _, p in waiting]
        arrays["waiting.items"] = np.concatenate(items) if items else np.empty(0, np.int64)
        return seal(OWNER, pack(arrays))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy from the file that `save` wrote.

        Raises
        ------
        UserError
            There is no such file, it is damaged, or its agent is not known here.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise UserError(f"{path}: {error.strerror or error}") from None
        try:
            return cls.from_bytes(data)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    @classmethod
    def from_bytes(cls, data: bytes, *, seed: int | None = None) -> Self:
        """Return the policy that `to_bytes` wrote; see `load`.

        With a ``seed`` its further draws are others than those of the original, so that several
        processes may decide with what one has learned.
        """
        if (body := unseal(OWNER, data)) is None:
            raise UserError("not a policy, or damaged: its checksum is wrong")
        try:
            arrays = unpack(body)
            about = json.loads(str(arrays["about"]))
            if about["format"] != FORMAT:
                raise UserError(f"format {about['format']} of policies is not known here")
            policy = cls(
                about["agent"],
                [],
                rewards=about["rewards"],
                seed=about["seed"] if seed is None else seed,
                redraws=about["redraws"],
                **about["options"],
            )
            policy.items = Items.from_data(about["items"])
            if about["schema"] is not None:
                policy.schema = Schema.from_data(about["schema"])
                policy._replication = about["replication"]
                policy._build(about["stored"], about["candidates"])
                policy._load_state(arrays)
            policy.decisions, policy.learned = about["decisions"], about["learned"]
            policy._pending = _pending(arrays, 0 if policy._spec is None else policy._d)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"not a readable policy: {error}") from None
        return policy

    @classmethod
    def from_run(cls, run: Any, agent: str, *, replication: int = 0) -> Self:
        """Return the policy that an agent of a run had become at the run's end.

        See `bandits.policy.laboratory.learned` for parameters and errors.
        """
        from .laboratory import learned

        found = learned(run, agent, replication=replication)
        # what the log taught is in the state
        done = {"pretrain": 0} if getattr(found.params, "pretrain", 0) else {}
        params = found.params.model_copy(update=done)
        policy = cls(params, found.items, seed=found.seed)
        policy.schema, policy._replication = found.schema, replication
        policy._build(found.spec.n_stored, found.spec.n_candidates)
        policy._agent.load_state_dict(found.state)
        policy.decisions = policy.learned = found.steps
        return policy

    def untrained(self) -> Self:
        """Return a policy with the same parameters, columns and items that has learned nothing."""
        bounds = None if np.isinf(self.rewards).any() else self.rewards
        policy = type(self)(
            self.params, [], rewards=bounds, seed=self.seed, redraws=self.redraws, **self._options
        )
        policy.items = self.items.copy()
        if self.schema is not None:
            assert self._spec is not None
            policy.schema, policy._replication = self.schema.fresh(), self._replication
            policy._build(self._spec.n_stored, self._spec.n_candidates)
        return policy

    # what is inside

    @property
    def agent(self) -> Any:
        """The agent, one row of it; None before the first decision."""
        return self._agent

    @property
    def waiting(self) -> int:
        """Decisions whose reward may still come."""
        return len(self._pending)

    @property
    def _d(self) -> int:
        assert self.schema is not None
        return self.schema.n_features

    def _build(self, stored: int | None = None, candidates: int | None = None) -> None:
        """Make the agent for the items and the schema."""
        self.items.freeze(self._d)
        D, K = self.items.width(self._d), max(len(self.items.names), 1)
        capabilities = OFFERED if self.binary else OFFERED - {"binary"}
        spec = SimulatorSpec(
            n_items=K,
            n_candidates=candidates or K,
            n_features=D,
            n_stored=stored or D,
            capabilities=capabilities,
        )
        needed = self.agent_class.memory(self.params, spec)
        if needed > MAX_MEMORY:
            raise UserError(
                f"{self.agent_class.title} needs {in_words(needed)} with {K:,} items and {D:,} "
                f"features; at most {in_words(MAX_MEMORY)} are allowed"
            )
        try:
            check(self.params.guards, self.agent_class, spec, 0, "guards")
        except ValueError as error:
            raise UserError(str(error)) from None
        access = SimulatorAccess(_nothing, _no_log, np.zeros(1, np.int64), "policy")
        streams = Streams(self.seed, (self._replication,))
        self._spec = spec
        self._agent = build(self.agent_class, [self.params], spec, streams, access)
        each = self._agent
        while each is not None:
            each.n_redraws = self.redraws
            each = each.inner if isinstance(each, Guard) else None
        self._columns = np.ascontiguousarray(
            np.broadcast_to(np.arange(D), (1, spec.n_candidates, D))
        )
        self._zero = np.zeros(1, np.int64)

    def _grow(self) -> None:
        """Make the agent for one more item, which begins without data; the others keep theirs."""
        former, n = self._agent, len(self.items.names)
        spec, columns = self._spec, self._columns
        assert spec is not None
        if spec.n_candidates != spec.n_items or spec.n_stored != spec.n_features:
            raise UserError("no item can be added to a policy from a simulator of many candidates")
        old, self._agent = former.state_dict(), None
        self._build()
        fresh = self._agent.state_dict()
        for name, value in old.items():
            new, kept = np.asarray(fresh[name]), np.asarray(value)
            fits = kept.ndim == new.ndim and all(
                a == b or (a, b) == (n - 1, n) for a, b in zip(kept.shape, new.shape, strict=True)
            )
            if not fits:
                self._agent, self._spec, self._columns = former, spec, columns
                raise UserError(
                    f"{self.agent_class.title} cannot take a new item: its network has an output "
                    "for each; make a new policy, or use heads shared with features of the items"
                )
            if kept.shape == new.shape:
                fresh[name] = value
            else:
                new[tuple(slice(length) for length in kept.shape)] = kept
                fresh[name] = new
        self._agent.load_state_dict(fresh)

    def _load_state(self, arrays: Arrays) -> None:
        state = {
            name.removeprefix("agent."): value if value.ndim else value.item()
            for name, value in arrays.items()
            if name.startswith("agent.")
        }
        self._agent.load_state_dict(state)

    def _read(
        self,
        context: Any,
        candidates: Sequence[Name] | None,
        *,
        shown: Name | None = None,
        observe: bool = True,
    ) -> tuple[IntArray, FloatArray]:
        """Return the places of the candidates, ``shown`` among them, and the features."""
        context = {} if context is None else context
        if self.schema is None:
            self.schema = Schema.of(context, **self._options)
            self._build()
        index = self.items.index(candidates, withdrawn=shown is not None)
        if shown is not None and (place := self.items.index([shown], withdrawn=True)) not in index:
            if candidates is not None:
                raise UserError(f"the item {short(shown)} is not among the candidates")
            index = np.append(index, place)
        self._check_candidates(index)
        features = self.schema.features(context, observe=observe)
        if features.ndim == 2 and len(features) != len(index):
            raise UserError(
                f"the context has {len(features)} rows; there are {len(index)} candidates"
            )
        self._check_distinct(features, index)
        return index, features

    def _step_of(self, number: int) -> int:
        """Return the step at which a decision is learned."""
        # windows hold observations, not decisions
        return self.learned if getattr(self.params, "window", None) is not None else number

    def _forget_round(self) -> None:
        """Let networks forget the round of a step, which they keep from choosing to learning."""
        if forget := getattr(unguarded(self._agent), "clear_cache", None):
            forget()

    def _check_candidates(self, index: IntArray) -> None:
        assert self._spec is not None
        if len(index) > self._spec.n_candidates:
            raise UserError(
                f"there are {len(index):,} candidates; this policy chooses among at most "
                f"{self._spec.n_candidates:,}"
            )
        if not len(index):
            raise UserError("there is no candidate to choose; give at least one")

    def _check_distinct(self, features: FloatArray, index: IntArray) -> None:
        """Refuse contexts that are the same for all items where one model serves all of them."""
        if features.ndim == 2 or self.items.have_features or len(index) == 1:
            return
        cls, outputs = self.agent_class, getattr(self.agent_class, "count_outputs", None)
        one = outputs is not None and outputs(self.params, self._spec) == 1
        if one or cls.spans_arms(self.params) is False:
            raise UserError(
                f"{cls.title} has one model for all items here, which cannot tell them apart: give "
                "the items features, or each item a model of its own (sharing or heads per_arm)"
            )

    def _round(self, step: int, features: FloatArray, index: IntArray) -> Round:
        """Return what the agent observes: all items as candidates, or those given."""
        spec = self._spec
        assert spec is not None
        K = spec.n_candidates
        x = np.zeros((K, spec.n_features))
        items: IntArray
        if spec.n_items == K:
            items, places = np.arange(K)[None], index
        else:
            items, places = np.zeros((1, K), np.int64), np.arange(len(index))
            items[0, : len(index)] = index
        x[places] = self.items.features(features, index)
        available: BoolArray = np.zeros((1, K), np.bool_)
        available[0, places] = True
        values, columns = x[None], self._columns
        if spec.n_stored != spec.n_features:
            values, columns = _stored(values, spec.n_stored)
        contexts = Contexts(values, columns, spec.n_features)
        return Round(step, self._zero, items, contexts, self._zero, available, self._zero)

    def _propensities(self, round: Round, scores: FloatArray) -> FloatArray:
        if self._agent.propensity == "deterministic":
            return shares_of_largest(np.where(round.available, scores, -np.inf))
        if self._agent.propensity == "monte_carlo" and not self.redraws:
            return np.full(scores.shape, np.nan)
        return np.asarray(self._agent.probabilities(round))

    def _explored(self, round: Round, slate: IntArray) -> bool:
        """Return whether another candidate has the higher estimate; without estimates, the higher
        propensity.
        """
        mean = self._agent.explain(round).mean
        if mean is None:
            mean = self._agent.probabilities(round)
        return bool(explored_share(mean, round.available, slate)[0])

    def _remember(self, number: int, pending: _Pending) -> None:
        self._pending[number] = pending
        each = pending.features.nbytes + pending.items.nbytes
        limit = max(1, min(REMEMBERED, REMEMBERED_BYTES // max(each, 1)))
        while len(self._pending) > limit:
            self._pending.popitem(last=False)


def _feedback(reward: float) -> Feedback:
    return Feedback(np.array([[reward]]), np.ones((1, 1), np.bool_))


def _range(rewards: tuple[float, float] | None) -> tuple[float, float]:
    if rewards is None:
        return -np.inf, np.inf
    try:
        low, high = map(float, rewards)
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise UserError(
            f"rewards is {short(rewards)}; it must be two numbers, the smallest and the largest "
            "reward allowed"
        )
    return low, high


def _stored(values: FloatArray, n: int) -> tuple[FloatArray, IntArray]:
    """Return the n entries of each vector (1, K, D) that can differ from 0, and their columns."""
    columns = np.sort(np.argsort(values == 0, axis=-1, kind="stable")[..., :n], axis=-1)
    kept = np.take_along_axis(values, columns, axis=-1)
    if np.count_nonzero(kept) != np.count_nonzero(values):
        raise UserError(f"the context has more than {n} numbers other than 0 for one candidate")
    return kept, columns


def _pending(arrays: Arrays, d: int) -> OrderedDict[int, _Pending]:
    found: OrderedDict[int, _Pending] = OrderedDict()
    feature = item = 0
    rows = arrays["waiting.rows"]
    for (number, shown, n), height in zip(arrays["waiting"].reshape(-1, 3), rows, strict=True):
        size = d * max(int(height), 1)
        x = arrays["waiting.features"][feature : feature + size]
        x = x.reshape(int(height), d) if height else x
        found[int(number)] = _Pending(x, arrays["waiting.items"][item : item + n], int(shown))
        feature, item = feature + size, item + int(n)
    return found


def _nothing(_: Round) -> FloatArray:
    raise NotImplementedError("a policy knows no expected rewards")


def _no_log(_: int, __: int) -> LoggedData:
    raise NotImplementedError("a policy has no log")
