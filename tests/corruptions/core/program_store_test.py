"""Compiled programs on disk: a second process compiles none of ours and gives the same pixels; what does not fit is not read."""

import os
import pathlib
import stat
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import corruptions
from corruptions.core import program_store

SCRIPT = """
import logging, sys
import jax, numpy as np
compiled = 0
def count(event, seconds, **details):
    global compiled
    compiled += event == "/jax/core/compile/backend_compile_duration"
jax.monitoring.register_event_duration_secs_listener(count)
import corruptions
image, names = np.arange(20 * 24 * 3, dtype=np.uint8).reshape(20, 24, 3), sys.argv[1].split(",")
pixels = [corruptions.corrupt_image(image, name, 3, seed=5) for name in names]
pixels.append(np.asarray(corruptions.corrupt(jax.random.key(1), image[None], names[0], 2))[0])
print(compiled, *(one.tobytes().hex() for one in pixels))
"""


def run(folder, *names):
    """Corrupts with a new process whose programs lie in a folder: (number of compiled programs, pixels, errors)."""
    env = os.environ | {program_store.VARIABLE: str(folder), "JAX_ENABLE_COMPILATION_CACHE": "0"}
    command = [sys.executable, "-c", SCRIPT, ",".join(names)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    compiled, *pixels = done.stdout.split()
    return int(compiled), pixels, done.stderr


def entries(folder):
    return sorted(folder.glob("*.program"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="programs are kept under Linux")
def test_a_second_process_compiles_nothing_of_ours_gives_the_same_pixels_and_says_the_same(tmp_path):
    folder, names = tmp_path / "programs", ("imagenet_c/brightness", "imagenet_c/frost")
    first, pixels, said = run(folder, *names)
    second, again, said_again = run(folder, *names)
    assert len(entries(folder)) == 4  # both images, their key, the batch
    assert first == second + 4  # what is left are JAX's own, such as that of `jax.random.key`
    assert pixels == again
    assert "procedural ice" in said and "procedural ice" in said_again
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in entries(folder))

    unkept, without, _ = run("off", names[0])
    assert (unkept, without) == (second + 3, [pixels[0], pixels[2]])

    # Damaged, cut and foreign entries are made again.
    for number, path in enumerate(entries(folder)):
        content = path.read_bytes()
        path.write_bytes(
            content[: len(content) - (number == 0)] if number < 2 else content[:64] + content[-1:] + content[65:]
        )
        path.chmod(0o666 if number == 1 else 0o600)
    assert run(folder, names[0])[:2] == (unkept, without)


class Stored:
    """The store in this process, with a folder of its own."""

    def __init__(self, folder):
        self.folder, self.written = folder, []

    def names(self, call):
        """The names of the entries that a call asks for."""
        self.written.clear()
        call()
        return tuple(self.written)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    found = Stored(tmp_path)
    entry = program_store.entry
    monkeypatch.setattr(program_store, "folder", lambda: tmp_path)
    monkeypatch.setattr(
        program_store, "entry", lambda *args: found.written.append(entry(*args)) or None
    )  # None: nothing is kept
    return found


def test_entries_follow_from_code_options_types_and_settings(stored):
    image = np.zeros((18, 18, 3), np.uint8)
    record = corruptions.get("imagenet_c/brightness")

    def names(image=image, corruption=record, **options):
        return stored.names(lambda: corruptions.corrupt(jax.random.key(0), image[None], corruption, 2, **options))

    first = names()
    assert len(first) == 1 and first[0]
    assert names() == ()  # the program of this process
    others = [
        names(image[:17]),
        names(image / np.float32(255)),
        names(table="cifar"),
        names(corruption=corruptions.get("imagenet_c/saturate")),
    ]
    with jax.default_matmul_precision("float32"):
        others.append(names(image))
    assert all(len(found) == 1 and found[0] for found in others)
    assert len({first, *others}) == 1 + len(others)


def test_a_users_corruption_and_programs_with_files_are_not_kept(stored):
    def darker(image, params):
        return image * params["factor"]

    own = corruptions.Corruption(
        "darker", "mine", "digital", lambda key, shape, severity: {"factor": 1 - severity / 2}, darker,
        corruptions.Fraction(), "nearest", (corruptions.Parameter("factor", "factor", "ours"),),
    )  # fmt: skip
    images = jnp.zeros((1, 16, 16, 3), jnp.uint8)
    assert stored.names(lambda: corruptions.corrupt(jax.random.key(0), images, own, 0.5)) == (None,)
    bank = corruptions.get("laion_c/stickers")
    assert stored.names(lambda: corruptions.corrupt(jax.random.key(0), images, bank, 1)) == (None,)


def test_a_folder_that_others_can_write_and_the_word_off_keep_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (tmp_path / "file").touch()
    for asked in (open_to_all, "off", tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setenv(program_store.VARIABLE, str(asked))
        program_store.folder.cache_clear()
        assert program_store.folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for asked, expected in ((str(tmp_path / "own"), tmp_path / "own"), ("", tmp_path / "jax-corruptions" / "programs")):
        monkeypatch.setenv(program_store.VARIABLE, asked)
        program_store.folder.cache_clear()
        assert program_store.folder() == expected and expected.is_dir()
    program_store.folder.cache_clear()


def test_the_folder_is_bounded_and_keeps_what_was_used_last(tmp_path, monkeypatch):
    monkeypatch.setattr(program_store, "folder", lambda: tmp_path)
    for number in range(4):
        path = tmp_path / f"{number}.program"
        path.write_bytes(b"x" * 1000)
        os.utime(path, (number, number))
    (tmp_path / "notes.txt").write_bytes(b"x" * 10**6)
    own = float(time.time_ns() % 10**6)  # a new program, since one of JAX's cache is not kept
    compiled = jax.jit(lambda x: x + own).lower(jnp.float32(0)).compile()
    monkeypatch.setattr(program_store, "_MOST", 2500 + len(_written(tmp_path, compiled)))
    program_store.store("new", compiled)
    assert [path.name for path in entries(tmp_path)] == ["2.program", "3.program", "new.program"]
    assert (tmp_path / "notes.txt").exists() and not list(tmp_path.glob(".*"))
    assert program_store.load("new")(jnp.float32(1)) == own + 1
    assert program_store.load("2") is None


def _written(folder: pathlib.Path, compiled) -> bytes:
    program_store.store("measured", compiled)
    content = (folder / "measured.program").read_bytes()
    (folder / "measured.program").unlink()
    return content
