"""Copy a folder at every system call of a process that writes, as a kill at that moment would leave
it.

A killed process keeps what it has written so far: the system holds it. The state at the n-th
writing call is therefore what a kill before that call leaves behind, and one traced run gives all
of them (Linux, `ptrace`)."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEIZE, INTERRUPT, SYSCALL, INFO, SYSGOOD, ALL_THREADS = 0x4206, 0x4207, 24, 0x420E, 1, 0x40000000
# kind of stop: before the call
ENTRY = 1
CREATE = os.O_CREAT | os.O_TRUNC
# numbers of calls that change files; those of the second table do so with some flags only (position
# of the flags)
CALLS = {
    "x86_64": (
        {1, 18, 20, 76, 77, 82, 83, 84, 85, 86, 87, 258, 263, 264, 265, 285, 316},
        {2: 1, 257: 2},
    ),
    "aarch64": ({34, 35, 37, 38, 45, 46, 47, 64, 66, 68, 276}, {56: 2}),
}
PROGRAM = """
import sys
from tests.storage import crash_work
work = crash_work.prepare(sys.argv[1], sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
work()
"""


class SyscallInfo(ctypes.Structure):
    """The first fields of ``struct ptrace_syscall_info``."""

    _fields_ = (
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
    )


def crash_states(work: str, home: Path, target: Path) -> tuple[int, list[Path]]:
    """Run some work and return the number of its writing calls, and the different folders that a
    kill leaves.
    """
    always, by_flags = CALLS[platform.machine()]
    environment = {**os.environ, "BANDITS_HOME": str(home), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-c", PROGRAM, work, str(home)]
    calls, found = 0, dict[str, Path]()

    def keep() -> None:
        content = hashlib.sha256()
        paths = [
            path for path in sorted(home.rglob("*")) if path.name != "reserve" and path.is_file()
        ]
        for path in paths:
            content.update(str(path).encode() + path.read_bytes())
        if (name := content.hexdigest()) not in found:
            found[name] = target / f"{len(found)}"
            shutil.copytree(home, found[name], ignore=shutil.ignore_patterns("reserve"))

    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        pid, info = process.pid, SyscallInfo()
        _ptrace(SEIZE, pid, 0, SYSGOOD)
        _ptrace(INTERRUPT, pid, 0, 0)
        os.waitpid(pid, ALL_THREADS)
        process.stdin.close()
        passed = 0
        while True:
            _ptrace(SYSCALL, pid, 0, passed)
            _, status = os.waitpid(pid, ALL_THREADS)
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            stop = os.WSTOPSIG(status)
            passed = 0 if stop & 0x7F == signal.SIGTRAP else stop
            if stop != signal.SIGTRAP | 0x80:
                continue
            _ptrace(INFO, pid, ctypes.sizeof(info), ctypes.addressof(info))
            number = int(info.number)
            writes = number in always or (
                number in by_flags and info.arguments[by_flags[number]] & CREATE
            )
            if info.op == ENTRY and writes:
                calls += 1
                keep()
        assert process.returncode == 0
    keep()
    return calls, list(found.values())


def _ptrace(request: int, pid: int, address: int, data: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    library.ptrace.restype = ctypes.c_long
    if library.ptrace(request, pid, address, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace request {request:#x}")
