"""Arrays of what servers have: a real Redis server, and an HTTP server of ranges."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import tidemark

MIB = 1 << 20
LIMIT_S = 30


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Redis server, up to the name of an array."""
    if shutil.which("redis-server") is None:
        assert os.environ.get("REQUIRE_ALL") != "1", "redis-server is not there"
        pytest.skip("redis-server is not there")
    folder = tmp_path_factory.mktemp("redis")
    place = folder / "socket"
    # A port that the kernel gives to no connection by itself.
    for port in range(12_000 + os.getpid() % 8000, 32_000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                break
    settings = ["--port", str(port), "--bind", "127.0.0.1", "--unixsocket", str(place)]
    settings += ["--save", "", "--dir", str(folder)]
    server = subprocess.Popen(["redis-server", *settings], stdout=subprocess.DEVNULL)
    end = time.monotonic() + LIMIT_S
    while not place.exists():
        assert server.poll() is None and time.monotonic() < end, "it does not start"
        time.sleep(0.01)
    yield f"redis://127.0.0.1:{port}/0/"
    server.kill()
    server.wait()


class Ranges(BaseHTTPRequestHandler):
    """Serves ranges of its server's `contents`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        contents: bytes = self.server.contents  # type: ignore[attr-defined]
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        assert asked is not None
        first, last = int(asked[1]), min(int(asked[2]), len(contents) - 1)
        self.send_response(206 if self.path == "/here" else 404)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(contents)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.wfile.write(contents[first : last + 1])

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def http(path: Path) -> Iterator[str]:
    """The address of a server that has what `path` has at `/here`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    server.contents = path.read_bytes()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_array_on_a_redis_server_is_made_written_and_read_again(
    engine: tidemark.Engine, redis: str
) -> None:
    plain = np.arange(500_000, dtype="<i8").reshape(1000, 500)
    array = engine.from_store(redis + "a", "<i8", (1000, 500), "w+")
    assert (array == 0).all()
    array[:] = plain
    array[10:20] *= 3
    tidemark.flush(array)
    plain[10:20] *= 3
    again = engine.from_store(redis + "a", "<i8", (1000, 500))
    assert (again == plain).all() and not again.flags.writeable
    del array
    part = engine.from_store(redis + "a", "<i8", (5, 500), "r+", 8 * 500 * 15)
    assert (part == plain[15:20]).all()
    part[2] = 7
    copy = engine.from_store(redis + "a", "<i8", mode="c")
    copy[0] = -1
    del part
    plain[17] = 7
    again = engine.from_store(redis + "a", "<i8", (1000, 500))
    assert (again == plain).all() and copy[0] == -1
    counted = engine.statistics()
    assert counted.file_page_ins > 1000 and counted.resident_bytes <= engine.memory


def test_pages_go_to_a_redis_server_in_place_of_a_swap_file(redis: str) -> None:
    with tidemark.memory_limit("1M", swap=redis + "swap", swap_size="32M") as engine:
        array = tidemark.zeros(1_000_000)
        array[:] = np.arange(array.size)
        assert array.sum() == array.size * (array.size - 1) / 2
        assert engine.statistics().page_outs > 1000
        with pytest.raises(OSError, match="the key `swap` exists"):
            tidemark.Engine("1M", swap=redis + "swap")


def test_an_object_is_read_as_the_file_that_it_is(
    engine: tidemark.Engine, http: str, path: Path
) -> None:
    plain = np.fromfile(path, "<u4")
    array = engine.from_store(http + "/here", "<u4")
    assert (array == plain).all()
    with tidemark.memory_limit(engine):
        part = tidemark.from_store(http + "/here", "<u4", (100, 100), "c", 4000)
    assert (part == plain[1000:11_000].reshape(100, 100)).all()
    part[3] = 1
    assert (part[3] == 1).all()


def test_bad_arguments_name_themselves(engine: tidemark.Engine, http: str, redis: str) -> None:
    here = http + "/here"
    with pytest.raises(OSError, match="/there`: the server answers 404"):
        engine.from_store(http + "/there")
    with pytest.raises(OSError, match="there is no key `none`"):
        engine.from_store(redis + "none")
    with pytest.raises(OSError, match="refused"):
        engine.from_store("redis://127.0.0.1:1/0/none")
    with pytest.raises(ValueError, match="its scheme is unknown"):
        engine.from_store("ftp://127.0.0.1/x")
    with pytest.raises(ValueError, match="objects are only read"):
        engine.from_store(here, "u1", 10, "w+")
    with pytest.raises(ValueError, match="needs one with elements"):
        engine.from_store(redis + "b", mode="w+")
    with pytest.raises(ValueError, match="`mode` is `x`"):
        engine.from_store(here, mode="x")
    with pytest.raises(ValueError, match="has 4195304 bytes; needs 4195305"):
        engine.from_store(here, "u1", 4_195_304, offset=1)
    with pytest.raises(ValueError, match="has 4195304 bytes; needs 4195305"):
        engine.from_store(here, offset=4_195_304)
    with pytest.raises(ValueError, match="needs a multiple of 3"):
        engine.from_store(here, "S3")
    with pytest.raises(RuntimeError, match="memory_limit"):
        tidemark.from_store(here)
