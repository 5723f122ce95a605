"""Fetch a corpus from its publisher: resumable, verified by size and checksum, atomic.

Which corpus comes from where stands in `publishers.py`; reading the files is left to `corpora/`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PureWindowsPath
from typing import TypeVar, cast
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from tigs.data.lock import one_at_a_time
from tigs.data.publishers import Checksum, ChecksumKind, Page, Publisher, RemoteFile
from tigs.errors import DownloadError
from tigs.progress import bytes_progress

MANIFEST = "downloaded.json"
N_RETRIES = 3
CHUNK_BYTES = 1 << 20

T = TypeVar("T")
Advance = Callable[[int], None]


def download(
    publisher: Publisher, folder: Path, *, pause: Callable[[float], object] = time.sleep, timeout: float = 30.0
) -> Path:
    """Fetch all files of a publisher below a folder. A finished download is recognised without the network.

    Args:
        publisher: lists the files.
        folder: made if need be.
        pause: waits some seconds before a broken connection is tried again.
        timeout: seconds without an answer after which a connection counts as broken.

    Returns:
        The folder.

    Raises:
        DownloadError: no network, a damaged file or no space. What has arrived is kept, except a damaged file.
    """
    if _is_complete(publisher, folder):
        return folder
    job = _Download(publisher, folder, pause, timeout)
    with job.disk_errors(), one_at_a_time(folder):
        if not _is_complete(publisher, folder):
            job.run()
    return folder


def checksum_of(path: Path, kind: ChecksumKind) -> Checksum:
    """The checksum of a file on disk."""

    def start() -> hashlib._Hash:
        if kind == "sha256":
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)

    with path.open("rb") as handle:
        return Checksum(kind, hashlib.file_digest(handle, start).hexdigest())


@dataclass(frozen=True)
class _Download:
    """One call of `download`: the steps share where to, and what to tell the user when they fail."""

    publisher: Publisher
    folder: Path
    pause: Callable[[float], object]
    timeout: float

    def run(self) -> None:
        """Fetch every file, then note that all are there."""
        files = self.list_files()
        with bytes_progress(f"Downloading {self.publisher.source}", sum(file.size for file in files)) as advance:
            for file in files:
                self.fetch(file, advance)
        self.write_manifest(files)

    def list_files(self) -> list[RemoteFile]:
        """The publisher's listing, checked: a wrong one must not write outside the folder or pass as complete."""
        try:
            files = self.publisher.list_files(lambda url: self._retry(url, lambda: self._read_page(url)))
        except (KeyError, TypeError, ValueError) as error:  # such as the login page of a hotel's network
            raise self._error(f"{self.publisher.source} gave no usable file listing ({error})") from error
        if not files:
            raise self._error(f"{self.publisher.source} lists none of the expected files")
        for file in files:
            path = PureWindowsPath(file.path)  # knows drives and both separators, so it is the stricter judge
            if path.anchor or ".." in path.parts:
                raise self._error(f"{self.publisher.source} lists a file outside its own folder: {file.path}")
        return files

    def fetch(self, file: RemoteFile, advance: Advance) -> None:
        """Bring one file to its place, unless it is there."""
        target = self.folder / file.path
        if _size(target) == file.size and checksum_of(target, file.checksum.kind) == file.checksum:
            advance(file.size)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        if (_size(part) or 0) > file.size:
            part.unlink()
        advance(_size(part) or 0)
        self._retry(file.url, lambda: self._transfer(file, part, advance))
        with part.open("ab") as handle:  # on the disk before it gets its final name, in case the power fails
            os.fsync(handle.fileno())
        found = checksum_of(part, file.checksum.kind)
        if found != file.checksum:
            part.unlink()
            raise self._error(f"{file.url} arrived damaged: expected {file.checksum}, found {found}")
        part.replace(target)

    def write_manifest(self, files: list[RemoteFile]) -> None:
        """Note what is complete, so that the next start need not ask the publisher."""
        entries = {file.path: {"size": file.size, "checksum": str(file.checksum)} for file in files}
        text = json.dumps({"source": self.publisher.source, "files": entries}, ensure_ascii=False, indent=1)
        part = self.folder / f"{MANIFEST}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(self.folder / MANIFEST)

    def _transfer(self, file: RemoteFile, part: Path, advance: Advance) -> None:
        """Append the bytes that are missing, in one connection."""
        already = _size(part) or 0
        if already == file.size:
            return
        response, offset = self._open_at(file.url, already)
        with response:
            announced = _announced_size(response)
            if announced not in (None, file.size):
                part.unlink(missing_ok=True)
                raise self._error(f"{file.url} has the wrong size: expected {file.size} bytes, found {announced}")
            advance(offset - already)
            with self.disk_errors():
                handle = part.open("ab" if offset else "wb", buffering=0)
            with handle:
                while offset < file.size:
                    # read1 hands over what is there; read would lose a half-filled chunk when the connection breaks.
                    chunk = response.read1(min(CHUNK_BYTES, file.size - offset))
                    if not chunk:
                        raise ConnectionError("the connection was cut")
                    with self.disk_errors():
                        rest = memoryview(chunk)
                        while rest:  # a disk that fills up takes a part of the bytes first
                            rest = rest[handle.write(rest) :]
                    offset += len(chunk)
                    advance(len(chunk))

    def _open_at(self, url: str, offset: int) -> tuple[HTTPResponse, int]:
        """A response and the place in the file where its bytes begin: `offset`, or 0 if the server cannot do that."""
        try:
            response = self._open(url, offset)
        except HTTPError as error:
            if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            error.close()
            return self._open(url), 0
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            return response, 0
        if (response.headers["Content-Range"] or "").startswith(f"bytes {offset}-"):
            return response, offset
        response.close()
        return self._open(url), 0

    def _open(self, url: str, offset: int = 0) -> HTTPResponse:
        headers = {"User-Agent": "tigs"} | ({"Range": f"bytes={offset}-"} if offset else {})
        return cast(HTTPResponse, urlopen(Request(url, headers=headers), timeout=self.timeout))

    def _read_page(self, url: str) -> Page:
        with self._open(url) as response:
            following = re.search(r'<([^>]+)>;\s*rel="?next"?', response.headers["Link"] or "")
            return Page(json.load(response), urljoin(url, following[1]) if following else None)

    def _retry(self, url: str, attempt: Callable[[], T]) -> T:
        """The attempt's result. Only what may pass by itself is tried again: broken connections and server errors."""
        failure: Exception | None = None
        for n_failures in range(N_RETRIES + 1):
            if n_failures:
                self.pause(float(n_failures))
            try:
                return attempt()
            except (HTTPException, OSError) as error:  # of the network: those of the disk are DownloadErrors by now
                failure = error
                if isinstance(error, HTTPError):
                    error.close()
                    if error.code < HTTPStatus.INTERNAL_SERVER_ERROR:
                        break
                elif isinstance(error, URLError):  # there was no connection at all
                    failure = error.reason if isinstance(error.reason, Exception) else error
                    break
        reason = getattr(failure, "strerror", None) or str(failure)
        raise self._error(f"cannot fetch {url}: {reason}") from failure

    def _error(self, problem: str) -> DownloadError:
        again = "Check the network and run the command again, it goes on where it stopped"
        return DownloadError(problem, remedy=f"{again}; or get the files by hand: {self.publisher.manual}")

    @contextmanager
    def disk_errors(self) -> Iterator[None]:
        """Turn errors of the disk into one that names the folder and the way out."""
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            remedy = "Free some space there" if full else "Make it writable"
            raise DownloadError(
                f"cannot write to {self.folder}: {error.strerror or error}",
                remedy=f"{remedy}, or set data.cache_dir to another folder; what has arrived is kept",
            ) from error


def _is_complete(publisher: Publisher, folder: Path) -> bool:
    """Whether the manifest is this publisher's and all its files are there; sizes alone, hashing takes too long."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        there = all(_size(folder / path) == entry["size"] for path, entry in manifest["files"].items())
        return there and bool(manifest["source"] == publisher.source)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # none yet, or damaged: ask the publisher
        return False


def _size(path: Path) -> int | None:
    """Bytes in a file, none if there is no file."""
    return path.stat().st_size if path.is_file() else None


def _announced_size(response: HTTPResponse) -> int | None:
    """Size of the whole file according to the server, if it says."""
    total = response.headers["Content-Length"] or ""
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        total = (response.headers["Content-Range"] or "").rpartition("/")[2]
    return int(total) if total.isdigit() else None
