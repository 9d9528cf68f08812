"""Arrays that stay in a file: they take memory only while they are read, a part at a time."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

# bytes that are read at once
PART = 4 * 2**20


def array_at(
    content: mmap.mmap, start: int, dtype: Any, shape: Sequence[int], order: Literal["C", "F"]
) -> np.ndarray:
    """Return an array whose bytes begin at a place of a mapped file."""
    return np.ndarray(tuple(shape), dtype, content, start, order=order)


def parts(array: np.ndarray) -> Iterator[memoryview]:
    """Yield the bytes of a contiguous array in the order of memory, some MiB at a time.

    Of an array in a file, what has been read leaves memory again.
    """
    data, content = array.reshape(-1, order="A").view(np.uint8).data, _content(array)
    for start in range(0, len(data), PART):
        yield data[start : start + PART]
        if content is not None and hasattr(mmap, "MADV_DONTNEED"):
            content.madvise(mmap.MADV_DONTNEED)


def memory(array: Any) -> int:
    """Return the bytes that an array takes in memory; none if it stays in a file."""
    made = np.asarray(array)
    return 0 if _content(made) is not None else made.nbytes


def mapped_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an npz archive that is not compressed, which stay in the file.

    The file may be deleted: its content stays for as long as the arrays do.

    Raises
    ------
    ValueError
        The file is no such archive, or holds Python objects.
    OSError
        The file cannot be read.
    """
    import zipfile

    arrays = {}
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for member in archive.infolist():
            with archive.open(member) as stream:
                version = np.lib.format.read_magic(stream)
                shape, fortran, dtype = _header(stream, version)
                # the name and the extra field of the member are before its first byte
                local = content[member.header_offset + 26 : member.header_offset + 30]
                before = 30 + int.from_bytes(local[:2], "little")
                before += int.from_bytes(local[2:], "little")
                start = member.header_offset + before + stream.tell()
            if member.compress_type != zipfile.ZIP_STORED or dtype.hasobject:
                raise ValueError(f"{member.filename} cannot be mapped")
            name = member.filename.removesuffix(".npy")
            arrays[name] = array_at(content, start, dtype, shape, "F" if fortran else "C")
    return arrays


def write_npz(path: Path, arrays: dict[str, Any]) -> None:
    """Write an npz archive that is not compressed, without a copy of an array in memory.

    Raises
    ------
    OSError
        The disk is full or cannot be written.
    """
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            array = np.asarray(value)
            if not array.flags.forc:
                array = np.ascontiguousarray(array)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                described = np.lib.format.header_data_from_array_1_0(array)
                np.lib.format.write_array_header_2_0(member, described)
                for part in parts(array):
                    member.write(part)


def _header(stream: Any, version: tuple[int, int]) -> tuple[tuple[int, ...], bool, np.dtype]:
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    found: tuple[tuple[int, ...], bool, np.dtype] = read(stream)
    return found


def _content(array: np.ndarray) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None
