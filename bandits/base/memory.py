"""How much memory there is, and a refusal of what would take more."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import UserError
from .formatting import size


def machine_memory() -> float:
    """Return the bytes of memory that this machine, container or process may take; 16 GB if
    unknown.
    """
    limits = []
    try:
        limits.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    except (AttributeError, OSError, ValueError):
        limits.append(16e9)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(float(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):
            # no such file, or "max"
            continue
    try:
        import resource
    except ImportError:
        # not on Windows
        return min(limits)
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    return min(limits) if own == resource.RLIM_INFINITY else min(*limits, float(own))


def require_memory(needed: float, what: str, advice: str) -> None:
    """Refuse what takes more memory than there is, before it is taken.

    Parameters
    ----------
    needed : float
        Estimate, in bytes.
    what, advice : str
        What takes it, and what takes less; parts of the sentence.

    Raises
    ------
    UserError
        It is more than this machine, container or process may take.
    """
    if needed > (limit := machine_memory()):
        raise UserError(
            f"{what} takes about {size(needed)} of memory; {size(limit)} are available; {advice}"
        )
