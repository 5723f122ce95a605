"""Downloads from a real HTTP server on localhost that can be told to misbehave in all the ways that servers do."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tigs
from tigs.data.download import N_RETRIES, checksum_of, download
from tigs.data.publishers import PUBLISHERS, Checksum, GitHub, HuggingFace
from tigs.errors import DownloadError
from tigs.progress import bytes_progress, track

MANUAL = "copy the files by hand, then use DATA_DIR=<that folder>"
TANG = "全唐诗/poet.tang.0.json"
SONG = "全唐诗/poet.song.1000.json"


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob " + str(len(content)).encode() + b"\0" + content).hexdigest()


def make_bytes(size: int, seed: int = 0) -> bytes:
    """Bytes that do not repeat, so that a piece in the wrong place is noticed."""
    return hashlib.shake_128(str(seed).encode()).digest(size)


@dataclass
class Server:
    """Both kinds of publisher at one address. Every request reads the fields anew, so tests change them any time."""

    files: dict[str, bytes]
    url: str = ""
    sent_instead: dict[str, bytes] = field(default_factory=dict)
    """Other bytes than the listing promises."""
    small: set[str] = field(default_factory=set)
    """Hugging Face files outside LFS."""
    cuts: list[int] = field(default_factory=list)
    """Bytes after which each of the next file answers is cut."""
    reset: bool = False
    """Cut with a reset instead of an orderly end."""
    range_answer: str = "206"
    """206, 200 (ignores the range), 416 or `wrong` (a 206 that starts elsewhere)."""
    file_status: int = 200
    listing_status: int = 200
    listing_body: bytes | None = None
    n_listing_cuts: int = 0
    """How many of the next listings are cut in the middle."""
    page_size: int = 1000
    truncated: bool = False
    stall_after: int | None = None
    """Bytes after which a file answer hangs until the server is stopped."""
    released: threading.Event = field(default_factory=threading.Event)
    n_sent: Counter[str] = field(default_factory=Counter)
    """Bytes sent of each file."""
    requests: list[str] = field(default_factory=list)
    user_agents: set[str] = field(default_factory=set)

    def __enter__(self) -> Server:
        server = self

        class Handler(_Handler):
            world = server

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()

    def github(self) -> GitHub:
        return GitHub("owner/name", "a1b2", r".+\.json", MANUAL, api_url=self.url, raw_url=f"{self.url}/raw")

    def hugging_face(self) -> HuggingFace:
        return HuggingFace("owner/name", "refs/pr/9", r".+\.parquet", MANUAL, endpoint=self.url)

    @property
    def file_requests(self) -> list[str]:
        return [request for request in self.requests if "/raw/" in request or "/cdn/" in request]


class _Handler(BaseHTTPRequestHandler):
    world: Server

    def do_GET(self) -> None:
        world = self.world
        address = urlsplit(self.path)
        world.requests.append(self.path)
        world.user_agents.add(self.headers["User-Agent"])
        if not self.path.isascii():
            self.send_error(400)
        elif re.fullmatch(r"/repos/[^/]+/[^/]+/git/trees/[^/]+", address.path) and address.query == "recursive=1":
            tree: list[dict[str, object]] = [{"path": "全唐诗", "type": "tree", "sha": "0" * 40}]
            tree += [
                {"path": path, "type": "blob", "size": len(content), "sha": git_sha1(content)}
                for path, content in world.files.items()
            ]
            self.send_listing({"tree": tree, "truncated": world.truncated})
        elif re.fullmatch(r"/api/datasets/[^/]+/[^/]+/tree/[^/]+", address.path):
            self.send_tree_page(int(parse_qs(address.query).get("cursor", ["0"])[0]))
        elif match := re.fullmatch(r"/datasets/[^/]+/[^/]+/resolve/[^/]+/(.+)", address.path):
            self.send_response(302)  # the hub keeps large files elsewhere
            self.send_header("Location", f"{world.url}/cdn/{match[1]}")
            self.end_headers()
        elif match := re.fullmatch(r"/raw/[^/]+/[^/]+/[^/]+/(.+)|/cdn/(.+)", address.path):
            self.send_file(unquote(match[1] or match[2]))
        else:
            self.send_error(404)

    def send_tree_page(self, first: int) -> None:
        world = self.world
        entries: list[dict[str, object]] = [{"path": "data", "type": "directory", "size": 0, "oid": "0" * 40}]
        for path, content in world.files.items():
            entry: dict[str, object] = {"path": path, "type": "file", "size": len(content), "oid": git_sha1(content)}
            if path not in world.small:
                entry["oid"] = git_sha1(b"the pointer, not the content")
                entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 132}
            entries.append(entry)
        following = first + world.page_size
        link = f'<{self.path.split("?")[0]}?recursive=1&cursor={following}>; rel="next"'
        self.send_listing(entries[first:following], link=link if following < len(entries) else None)

    def send_listing(self, content: object, link: str | None = None) -> None:
        body = json.dumps(content).encode() if self.world.listing_body is None else self.world.listing_body
        self.send_response(self.world.listing_status)
        self.send_header("Content-Length", str(len(body)))
        if link:
            self.send_header("Link", link)
        self.end_headers()
        if self.world.n_listing_cuts:
            self.world.n_listing_cuts -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def send_file(self, path: str) -> None:
        world = self.world
        content = world.sent_instead.get(path, world.files.get(path))
        if content is None or world.file_status != 200:
            self.send_error(404 if content is None else world.file_status)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        first = int(wanted[1]) if wanted and world.range_answer == "206" else 0
        if wanted and world.range_answer == "416":
            self.send_error(416)
            return
        partial = wanted is not None and world.range_answer != "200"
        self.send_response(206 if partial else 200)
        self.send_header("Content-Length", str(len(content) - first))
        if partial:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        self.send_body(path, content[first:])

    def send_body(self, path: str, body: bytes) -> None:
        world = self.world
        cut = world.cuts.pop(0) if world.cuts else None
        stop = cut if cut is not None else world.stall_after
        sent = body[:stop]
        world.n_sent[path] += len(sent)
        self.wfile.write(sent)
        self.wfile.flush()
        if cut is not None:
            if world.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.rfile.close()
                self.connection.close()
            else:
                self.connection.shutdown(socket.SHUT_RDWR)
        elif len(sent) < len(body):
            world.released.wait()

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):  # a connection that this server reset, or that the client gave up
            self.close_connection = True

    def finish(self) -> None:
        try:
            super().finish()
        except (OSError, ValueError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("HF_ENDPOINT", raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server({TANG: make_bytes(5000), SONG: make_bytes(3000, seed=1)}) as running:
        yield running


class Pauses(list[float]):
    """Remembers the pauses instead of making them."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


def files_below(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    found.pop("downloaded.json", None)
    return found


def part_of(folder: Path, path: str) -> Path:
    part = folder / f"{path}.part"
    part.parent.mkdir(parents=True, exist_ok=True)
    return part


def run_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another Python process with the same package."""
    environment = os.environ | {"PYTHONPATH": str(Path(tigs.__file__).parents[1]), "PYTHONIOENCODING": "utf-8"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], env=environment, stdout=subprocess.PIPE, encoding="utf-8"
    )


DOWNLOAD_CODE = """
import resource, sys
from pathlib import Path
from tigs.data.download import download
from tigs.data.publishers import GitHub
from tigs.errors import DownloadError
url, folder, limit = sys.argv[1:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    download(GitHub("owner/name", "a1b2", r".+[.]json", "", api_url=url, raw_url=f"{url}/raw"), Path(folder))
except DownloadError as error:
    print(error)
"""


# Whole downloads


def test_checksums_are_those_of_git_and_sha256sum(tmp_path: Path) -> None:
    path = tmp_path / "hello"
    path.write_bytes(b"hello\n")
    # `git hash-object hello` and `sha256sum hello`
    assert checksum_of(path, "git-sha1") == Checksum("git-sha1", "ce013625030ba8dba906f756967f9e9ca394464a")
    assert checksum_of(path, "sha256").value == "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"


def test_github(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert download(server.github(), folder) == folder
    assert files_below(folder) == server.files
    assert server.user_agents == {"tigs"}
    assert "/raw/owner/name/a1b2/%E5%85%A8%E5%94%90%E8%AF%97/poet.tang.0.json" in server.requests


def test_hugging_face(server: Server, tmp_path: Path) -> None:
    server.files = {
        "data/train-00000-of-00001.parquet": make_bytes(4000, seed=2),
        "data/小 文件#1?.parquet": make_bytes(100, seed=3),
        "data/empty.parquet": b"",
    }
    server.small = {"data/小 文件#1?.parquet", "data/empty.parquet"}
    expected = dict(server.files)
    server.files["README.md"] = b"not wanted"
    download(server.hugging_face(), tmp_path)
    assert files_below(tmp_path) == expected
    assert server.requests[0] == "/api/datasets/owner/name/tree/refs%2Fpr%2F9?recursive=1"
    assert "/datasets/owner/name/resolve/refs%2Fpr%2F9/data/train-00000-of-00001.parquet" in server.requests


def test_hugging_face_mirror_from_environment(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{server.url}/")
    server.files = {"a.parquet": b"content"}
    download(replace(server.hugging_face(), endpoint=None), tmp_path)
    assert files_below(tmp_path) == server.files


def test_hugging_face_listing_in_pages(server: Server, tmp_path: Path) -> None:
    server.files = {f"data/{number}.parquet": make_bytes(10, seed=number) for number in range(7)}
    server.page_size = 3
    download(server.hugging_face(), tmp_path)
    assert files_below(tmp_path) == server.files
    assert sum("/tree/" in request for request in server.requests) == 3


def test_poetry_takes_the_right_files_only(server: Server, tmp_path: Path) -> None:
    wanted = dict(server.files)
    for path in ("全唐诗/error/poet.tang.0.json", "全唐诗/poet.song.0.simplified.json", "全唐诗/authors.tang.json"):
        server.files[path] = b"[]"
    poetry = PUBLISHERS["poetry"]
    assert isinstance(poetry, GitHub)
    download(replace(poetry, api_url=server.url, raw_url=f"{server.url}/raw"), tmp_path)
    assert files_below(tmp_path) == wanted


def test_all_publishers_say_how_to_do_it_by_hand() -> None:
    assert set(PUBLISHERS) == {"poetry", "dialog", "aprc"}
    for publisher in PUBLISHERS.values():
        assert publisher.manual.endswith("then use DATA_DIR=<that folder>")
        assert "https://" in publisher.manual
        assert "\n" not in publisher.manual


# What is there already


def test_finished_download_needs_no_network(server: Server, tmp_path: Path) -> None:
    publisher = server.github()
    download(publisher, tmp_path)
    n_requests = len(server.requests)
    server.http.shutdown()
    server.http.server_close()
    assert download(publisher, tmp_path) == tmp_path
    assert len(server.requests) == n_requests
    manifest = json.loads((tmp_path / "downloaded.json").read_text(encoding="utf-8"))
    assert manifest["files"][TANG] == {"size": 5000, "checksum": f"git-sha1:{git_sha1(server.files[TANG])}"}


def test_complete_files_are_not_fetched_again(server: Server, tmp_path: Path) -> None:
    """The file of an interrupted download that is complete stays; one of another size or content is replaced."""
    (tmp_path / TANG).parent.mkdir()
    (tmp_path / TANG).write_bytes(server.files[TANG])
    (tmp_path / SONG).write_bytes(make_bytes(3000, seed=9))
    download(server.github(), tmp_path)
    assert files_below(tmp_path) == server.files
    assert set(server.n_sent) == {SONG}


@pytest.mark.parametrize("damage", ["missing file", "short file", "broken manifest", "odd manifest", "other revision"])
def test_manifest_that_does_not_fit_is_not_believed(server: Server, tmp_path: Path, damage: str) -> None:
    publisher = server.github()
    download(publisher, tmp_path)
    server.n_sent.clear()
    if damage == "missing file":
        (tmp_path / SONG).unlink()
    elif damage == "short file":
        (tmp_path / SONG).write_bytes(b"short")
    elif damage == "broken manifest":
        (tmp_path / "downloaded.json").write_text('{"source"')
    elif damage == "odd manifest":
        (tmp_path / "downloaded.json").write_text('{"source": "x", "files": [1]}')
    else:
        publisher = replace(publisher, revision="c3d4")
        server.files[SONG] = make_bytes(3000, seed=5)
    n_requests = len(server.requests)
    download(publisher, tmp_path)
    assert files_below(tmp_path) == server.files
    assert len(server.requests) > n_requests
    assert set(server.n_sent) == (set() if "manifest" in damage else {SONG})


# Interrupted downloads


def test_cut_connection_goes_on_where_it_stopped(server: Server, tmp_path: Path, pauses: Pauses) -> None:
    server.cuts = [1234, 2000]
    download(server.github(), tmp_path, pause=pauses)
    assert files_below(tmp_path) == server.files
    assert server.n_sent == {TANG: 5000, SONG: 3000}
    assert pauses == [1.0, 2.0]


def test_cut_connection_through_a_redirect(server: Server, tmp_path: Path, pauses: Pauses) -> None:
    server.files = {"data/train.parquet": make_bytes(5000)}
    server.cuts = [1234]
    download(server.hugging_face(), tmp_path, pause=pauses)
    assert files_below(tmp_path) == server.files
    assert server.n_sent == {"data/train.parquet": 5000}


def test_cut_listing_is_read_again(server: Server, tmp_path: Path, pauses: Pauses) -> None:
    server.n_listing_cuts = 2
    download(server.github(), tmp_path, pause=pauses)
    assert files_below(tmp_path) == server.files
    assert len(pauses) == 2


def test_reset_connection(server: Server, tmp_path: Path, pauses: Pauses) -> None:
    server.cuts, server.reset = [1234, 0], True
    download(server.github(), tmp_path, pause=pauses)
    assert files_below(tmp_path) == server.files


def test_connection_that_is_always_cut(server: Server, tmp_path: Path, pauses: Pauses) -> None:
    server.cuts = [1000] * (N_RETRIES + 1)
    with pytest.raises(
        DownloadError, match=r"cannot fetch http.*poet\.tang\.0\.json: the connection was cut"
    ) as caught:
        download(server.github(), tmp_path, pause=pauses)
    assert MANUAL in str(caught.value)
    assert files_below(tmp_path) == {f"{TANG}.part": server.files[TANG][:4000]}
    download(server.github(), tmp_path, pause=pauses)
    assert files_below(tmp_path) == server.files
    assert server.n_sent[TANG] == 5000


def test_killed_process(server: Server, tmp_path: Path) -> None:
    server.stall_after = 1000
    process = run_python(DOWNLOAD_CODE, server.url, str(tmp_path), "0")
    part = part_of(tmp_path, TANG)
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size == 1000):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert files_below(tmp_path) == {f"{TANG}.part": server.files[TANG][:1000]}
    server.stall_after = None
    download(server.github(), tmp_path)
    assert files_below(tmp_path) == server.files
    assert server.n_sent[TANG] == 5000


@pytest.mark.parametrize("range_answer", ["200", "416", "wrong"])
def test_server_that_cannot_resume(server: Server, tmp_path: Path, range_answer: str) -> None:
    part_of(tmp_path, TANG).write_bytes(server.files[TANG][:2000])
    server.range_answer = range_answer
    download(server.github(), tmp_path)
    assert files_below(tmp_path) == server.files


def test_part_that_is_complete_is_not_fetched(server: Server, tmp_path: Path) -> None:
    part_of(tmp_path, TANG).write_bytes(server.files[TANG])
    download(server.github(), tmp_path)
    assert files_below(tmp_path) == server.files
    assert TANG not in server.n_sent


def test_part_that_is_too_long_is_thrown_away(server: Server, tmp_path: Path) -> None:
    part_of(tmp_path, TANG).write_bytes(server.files[TANG] + b"more")
    download(server.github(), tmp_path)
    assert files_below(tmp_path) == server.files


CONTENT = make_bytes(300)


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Server]:
    with Server({TANG: CONTENT}) as running:
        yield running


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(0, len(CONTENT)), max_size=N_RETRIES), n_there=st.integers(0, len(CONTENT)))
def test_cutting_anywhere_gives_the_same_file(shared_server: Server, cuts: list[int], n_there: int) -> None:
    shared_server.cuts = list(cuts)
    shared_server.n_sent.clear()
    with tempfile.TemporaryDirectory() as name:
        part_of(Path(name), TANG).write_bytes(CONTENT[:n_there])
        download(shared_server.github(), Path(name), pause=lambda seconds: None)
        assert files_below(Path(name)) == {TANG: CONTENT}
    assert shared_server.n_sent[TANG] == len(CONTENT) - n_there


# Damaged files and bad listings


def test_wrong_checksum(server: Server, tmp_path: Path) -> None:
    wrong = make_bytes(5000, seed=7)
    server.sent_instead[TANG] = wrong
    with pytest.raises(DownloadError) as caught:
        download(server.github(), tmp_path)
    for expected in (
        "poet.tang.0.json",
        git_sha1(server.files[TANG]),
        git_sha1(wrong),
        "run the command again",
        MANUAL,
    ):
        assert expected in str(caught.value)
    assert files_below(tmp_path) == {}
    server.sent_instead.clear()
    download(server.github(), tmp_path)
    assert files_below(tmp_path) == server.files


@pytest.mark.parametrize("size", [0, 4999, 5001])
@pytest.mark.parametrize("n_there", [0, 2000])
def test_wrong_size(server: Server, tmp_path: Path, size: int, n_there: int) -> None:
    server.sent_instead[TANG] = make_bytes(size)
    part_of(tmp_path, TANG).write_bytes(server.files[TANG][:n_there])
    if size == 0:
        server.range_answer = "416"  # there is nothing to resume in an empty file
    with pytest.raises(DownloadError, match=rf"poet\.tang\.0\.json has the wrong size: expected 5000 .* found {size}"):
        download(server.github(), tmp_path)
    assert files_below(tmp_path) == {}


@pytest.mark.parametrize(
    "path", ["../escape.json", "/tmp/escape.json", "a/../../escape.json", "..\\escape.json", "C:x.json"]
)
@pytest.mark.parametrize("kind", ["github", "hugging_face"])
def test_path_that_leaves_the_folder(server: Server, tmp_path: Path, path: str, kind: str) -> None:
    path = path if kind == "github" else path.replace("json", "parquet")
    server.files[path] = b"evil"
    with pytest.raises(DownloadError, match="outside its own folder"):
        download(getattr(server, kind)(), tmp_path / "inner")
    assert files_below(tmp_path) == {}
    assert server.file_requests == []


def test_truncated_github_listing(server: Server, tmp_path: Path) -> None:
    server.truncated = True
    with pytest.raises(DownloadError, match="cut the file listing short") as caught:
        download(server.github(), tmp_path)
    assert MANUAL in str(caught.value)
    assert files_below(tmp_path) == {}


@pytest.mark.parametrize(
    "body", [b"<html>Please log in</html>", b'{"message": "hello"}', b"[1]", b'"text"', b"\xff\xfe"]
)
@pytest.mark.parametrize("kind", ["github", "hugging_face"])
def test_answer_that_is_no_listing(server: Server, tmp_path: Path, body: bytes, kind: str) -> None:
    server.listing_body = body
    with pytest.raises(DownloadError, match="no usable file listing") as caught:
        download(getattr(server, kind)(), tmp_path)
    assert MANUAL in str(caught.value)


def test_listing_without_the_expected_files(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="none of the expected files"):
        download(server.hugging_face(), tmp_path)
    assert not (tmp_path / "downloaded.json").exists()


# No network


def test_unreachable_server(tmp_path: Path, pauses: Pauses) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound but not listening
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(DownloadError, match=f"cannot fetch {url}/.*: Connection refused") as caught:
            download(HuggingFace("a/b", "main", ".*", MANUAL, endpoint=url), tmp_path, pause=pauses)
    assert MANUAL in caught.value.remedy
    assert "\n" not in str(caught.value)
    assert pauses == []


@pytest.mark.parametrize(("status", "n_tries"), [(403, 1), (404, 1), (500, N_RETRIES + 1), (503, N_RETRIES + 1)])
@pytest.mark.parametrize("where", ["listing_status", "file_status"])
def test_http_error(server: Server, tmp_path: Path, pauses: Pauses, status: int, n_tries: int, where: str) -> None:
    setattr(server, where, status)
    with pytest.raises(DownloadError, match=f"cannot fetch {server.url}/.*{status}") as caught:
        download(server.github(), tmp_path, pause=pauses)
    assert MANUAL in str(caught.value)
    assert len(pauses) == n_tries - 1
    assert len(server.requests) == n_tries + (where == "file_status")


def test_server_that_hangs(server: Server, tmp_path: Path, pauses: Pauses) -> None:
    server.stall_after = 1000
    with pytest.raises(DownloadError, match=r"poet\.tang\.0\.json: .*timed out"):
        download(server.github(), tmp_path, pause=pauses, timeout=0.1)
    assert files_below(tmp_path) == {f"{TANG}.part": server.files[TANG][:4000]}
    assert len(pauses) == N_RETRIES


# Disk


def test_disk_full(server: Server, tmp_path: Path) -> None:
    """A limit on the size of files is the nearest to a full disk that needs no rights."""
    output, _ = run_python(DOWNLOAD_CODE, server.url, str(tmp_path), "1000").communicate(timeout=30)
    assert f"cannot write to {tmp_path}: File too large. Free some space there" in output
    assert files_below(tmp_path) == {f"{TANG}.part": server.files[TANG][:1000]}
    server.n_sent.clear()
    download(server.github(), tmp_path)
    assert files_below(tmp_path) == server.files
    assert server.n_sent[TANG] == 4000


def test_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match=r"cannot write to .*: .*data\.cache_dir"):
        download(server.github(), tmp_path / "file" / "folder")


# Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_silent_without_a_terminal(
    server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    download(server.github(), tmp_path)
    assert list(track(range(3), "Counting")) == [0, 1, 2]
    assert capfd.readouterr() == ("", "")


def test_progress_on_a_terminal(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    download(server.github(), tmp_path)
    assert "Downloading" in terminal.getvalue()
    assert "8.0/8.0 kB" in terminal.getvalue()
    assert list(track(iter("abc"), "Counting", total=3)) == ["a", "b", "c"]
    assert "Counting" in terminal.getvalue()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("range_answer", ["206", "200"])
def test_progress_of_a_resumed_download_ends_at_the_total(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, range_answer: str
) -> None:
    part_of(tmp_path, TANG).write_bytes(server.files[TANG][:2000])
    server.range_answer = range_answer
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    download(server.github(), tmp_path)
    assert re.findall(r"[\d.]+/8\.0 kB", terminal.getvalue())[-1] == "8.0/8.0 kB"


def test_progress_can_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with bytes_progress("Fetching", 1000) as advance:
        advance(700)
        advance(-700)
        advance(400)
    assert "0.4/1.0 kB" in terminal.getvalue()
