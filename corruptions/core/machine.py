"""The memory that this machine has left for a process.

Linux grants more memory than there is and ends, without a word, the process that uses it. So what needs much asks before.
"""

import os
import pathlib
from collections.abc import Iterator

_VERSIONS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Control groups 2 and 1: the controller, the file of the limit, the file of the usage, and the line of memory.stat that counts
the cache, which the system gives up when a process needs memory."""


def free_memory(proc: str | os.PathLike = "/proc", groups: str | os.PathLike = "/sys/fs/cgroup") -> int | None:
    """Measures the bytes that this process may still take: of the machine, swap included, and of its control groups.

    None where the system does not tell (not Linux).
    """
    proc = pathlib.Path(proc)
    try:
        lines = (line.split() for line in (proc / "meminfo").read_text().splitlines())
        sizes = {words[0]: 1024 * int(words[1]) for words in lines}
        left = [sizes["MemAvailable:"] + sizes.get("SwapFree:", 0)]
    except (OSError, LookupError, ValueError):
        return None
    return max(0, min([*left, *_left_of_groups(proc, pathlib.Path(groups))]))


def _left_of_groups(proc: pathlib.Path, groups: pathlib.Path) -> Iterator[int]:
    """Yields the bytes that are left of the limit of each control group of this process, and of those around it."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller, limit, usage, given_up in _VERSIONS:
            if controller not in controllers.split(","):
                continue
            group = pathlib.PurePosixPath(path.strip("/"))
            for folder in dict.fromkeys([group, *group.parents]):  # a container may see its own group as the root
                try:
                    of_group = groups / controller / folder
                    most, used = (int((of_group / name).read_text()) for name in (limit, usage))
                    statistics = dict(entry.split() for entry in (of_group / "memory.stat").read_text().splitlines())
                except (OSError, ValueError):  # no such folder, or "max"
                    continue
                yield most - used + int(statistics.get(given_up, 0))
