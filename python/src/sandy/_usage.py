"""What a sandbox uses of the machine, and its limits: the result of `Sandbox.stats`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandy._errors import ProtocolError

if TYPE_CHECKING:
    from sandy._exchange import Reply


@dataclass(frozen=True, slots=True)
class Usage:
    """All processes of a sandbox together, as the kernel counts them in its control group (cgroup-v2.rst).

    Attributes:
        memory: Bytes in use now, with what the kernel keeps for them, such as cached files; None where it doesn't tell, as with
            the others.
        memory_peak: The most that it was (Linux 5.19).
        swap: Bytes in swap.
        cpu_time: Seconds of CPU time.
        throttled_time: Seconds for which its processes were held back at the limit of `cpus`.
        oom_kills: Processes that were killed at the limit of `memory`.
        forks_refused: Processes that were refused at the limit of `pids`.
        processes: Processes and threads of its commands now.
        io_read: Bytes read from disks.
        io_written: Bytes written to disks.
        memory_pressure: Percent of the last ten seconds in which some process waited for memory (PSI).
        cpu_pressure: The same for CPU.
        io_pressure: The same for I/O.
        limits: What stands now: `memory`, `swap`, `io_read` and `io_write` in bytes (a second), `cpus`, `pids`.
    """

    memory: int | None
    memory_peak: int | None
    swap: int | None
    cpu_time: float
    throttled_time: float
    oom_kills: int
    forks_refused: int
    processes: int
    io_read: int
    io_written: int
    memory_pressure: float | None
    cpu_pressure: float | None
    io_pressure: float | None
    limits: dict[str, float]


def to_usage(reply: Reply) -> Usage:
    """The answer to `stats`."""
    end = reply.end

    def optional(key: str) -> int | None:
        return reply.number(key) if key in end else None

    def percent(key: str) -> float | None:
        value = end.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            msg = f"{key} is {value!r}"
            raise ProtocolError(msg)
        return None if value is None else float(value)

    limits = {name: percent(f"{name}_limit") for name in ("memory", "swap", "cpus", "pids", "io_read", "io_write")}
    return Usage(
        memory=optional("memory"),
        memory_peak=optional("memory_peak"),
        swap=optional("swap"),
        cpu_time=reply.number("cpu_us") / 1e6,
        throttled_time=reply.number("throttled_us") / 1e6,
        oom_kills=reply.number("oom_kills"),
        forks_refused=reply.number("forks_refused"),
        processes=reply.number("processes"),
        io_read=reply.number("io_read"),
        io_written=reply.number("io_written"),
        memory_pressure=percent("memory_pressure"),
        cpu_pressure=percent("cpu_pressure"),
        io_pressure=percent("io_pressure"),
        limits={name: int(value) if value == int(value) else value for name, value in limits.items() if value is not None},
    )
