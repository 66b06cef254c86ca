"""Progress of long commands where standard error is no terminal."""

import logging
import re
import time

import pytest

from runtime import log


@pytest.fixture
def lines(monkeypatch):
    """The lines that are logged while standard error is no terminal."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    monkeypatch.setattr(log.log, "handlers", [handler])
    level = log.log.level
    log.log.setLevel(logging.INFO)
    yield said
    log.log.setLevel(level)


def test_a_long_command_says_where_it_is(lines, monkeypatch):
    monkeypatch.setattr(log, "LINE_SECONDS", 0.2)
    outer = log.bar("step", total=8, desc="fog", leave=True)
    for step in range(1, 9):
        time.sleep(0.1)
        outer.set_postfix_str(f"loss {9 - step}", refresh=False)
        outer.update()
        for _ in log.bar("object", range(3)):  # a bar inside of it that ends soon
            pass
    outer.close()
    assert 2 <= len(lines) <= 4
    for line in lines:
        found = re.fullmatch(r"fog: (\d) of 8 steps, 00:0\d so far, 00:0\d left, loss (\d)", line)
        assert found and int(found[1]) + int(found[2]) == 9, line


def test_a_short_one_says_nothing(lines):
    for _ in log.bar("step", range(100)):
        pass
    assert not lines
