"""The commands of a service: ``serve``, ``learn``, ``registry``, ``train``, ``loop``,
``traffic`` and ``events``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandits.base.errors import UserError
from bandits.base.extras import require
from bandits.base.formatting import listed

if TYPE_CHECKING:
    from bandits.serving.trainer import Trained

TOKEN = "BANDITS_SERVE_TOKEN"  # noqa: S105
_SERVED = "settings of the service; default: those that it was served with last"


def add_commands(commands: Any) -> None:
    """Add the commands to the subparsers of the command line."""
    serving = commands.add_parser("serve", help="decide and learn behind HTTP addresses")
    serving.add_argument("folder", metavar="FOLDER", help="log, registry and snapshot of a service")
    _add_policy(serving)
    serving.add_argument(
        "--log",
        metavar="URL",
        help="decide beside other processes: redis://HOST:PORT/DATABASE, where `learn` learns",
    )
    serving.add_argument(
        "--host",
        default="127.0.0.1",
        help=f"address to listen at; another than a loopback one needs {TOKEN}",
    )
    serving.add_argument("--port", type=int, default=8765, help="default: 8765")

    learning = commands.add_parser("learn", help="learn what several services decide")
    learning.add_argument("folder", metavar="FOLDER", help="log, registry and snapshot")
    _add_policy(learning)
    learning.add_argument("--log", metavar="URL", required=True, help="of the services")

    registry = commands.add_parser("registry", help="versions of the policies of a service")
    registry.add_argument("folder", metavar="FOLDER")
    actions = registry.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="list the versions and what serves")
    for name, text in (
        ("show", "print what is known of a version"),
        ("promote", "make a version the champion"),
        ("challenge", "roll a version out beside the champion"),
        ("shadow", "let a version decide without being shown"),
    ):
        actions.add_parser(name, help=text).add_argument("number", metavar="N", type=int)
    actions.add_parser("register", help="store a policy as a version").add_argument("policy")
    actions.add_parser("rollback", help="make the previous version the champion again")

    training = commands.add_parser(
        "train", help="register a version that learned from the log of a service"
    )
    training.add_argument("folder", metavar="FOLDER")
    training.add_argument(
        "--events",
        metavar="N",
        type=int,
        default=100_000,
        help="latest decisions with a reward that are learned; default: 100,000",
    )
    training.add_argument("--settings", metavar="FILE.json", help=_SERVED)
    training.add_argument(
        "--challenge",
        action="store_true",
        help="roll the version out beside the champion, unless it is worse for sure",
    )

    training.add_argument(
        "--every", metavar="N", type=int, help="go on: train whenever N rewards have come"
    )
    training.add_argument(
        "--seconds", metavar="S", type=float, help="go on: train whenever S seconds have passed"
    )

    looping = commands.add_parser(
        "loop", help="start a service, its trainer and traffic, and stop them all in the end"
    )
    looping.add_argument("folder", metavar="FOLDER", help="of the service")
    looping.add_argument(
        "--simulator",
        metavar="SIMULATOR",
        help="its kind, or parameters as JSON; default: a pet shop of ten products",
    )
    looping.add_argument(
        "--agent",
        metavar="AGENT",
        help="of the first champion: its kind, or parameters as JSON; default: epsilon-greedy",
    )
    looping.add_argument(
        "--rate", metavar="X", type=float, default=100.0, help="decisions per second; default: 100"
    )
    looping.add_argument(
        "--for",
        metavar="S",
        type=float,
        default=60.0,
        help="seconds, at most 3,600; default: 60",
    )
    looping.add_argument(
        "--every", metavar="N", type=int, default=2_000, help="train whenever N rewards have come"
    )
    looping.add_argument("--settings", metavar="FILE.json", help=f"{_SERVED}, else short steps")

    driving = commands.add_parser("traffic", help="drive a simulator against a service")
    driving.add_argument("simulator", metavar="SIMULATOR", help="its kind, or parameters as JSON")
    driving.add_argument("--url", default="http://127.0.0.1:8765", help="of this machine")
    for name, default, text in (
        ("--rate", 100.0, "decisions per second, at most 1,000"),
        ("--for", 60.0, "seconds, at most 3,600"),
        ("--delay", 1.0, "mean seconds until a reward"),
        ("--missing", 0.1, "share of decisions without a reward"),
        ("--repeated", 0.05, "share of decisions and rewards that are sent twice"),
    ):
        driving.add_argument(
            name, metavar="X", type=float, default=default, help=f"{text}; default: {default:g}"
        )
    driving.add_argument("--seed", metavar="N", type=int, default=0, help="default: 0")

    events = commands.add_parser("events", help="erase, export or watch events of a service")
    events.add_argument("folder", metavar="FOLDER")
    doing = events.add_subparsers(dest="action", required=True, metavar="ACTION")
    forgetting = doing.add_parser(
        "forget", help="erase all events of a user; the service must not run"
    )
    forgetting.add_argument("--user", required=True, metavar="ID")
    forgetting.add_argument("--log", metavar="URL", help="erase them there too")
    doing.add_parser(
        "retention", help="erase days that are older; the service must not run"
    ).add_argument("--days", required=True, type=int)
    watching = doing.add_parser("alarms", help="let monitors read the log")
    watching.add_argument(
        "--monitor", metavar="KIND", action="append", help="only this monitor; can be repeated"
    )
    watching.add_argument("--settings", metavar="FILE.json", help=_SERVED)
    exporting = doing.add_parser("export", help="write the decisions that have a reward as a log")
    exporting.add_argument("out", metavar="FILE", help="FILE.parquet, or FILE.json for dsjson")


def _add_policy(command: argparse.ArgumentParser) -> None:
    command.add_argument("--policy", metavar="FILE", help="make this policy the champion first")
    command.add_argument("--settings", metavar="FILE.json", help=_SERVED)


def serve(parsed: argparse.Namespace) -> int:
    """Answer requests until interrupted."""
    require("uvicorn")
    require("prometheus_client")
    from bandits.serving import http
    from bandits.serving.distributed import Decider
    from bandits.serving.service import Service
    from bandits.serving.traffic import is_loopback

    folder, token = Path(parsed.folder), os.environ.get(TOKEN, "")
    if not token and not is_loopback(parsed.host):
        raise UserError(f"--host {parsed.host} can be reached by others: set {TOKEN} first")
    service: Service
    if parsed.log:
        if parsed.policy or parsed.settings:
            raise UserError("with --log, give --policy and --settings to learn: services follow it")
        service = Decider(folder, parsed.log)
    else:
        service = Service(folder, _begin(folder, parsed))
    http.serve(
        service,
        parsed.host,
        parsed.port,
        token=token,
        ready=lambda address: print(f"serving {address} from {folder}", flush=True),
    )
    return 0


def learn(parsed: argparse.Namespace) -> int:
    """Learn what several services decide, until interrupted."""
    from bandits.serving.distributed import Learner, learn

    folder = Path(parsed.folder)
    learner = Learner(folder, parsed.log, _begin(folder, parsed))
    print(f"learning in {folder}", flush=True)
    try:
        learn(learner, lambda sentence: print(sentence, flush=True))
    finally:
        learner.close()


def _begin(folder: Path, parsed: argparse.Namespace) -> Any:
    """Promote the policy that is given, and return the settings."""
    from bandits.serving.registry import Registry
    from bandits.serving.settings import stored

    params = _settings(parsed.settings) or stored(folder)
    if parsed.policy:
        registry = Registry(folder / "registry")
        registry.promote(_register(registry, parsed.policy))
    return params


def registry(parsed: argparse.Namespace) -> int:
    """List, show, register, promote and roll back versions."""
    from bandits.serving.registry import Registry

    found = Registry(Path(parsed.folder) / "registry")
    if parsed.action == "show":
        print(json.dumps(found.version(parsed.number).card, indent=2))
        return 0
    if parsed.action == "register":
        print(f"version {_register(found, parsed.policy)}")
        return 0
    if parsed.action == "promote":
        found.promote(parsed.number)
    elif parsed.action == "rollback":
        found.rollback()
    elif parsed.action in ("challenge", "shadow"):
        found.point("challenger" if parsed.action == "challenge" else "shadow", parsed.number)
    aliases = found.aliases()
    for number in found.numbers():
        serves = [name for name, is_at in aliases._asdict().items() if is_at == number]
        print(f"{number:>4}  {', '.join(serves)}".rstrip())
    return 0


def train(parsed: argparse.Namespace) -> int:
    """Train a version on the log, or one after the other, and state what is known of each."""
    from bandits.serving.trainer import challenge, follow, train

    folder, params = Path(parsed.folder), _settings(parsed.settings)

    def report(found: Trained | str) -> None:
        print(found if isinstance(found, str) else "\n".join(_validated(found)), flush=True)
        if parsed.challenge and not isinstance(found, str):
            print(challenge(folder, found), flush=True)

    if parsed.every is None and parsed.seconds is None:
        report(train(folder, params, decisions=parsed.events))
    else:
        follow(
            folder,
            params,
            decisions=parsed.events,
            every=parsed.every,
            seconds=parsed.seconds,
            report=report,
        )
    return 0


def _validated(found: Trained) -> list[str]:
    """State what a version learned from, and what the latest decisions tell of it."""
    from bandits.offpolicy.estimators import REGISTRY

    new, champion, difference = found.validation
    lines = [
        f"version {found.number}: learned from {found.decisions:,} decisions",
        f"Validated on the latest {new.n:,}, which earned {new.logged:.4g} per decision:",
    ]
    for name, interval in difference.items():
        lines.append(
            f"{REGISTRY[name].title}: {new.estimates[name].value:.4g}, version {found.champion} "
            f"{champion.estimates[name].value:.4g}, difference {interval.value:+.4g} (95 % "
            f"interval {interval.low:+.4g} to {interval.high:+.4g})"
        )
    lines.append(f"effective sample sizes: {new.support.ess:.0f} and {champion.support.ess:.0f}")
    return [*lines, *(alarm.sentence for alarm in new.alarms)]


def traffic(parsed: argparse.Namespace) -> int:
    """Send visitors, and print what was answered; status 1 where an answer is wrong or missing."""
    from bandits.serving.traffic import drive

    found = drive(
        _kind("simulator", parsed.simulator),
        parsed.url,
        rate=parsed.rate,
        seconds=getattr(parsed, "for"),
        delay=parsed.delay,
        missing=parsed.missing,
        repeated=parsed.repeated,
        seed=parsed.seed,
        token=os.environ.get(TOKEN, ""),
    )
    print("\n".join(found.sentences()))
    return int(found.failed > 0 or found.different > 0)


def loop(parsed: argparse.Namespace) -> int:
    """Run the whole loop until its time is over; status 1 where it ended before."""
    require("uvicorn")
    require("prometheus_client")
    from bandits.serving.loop import AGENT, SETTINGS, SIMULATOR, Loop
    from bandits.serving.settings import stored

    folder = Path(parsed.folder)
    started = Loop(
        folder,
        _kind("simulator", parsed.simulator) if parsed.simulator else SIMULATOR,
        agent=_kind("agent", parsed.agent) if parsed.agent else AGENT,
        rate=parsed.rate,
        seconds=getattr(parsed, "for"),
        every=parsed.every,
        params=_settings(parsed.settings) or stored(folder, SETTINGS),
        report=lambda sentence: print(sentence, flush=True),
    )
    try:
        started.wait()
    finally:
        started.stop()
    if started.problem:
        print(started.problem)
    return int(bool(started.problem))


def _kind(what: str, given: str) -> Any:
    """Return a kind, or parameters that are given as JSON."""
    try:
        return json.loads(given) if given.lstrip().startswith("{") else given
    except json.JSONDecodeError as error:
        raise UserError(f"the {what} is not JSON: {error}") from None


def events(parsed: argparse.Namespace) -> int:
    """Erase a user or old days, export decisions, or print the alarms of monitors."""
    from bandits.serving.distributed import opened
    from bandits.serving.http import pseudonym
    from bandits.serving.redis_log import RedisLog

    folder = Path(parsed.folder)
    if not (folder / "log").is_dir():
        raise UserError(f"{folder}: there is no event log")
    if parsed.action == "export":
        return _export(folder, Path(parsed.out))
    if parsed.action == "alarms":
        return _watch(folder, parsed)
    service = opened(folder, erase=parsed.action == "forget")
    if service.problem:
        print(service.problem, file=sys.stderr)
    try:
        if parsed.action == "forget":
            name = pseudonym(folder, parsed.user)
            erased = service.forget(name)
            if parsed.log:
                # `find` keeps there what was moved here
                RedisLog(parsed.log, keep=1.0).forget(name)
            print(f"erased {erased:,} events")
        else:
            # the snapshot holds what the erased days taught
            service.snapshot()
            print(f"erased {len(service.store.retain(parsed.days)):,} days")
    finally:
        service.close()
    return 0


def _watch(folder: Path, parsed: argparse.Namespace) -> int:
    from bandits.serving.watch import watch

    found = watch(folder, _settings(parsed.settings), monitors=parsed.monitor)
    print(f"{found.decisions:,} decisions with a reward, read by {listed(found.monitors)}")
    for moment, alarm in found.alarms:
        print(f"{moment}  {alarm.monitor}: {alarm.sentence}")
    if not found.alarms:
        print("no alarm")
    return 0


def _export(folder: Path, out: Path) -> int:
    """Write the decisions with the features that the champion of now gives their contexts."""
    from bandits.offpolicy.dsjson import write_dsjson
    from bandits.offpolicy.parquet import write_parquet
    from bandits.policy import Policy
    from bandits.serving.decisions import join, log_of
    from bandits.serving.event_log import read_events
    from bandits.serving.registry import Registry

    found = Registry(folder / "registry")
    champion = found.aliases().champion
    if champion is None:
        raise UserError("the registry has no champion")
    policy = Policy.from_bytes(found.version(champion).policy)
    written = log_of(policy, join(read_events(folder / "log")))
    (write_dsjson if out.suffix == ".json" else write_parquet)(written, out)
    print(f"wrote {len(written):,} decisions to {out}")
    return 0


def _register(registry: Any, path: str) -> int:
    from bandits.policy import Policy

    # refuses what is no policy
    policy = Policy.load(path)
    about = {"file": Path(path).name, "agent": policy.params.model_dump(mode="json")}
    number: int = registry.register(Path(path).read_bytes(), about)
    return number


def _settings(path: str | None) -> Any:
    """Read the settings that are given; None: none are."""
    from bandits.serving.settings import read_settings

    return read_settings(Path(path)) if path else None
