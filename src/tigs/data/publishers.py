"""Who publishes which corpus, at which revision, and how their listings are read. No network here: see `download.py`.

Sizes and checksums are not written down in this file: both kinds of publisher list them for every file of a revision.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import quote

from tigs.errors import DownloadError

ChecksumKind = Literal["git-sha1", "sha256"]


class Checksum(NamedTuple):
    """A hexadecimal digest and how it is made; `git-sha1` is the name that git gives to a file's content."""

    kind: ChecksumKind
    value: str

    def __str__(self) -> str:
        """`kind:value`, as written into messages and the manifest."""
        return f"{self.kind}:{self.value}"


@dataclass(frozen=True)
class RemoteFile:
    """One file as its publisher lists it. `path` is relative, with `/` between its parts."""

    path: str
    url: str
    size: int
    checksum: Checksum


class Page(NamedTuple):
    """One JSON answer, and the address of the next where a listing comes in several."""

    content: Any
    next_url: str | None


class Publisher(Protocol):
    """What `download` needs to know of a publisher."""

    @property
    def source(self) -> str:
        """Name and revision of the corpus; a download of another source is not taken for this one."""

    @property
    def manual(self) -> str:
        """How to get the files by hand."""

    def list_files(self, get_page: Callable[[str], Page]) -> list[RemoteFile]:
        """The corpus's files; `get_page` fetches a URL."""


@dataclass(frozen=True)
class GitHub:
    """Files of a GitHub repository at a revision."""

    repository: str
    """`owner/name`"""
    revision: str
    pattern: str
    """Regular expression for the whole path of a wanted file."""
    manual: str
    api_url: str = "https://api.github.com"
    raw_url: str = "https://raw.githubusercontent.com"

    @property
    def source(self) -> str:
        """Name and revision."""
        return f"github.com/{self.repository}@{self.revision}"

    def list_files(self, get_page: Callable[[str], Page]) -> list[RemoteFile]:
        """The wanted files, from one listing of the whole tree."""
        revision = quote(self.revision, safe="")
        listing = get_page(f"{self.api_url}/repos/{self.repository}/git/trees/{revision}?recursive=1").content
        entries = listing["tree"]
        if listing.get("truncated"):
            raise DownloadError(
                f"{self.source}: GitHub cut the file listing short", remedy=f"Get the files by hand: {self.manual}"
            )
        return [
            RemoteFile(
                path=entry["path"],
                url=f"{self.raw_url}/{self.repository}/{revision}/{quote(entry['path'])}",
                size=int(entry["size"]),
                checksum=Checksum("git-sha1", entry["sha"]),
            )
            for entry in entries
            if entry["type"] == "blob" and re.fullmatch(self.pattern, entry["path"])
        ]


@dataclass(frozen=True)
class HuggingFace:
    """Files of a data set on the Hugging Face hub at a revision."""

    repository: str
    """`owner/name`"""
    revision: str
    pattern: str
    """Regular expression for the whole path of a wanted file."""
    manual: str
    endpoint: str | None = None
    """The hub's address; none is the mirror named by the environment variable HF_ENDPOINT, or else the hub itself."""

    @property
    def source(self) -> str:
        """Name and revision."""
        return f"huggingface.co/datasets/{self.repository}@{self.revision}"

    def list_files(self, get_page: Callable[[str], Page]) -> list[RemoteFile]:
        """The wanted files, from a listing that comes in pages."""
        endpoint = (self.endpoint or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        revision = quote(self.revision, safe="")  # a revision such as refs/pr/9 is one part of the address
        files = []
        url: str | None = f"{endpoint}/api/datasets/{self.repository}/tree/{revision}?recursive=1"
        while url:
            entries, url = get_page(url)
            for entry in entries:
                if entry["type"] != "file" or not re.fullmatch(self.pattern, entry["path"]):
                    continue
                large = entry.get(
                    "lfs"
                )  # a large file: its own `oid` names the pointer that git keeps, not the content
                checksum = Checksum("sha256", large["oid"]) if large else Checksum("git-sha1", entry["oid"])
                address = f"{endpoint}/datasets/{self.repository}/resolve/{revision}/{quote(entry['path'])}"
                files.append(RemoteFile(entry["path"], address, int((large or entry)["size"]), checksum))
        return files


# The state of `master` that several other projects pin, found in 2026; all Tang and Song files are in one folder there.
_POETRY_REVISION = "b8594f81a89752241442f2ce267d6f66f96704ee"

PUBLISHERS: dict[str, Publisher] = {
    "poetry": GitHub(
        repository="chinese-poetry/chinese-poetry",
        revision=_POETRY_REVISION,
        # Digits only: `error/` has rejected files of the same names, and some revisions a simplified copy of each file.
        pattern=r"全唐诗/poet\.(tang|song)\.\d+\.json",
        manual=f"unpack https://github.com/chinese-poetry/chinese-poetry/archive/{_POETRY_REVISION}.zip, copy its "
        "全唐诗/poet.tang.*.json and 全唐诗/poet.song.*.json (not those in 全唐诗/error/) to a folder of their own, "
        "then use DATA_DIR=<that folder>",
    ),
    "dialog": HuggingFace(
        repository="OpenRL/daily_dialog",
        revision="1668faf0c0dc44664f108c489fd0666128db2c48",
        pattern=r".+\.parquet",
        manual="from https://huggingface.co/datasets/OpenRL/daily_dialog/tree/main/data save the three files "
        "train-, validation- and test-*.parquet (4 MB) in one folder, then use DATA_DIR=<that folder>",
    ),
    "aprc": HuggingFace(
        repository="fancyzhx/amazon_polarity",
        revision="9d9c45c18f8c3cf1b23a3c27917b60cbf28f3289",
        pattern=r".+\.parquet",
        manual="from https://huggingface.co/datasets/fancyzhx/amazon_polarity/tree/main/amazon_polarity save the "
        "files train-*.parquet and test-*.parquet (1.15 GB) in one folder, then use DATA_DIR=<that folder>",
    ),
}
