"""Objects of S3, of a server that checks each signature with Amazon's own library."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

import tidemark

REGION = "eu-central-1"
ID = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
KEY = "a folder/größe+1 %?#=&.bin"


class Bucket(ThreadingHTTPServer):
    """A server with one object, in the bucket `some`."""

    daemon_threads = True

    def __init__(self, contents: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.contents = contents
        self.refusals: list[str] = []


class Asked(BaseHTTPRequestHandler):
    """Answers as S3 does: the range, or a refusal with its code."""

    protocol_version = "HTTP/1.1"
    server: Bucket

    def do_GET(self) -> None:
        place = unquote(urlsplit(self.path).path)
        refusal = self.refusal()
        if refusal is None and place != f"/some/{KEY}":
            refusal = (404, "NoSuchKey", "The specified key does not exist.")
        if refusal is not None:
            self.refuse(*refusal)
            return
        contents = self.server.contents
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        assert asked is not None
        first, last = int(asked[1]), min(int(asked[2]), len(contents) - 1)
        self.send_response(206)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(contents)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        self.wfile.write(contents[first : last + 1])

    def refusal(self) -> tuple[int, str, str] | None:
        """Checks who asks, when and for what."""
        parts = parse_qs(urlsplit(self.path).query)
        if "X-Amz-Signature" not in parts:
            return (403, "AccessDenied", "Access Denied")
        who = parts["X-Amz-Credential"][0].split("/")
        date = parts["X-Amz-Date"][0]
        if who[0] != ID:
            return (403, "InvalidAccessKeyId", "The key id does not exist in our records.")
        if who[1:] != [date[:8], REGION, "s3", "aws4_request"]:
            text = f"The region '{who[2]}' is wrong; expecting '{REGION}'"
            return (400, "AuthorizationQueryParametersError", text)
        begin = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        ends = begin + timedelta(seconds=int(parts["X-Amz-Expires"][0]))
        if not begin - timedelta(minutes=15) < datetime.now(timezone.utc) < ends:
            return (403, "AccessDenied", "Request has expired")
        if parts["X-Amz-Signature"][0] != self.signature(date):
            text = "The request signature we calculated does not match & so on."
            return (403, "SignatureDoesNotMatch", text)
        return None

    def signature(self, date: str) -> str:
        unsigned = re.sub("&?X-Amz-Signature=[0-9a-f]*", "", self.path)
        request = AWSRequest("GET", f"http://{self.headers['Host']}{unsigned}")
        request.context["timestamp"] = date
        auth = S3SigV4QueryAuth(Credentials(ID, SECRET), "s3", REGION)
        text = auth.string_to_sign(request, auth.canonical_request(request))
        return str(auth.signature(text, request))

    def refuse(self, status: int, code: str, text: str) -> None:
        self.server.refusals.append(code)
        text = text.replace("&", "&amp;")
        body = f"<Error><Code>{code}</Code>\n<Message>{text}</Message></Error>"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def bucket(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A server with what `path` has, and the settings for it."""
    for name in ("AWS_REGION", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    server = Bucket(path.read_bytes())
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url() -> str:
    return "s3://some/" + KEY.replace("%", "%25").replace("?", "%3F").replace("#", "%23")


def refused(engine: tidemark.Engine, url: str) -> str:
    with pytest.raises(OSError) as raised:
        engine.from_store(url)
    text = str(raised.value)
    assert "\n" not in text and SECRET not in text and "X-Amz" not in text
    return text


def test_each_request_for_an_object_is_signed_as_amazons_library_signs(
    engine: tidemark.Engine, bucket: Bucket, path: Path
) -> None:
    plain = np.fromfile(path, "u1")
    array = engine.from_store(url(), "u1")
    assert (array == plain).all() and (array[-5000:] == plain[-5000:]).all()
    # Numpy lets the server's thread run while it compares arrays that are not small.
    end = engine.from_store(url(), "u1", offset=len(plain) - 5000)
    assert (end == plain[-5000:]).all()
    assert bucket.refusals == []


def test_a_token_of_a_session_is_signed_too(
    engine: tidemark.Engine, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a/token+of=a session")
    assert len(engine.from_store(url(), "u1")) == len(bucket.contents)


def test_a_refusal_is_one_line_with_the_words_of_the_server(
    engine: tidemark.Engine, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = refused(engine, "s3://some/none")
    assert "`s3://some/none`: the server answers 404 Not Found: NoSuchKey, The spec" in text
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert "expecting 'eu-central-1'" in refused(engine, url())
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET.lower())
    assert "SignatureDoesNotMatch, The request" in refused(engine, url())
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OTHER")
    assert "InvalidAccessKeyId" in refused(engine, url())
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(ValueError, match="`AWS_SECRET_ACCESS_KEY` needs `AWS_ACCESS_KEY_ID`"):
        engine.from_store(url())
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "AccessDenied, Access Denied, `AWS_ACCESS_KEY_ID` and" in refused(engine, url())
