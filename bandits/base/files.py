"""Write files atomically, pack arrays into bytes, cache computed arrays on disk, and read JSON
files of a package.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
import platformdirs

from .mapped_arrays import PART, mapped_npz, write_npz

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    # on Windows: `lock_file` then always succeeds
    fcntl = None

Arrays = dict[str, np.ndarray]
# bytes of arrays that stay in a file where they can
LARGE = 32 * 2**20


def home() -> Path:
    """Return the folder of all stored files: ``BANDITS_HOME``, or the user's data directory."""
    return Path(os.environ.get("BANDITS_HOME") or platformdirs.user_data_dir("bandit-playground"))


def lock_file(path: Path, *, wait: bool = False) -> IO[str] | None:
    """Open a file and lock it; None where another process holds the lock, unless it shall ``wait``.

    It is held until the file is closed, or its process ends, even by a kill.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    handle = path.open("w")
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        handle.close()
        return None
    return handle


def pack(arrays: Mapping[str, Any], *, compressed: bool = True) -> bytes:
    """Serialise named arrays as an npz archive, without pickles.

    Parameters
    ----------
    arrays : mapping of str to array
        A "/" in a name is stored as "|".
    compressed : bool
        Compress the archive with zstd and prefix its uncompressed length (8 bytes, little endian).
    """
    buffer = io.BytesIO()
    np.savez(buffer, **{name.replace("/", "|"): array for name, array in arrays.items()})
    raw = buffer.getvalue()
    if not compressed:
        return raw
    import pyarrow as pa

    return len(raw).to_bytes(8, "little") + bytes(pa.compress(raw, codec="zstd", asbytes=True))


def unpack(data: bytes, *, compressed: bool = True) -> Arrays:
    """Return the arrays that were given to `pack`.

    Raises
    ------
    ValueError
        The bytes are damaged.
    """
    try:
        if compressed:
            import pyarrow as pa

            data = pa.decompress(
                data[8:], int.from_bytes(data[:8], "little"), codec="zstd", asbytes=True
            )
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return {name.replace("|", "/"): stored[name] for name in stored.files}
    except Exception as error:
        # of zip, zstd and npy, also MemoryError where a length was forged
        raise ValueError(f"the arrays cannot be read: {error}") from error


def pack_file(arrays: Mapping[str, Any], folder: Path) -> Path:
    """Write what `pack` returns to a new file, a part at a time.

    Raises
    ------
    OSError
        The disk is full or cannot be written; no partial file stays.
    """
    import pyarrow as pa

    with _temporary(folder) as raw:
        write_npz(raw, {name.replace("/", "|"): array for name, array in arrays.items()})
        with _temporary(folder, kept=True) as packed, packed.open("wb") as file:
            file.write(raw.stat().st_size.to_bytes(8, "little"))
            file.flush()
            with raw.open("rb") as source, pa.CompressedOutputStream(file, "zstd") as target:
                shutil.copyfileobj(source, target, PART)
        return packed


def unpack_file(path: Path, start: int, folder: Path) -> Arrays:
    """Return the arrays that were given to `pack` from a place of a file on.

    Large ones stay in a temporary file of a folder, which is deleted already.

    Raises
    ------
    ValueError
        The bytes are damaged.
    OSError
        The file cannot be read.
    """
    with path.open("rb") as file:
        file.seek(start)
        length = int.from_bytes(file.read(8), "little")
        if length <= LARGE:
            file.seek(start)
            return unpack(data) if (data := file.read()) else {}
        import pyarrow as pa

        with suppress(OSError), _temporary(folder) as raw:
            with raw.open("wb") as target:
                source = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
                while (part := source.read(PART)) and target.tell() <= length:
                    target.write(part)
                if target.tell() != length:
                    raise ValueError("the arrays cannot be read: another length was stated")
            return {name.replace("|", "/"): a for name, a in mapped_npz(raw).items()}
        # a disk that is full, or bytes that cannot be decompressed: `unpack` states which
        file.seek(start)
        return unpack(file.read())


@contextmanager
def _temporary(folder: Path, *, kept: bool = False) -> Iterator[Path]:
    """Make a file, and delete it at the end, or only after an error."""
    handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(handle)
    try:
        yield Path(name)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    if not kept:
        Path(name).unlink(missing_ok=True)


def atomic_seal(path: Path, owner: str, about: bytes, content: Path, staging: Path) -> None:
    """Write what `seal` returns for some bytes and the content of a file, a part at a time.

    A crash leaves the old file or the new one.

    Raises
    ------
    OSError
        The disk is full or cannot be written; the old content stays.
    """
    checksum = hashlib.sha256(owner.encode() + b"\0" + about)
    with _temporary(staging) as staged:
        with staged.open("wb") as file, content.open("rb") as source:
            file.write(bytes(checksum.digest_size) + about)
            while part := source.read(PART):
                checksum.update(part)
                file.write(part)
            file.seek(0)
            file.write(checksum.digest())
            file.flush()
            os.fsync(file.fileno())
        move_into_place(staged, path)


def is_sealed(owner: str, file: IO[bytes]) -> bool:
    """Return whether a file holds what `seal` made for an owner; it is read a part at a time."""
    digest, checksum = file.read(32), hashlib.sha256(owner.encode() + b"\0")
    while part := file.read(PART):
        checksum.update(part)
    return checksum.digest() == digest


def seal(owner: str, data: bytes) -> bytes:
    """Prefix bytes by the SHA-256 (32 bytes) of their owner and themselves.

    Parameters
    ----------
    owner : str
        What the file belongs to, in hexadecimal digits and "/". Under another owner's name the
        checksum is wrong.
    data : bytes
    """
    return hashlib.sha256(owner.encode() + b"\0" + data).digest() + data


def unseal(owner: str, sealed: bytes) -> bytes | None:
    """Return the bytes that were given to `seal`; None if they are damaged or another owner's."""
    digest, data = sealed[:32], sealed[32:]
    return data if hashlib.sha256(owner.encode() + b"\0" + data).digest() == digest else None


def numbered_json(package: str) -> dict[str, Any]:
    """Return the content of the JSON files ``NUMBER-NAME.json`` of a package by name, in the order
    of the files.
    """
    paths = sorted(files(package).iterdir(), key=lambda path: path.name)
    names = [path.name.removesuffix(".json").partition("-")[2] for path in paths]
    return {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in zip(names, paths, strict=True)
        if path.name.endswith(".json")
    }


def cached_arrays(folder: str, content: str, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that ``make`` computes from ``content``, from disk if they were computed
    before.

    A damaged file is computed again. A file that cannot be written is skipped: the next run
    computes it again.

    Parameters
    ----------
    folder : str
        Subfolder of `home`.
    content : str
        Everything that the arrays depend on; its hash is the name of the file.
    make : callable
    """
    path = _cache_file(folder, content)
    with suppress(OSError):
        if (arrays := _cached(path)) is not None:
            return arrays
    arrays = make()
    with suppress(OSError):
        atomic_write(path, seal(path.stem, pack(arrays, compressed=False)))
    return arrays


def damaged_caches(folder: str) -> list[Path]:
    """List the files of `cached_arrays` in a subfolder of `home` that are damaged or belong to
    other content.
    """
    return [
        path
        for path in sorted((home() / folder).glob("*"))
        if path.suffix == ".part" or _cached(path) is None
    ]


def _cached(path: Path) -> Arrays | None:
    """Return the arrays of a cache file, or None if it is damaged or has another file's name."""
    data = unseal(path.stem, path.read_bytes())
    with suppress(ValueError):
        return None if data is None else unpack(data, compressed=False)
    return None


def is_cached(folder: str, content: str) -> bool:
    """Return whether `cached_arrays` has a file for this content."""
    return _cache_file(folder, content).exists()


def _cache_file(folder: str, content: str) -> Path:
    return home() / folder / f"{hashlib.sha256(content.encode()).hexdigest()}.npz"


def stage(data: bytes, folder: Path) -> Path:
    """Write and sync a temporary file in ``folder``, and return its path.

    Raises
    ------
    OSError
        The disk is full or cannot be written; no partial file stays.
    """
    handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def move_into_place(staged: Path, path: Path) -> None:
    """Rename a staged file to its final path, in one atomic step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(staged, path)


def atomic_write(path: Path, data: bytes, *, staging: Path | None = None) -> None:
    """Write a file so that a crash leaves either the old content or the new one, never a part.

    Parameters
    ----------
    staging : Path, optional
        Folder of the temporary file, on the same file system; the target's own folder by default.

    Raises
    ------
    OSError
        The disk is full or cannot be written; the old content stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if staging is not None:
        staging.mkdir(exist_ok=True)
    staged = stage(data, staging or path.parent)
    try:
        move_into_place(staged, path)
    finally:
        staged.unlink(missing_ok=True)
