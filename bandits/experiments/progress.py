"""Show the progress of a run as a bar where a person is watching."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[int, int], Any]


@contextmanager
def reporting(progress: Progress | bool | None, steps: int) -> Iterator[Progress | None]:
    """Yield what is called with (step, steps) after every chunk: the given callable, a progress
    bar, or None.

    Parameters
    ----------
    progress : callable, bool or None
        None: a bar in a terminal or a notebook. True: a bar everywhere. False: no bar.
    steps : int
        Length of the run.
    """
    if callable(progress):
        yield progress
    elif progress or (progress is None and _is_interactive()):
        with warnings.catch_warnings():
            # tqdm warns in a notebook without ipywidgets, and prints a text bar
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
        with tqdm(total=steps, unit="step", desc="running", file=sys.stderr, leave=False) as bar:
            yield lambda step, _: bar.update(step - bar.n)
    else:
        yield None


def _is_interactive() -> bool:
    """Whether standard error is a terminal, or the process is the kernel of a notebook."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")
