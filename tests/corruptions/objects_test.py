"""Objects in buckets: addresses, writes bound to a generation, order of reads, a server in place of Google's."""

import http.server
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from corruptions import objects


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gs://b/runs/a/", ("gs", "b", "runs/a")),
        ("s3:/b/runs", ("s3", "b", "runs")),  # as pathlib writes it
        ("gs://b", ("gs", "b", "")),
    ],
)
def test_an_address_in_parts(text, parts):
    assert objects.parse(text) == parts
    assert str(objects.parse(text)) == f"{parts[0]}://{parts[1]}{'/' * bool(parts[2])}{parts[2]}"


def test_a_write_is_bound_to_a_generation():
    held = objects.Bucket("memory", "generations")
    first = held.write("k", b"1", objects.MISSING)
    assert held.write("k", b"2", objects.MISSING) is None
    assert held.write("k", b"1", objects.MISSING) == first, "the first try of a repeated write had got through"
    second = held.write("k", b"2", first)
    assert held.write("k", b"3", first) is None
    assert held.read("k", second).same and held.read("k").content == b"2"
    held.write("k", None, second)
    assert held.read("k").generation == objects.MISSING


@pytest.mark.parametrize("before", ["http://", ""])
def test_an_emulator_is_asked_in_place_of_google_and_sees_no_login(before, tmp_path):
    asked = []

    class Emulator(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"items": [{"name": "a", "generation": "1"}]}')

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Emulator) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {name: text for name, text in os.environ.items() if not name.startswith(("GOOGLE_", "TENSORSTORE_"))}
        (tmp_path / "login.json").write_text("{}")  # damaged, so that a search for it fails
        env["GOOGLE_APPLICATION_CREDENTIALS"] = str(tmp_path / "login.json")
        env["STORAGE_EMULATOR_HOST"] = f"{before}127.0.0.1:{server.server_port}"
        code = "from corruptions import objects; print(objects.Bucket('gs', 'bucket').list())"
        said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
        server.shutdown()
    assert said.stdout == "['a']\n", said.stderr
    assert [path.partition("?")[0] for path, _ in asked] == ["/storage/v1/b/bucket/o/any", "/storage/v1/b/bucket/o"]
    assert {login for _, login in asked} == {"Bearer none"}


def test_many_objects_are_read_in_order():
    held = objects.Bucket("memory", "many")
    for number in range(100):
        held.write(f"k{number}", bytes([number]))
    keys = [f"k{number}" for number in range(99, -1, -3)]
    found = list(held.read_many((key, None) for key in [*keys, "none"]))
    assert [key for key, _ in found] == [*keys, "none"]
    assert [one.content for _, one in found] == [*(bytes([int(key[1:])]) for key in keys), None]


def test_a_list_from_a_store_that_never_answers_ends_as_soon_as_a_read(monkeypatch):
    """A list alone may take ten times as long: it comes in pages."""
    monkeypatch.setattr(objects, "_SECONDS", 2)
    monkeypatch.setattr(objects, "_answered", {"memory"})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        began = time.monotonic()
        with pytest.raises(
            objects.BucketError, match=r"s3://silent/a.*: the store cannot be reached .no answer in 2 s"
        ):
            objects.Bucket("s3", "silent").list("a/")
    assert time.monotonic() - began < 10
