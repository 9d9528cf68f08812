"""The line in which files of users are read: in child processes, a few at a time."""

from __future__ import annotations

from bandits.base.processes import Line

# address space of a process that reads a user's file, in bytes; the libraries take a third of it
MEMORY = 2 * 2**30

READINGS = Line(
    "readings of files",
    waiting=16,
    at_once=2,
    seconds=60.0,
    memory=MEMORY,
    advice="read larger files on the command line",
)
