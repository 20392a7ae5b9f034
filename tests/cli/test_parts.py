"""``linkwise cluster 'part-*.parquet' --workers 2``: one file of clusters for each part."""

from __future__ import annotations

import os
import signal
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

pd = pytest.importorskip("pandas")
pytest.importorskip("distributed", reason="the extra `dask` is not installed")
pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of processes that were ended
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def write_parts():
    X, y = make_blobs(300, 3, centers=3, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(0, "id", [f"row {i}" for i in range(300)])
    for number in range(3):
        frame[100 * number : 100 * number + 100].to_parquet(f"part-{number}.parquet")
    return frame, y


def test_every_part_gets_a_file_of_clusters(linkwise):
    from linkwise import metrics

    frame, y = write_parts()
    options = ("-k", 3, "-m", "sl", "--id", "id", "--workers", 1, "-o", "out")
    done = linkwise("cluster", "part-*.parquet", *options)
    assert done.code == 0, done.err
    found = pd.concat([pd.read_parquet(f"out/part-{number}.parquet") for number in range(3)])
    assert list(found.columns) == ["id", "cluster"]
    assert found["id"].tolist() == frame["id"].tolist()
    assert metrics.adjusted_rand(np.asarray(found["cluster"]), y) == 1


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupted_run_leaves_no_process_and_no_file(start, tmp_path):
    psutil = pytest.importorskip("psutil")
    frame = pd.DataFrame(np.random.RandomState(0).normal(size=(20_000, 8))).add_prefix("x")
    frame.to_parquet(tmp_path / "part-0.parquet")
    options = ("-k", 20, "-m", "sl", "--workers", 2, "-o", "out")
    process = start("cluster", "part-*.parquet", *options)
    for line in process.stderr:
        if "20,000 rows" in line:  # everything is read: the long part begins
            break
    started = psutil.Process(process.pid).children(recursive=True)
    assert len(started) >= 2
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not psutil.wait_procs(started, timeout=30)[1]
    assert [path.name for path in tmp_path.iterdir()] == ["part-0.parquet"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("part-*.parquet", "-k", 3, "-m", "cosc"), "cosc is for one machine. On Dask take"),
        (("part-*.parquet", "-k", 3), "-o is missing"),
        (("none-*.parquet", "-k", 3, "-o", "out"), "No file matches none-"),
        (("part-*.parquet", "-o", "out"), "-k is missing"),
        (("part-*.parquet", "-k", 3, "-o", "out", "--truth", "y"), "--truth is for one file"),
        (("part-*.parquet", "-k", 3, "--pair-columns", "a,b,c"), "--pair-columns is for one file"),
        (("part-*.parquet", "-k", 3, "--skip-unknown"), "--skip-unknown is for one file"),
        (("part-*.parquet", "-k", 3, "--prepared", "p.npz"), "--prepared is for one file"),
        (("part-*.parquet", "-k", 3, "--threads", 1), "--threads is for one file"),
        (("part-*.parquet", "-k", 3, "--scheduler", "tcp://x:1"), "--workers and --scheduler"),
        (("part-*.parquet", "-k", 3, "--id", "id", "-c", "pairs.csv"), "-c and --id"),
        (("part-*.parquet", "-k", 3, "--id", "no"), "--id no: part-0.parquet has no column"),
        (("part-*.parquet", "-k", 3, "--drop", "no"), "--drop no: part-0.parquet has no column"),
        (("part-*.parquet", "-k", 3, "--features", "no"), "--features no: part-0.parquet has no"),
        (("part-*.parquet", "-k", 3, "--features", "a", "--drop", "a,b"), "No column is left"),
        (("part-*.parquet", "-k", 3, "--id", "id", "--column", "id"), "--column id: that is"),
        (("part-*.parquet", "-k", 3, "-o", "part-0.parquet"), "is a file. Name a folder"),
        (("part-*.parquet", "-k", 3, "-o", "."), "would overwrite the input"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_starts(linkwise, no_workers, options, message):
    write_parts()
    output = () if "-o" in options or "-o is" in message else ("-o", "out")
    done = linkwise("cluster", *options, *output, "--workers", 1)
    assert done.code != 0
    assert message in done.error


@pytest.fixture
def no_workers(monkeypatch):
    """Without processes: what is wrong has to be found before they would start."""
    from linkwise.cli import parts

    def start(_):
        raise AssertionError("workers were started")

    monkeypatch.setattr(parts, "_client", start)


def test_features_are_not_overwritten_by_their_clusters(linkwise, no_workers):
    write_parts()
    before = Path("part-0.parquet").read_bytes()
    Path("out").mkdir()
    Path("out/part-1.parquet").symlink_to("../part-1.parquet")
    for folder in (".", "out"):
        done = linkwise("cluster", "part-*.parquet", "-k", 3, "--workers", 1, "-o", folder)
        assert "would overwrite the input" in done.error
    assert Path("part-0.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--id", "id"), "--id id: part-1.parquet has no column"),
        (("--drop", "id"), "--drop id: part-1.parquet has no column"),
        (("--features", "c"), "--features c: part-1.parquet has no column"),
        ((), "part-1.parquet has no column 'c', but part-0.parquet has"),
    ],
)
def test_the_columns_of_every_part_are_checked(linkwise, no_workers, options, message):
    frame, _ = write_parts()
    frame[["a", "b"]].to_parquet("part-1.parquet")
    if not options:
        frame[["a", "b", "c"]].to_parquet("part-0.parquet")
    given = ("-k", 3, "--workers", 1, "-o", "out", *options)
    assert message in linkwise("cluster", "part-*.parquet", *given).error


@pytest.fixture
def here(monkeypatch):
    """Workers that are threads of this process, which start at once."""
    from distributed import Client

    from linkwise.cli import parts

    def start(_):
        return Client(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
        )

    monkeypatch.setattr(parts, "_client", start)


def cluster_parts(linkwise, pattern, *options):
    done = linkwise("cluster", pattern, "-k", 3, "-m", "sl", "--workers", 1, "-o", "out", *options)
    assert done.code == 0, done.err
    return done


def test_parts_of_one_name_keep_their_folders(linkwise, here):
    frame, _ = write_parts()
    for number in range(3):
        Path(f"year={number}").mkdir()
        Path(f"part-{number}.parquet").rename(f"year={number}/part.parquet")
    cluster_parts(linkwise, "year=*/part.parquet", "--id", "id")
    parts = [Path(f"out/year={number}/part.parquet").read_bytes() for number in range(3)]
    found = [pd.read_parquet(BytesIO(part)) for part in parts]  # without the year of the folder
    assert [part["id"].tolist() for part in found] == [
        frame["id"][100 * number : 100 * number + 100].tolist() for number in range(3)
    ]


def test_parts_are_standardised_together(linkwise, here):
    """A feature in another unit would hide the clusters, as in a single file."""
    from linkwise import metrics

    frame, y = write_parts()
    noise = np.random.default_rng(0).normal(size=300)
    frame["noise"], frame["same"] = 1e4 * noise, 0.1
    for number in range(3):
        frame[100 * number : 100 * number + 100].to_parquet(f"part-{number}.parquet")
    frame[:0].to_parquet("part-3.parquet")  # an empty one says nothing about the scale

    def found(*options):
        done = cluster_parts(linkwise, "part-*.parquet", "--drop", "id", *options)
        parts = [pd.read_parquet(f"out/part-{number}.parquet") for number in range(4)]
        return done.err, metrics.adjusted_rand(np.asarray(pd.concat(parts)["cluster"]), y)

    said, score = found()
    assert "standardised (--no-scale leaves them as they are)" in said
    assert "Constant columns say nothing about clusters: 'same'" in said
    assert score > 0.9
    said, score = found("--no-scale")
    assert "standardised" not in said
    assert score < 0.5


def test_a_missing_value_is_named_by_its_own_row(linkwise, here):
    frame, _ = write_parts()
    frame.loc[107, "b"] = np.nan
    frame[100:200].to_parquet("part-1.parquet")
    options = ("-k", 3, "-m", "sl", "--drop", "id", "--workers", 1, "-o", "out")
    assert "row 7 of chunk 1" in linkwise("cluster", "part-*.parquet", *options).error


def refused(linkwise, *options, pattern="part-*.parquet"):
    given = ("-k", 3, "-m", "sl", "--drop", "id", "--workers", 1, "-o", "out", *options)
    done = linkwise("cluster", pattern, *given)
    assert done.code == 2, done.err
    assert not list(Path("out").rglob("*.unfinished*"))
    return done.error


def test_a_missing_value_is_named_by_its_file_and_column(linkwise, here):
    """A part without rows is no chunk: the number of a chunk is not that of its file."""
    frame, _ = write_parts()
    frame[:0].to_parquet("part-0.parquet")
    frame.loc[107, "b"] = np.nan
    frame[100:200].to_parquet("part-1.parquet")
    assert "part-1.parquet, column 'b': X holds nan" in refused(linkwise)


def test_a_missing_date_is_no_number(linkwise, here):
    """It was -9.2e18, the oldest date that there is."""
    frame, y = write_parts()
    for number in range(3):
        dates = frame[["a", "b", "c"]][100 * number : 100 * number + 100] * 1e15
        dates = dates.apply(pd.to_datetime).assign(id=0.0, b=lambda d: d["b"].dt.date)
        dates.to_parquet(f"part-{number}.parquet")
    cluster_parts(linkwise, "part-*.parquet", "--drop", "id")
    found = pd.concat([pd.read_parquet(f"out/part-{number}.parquet") for number in range(3)])
    from linkwise import metrics

    assert metrics.adjusted_rand(np.asarray(found["cluster"]), y) > 0.9
    dates.loc[dates.index[4], "a"] = pd.NaT
    dates.to_parquet("part-2.parquet")
    assert "part-2.parquet, column 'a': X holds nan (column 0) in row 4" in refused(linkwise)


@pytest.mark.parametrize("damage", ["empty", "cut", "end", "folder", "link", "pipe"])
def test_a_damaged_part_is_named_before_anything_starts(linkwise, no_workers, damage):
    write_parts()
    path = Path("part-1.parquet")
    content = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "link":
        path.symlink_to("nowhere")
    elif damage == "pipe":  # which was waited for, without end
        os.mkfifo(path)
    else:
        kept = {"empty": 0, "cut": len(content) // 2, "end": len(content) - 1}[damage]
        path.write_bytes(content[:kept])
    assert refused(linkwise).startswith("Error: part-1.parquet is ")


def test_damage_that_workers_find_is_named(linkwise, here):
    import pyarrow.parquet as pq

    write_parts()
    path = Path("part-1.parquet")
    first = pq.read_metadata(path).row_group(0).column(2).data_page_offset
    content = bytearray(path.read_bytes())
    content[first : first + 40] = b"\xff" * 40
    path.write_bytes(content)
    assert "part-1.parquet is no readable Parquet file" in refused(linkwise)


def test_a_column_that_a_part_has_twice_is_named(linkwise, no_workers):
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_parts()
    values = pa.array(np.arange(9.0))
    pq.write_table(pa.table([values] * 5, names=["id", "a", "b", "c", "b"]), "part-1.parquet")
    assert "part-1.parquet has more than one column called 'b'" in refused(linkwise)


def test_a_small_part_that_asks_for_much_is_refused(linkwise, no_workers):
    frame, _ = write_parts()
    many = pd.DataFrame(0.0, index=range(200_000), columns=frame.columns)
    many.to_parquet("part-1.parquet", index=False)
    assert Path("part-1.parquet").stat().st_size < 20_000
    assert "part-1.parquet has" in (said := refused(linkwise, "--max-gb", 0.001))
    assert "raise it with --max-gb" in said


@pytest.mark.parametrize("kind", ["one file", "folder", "file above", "link", "no rights"])
def test_what_cannot_be_written_is_said_before_anything_starts(linkwise, no_workers, kind):
    """Before, the first three were found when all clusters were there; two parts of one file lost
    the clusters of one of them."""
    write_parts()
    out, pattern = Path("out"), "part-*.parquet"
    if kind == "link":
        out.symlink_to("nowhere")
    else:
        out.mkdir()
    if kind == "one file":
        for number in range(2):
            (out / f"part-{number}.parquet").symlink_to("same.parquet")
    elif kind == "folder":
        (out / "part-2.parquet").mkdir()
    elif kind == "file above":
        pattern = "*/part.parquet"
        for number in range(3):
            Path(f"year={number}").mkdir()
            Path(f"part-{number}.parquet").rename(f"year={number}/part.parquet")
        (out / "year=1").write_text("mine")
    elif kind == "no rights":
        if os.geteuid() == 0:
            pytest.skip("the superuser may write everywhere")
        out.chmod(0o500)
    said = {
        "one file": "out/part-1.parquet and out/part-0.parquet are one file",
        "folder": "out/part-2.parquet is a folder",
        "file above": "is no folder",
        "link": "-o out is a link to nothing",
        "no rights": "nothing can be written",
    }
    assert said[kind] in refused(linkwise, pattern=pattern)


def test_a_name_with_brackets_is_a_name(linkwise, here):
    write_parts()
    Path("part-0.parquet").rename("part[1].parquet")
    done = cluster_parts(linkwise, "part[1].parquet", "--drop", "id")
    assert "100 rows in 1 part x 3" in done.err
    assert Path("out/part[1].parquet").exists()


@pytest.mark.parametrize("index", [None, "id"])
def test_the_index_of_a_frame_is_no_feature(linkwise, here, index):
    frame, _ = write_parts()
    shuffled = frame.sample(frac=1, random_state=0)
    shuffled = shuffled.set_index("id") if index else shuffled
    for number in range(3):
        shuffled[100 * number : 100 * number + 100].to_parquet(f"part-{number}.parquet")
    done = cluster_parts(linkwise, "part-*.parquet", "--id", "id")
    assert "300 rows in 3 parts x 3" in done.err
    found = pd.concat([pd.read_parquet(f"out/part-{number}.parquet") for number in range(3)])
    assert found["id"].tolist() == (shuffled.index if index else shuffled["id"]).tolist()
