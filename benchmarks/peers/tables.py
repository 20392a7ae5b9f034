"""Tables and the picture of the comparison, computed from the stored rows."""

from __future__ import annotations

import math
import os
import platform
from collections import Counter, defaultdict
from pathlib import Path

from cells import N_DRAWS, SETS, SHARES, SIZES

OURS = "linkwise:"
# What a peer is held against: our methods that are given the same.
RIVALS = {
    "none": ("ncut", "cut"),
    "pairs": ("auto", "cut", "signed", "e2cp"),
    "labels": ("poisson", "gfhf"),
}
GIVEN = {"none": "nothing", "pairs": "pairs", "labels": "labels"}
TIE = 0.005  # differences of ARI below this are ties


def number(row, name):
    return float(row[name]) if row[name] not in ("", None) else math.nan


def mean(values):
    values = [value for value in values if not math.isnan(value)]
    return sum(values) / len(values) if values else math.nan


def is_ours(estimator):
    return estimator.startswith(OURS)


def short(estimator):
    """Return a name that fits a table."""
    package, method = estimator.split(":")
    if package == "linkwise":
        return f"**`{method}`**"
    short_names = {"active-semi-supervised-clustering": "active-ssc", "scikit-learn": "sklearn"}
    return f"{short_names.get(package, package)} {method}"


def markdown(header, body):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in body]) + "\n"


def seconds_text(value):
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def ratio_text(ratio):
    return f"{ratio:,.2g} x" if ratio < 10 else f"{ratio:,.0f} x"


def ari_text(value, sign=""):
    return "-" if math.isnan(value) else f"{value:{sign}.3f}"


# ------------------------------------------------------------------------------------ speed


def by_size(rows):
    """Return the rows of the speed part by estimator and size."""
    found = defaultdict(dict)
    for row in rows:
        if row["part"] == "speed":
            found[row["estimator"]][int(row["n"])] = row
    return found


def against(rows, kinds):
    """Hold every peer against our methods of its kind at the largest size that it finished.

    Returns dicts: peer, kind, n, its seconds and free ARI, why it went no further, and for each
    rival (seconds ratio, difference of free ARI), both ours against the peer; None if ours has no
    answer there.
    """
    sizes, found = by_size(rows), []
    for peer, places in sizes.items():
        if is_ours(peer):
            continue
        done = [n for n, row in places.items() if row["status"] == "done"]
        entry = {"peer": peer, "kind": kinds[peer], "n": max(done, default=None), "rivals": {}}
        beyond = [row for n, row in sorted(places.items()) if n > max(done, default=0)]
        if beyond:
            entry["end"] = beyond[0]["message"]
        else:
            entry["end"] = "all sizes" if entry["n"] == SIZES[-1] else "not run yet"
        if done:
            theirs = places[entry["n"]]
            entry |= {"cpu_s": number(theirs, "cpu_s"), "free_ari": number(theirs, "free_ari")}
            for rival in RIVALS[kinds[peer]]:
                ours = sizes.get(OURS + rival, {}).get(entry["n"])
                if ours is None or ours["status"] != "done":
                    entry["rivals"][rival] = None
                    continue
                entry["rivals"][rival] = (
                    entry["cpu_s"] / number(ours, "cpu_s"),
                    number(ours, "free_ari") - entry["free_ari"],
                )
        found.append(entry)
    return found


def against_table(rows, kinds):
    blocks = []
    for kind, rivals in RIVALS.items():
        entries = [entry for entry in against(rows, kinds) if entry["kind"] == kind]
        used = [rival for rival in rivals if any(entry["rivals"].get(rival) for entry in entries)]
        body = []
        for entry in entries:
            line = [short(entry["peer"]), "none" if entry["n"] is None else f"{entry['n']:,}"]
            if entry["n"] is None:
                body.append([*line, "-", "-", *("-" for _ in used), entry["end"]])
                continue
            line += [seconds_text(entry["cpu_s"]), ari_text(entry["free_ari"])]
            for rival in used:
                pair = entry["rivals"][rival]
                line.append(f"{ratio_text(pair[0])}, {ari_text(pair[1], '+')}" if pair else "-")
            body.append([*line, entry["end"]])
        if body:
            header = [f"peer, given {GIVEN[kind]}", "largest n", "CPU s", "free ARI"]
            header += [f"`{rival}`: faster, free ARI" for rival in used]
            blocks.append(markdown([*header, "why no further"], body))
    return "\n".join(blocks)


def speed_cell(row):
    if row is None:
        return ""
    if row["status"] != "done":
        return "limit" if row["status"] == "limit" else "error"
    parts = [seconds_text(number(row, "cpu_s")), f"{number(row, 'peak_mb'):.0f}"]
    return " / ".join([*parts, ari_text(number(row, "free_ari"))])


def speed_table(rows, kinds):
    sizes = by_size(rows)
    blocks = []
    for kind, given in GIVEN.items():
        body = [
            [short(name), *(speed_cell(sizes[name].get(n)) for n in SIZES)]
            for name in kinds
            if kinds[name] == kind and name in sizes
        ]
        if body:
            header = [f"given {given}", *(f"{n:,}" for n in SIZES)]
            blocks.append(markdown(header, body))
    return "\n".join(blocks)


# ---------------------------------------------------------------------------------- quality


def by_place(rows):
    """Return the draws of the quality part by (set, pairs per sample) and estimator."""
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["part"] == "quality":
            per_sample = int(row["pairs"]) / int(row["n"])
            share = min(SHARES, key=lambda known: abs(known - per_sample))
            found[row["data"], share][row["estimator"]].append(row)
    return found


def quality_cell(draws):
    done = [row for row in draws if row["status"] == "done"]
    if not done:
        return ", ".join(sorted({row["status"] for row in draws}))
    means = {name: mean(number(row, name) for row in done) for name in
             ("ari", "free_ari", "violated", "cpu_s")}  # fmt: skip
    text = f"{ari_text(means['free_ari'])} / {ari_text(means['ari'])} / "
    text += f"{100 * means['violated']:.0f} % / {seconds_text(means['cpu_s'])}"
    return text if len(done) == N_DRAWS else f"{text} [{len(done)}]"


def quality_tables(rows, kinds):
    places = by_place(rows)
    for share in SHARES:
        used = [name for name in SETS if (name, share) in places]
        body = [
            [short(name), GIVEN[kinds[name]], *(quality_cell(places[data, share][name])
             for data in used)]
            for name in kinds
            if any(name in places[data, share] for data in used)
        ]  # fmt: skip
        if body:
            yield share, markdown(["", "given", *used], body)


def quality_against(rows, kinds):
    """Return for each peer and rival the differences of mean free ARI, ours minus the peer's."""
    found = {}
    for peer in kinds:
        if is_ours(peer):
            continue
        for rival in RIVALS[kinds[peer]]:
            differences = []
            for estimators in by_place(rows).values():
                pair = [
                    mean(number(row, "free_ari") for row in estimators.get(name, ())
                         if row["status"] == "done")
                    for name in (OURS + rival, peer)
                ]  # fmt: skip
                differences.append(pair[0] - pair[1])
            found[peer, rival] = [value for value in differences if not math.isnan(value)]
    return found


def quality_against_table(rows, kinds):
    found = quality_against(rows, kinds)
    blocks = []
    for kind, rivals in RIVALS.items():
        peers = [peer for peer in kinds if kinds[peer] == kind and not is_ours(peer)]
        used = [rival for rival in rivals if any(found[peer, rival] for peer in peers)]
        body = []
        for peer in peers:
            texts = [difference_text(found[peer, rival]) for rival in used]
            if any(texts):
                body.append([short(peer), *texts])
        if body:
            header = [f"peer, given {GIVEN[kind]}", *(f"`{rival}`" for rival in used)]
            blocks.append(markdown(header, body))
    return "\n".join(blocks)


def difference_text(values):
    if not values:
        return ""
    won, lost = sum(v > TIE for v in values), sum(v < -TIE for v in values)
    return f"{mean(values):+.3f}; {won} : {lost} of {len(values)}"


# --------------------------------------------------------------------------------- the page


def failures(rows):
    """Return a line for every message of a cell that has no answer."""
    counts = Counter()
    for row in rows:
        if row["status"] != "done":
            where = {
                "install": "installation",
                "quality": f"{row['data']}, {int(row['pairs']):,} pairs",
                "speed": f"n = {int(row['n']):,}",
            }[row["part"]]
            counts[short(row["estimator"]), where, row["message"]] += 1
    return [
        f"* {name}, {where}: {message}" + (f" ({count} draws)" if count > 1 else "")
        for (name, where, message), count in counts.items()
    ]


def machine(rows):
    """Return the machine, the versions and the dates in a paragraph."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":")[1].strip() for line in info.read_text().splitlines()
                 if line.startswith("model name")]  # fmt: skip
        model = names[0] if names else model
    size = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GB"
    versions = sorted({one for row in rows for one in row["versions"].split("; ") if one})
    dates = sorted({row["date"] for row in rows if row["date"]})
    days = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "no date"
    loads = [number(row, "load") for row in rows if row["load"]]
    load = f"{mean(loads):.1f} on average" if loads else "not known"
    return (
        f"{model}, {os.cpu_count()} cores{size}, Python {platform.python_version()}; {days}. "
        f"Load {load}. {', '.join(versions)}."
    )


def page(rows, kinds, image="peers.png"):
    """Return the Markdown of the whole comparison."""
    text = [
        "## Against other packages\n",
        f"{machine(rows)}\n",
        "`python benchmarks/peers/run.py`. Every package in an environment of its own, no peer "
        "tuned, the same files of samples and pairs for all. CPU seconds of the fit from X on one "
        "thread, graph and distances included, imports and compilation not; the best of three for "
        "fits under 20 s (under 1 s for the real sets). A fit is ended at 120 CPU s (limit) or at "
        "8 GB. Methods given labels know the class of every sample that a pair names, which is "
        "more than the pairs. Free samples are those that no pair names.\n",
        "At the largest n that the peer finishes (10-dimensional overlapping blobs, k = 5, n/10 "
        "pairs, one draw): how many times faster a method of linkwise is, and its free ARI minus "
        "the peer's.\n",
        against_table(rows, kinds),
        f"![CPU seconds and ARI by number of samples]({image})\n",
        "CPU s / peak MB of the process / ARI of the free samples:\n",
        speed_table(rows, kinds),
        f"Real sets ({', '.join(SETS)}; n/10, n/2 and 2n pairs; {N_DRAWS} draws). Mean of the free "
        "ARI minus the peer's; won : lost, by more than "
        f"{TIE}, of the places where more than five samples are free and both have an answer:\n",
        quality_against_table(rows, kinds),
    ]  # fmt: skip
    for share, table in quality_tables(rows, kinds):
        text.append(
            f"{share:g} n pairs: free ARI / ARI / violated / CPU s [draws with an answer]\n"
        )
        text.append(table)
    failed = failures(rows)
    if failed:
        text += ["Without an answer:\n", "\n".join(failed) + "\n"]
    return "\n".join(text)


# ------------------------------------------------------------------------------ the picture

OUR_LOOKS = {
    "cut": ("#CC6677", "o"),
    "auto": ("#000000", "*"),
    "signed": ("#D55E00", "s"),
    "e2cp": ("#332288", "d"),
    "sl": ("#0072B2", "^"),
    "cosc": ("#882255", "h"),
    "ncut": ("#117733", "X"),
    "gfhf": ("#0072B2", "<"),
    "poisson": ("#661100", "v"),
}
# Of the peers: Paul Tol's light colours, dashed.
PEER_LOOKS = [
    ("#77AADD", "o"),
    ("#EE8866", "v"),
    ("#AAAA00", "^"),
    ("#FFAABB", "s"),
    ("#99DDFF", "<"),
    ("#44BB99", ">"),
    ("#BBCC33", "D"),
    ("#999999", "P"),
]


def draw(rows, kinds, path, limit=120):
    """Draw seconds and free ARI by size; the upper row is given pairs or nothing."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    sizes = by_size(rows)
    figure, axes = plt.subplots(2, 2, figsize=(12, 9), layout="constrained")
    for line, wanted in zip(axes, ({"none", "pairs"}, {"labels"}), strict=True):
        names = [name for name in kinds if kinds[name] in wanted and name in sizes]
        peers = [name for name in names if not is_ours(name)]
        for name in [*peers, *(name for name in names if is_ours(name))]:
            done = sorted((n, row) for n, row in sizes[name].items() if row["status"] == "done")
            if is_ours(name):
                color, mark = OUR_LOOKS.get(name.removeprefix(OURS), ("#000000", "."))
                looks = {"color": color, "marker": mark, "linewidth": 1.8}
            else:
                color, mark = PEER_LOOKS[peers.index(name) % len(PEER_LOOKS)]
                looks = {"color": color, "marker": mark, "linestyle": "--", "linewidth": 1.4}
            label = (
                short(name).strip("*`") if not is_ours(name) else f"linkwise {short(name)[3:-3]}"
            )
            for axis, column in zip(line, ("cpu_s", "free_ari"), strict=True):
                axis.plot([n for n, _ in done], [number(row, column) for _, row in done],
                          label=label, markersize=5, **looks)  # fmt: skip
        given = "pairs, or nothing" if "pairs" in wanted else "labels"
        line[0].set(xscale="log", yscale="log", ylabel="CPU seconds", title=f"given {given}")
        line[0].axhline(limit, color="0.6", linewidth=0.8)
        line[1].set(xscale="log", ylabel="ARI of the free samples", title=f"given {given}")
        if names:
            line[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
        for axis in line:
            axis.set(xlabel="samples", xlim=(0.8 * SIZES[0], 1.25 * SIZES[-1]))
            axis.grid(visible=True, which="major", color="0.9")
            axis.set_axisbelow(True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
