"""List the licences of all dependencies, as their packages state them: ``make licences``.

Exits with 1 if a package that is installed with linkwise states none.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution

NAME = re.compile(r"[A-Za-z0-9._-]+")
OURS = "linkwise"


def licence_of(package: Distribution) -> str:
    """Return the licence: the expression, the classifiers, or the first line of the text."""
    facts = package.metadata
    if facts.get("License-Expression"):
        return str(facts["License-Expression"])
    named = [c.rpartition(" :: ")[2] for c in facts.get_all("Classifier", []) if "License" in c]
    if named and named != ["OSI Approved"]:
        return ", ".join(named)
    lines = [line.strip() for line in str(facts.get("License", "")).splitlines() if line.strip()]
    return lines[0][:60] if lines else ""


def required(name: str, extras: set[str]) -> dict[str, Distribution]:
    """Return the installed packages that one requires, and what those require in turn."""
    found: dict[str, Distribution] = {}
    waiting = [(name, extras)]
    while waiting:
        package, wanted = waiting.pop()
        for requirement in distribution(package).requires or []:
            text, _, condition = requirement.partition(";")
            extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", condition)
            other = NAME.match(text.strip()).group().lower().replace("_", "-")  # type: ignore[union-attr]
            inner = re.search(r"\[(.+?)\]", text)
            if extra and extra.group(1) not in wanted:
                continue
            more = set(inner.group(1).split(",")) if inner else set()
            if other == OURS:  # an extra made of others
                waiting.append((OURS, more))
            if other == OURS or other in found:
                continue
            try:
                found[other] = distribution(other)
            except PackageNotFoundError:  # not installed: not of this system, or not asked for
                continue
            waiting.append((other, more))
    return found


def main() -> int:
    """Print a table; return the exit code."""
    packages = required(OURS, {"all"})
    rows = [(name, package.version, licence_of(package)) for name, package in packages.items()]
    width = max(len(name) for name, *_ in rows)
    for name, version, licence in sorted(rows):
        print(f"{name:<{width}}  {version:<12}  {licence or '(none stated)'}")
    return int(not all(licence for *_, licence in rows))


if __name__ == "__main__":
    sys.exit(main())
