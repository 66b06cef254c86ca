"""Free memory: of the machine, and of the control groups of either version that a container gives a process."""

import pytest

from corruptions.core.machine import free_memory

GIB = 2**30
MEMORY = "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\nSwapFree: 1048576 kB\nHugePages_Total: 0\n"


@pytest.fixture
def system(tmp_path):
    """Writes a machine with 8 GiB and 1 GiB of swap free, and returns what is measured of it."""

    def measure(memberships="", **files):
        for path, text in ({"proc/meminfo": MEMORY, "proc/self/cgroup": memberships} | files).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(str(text))
        return free_memory(tmp_path / "proc", tmp_path / "groups")

    return measure


def test_a_machine_without_limits(system):
    assert system() == 9 * GIB
    unlimited = {"groups/a/memory.max": "max\n", "groups/a/memory.current": 3 * GIB, "groups/a/memory.stat": "anon 5\n"}
    assert system("0::/a\n", **unlimited) == 9 * GIB
    assert system("0::/elsewhere\n7:cpu:/\n") == 9 * GIB


def test_the_limit_of_a_group_or_of_one_around_it(system):
    files = {
        "groups/a/memory.max": 4 * GIB,
        "groups/a/memory.current": 3 * GIB,
        "groups/a/memory.stat": f"anon 5\ninactive_file {GIB}\n",  # files that were read, which make room
        "groups/a/b/memory.max": "max",
    }
    assert system("0::/a/b\n", **files) == 2 * GIB
    files["groups/a/memory.current"] = 6 * GIB
    assert system("0::/a/b\n", **files) == 0


@pytest.mark.parametrize("path", ["/", "/docker/5a", "/../x"])
def test_a_container_may_see_its_group_as_the_root(system, path):
    first = {
        "groups/memory/memory.limit_in_bytes": 3 * GIB,
        "groups/memory/memory.usage_in_bytes": GIB,
        "groups/memory/memory.stat": f"inactive_file 7\ntotal_inactive_file {GIB // 2}\n",
    }
    assert system(f"3:cpu:/x\n4:cpuset,memory:{path}\n", **first) == 2.5 * GIB


def test_no_answer_without_linux(tmp_path):
    assert free_memory(tmp_path) is None
    (tmp_path / "meminfo").write_text("MemTotal: 5 kB\n")  # kernels before 3.14
    assert free_memory(tmp_path) is None


def test_this_machine_tells_less_than_it_has():
    free = free_memory()
    assert free is None or 2**20 < free < 2**50
