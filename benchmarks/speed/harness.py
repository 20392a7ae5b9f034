"""Measure one call: seconds, CPU seconds, and the memory it adds at its peak."""

from __future__ import annotations

import gc
import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from threadpoolctl import threadpool_limits

OUT = Path(__file__).parent / "out"
MEGABYTE = 2**20


class Cost(NamedTuple):
    """What a call took: the best of its runs."""

    seconds: float
    cpu_seconds: float


def best_of(call, repeats=3):
    """Run `call` several times on one thread; return its last answer and the lowest cost."""
    costs = []
    for _ in range(repeats):
        gc.collect()
        with threadpool_limits(1):
            wall, cpu = time.perf_counter(), time.process_time()
            answer = call()
            costs.append(Cost(time.perf_counter() - wall, time.process_time() - cpu))
    return answer, Cost(*(min(column) for column in zip(*costs, strict=True)))


@contextmanager
def peak_memory():
    """Yield a list that will hold the bytes above the start at the peak, sampled every 2 ms."""
    process, found = psutil.Process(), []
    gc.collect()
    start = process.memory_info().rss
    peak, done = start, threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()
        found.append(peak - start)


def report(name, title, header, rows):
    """Print a Markdown table and store it under `out/`."""
    lines = [f"# {title}", "", f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.", ""]
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    text = "\n".join(lines) + "\n"
    print(text)
    OUT.mkdir(exist_ok=True)
    (OUT / f"{name}.md").write_text(text)
