"""Data by name: sizes of the papers, files of a folder, and a server on the loopback."""

from __future__ import annotations

import gc
import gzip
import hashlib
import json
import pickle
import subprocess
import sys
import threading
import warnings
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import _openml

from linkwise.datasets import (
    Dataset,
    DatasetNotFoundError,
    UnverifiedDataWarning,
    available,
    load,
)
from linkwise.datasets.catalogue import (
    ALIASES,
    CATALOGUE,
    FINGERPRINTS,
    BuiltIn,
    Derived,
    Entry,
    Made,
    OpenML,
    Stored,
)
from linkwise.datasets.openml import decoded
from linkwise.datasets.preprocess import (
    complete_cases,
    encoded,
    fingerprint,
    grouped,
    median_filled,
    one_against_rest,
    unique_rows,
    unit_range,
    without_class,
)

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the papers' data are not beside this checkout (../shared/data)"
)

# Size, features and classes as the tables of the papers give them.
OF_THE_PAPERS = {
    "Fu et al. 2011, Table 1": {
        "zoo": (101, 16, 7),
        "wdbc": (569, 30, 2),
        "ionosphere": (351, 34, 2),
        "wine": (178, 13, 3),
    },
    "Rangapuram and Hein 2012, Table 1": {
        "sonar": (208, 60, 2),
        "spam": (4207, 57, 2),
        "usps": (9298, 256, 10),
        "usps0": (9298, 256, 2),
        "mnist": (70_000, 784, 10),
        "mnist_ext": (630_000, 784, 10),
    },
    "Wacquet et al. 2013, Tables 1 and 2": {
        "hepatitis": (80, 19, 2),
        "ionosphere": (351, 34, 2),
        "wine": (178, 13, 3),
        "dermatology": (366, 34, 6),
        "glass": (214, 9, 6),
        "ecoli": (336, 7, 8),
        "yale": (165, 1024, 15),
        "orl": (400, 1024, 40),
    },
    "Wang et al., Table II": {
        "hepatitis": (80, 19, 2),
        "iris2": (100, 4, 2),
        "wine119": (119, 13, 2),
        "glass2": (214, 9, 2),
        "ionosphere": (351, 34, 2),
        "breast_cancer": (569, 30, 2),
    },
    # Table 2 gives the sizes of images, not features.
    "Fu et al. 2011, Table 2": {"scene": (2688, 512, 8), "corel": (1500, 512, 15)},
    "Xu et al. 2005": {"xor": (40, 2, 2), "iris": (150, 4, 3), "soybean": (47, 35, 4)},
    "Rangapuram and Hein 2012, Figure 2": {"mixture": (500, 2, 4)},
}
IN_PAPERS = [
    pytest.param(name, size, id=f"{paper}: {name}")
    for paper, sets in OF_THE_PAPERS.items()
    for name, size in sets.items()
]
HERE = [name for name, entry in CATALOGUE.items() if not isinstance(entry.how, Stored | Derived)]
HERE += ["digits_extended", "iris2", "wine2", "wine119"]


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("LINKWISE_DATA", raising=False)


# The catalogue


@pytest.mark.parametrize("name", HERE)
def test_what_needs_no_folder_has_the_size_of_the_catalogue(name):
    data = load(name)
    entry = CATALOGUE[name]
    assert isinstance(data, Dataset)
    assert tuple(np.bincount(data.y).tolist()) == entry.class_sizes
    assert data.X.shape == (entry.n_samples, entry.n_features or entry.n_samples)
    assert data.n_clusters == entry.n_clusters
    assert data.verified
    assert data.source
    assert data.y.dtype == np.intp


@pytest.mark.parametrize(("name", "size"), IN_PAPERS)
def test_the_catalogue_has_the_sizes_of_the_papers(name, size):
    entry = CATALOGUE[ALIASES.get(name, name)]
    assert (entry.n_samples, entry.n_features, entry.n_clusters) == size


@needs_shared
@pytest.mark.parametrize("name", [n for n in CATALOGUE if n not in HERE])
def test_the_papers_data_load_and_are_verified(name):
    data = load(name, data_home=SHARED)
    entry = CATALOGUE[name]
    assert data.X.shape == (entry.n_samples, entry.n_features)
    assert tuple(np.bincount(data.y).tolist()) == entry.class_sizes
    # Own features of photographs have no reference copy.
    assert data.verified == (not name.endswith("_gist"))
    assert str(SHARED) in data.source


@needs_shared
@pytest.mark.parametrize("name", ["iris", "wine", "wdbc"])
def test_scikit_learns_copies_are_the_papers_data(name):
    stored = np.load(SHARED / f"{name}.npz")
    data = load(name)
    assert fingerprint(data.X, data.y) == fingerprint(stored["X"], stored["y"])


@needs_shared
def test_extended_mnist_is_made_of_bytes_and_holds_the_shifts():
    base, extended = load("mnist", data_home=SHARED), load("mnist_extended", data_home=SHARED)
    assert extended.X.dtype == np.uint8
    assert extended.X.nbytes == 630_000 * 784
    image = base.X[123].reshape(28, 28)
    down = extended.X[70_000 + 123].reshape(28, 28)
    assert_array_equal(down[1:], image[:-1])
    assert not down[0].any()
    assert_array_equal(extended.y.reshape(9, -1), np.tile(base.y, (9, 1)))


def test_derived_sets_are_subsets_of_their_base():
    iris, iris2 = load("iris"), load("iris2")
    assert_array_equal(iris2.X, iris.X[50:])
    assert_array_equal(iris2.y, iris.y[50:] - 1)
    wine = load("wine")
    assert_array_equal(load("wine2").X, wine.X[wine.y != 2])
    assert_array_equal(load("wine119").X, wine.X[wine.y != 0])


def test_derived_sets_have_a_base():
    for entry in CATALOGUE.values():
        if isinstance(entry.how, Derived):
            assert entry.how.base in CATALOGUE
    assert set(ALIASES.values()) <= set(CATALOGUE)
    assert not set(ALIASES) & set(CATALOGUE)


def test_random_state_is_of_data_made_on_the_spot():
    assert_array_equal(load("moons").X, load("moons", random_state=0).X)
    assert (load("moons").X != load("moons", random_state=1).X).any()


def test_a_dataset_is_frozen_and_short():
    data = load("iris")
    with pytest.raises(AttributeError):
        data.X = None
    assert repr(data) == "Dataset(name='iris', shape=(150, 4), n_clusters=3)"
    assert "Xu et al. 2005" in data.description
    assert pickle.loads(pickle.dumps(data)).name == "iris"


def test_available_tells_what_is_here(tmp_path, monkeypatch):
    listed = {listing.name: listing for listing in available()}
    assert list(listed) == list(CATALOGUE)
    assert [name for name, listing in listed.items() if listing.here] == [
        name for name in CATALOGUE if name in HERE
    ]
    origins = {name: listed[name].origin for name in ("iris2", "xor", "usps0", "orl_32x32")}
    assert origins == {
        "iris2": "scikit-learn",
        "xor": "made",
        "usps0": "folder or OpenML",
        "orl_32x32": "folder",
    }
    (tmp_path / "glass.npz").touch()
    monkeypatch.setenv("LINKWISE_DATA", str(tmp_path))
    here = {listing.name: listing.path for listing in available() if listing.path}
    assert here == dict.fromkeys(["glass", "glass2"], tmp_path / "glass.npz")
    assert not any(listing.path for listing in available(data_home=tmp_path / "elsewhere"))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("spambas", "Did you mean 'spambase'"),
        ("USP", "usps"),
        ("iris 3", "iris"),
        ("qqqq", "There are iris, wine"),
    ],
)
def test_an_unknown_name_suggests_others(wrong, hint):
    with pytest.raises(ValueError, match="There is no data set") as caught:
        load(wrong)
    assert hint in str(caught.value)


@pytest.mark.parametrize("wrong", [3, None, b"iris", ["iris"]])
def test_a_name_is_a_text(wrong):
    with pytest.raises(TypeError, match="asked for by its name, got"):
        load(wrong)


def test_names_are_read_kindly():
    assert load("Breast-Cancer").name == "wdbc"
    assert load(" IRIS2 ").name == "iris2"


def test_importing_linkwise_does_not_import_the_loaders_of_scikit_learn():
    script = (
        "import sys, linkwise, linkwise.datasets as d; d.available(); d.load('xor');"
        "print('sklearn.datasets' in sys.modules); d.load('iris');"
        "print('sklearn.datasets' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


# Files of a folder


def soybeans(rng, **changed):
    """Arrays of the right sizes for "soybean_small", with changes."""
    arrays = {"X": rng.uniform(size=(47, 35)), "y": np.repeat(range(4), [10, 10, 10, 17])}
    return {name: value for name, value in (arrays | changed).items() if value is not None}


def test_a_file_of_the_right_size_is_read_with_a_warning(tmp_path):
    arrays = soybeans(np.random.RandomState(0))
    np.savez(tmp_path / "soybean_small.npz", **arrays)
    with pytest.warns(UnverifiedDataWarning, match="values differ from the copy") as caught:
        data = load("soybean_small", data_home=tmp_path)
    assert caught[0].filename == __file__
    assert not data.verified
    assert_array_equal(data.X, arrays["X"])
    assert not load("soybean_small", data_home=str(tmp_path), verify=False).verified


def test_labels_may_be_strings(tmp_path):
    names = np.repeat(["D1", "D2", "D3", "D4"], [10, 10, 10, 17])
    arrays = soybeans(np.random.RandomState(0), y=names)
    np.savez(tmp_path / "soybean_small.npz", **arrays)
    data = load("soybean_small", data_home=tmp_path, verify=False)
    assert np.bincount(data.y).tolist() == [10, 10, 10, 17]


def test_the_environment_names_the_folder_and_the_argument_comes_first(tmp_path, monkeypatch):
    for number, home in enumerate(["env", "arg"]):
        (tmp_path / home).mkdir()
        arrays = soybeans(np.random.RandomState(number))
        np.savez_compressed(tmp_path / home / "soybean_small.npz", **arrays)
    monkeypatch.setenv("LINKWISE_DATA", str(tmp_path / "env"))
    quiet = partial(load, "soybean_small", verify=False)
    assert quiet().source == str(tmp_path / "env" / "soybean_small.npz")
    assert quiet(data_home=tmp_path / "arg").source == str(tmp_path / "arg" / "soybean_small.npz")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"X": None}, "no array X in it, only ['y']"),
        ({"y": None}, "no array y in it, only ['X']"),
        ({"y": np.zeros(46, int)}, "one label for each of the 47 samples"),
        ({"y": np.zeros((47, 1), int)}, "one label for each of the 47 samples"),
        ({"X": np.zeros(47)}, "table of numbers"),
        ({"X": np.zeros((47, 0))}, "table of numbers"),
        ({"X": np.full((47, 35), "a")}, "table of numbers"),
        ({"X": np.full((47, 35), np.nan)}, "X[0, 0] is nan; values must be finite"),
        ({"X": np.full((47, 35), -np.inf)}, "X[0, 0] is -inf; values must be finite"),
        ({"y": np.full(47, np.nan)}, "all of them known"),
        ({"y": np.array([None] * 47)}, "it cannot be read"),
        ({"X": np.zeros((47, 34))}, "but"),
        ({"y": np.repeat(range(4), [11, 9, 10, 17])}, "in classes of 11, 9, 10, 17"),
        ({"y": np.zeros(47, int)}, "in classes of 47. Pass verify=False"),
    ],
)
def test_a_wrong_file_gets_one_clear_error(tmp_path, changed, says):
    path = tmp_path / "soybean_small.npz"
    np.savez(path, **soybeans(np.random.RandomState(0), **changed))
    with pytest.raises(ValueError, match="soybean_small") as caught:
        load("soybean_small", data_home=tmp_path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize("damage", ["empty", "text", "half", "one array"])
def test_a_damaged_file_gets_one_clear_error(tmp_path, damage):
    path = tmp_path / "soybean_small.npz"
    np.savez(path, **soybeans(np.random.RandomState(0)))
    whole = path.read_bytes()
    if damage == "one array":
        with path.open("wb") as file:
            np.save(file, np.zeros((3, 3)))
    else:
        broken = {"empty": b"", "text": b"no archive", "half": whole[: len(whole) // 2]}
        path.write_bytes(broken[damage])
    with pytest.raises(ValueError, match="is no data set") as caught:
        load("soybean_small", data_home=tmp_path)
    assert str(path) in str(caught.value)


def test_any_damaged_byte_is_an_error_or_seen(tmp_path):
    path = tmp_path / "soybean_small.npz"
    np.savez_compressed(path, **soybeans(np.random.RandomState(0)))
    whole, rng = path.read_bytes(), np.random.RandomState(1)
    n_read = 0
    for place in rng.choice(len(whole), 300, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randint(8)
        path.write_bytes(damaged)
        # Some bytes of an archive do not matter, like dates. Any other error fails the test.
        with suppress(ValueError):
            load("soybean_small", data_home=tmp_path, verify=False)
            n_read += 1
    assert n_read < 30


def test_what_is_missing_says_how_to_get_it(tmp_path):
    with pytest.raises(DatasetNotFoundError) as caught:
        load("orl", data_home=tmp_path)
    message = str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    assert f"there is no orl_32x32.npz in {tmp_path}" in message
    assert "OpenML does not have it" in message
    assert "data_home= or the environment variable LINKWISE_DATA" in message
    with pytest.raises(DatasetNotFoundError, match="no folder is set, and fetch=False forbids"):
        load("usps0", fetch=False)


# OpenML, on the loopback


class Server:
    """A small OpenML on the loopback: the four answers that scikit-learn asks for."""

    def __init__(self, data_id, name, columns, rows):
        self.data_id, self.name, self.columns, self.rows = data_id, name, columns, rows
        self.asked = []
        self.fail = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                body = outer.answer(self.path)
                self.send_response(outer.fail or (200 if body else 404))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=partial(self.http.serve_forever, 0.02), daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}/"

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join(timeout=10)

    def arff(self):
        lines = [f"@RELATION {self.name}"]
        for column, kind in self.columns:
            nominal = kind if isinstance(kind, str) else "{" + ",".join(map(repr, kind)) + "}"
            lines.append(f"@ATTRIBUTE {column} {nominal}")
        lines.append("@DATA")
        lines += [
            ",".join(repr(v) if isinstance(v, str) and v != "?" else str(v) for v in row)
            for row in self.rows
        ]
        return "\n".join(lines).encode() + b"\n"

    def answer(self, path):
        base = f"/api/v1/json/data/{self.data_id}"
        if path == base:
            description = {
                "id": str(self.data_id),
                "name": self.name,
                "version": "1",
                "description": "made for a test",
                "format": "ARFF",
                "file_id": "77",
                "status": "active",
                "url": f"{self.url}data/v1/download/77",
                "md5_checksum": hashlib.md5(self.arff()).hexdigest(),
            }
            return json.dumps({"data_set_description": description}).encode()
        if path == base.replace("data/", "data/features/"):
            features = [
                {
                    "index": str(index),
                    "name": column,
                    "data_type": "numeric" if isinstance(kind, str) else "nominal",
                    "is_target": "true" if column == self.columns[-1][0] else "false",
                    "is_ignore": "false",
                    "is_row_identifier": "false",
                    "number_of_missing_values": "0",
                }
                for index, (column, kind) in enumerate(self.columns)
            ]
            return json.dumps({"data_features": {"feature": features}}).encode()
        if path == base.replace("data/", "data/qualities/"):
            qualities = [{"name": "NumberOfInstances", "value": str(float(len(self.rows)))}]
            return json.dumps({"data_qualities": {"quality": qualities}}).encode()
        return self.arff() if path == "/data/v1/download/77" else None


@pytest.fixture
def openml(tmp_path, monkeypatch):
    """Start a server in place of OpenML, and keep the cache of scikit-learn in a new folder."""
    servers = []

    def start(*args):
        server = Server(*args)
        servers.append(server)
        if hasattr(_openml, "_OPENML_PREFIX"):  # scikit-learn below 1.9
            monkeypatch.setattr(_openml, "_OPENML_PREFIX", server.url)
        else:
            for name in ("_SEARCH_NAME", "_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
                path = getattr(_openml, name).partition("/api/")[2]
                monkeypatch.setattr(_openml, name, f"{server.url}api/{path}")
        return server

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    monkeypatch.setattr(_openml, "time", SimpleNamespace(sleep=lambda seconds: None))
    yield start
    for server in servers:
        server.stop()


PETS = [
    ("who", ["rex", "tom", "ann", "ben", "kim"]),
    ("tame", ["no", "yes"]),
    ("grade", ["3", "1", "2"]),
    ("mass", "REAL"),
    ("kind", ["dog", "cat"]),
]
PET_ROWS = [
    ["rex", "yes", "3", 20.5, "dog"],
    ["tom", "no", "1", 4.0, "cat"],
    ["ann", "?", "1", 3.0, "cat"],
    ["ben", "no", "2", "?", "dog"],
    ["kim", "yes", "2", 10.0, "dog"],
]


@pytest.fixture
def pets(monkeypatch):
    """An entry of the catalogue for a tiny data set."""

    def put(fingerprint=None):
        settings = {"prepare": complete_cases, "classes": ("dog", "cat"), "drop": ("who",)}
        source = OpenML(4321, "Pets", codes={"tame": {"no": 5.0, "yes": 7.0}}, **settings)
        entry = Entry("pets", (2, 1), 3, Stored(source), "Pets.")
        monkeypatch.setitem(CATALOGUE, "pets", entry)
        if fingerprint is not None:
            monkeypatch.setitem(FINGERPRINTS, "pets", fingerprint)

    put()
    return put


def test_a_fetched_set_is_decoded_prepared_and_cached(openml, pets, tmp_path):
    server = openml(4321, "pets", PETS, PET_ROWS)
    data = load("pets")
    assert_array_equal(data.X, [[7, 3, 20.5], [5, 1, 4], [7, 2, 10]])
    assert_array_equal(data.y, [0, 1, 0])
    assert data.source == "OpenML, data_id=4321"
    asked = len(server.asked)
    assert asked == 4
    assert_array_equal(load("pets").X, data.X)
    assert len(server.asked) == asked
    assert list((tmp_path / "cache").rglob("*.gz"))


def test_a_fetched_set_is_compared_with_its_fingerprint(openml, pets):
    openml(4321, "pets", PETS, PET_ROWS)
    right = fingerprint(np.array([[5, 1, 4.0], [7, 2, 10], [7, 3, 20.5]]), np.array([1, 0, 0]))
    pets(fingerprint=right)
    assert load("pets").verified
    pets(fingerprint="0" * 64)
    with pytest.warns(UnverifiedDataWarning, match="OpenML, data_id=4321 has the size of pets"):
        assert not load("pets").verified


def test_a_folder_comes_before_the_network(openml, pets, tmp_path):
    server = openml(4321, "pets", PETS, PET_ROWS)
    np.savez(tmp_path / "pets.npz", X=np.eye(3), y=[0, 0, 1])
    assert_array_equal(load("pets", data_home=tmp_path).X, np.eye(3))
    assert not server.asked


def test_without_the_network_nothing_is_asked(openml, pets):
    server = openml(4321, "pets", PETS, PET_ROWS)
    with pytest.raises(DatasetNotFoundError, match="fetch=False"):
        load("pets", fetch=False)
    assert not server.asked


def test_an_id_that_names_another_set_is_refused(openml, pets):
    openml(4321, "cars", PETS, PET_ROWS)
    with pytest.raises(DatasetNotFoundError, match="data set 4321 is 'cars', not 'Pets'"):
        load("pets")


def test_a_set_of_another_size_is_refused(openml, pets):
    openml(4321, "pets", PETS, [*PET_ROWS, PET_ROWS[0]])
    with pytest.raises(ValueError, match="in classes of 2, 1; but OpenML, data_id=4321 has 4 of 3"):
        load("pets")
    assert load("pets", verify=False).X.shape == (4, 3)


@pytest.mark.parametrize("code", [404, 412, 500])
def test_a_failing_server_is_reported(openml, pets, code):
    openml(4321, "pets", PETS, PET_ROWS).fail = code
    with pytest.raises(DatasetNotFoundError) as caught:
        load("pets")
    message = str(caught.value)
    assert "fetching OpenML's data set 4321 failed" in message
    assert (str(code) if code != 412 else "4321 not found") in message
    assert "pets.npz" in message
    del caught
    with warnings.catch_warnings():
        if code == 412:  # scikit-learn itself leaves this connection open
            warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_no_server_is_reported(openml, pets):
    openml(4321, "pets", PETS, PET_ROWS).stop()
    with pytest.raises(DatasetNotFoundError, match=r"failed: .*[Cc]onnection refused"):
        load("pets")


def test_a_cached_file_that_was_damaged_is_fetched_again(openml, pets, tmp_path):
    server = openml(4321, "pets", PETS, PET_ROWS)
    X = load("pets").X
    (cached,) = (tmp_path / "cache").rglob("77.gz")
    cached.write_bytes(gzip.compress(b"@RELATION broken\n"))
    assert_array_equal(load("pets").X, X)
    assert server.asked.count("/data/v1/download/77") == 2


def test_numbers_alone_are_read_the_fast_way(openml, monkeypatch):
    columns = [("pixel1", "REAL"), ("pixel2", "REAL"), ("class", [str(i) for i in range(1, 11)])]
    rows = [[-1.0, 0.5, "10"], [1.0, -0.25, "2"], [0.0, 0.0, "2"]]
    openml(4322, "specks", columns, rows)
    source = OpenML(4322, "specks", unit_range, numeric=True)
    entry = Entry("specks", (2, 1), 2, Stored(source), "Specks.")
    monkeypatch.setitem(CATALOGUE, "specks", entry)
    data = load("specks")
    assert_allclose(data.X, [[0, 0.75], [1, 0.375], [0.5, 0.5]])
    assert data.X.dtype == np.float32
    assert_array_equal(data.y, [1, 0, 0])  # 2 comes before 10


@needs_shared
@pytest.mark.parametrize("name", ["hepatitis", "zoo", "glass", "dermatology"])
def test_data_in_the_form_of_openml_become_the_papers_data(openml, name):
    """The data are written in the words of OpenML's file, with its missing values, and served."""
    stored, entry = np.load(SHARED / f"{name}.npz"), CATALOGUE[name]
    source = entry.how.openml
    columns, rows = WRITERS[name](stored["X"], stored["y"])
    openml(source.data_id, source.name, columns, rows)
    data = load(name)
    assert data.verified
    assert data.source == f"OpenML, data_id={source.data_id}"


def hepatitis_rows(X, y):
    plain = {0: "AGE", 13: "BILIRUBIN", 14: "ALK", 15: "SGOT", 16: "ALBUMIN", 17: "PROTIME"}
    words = iter(
        [
            *("SEX", "STEROID", "ANTIVIRALS", "FATIGUE", "MALAISE", "ANOREXIA", "LIVER_BIG"),
            *("LIVER_FIRM", "SPLEEN_PALPABLE", "SPIDERS", "ASCITES", "VARICES", "HISTOLOGY"),
        ]
    )
    names = [plain.get(j) or next(words) for j in range(19)]
    one = dict.fromkeys(names, ("yes", "no")) | {"SEX": ("female", "male")}
    one |= dict.fromkeys(["STEROID", "LIVER_BIG", "HISTOLOGY"], ("no", "yes"))
    columns = [
        (n, "REAL" if j in plain else ["male", "female"] if n == "SEX" else ["no", "yes"])
        for j, n in enumerate(names)
    ]
    rows = [
        [v if j in plain else one[names[j]][int(v) - 1] for j, v in enumerate(row)]
        + ["DIE" if label == 0 else "LIVE"]
        for row, label in zip(X.tolist(), y, strict=True)
    ]
    gaps = [[*row[:place], "?", *row[place + 1 :]] for place, row in enumerate(rows[:19])]
    return [*columns, ("Class", ["DIE", "LIVE"])], rows + gaps


def zoo_rows(X, y):
    kinds = ["mammal", "bird", "reptile", "fish", "amphibian", "insect", "invertebrate"]
    columns = [("animal", [f"a{i}" for i in range(len(X))])]
    columns += [(f"f{j}", "INTEGER" if j == 12 else ["false", "true"]) for j in range(16)]
    rows = [
        [f"a{i}"]
        + [int(v) if j == 12 else ["false", "true"][int(v)] for j, v in enumerate(row)]
        + [kinds[label]]
        for i, (row, label) in enumerate(zip(X.tolist(), y, strict=True))
    ]
    return [*columns, ("type", kinds)], rows


def glass_rows(X, y):
    kinds = ["build wind float", "build wind non-float", "vehic wind float"]
    kinds += ["containers", "tableware", "headlamps"]
    columns = [(f"f{j}", "REAL") for j in range(9)]
    rows = [[*row, kinds[label]] for row, label in zip(X.tolist(), y, strict=True)]
    return [*columns, ("Type", [*kinds[:3], "vehic wind non-float", *kinds[3:]])], rows


def dermatology_rows(X, y):
    missing = np.load(SHARED / "dermatology.npz")["missing"]
    columns = [(f"f{j}", ["0", "1", "2", "3"]) for j in range(33)] + [("Age", "INTEGER")]
    rows = [
        [str(int(v)) for v in row[:33]] + ["?" if gone else int(row[33]), str(label + 1)]
        for row, label, gone in zip(X.tolist(), y, missing, strict=True)
    ]
    return [*columns, ("class", [str(c) for c in range(1, 7)])], rows


WRITERS = {
    "hepatitis": hepatitis_rows,
    "zoo": zoo_rows,
    "glass": glass_rows,
    "dermatology": dermatology_rows,
}


# What the papers did to their data


def test_spam_without_repeated_feature_vectors_keeps_first_labels():
    X = np.array([[1, 2], [0, 0], [1, 2], [0, 1], [0, 0]])
    kept, y = unique_rows(X, np.array([1, 0, 0, 1, 0]))
    assert_array_equal(kept, [[1, 2], [0, 0], [0, 1]])
    assert_array_equal(y, [1, 0, 1])


def test_missing_values_are_left_out_or_filled():
    X = np.array([[1.0, np.nan], [2.0, 4.0], [6.0, 8.0], [np.nan, 9.0]])
    y = np.array([0, 1, 1, 0])
    assert_array_equal(complete_cases(X, y)[0], X[1:3])
    assert_array_equal(complete_cases(X, y)[1], [1, 1])
    filled, labels = median_filled(X, y)
    assert_array_equal(filled, [[1, 8], [2, 4], [6, 8], [2, 9]])
    assert_array_equal(labels, y)


def test_classes_are_left_out_set_apart_and_grouped():
    X, y = np.arange(8.0)[:, None], np.array([0, 1, 2, 3, 0, 1, 2, 3])
    assert_array_equal(without_class(X, y, 1)[1], [0, 1, 2, 0, 1, 2])
    assert_array_equal(without_class(X, y, 1)[0].ravel(), [0, 2, 3, 4, 6, 7])
    assert_array_equal(one_against_rest(X, y, 0)[1], y > 0)
    assert_array_equal(grouped(X, y, (0, 1, 1, 0))[1], [0, 1, 1, 0] * 2)


def test_labels_are_numbered_by_order_then_value_then_name():
    assert_array_equal(encoded([3, 10, 3, -1]), [1, 2, 1, 0])
    assert_array_equal(encoded(["b", "a", "c"]), [1, 0, 2])
    assert_array_equal(encoded(["b", "a", "c"], order=("c", "missing", "b")), [1, 2, 0])
    assert_array_equal(encoded(np.array(["9", "10"], dtype=object)), [0, 1])
    assert_array_equal(encoded([0.5, 0.25]), [1, 0])


def test_nominal_features_become_what_they_say():
    wanted = OpenML(1, "x", codes={"b": {"low": -1.0, "high": 1.0}}, drop=("c",))
    categories = {"a": ["2", "0.5"], "b": ["high", "low"], "c": ["u"], "d": ["p", "q"]}
    data = np.array([[0, 0, 0, 1, 9.5], [1, 1, 0, 0, 8.5], [np.nan, 1, 0, np.nan, np.nan]])
    expected = [[2, 1, 1, 9.5], [0.5, -1, 0, 8.5], [np.nan, -1, np.nan, np.nan]]
    assert_array_equal(decoded(data, list("abcde"), categories, wanted=wanted), expected)


def test_fingerprint_knows_content_not_order_or_precision():
    rng = np.random.RandomState(0)
    X, y = rng.uniform(size=(9000, 3)), rng.randint(4, size=9000)
    print_of = fingerprint(X, y)
    order = rng.permutation(9000)
    assert fingerprint(X[order], y[order]) == print_of
    assert fingerprint(X, 3 - y) == print_of
    # Decimals that single precision has: the same content, stored in half the space.
    short = np.round(X, 5)
    assert fingerprint(short.astype(np.float32), y) == fingerprint(short, y)
    assert fingerprint(np.where(X < 0.5, -0.0, X), y) == fingerprint(np.where(X < 0.5, 0, X), y)
    changed, swapped = X.copy(), y.copy()
    changed[8999, 2] += 1e-4
    swapped[[0, 1]] = [(y[0] + 1) % 4, y[1]]
    assert fingerprint(changed, y) != print_of
    assert fingerprint(X, swapped) != print_of
    assert fingerprint(X[:-1], y[:-1]) != print_of
    assert fingerprint(X[:, [1, 0, 2]], y) != print_of


def test_entries_are_of_four_kinds():
    kinds = {type(entry.how) for entry in CATALOGUE.values()}
    assert kinds == {BuiltIn, Made, Derived, Stored}
    for name, known in FINGERPRINTS.items():
        assert isinstance(CATALOGUE[name].how, Stored)
        assert len(known) == 64
