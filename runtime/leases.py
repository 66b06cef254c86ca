"""The lease of a workdir in a bucket: one run writes it at a time, and one that froze stops before it writes again.

The lease is an object with a random owner. It is created on condition that there is none, renewed every third of its
term on condition of its own generation, and deleted at the end. Another process that finds it watches its generation by
a clock of its own: when it changes somebody holds the workdir, when it stays the same for a whole term its owner is
dead. No clocks of two machines are compared.
"""

import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
from typing import Any

from runtime.log import log


def term() -> float:
    """Returns the seconds that a lease lasts without being renewed: JAX_CORRUPTIONS_LEASE_SECONDS, else 60."""
    return float(os.environ.get("JAX_CORRUPTIONS_LEASE_SECONDS") or 60)


def _clock():
    """Seconds that go on while the process, or the machine, is frozen."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LostLeaseError(OSError):
    """Another process has taken over the workdir, or may have."""


class InUseError(BlockingIOError):
    """Another process holds the workdir."""


class Lease:
    """A lease of a workdir; see the head of this file. InUseError: another process has it."""

    def __init__(self, bucket: Any, key: str, address: Any):
        self._bucket, self._key, self._address = bucket, key, address
        self._term, self._owner = term(), secrets.token_hex(8)
        self._generation, self._began = b"", 0.0
        self._lost, self._over = "", threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self):
        from corruptions.objects import MISSING

        self._began = _clock()
        generation = self._bucket.write(self._key, self._content(0), MISSING)
        self._generation = self._taken_over() if generation is None else generation
        self._before = signal.SIG_IGN
        if threading.current_thread() is threading.main_thread():  # a requeued run need not wait for the term's end
            self._before = signal.getsignal(signal.SIGTERM)
            if self._before is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        self._renewing.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._renewing.join()
        if self._before is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if not self._lost and self._left() > 0:
            with contextlib.suppress(OSError):
                self._bucket.write(self._key, None, self._generation)

    def _content(self, count):
        about = {"host": socket.gethostname(), "process": os.getpid(), "term": self._term, "renewed": count}
        return json.dumps({"owner": self._owner} | about).encode()

    def _left(self):
        """Seconds of the term that are left, by the moment that the last renewal began."""
        return self._began + self._term - _clock()

    def _taken_over(self):
        """Waits for the end of another's term and takes the lease; InUseError: it is renewed."""
        first = self._bucket.read(self._key)
        holder = _json(first.content)
        stated = holder.get("term")
        lasts = float(stated) if isinstance(stated, int | float) and 0 < stated < 1e9 else self._term
        log.info(
            "%s was left by %s, process %s, or is in use: waiting up to %.0f s to see whether it is.",
            self._address, holder.get("host"), holder.get("process"), lasts,
        )  # fmt: skip
        seen = _clock()
        gone = first.content is None
        while not gone and _clock() - seen < lasts:
            time.sleep(min(2.0, lasts / 10))
            now = self._bucket.read(self._key, first.generation)
            if not now.same and now.content is not None:
                raise self._in_use(holder)
            gone = not now.same
        from corruptions.objects import MISSING

        self._began = _clock()
        taken = self._bucket.write(self._key, self._content(0), MISSING if gone else first.generation)
        if taken is None:
            raise self._in_use(_json(self._bucket.read(self._key).content))
        return taken

    def _in_use(self, holder):
        return InUseError(
            f"{self._address} is in use on {holder.get('host')} by process {holder.get('process')}; wait for it or use "
            "another --workdir"
        )

    def _renew(self):
        count = 0
        while not self._over.wait(self._term / 3):
            count += 1
            began = _clock()
            try:
                generation = self._bucket.write(self._key, self._content(count), self._generation)
                if generation is None:  # a renewal may have reached the bucket though its answer was lost
                    found = self._bucket.read(self._key)
                    if _json(found.content).get("owner") == self._owner:
                        generation = self._bucket.write(self._key, self._content(count), found.generation)
            except OSError:  # the next time may go better, within the term
                continue
            if generation is None:
                self._lost = self._lost or "another process has taken it over"
                return
            self._generation, self._began = generation, began

    def check(self, thoroughly: bool = False) -> None:
        """Raises LostLeaseError unless this process holds the lease; `thoroughly` asks the bucket, too."""
        if not self._lost and self._left() <= 0:
            self._lost = f"it was not renewed for {self._term:.0f} s"
        if thoroughly and not self._lost and _json(self._bucket.read(self._key).content).get("owner") != self._owner:
            self._lost = "another process has taken it over"
        if self._lost:
            raise LostLeaseError(
                f"{self._address}: this run lost its lease ({self._lost}) and writes nothing more; if no other run "
                "goes on there, the same command continues"
            )


def _json(content):
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
