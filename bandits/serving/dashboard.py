"""The production loop in numbers: what its boxes hold now, read from the log, the registry and the
addresses of the service.
"""

from __future__ import annotations

import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bandits.base.formatting import count_of
from bandits.monitoring import REGISTRY

from .event_log import Event, count, newest
from .registry import Aliases, Registry

# seconds over which rates are counted, and the most events of them
_RECENT, _EVENTS = 10.0, 5_000
# changes that are read, and of them shown; alarms that are; seconds for which one is marked
_CHANGES, _SHOWN, _ALARMS, _RUNG = 200, 12, 5, 60.0
_TIMEOUT = 2.0
NOTHING = "–"


class Box(NamedTuple):
    """A box of the figure.

    Attributes
    ----------
    title, value, note : str
        The note is a few words below the value.
    alarm : bool
    share : float, optional
        Drawn as a bar, from 0 to 1.
    """

    title: str
    value: str
    note: str = ""
    alarm: bool = False
    share: float | None = None


class Happened(NamedTuple):
    """Something that changed what serves, or an alarm."""

    time: str
    sentence: str


class Production(NamedTuple):
    """The state of a loop.

    Attributes
    ----------
    groups : dict of str to list of Box
        The three parts of the figure, each in the order of its arrows.
    problems : list of str
        What /health states; empty: all is well, or the service does not answer.
    answers : bool
        Whether the service answers.
    happened : list of Happened
        Latest first.
    alarms : list of Happened
        Of the monitors, latest first.
    """

    groups: dict[str, list[Box]]
    problems: list[str]
    answers: bool
    happened: list[Happened]
    alarms: list[Happened]


def production(
    folder: Path, url: str, *, active: bool, trainer: bool, rollout: tuple[float, ...]
) -> Production:
    """Read the state of a loop.

    Parameters
    ----------
    folder : Path
        Of the service.
    url : str
        Of the service.
    active : bool
        Whether the loop goes on: without it there are no rates, only what the log holds.
    trainer : bool
        Whether the trainer runs.
    rollout : tuple of float
        Shares of the steps.
    """
    there = (folder / "log" / "events.sqlite").is_file()
    events = newest(folder / "log", _EVENTS) if there else []
    metrics, problems = (_metrics(url), _problems(url)) if active else ({}, None)
    # each for itself: many alarms leave the changes in sight
    changes = newest(folder / "log", _CHANGES, ("versions", "verdict")) if there else []
    alarms = newest(folder / "log", _ALARMS, ("alarm",)) if there else []
    rung = bool(alarms) and alarms[-1].time > time.time() - _RUNG and active
    silent = "stopped" if not active else "no answer"
    registry = Registry(folder / "registry")
    aliases, numbers = registry.aliases(), registry.numbers()
    card = registry.version(numbers[-1]).card if numbers else {}

    def whole(name: str) -> str:
        return f"{metrics[name]:,.0f}" if name in metrics else NOTHING

    def milliseconds(quantile: str) -> str:
        value = metrics.get(f"bandits_decision_seconds.{quantile}")
        return NOTHING if value is None else f"{1_000 * value:.1f} ms"

    age = metrics.get("bandits_version_age_seconds")
    share = metrics.get("bandits_rollout_share", 0.0)
    fallback = metrics.get("bandits_decisions.fallback", 0.0)

    def live(title: str, value: str, note: str = "", *, alarm: bool = False) -> Box:
        """Return a box that only a running service has numbers for."""
        return Box(title, value, note, alarm) if active else Box(title, silent)

    step = f"steps {', '.join(f'{100 * s:.0f} %' for s in rollout)}"
    groups = {
        "Online serving": [
            live("Visitors", f"{_rate(events, 'decision')} requests/s"),
            Box("Bandit service", _version(aliases.champion), "features frozen, head learns"),
            live("Choice", f"p50 {milliseconds('0.5')}", f"p99 {milliseconds('0.99')}"),
            live("Reward", f"{_rate(events, 'reward')} rewards/s", f"{whole('bandits_late')} late"),
            live("Update", f"{whole('bandits_learned')} updates"),
            Box(
                "Log",
                f"{events[-1].position if events else 0:,} events",
                f"{whole('bandits_log_waiting')} waiting" if active else "",
                alarm=metrics.get("bandits_log_dropped", 0) > 0,
            ),
        ],
        "Offline training": [
            live(
                "Trainer",
                "runs" if trainer else "does not run",
                f"newest version {NOTHING if age is None else f'{age:.0f} s'} old",
                alarm=not trainer and bool(metrics),
            ),
            Box("Replay buffer", *_data(card)),
            Box("Validation", *_validation(card)),
            Box("Model registry", count_of(len(numbers), "versions")),
        ],
        "Deployment and monitoring": [
            Box(
                "Rollout",
                _version(aliases.challenger) if aliases.challenger else "no challenger",
                (_difference(metrics) if active else silent) if aliases.challenger else step,
                share=share,
            ),
            Box(
                "Deployment", _version(aliases.champion), f"previous: {_version(aliases.previous)}"
            ),
            Box(
                "Monitoring",
                count_of(count(folder / "log", "alarm") if there else 0, "alarms"),
                silent if problems is None else f"/health: {count_of(len(problems), 'problems')}",
                alarm=bool(problems) or rung,
            ),
            live(
                "Fallback",
                f"{whole('bandits_decisions.fallback')} decisions",
                alarm=bool(problems) and fallback > 0,
            ),
        ],
    }
    return Production(
        groups,
        problems or [],
        problems is not None,
        _happened(changes),
        [_alarm(event) for event in reversed(alarms)],
    )


def _rate(events: list[Event], kind: str) -> str:
    begin = time.time() - _RECENT
    found = sum(event.kind == kind and event.time >= begin for event in events)
    return f"{found / _RECENT:.0f}"


def _version(number: int | None) -> str:
    return "none" if number is None else f"version {number}"


def _data(card: Any) -> tuple[str, str]:
    data = card.get("data")
    if not data:
        return NOTHING, ""
    return f"{data['decisions']:,} decisions", "of the newest version"


def _validation(card: Any) -> tuple[str, str]:
    found = card.get("validation")
    if not found:
        return NOTHING, ""
    gain = found["difference"]["snips"]
    value, low, high = (gain[name] for name in ("value", "low", "high"))
    if None in (value, low, high):
        return NOTHING, "SNIPS states no interval"
    return f"SNIPS {value:+.3f}", f"{low:+.3f} to {high:+.3f} against the champion"


def _difference(metrics: dict[str, float]) -> str:
    low, high = (
        metrics.get(f"bandits_rollout_difference.{end}", math.nan) for end in ("low", "high")
    )
    if not math.isfinite(low) or not math.isfinite(high):
        return "no difference known yet"
    return f"difference {low:+.3f} to {high:+.3f}"


def _alarm(event: Event) -> Happened:
    about, version = REGISTRY[event.body["monitor"]].title, event.body["version"]
    if version is not None:
        about += f", version {version}"
    return Happened(_moment(event), f"{about}: {event.body['sentence']}")


def _moment(event: Event) -> str:
    return datetime.fromtimestamp(event.time, UTC).strftime("%H:%M:%S")


def _happened(events: Sequence[Event]) -> list[Happened]:
    found, before = [], Aliases()
    for event in events:
        if event.kind == "verdict":
            sentences = [f"The gate decided to {event.body['action']}: {event.body['why']}."]
        else:
            now = Aliases(*event.body["aliases"])
            sentences = [
                f"{alias.capitalize()}: {_version(new)}, before: {_version(old)}."
                for alias, new, old in zip(Aliases._fields, now, before, strict=True)
                if new != old and alias in ("champion", "challenger")
            ]
            before = now
        found += [Happened(_moment(event), sentence) for sentence in sentences]
    return found[: -_SHOWN - 1 : -1]


def _metrics(url: str) -> dict[str, float]:
    """Return the numbers of /metrics, by name or name.label; none where nothing answers."""
    from prometheus_client.parser import text_string_to_metric_families

    status, text = _get(f"{url}/metrics")
    if status != 200:
        return {}
    return {
        ".".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def _problems(url: str) -> list[str] | None:
    status, text = _get(f"{url}/health")
    if status not in (200, 503):
        return None
    problems: list[str] = json.loads(text)["problems"]
    return problems


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""
