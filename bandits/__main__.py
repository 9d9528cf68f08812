"""The command line, ``python -m bandits list|run|sweep|audit|runs|show|store``. Bad input: one sentence, status 2."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from bandits.base.params import metadata
from bandits.experiments.experiment import MAX_TEXT, Experiment, UserError, read
from bandits.experiments.validation import describe_range

from . import agents, simulators
from .cli import stored_runs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bandits", description="A laboratory for contextual bandits.")
    commands = parser.add_subparsers(dest="command", required=True)
    kinds = commands.add_parser("list", help="kinds of worlds and agents, their parameters, bounds and help")
    kinds.add_argument("--json", action="store_true", help="as JSON")
    running = commands.add_parser("run", help="run an experiment file")
    running.add_argument("--out", metavar="DIR", help="write experiment, curves, summary and timing there")
    auditing = commands.add_parser("audit", help="what the index of a world in two stages finds, costs and loses")
    for sweep in (running, auditing):
        sweep.add_argument("experiment", metavar="EXPERIMENT.json", help="a file, or - for standard input")
        sweep.add_argument("--replications", metavar="N", help="instead of the file's")
        sweep.add_argument("--steps", metavar="N", help="instead of the file's")
        sweep.add_argument(
            "--set", metavar="PATH=VALUE", action="append", default=[], help="change one field: agents.0.alpha=2"
        )
    sweeping = commands.add_parser("sweep", help="run a sweep file: an experiment and axes")
    sweeping.add_argument("sweep", metavar="SWEEP.json", help="a file, or - for standard input")
    sweeping.add_argument("--out", metavar="DIR", help="write points.parquet, summary.json and timing.json there")
    sweeping.add_argument("--workers", metavar="N", help="processes; one for each processor by default")
    sweeping.add_argument(
        "--cluster", metavar="URL", help="a Dask scheduler: tls://host:port; BANDITS_CLUSTER by default"
    )
    stored_runs.add_commands(commands)
    parsed = parser.parse_args(arguments)
    try:
        return {"list": _list, "run": _run, "sweep": _sweep, "audit": _audit, **stored_runs.COMMANDS}[parsed.command](
            parsed
        )
    except UserError as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or 'the output'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def catalogue() -> dict[str, Any]:
    """Every kind with its parameters as plain data: what forms, docs and the listing are made from."""
    out: dict[str, Any] = {}
    for group, registry in (("simulators", simulators.REGISTRY), ("agents", agents.REGISTRY)):
        out[group] = {}
        for kind, cls in registry.items():
            fields = {
                name: {
                    "title": field.title,
                    "symbol": metadata(field, "symbol"),
                    "unit": metadata(field, "unit"),
                    "default": field.default,
                    "allowed": describe_range(cls.Params, name),
                    "structural": bool(metadata(field, "structural")),
                    "help": field.description,
                }
                for name, field in cls.Params.model_fields.items()
                if name not in ("kind", "label")
            }
            doc = (cls.__doc__ or "").strip().split("\n\n")[0].split("\n")
            out[group][kind] = {"title": cls.title, "about": " ".join(map(str.strip, doc)), "parameters": fields}
    return out


def _list(parsed: argparse.Namespace) -> int:
    found = catalogue()
    if parsed.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    for group, kinds in found.items():
        print(group.upper())
        for kind, facts in kinds.items():
            print(f"\n  {kind} — {facts['about']}")
            for name, f in facts["parameters"].items():
                default = json.dumps(f["default"])
                shown = default if len(default) <= 40 else "a table"
                print(f"    {name} = {shown}  ({f['allowed']})  {f['help']}")
        print()
    return 0


def _run(parsed: argparse.Namespace) -> int:
    from tqdm import tqdm

    experiment = _experiment(parsed)
    if parsed.out:
        Path(parsed.out).mkdir(parents=True, exist_ok=True)  # found out before the run, not after it
    from . import run

    with tqdm(total=experiment.steps, unit="step", desc="running", file=sys.stderr, disable=None) as bar:
        result = run(experiment, progress=lambda step, _: bar.update(step - bar.n))
    if parsed.out:
        result.save(parsed.out)
    print(stored_runs.leaderboard(result))
    return 0


def _sweep(parsed: argparse.Namespace) -> int:
    from .cli import sweep

    return sweep.run(_text(parsed.sweep), parsed.out, parsed.workers, parsed.cluster)


def _text(name: str) -> bytes | str:
    """A file, or standard input; never more than can be used, whatever is piped in."""
    if name == "-":
        found: bytes | str = getattr(sys.stdin, "buffer", sys.stdin).read(MAX_TEXT + 1)
        return found
    with Path(name).open("rb") as file:
        return file.read(MAX_TEXT + 1)


def _audit(parsed: argparse.Namespace) -> int:
    from .diagnostics import retrieval

    experiment = _experiment(parsed)
    if (found := retrieval.evaluate_retrieval(experiment)) is None:
        _refuse("only the world ranking with simulator.retrieval nearest has an index to audit")
    for what, told in retrieval.summary_rows(found):
        print(f"{what}: {told}")
    return 0


def _experiment(parsed: argparse.Namespace) -> Experiment:
    text = _text(parsed.experiment)
    changes = [f"{name}={getattr(parsed, name)}" for name in ("replications", "steps") if getattr(parsed, name)]
    if not (changes := changes + parsed.set):
        return read(text)
    read(text)  # the file itself must be in order
    data = json.loads(text)
    for change in changes:
        path, sign, value = change.partition("=")
        if not sign:
            _refuse(f"--set {change}: write PATH=VALUE, for example agents.0.alpha=2")
        _put(data, path.split("."), _value(value), path)
    return read(data)


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=lambda name: _refuse(f"{name} is not a number that can be used"))
    except json.JSONDecodeError:
        return text


def _put(data: Any, path: list[str], value: Any, whole: str) -> None:
    for part in path[:-1]:
        data = _step(data, part, whole)
    last = path[-1]
    if isinstance(data, list):
        _step(data, last, whole)
        data[int(last)] = value
    elif isinstance(data, dict):
        data[last] = value
    else:
        _refuse(f"--set {whole}: there is nothing under '{path[-2]}'")


def _step(data: Any, part: str, whole: str) -> Any:
    if isinstance(data, list) and part.isdecimal() and int(part) < len(data):
        return data[int(part)]
    if isinstance(data, dict) and part in data:
        return data[part]
    what = f"a position from 0 to {len(data) - 1}" if isinstance(data, list) else "a known field"
    _refuse(f"--set {whole}: '{part}' is not {what}")


def _refuse(sentence: str) -> NoReturn:
    raise UserError(sentence)


if __name__ == "__main__":
    sys.exit(main())
