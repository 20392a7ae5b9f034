"""AnnData in, AnnData out."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import linkwise
from linkwise import GFHF, Affinity, Auto, ConflictError, Constraints

anndata = pytest.importorskip("anndata")
pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore")  # of anndata's own

TYPES = ["T", "B", "NK"]


@pytest.fixture
def cells():
    rng = np.random.RandomState(0)
    y = np.repeat(range(3), 20)
    Z = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])[y] + rng.normal(size=(60, 2))
    adata = anndata.AnnData(X=np.zeros((60, 4), dtype=np.float32))
    adata.obs_names = [f"cell{k}" for k in range(60)]
    adata.obs["type"] = pandas.Categorical([TYPES[c] for c in y], categories=TYPES)
    adata.obs["known"] = adata.obs["type"].where(np.arange(60) % 4 == 0)
    adata.obsm["X_pca"] = Z
    adata.obsp["connectivities"] = csr_array(Affinity().fit_transform(Z).astype(np.float32))
    return adata


def test_one_line(cells, tmp_path):
    assert linkwise.tl.cluster(cells, labels="known", n_clusters=3) is None
    found = cells.obs["linkwise"]
    assert found.cat.categories.tolist() == TYPES  # in the order of the labels
    assert (found.astype(str) == cells.obs["type"].astype(str)).all()
    proba = cells.obsm["linkwise_proba"]
    assert proba.shape == (60, 3)
    assert [TYPES[k] for k in proba.argmax(axis=1)] == found.tolist()
    told = cells.uns["linkwise"]
    assert told["params"]["data"] == "obsp['connectivities']"
    assert told["classes"].tolist() == TYPES
    assert "3 clusters" in told["report"]
    assert set(told["suspects"].columns) == {"kind", "i", "j", "probability"}
    cells.write_h5ad(tmp_path / "out.h5ad")  # everything can be stored
    again = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert again.obs["linkwise"].tolist() == found.tolist()
    assert again.uns["linkwise"]["suspects"].shape == told["suspects"].shape


def test_the_graph_is_the_one_that_scanpy_made(cells):
    W = cells.obsp["connectivities"]
    cells.obsp["other"] = cells.obsp.pop("connectivities")
    cells.uns["mine"] = {"connectivities_key": "other"}
    linkwise.tl.cluster(cells, "known", neighbors_key="mine", method="gfhf", key_added="g")
    known = Constraints.from_labels(cells.obs["known"])
    graph = csr_array((W + W.T) / 2).astype(float)
    model = GFHF(3, affinity="precomputed", random_state=0).fit(graph, constraints=known)
    assert cells.obs["g"].tolist() == model.classes_[model.labels_].tolist()
    assert cells.uns["g"]["params"]["data"] == "obsp['other']"
    with pytest.raises(KeyError, match="uns has no 'yours'"):
        linkwise.tl.cluster(cells, neighbors_key="yours")


def test_warnings_name_the_column_and_the_line_of_the_caller(cells):
    cells.obs["known"] = cells.obs["known"].cat.add_categories("Unknown").fillna("Unknown")
    itself = {"i": ["cell0"], "j": ["cell0"], "link": ["same"]}
    with pytest.warns(UserWarning, match="'Unknown' as a label") as told:
        linkwise.tl.cluster(cells, "known", itself, n_clusters=4)
    assert {warning.filename for warning in told} == {__file__}
    texts = " ".join(str(warning.message) for warning in told)
    assert "column 'known') holds the text 'Unknown' as a label" in texts
    assert "column.mask(column == 'Unknown')" in texts
    assert "a must-link of a sample to itself" in texts
    labels = cells.obs["known"].mask(cells.obs["known"] == "Unknown")  # as the warning says
    assert Constraints.from_labels(labels).classes.tolist() == TYPES


def test_wrong_names_of_labels_and_features(cells):
    with pytest.raises(TypeError, match="name of a column of obs, not a Series"):
        linkwise.tl.cluster(cells, labels=cells.obs["known"])
    with pytest.raises(KeyError, match=r"obsm has no 'X_pcaa'. Did you mean 'X_pca'"):
        linkwise.tl.cluster(cells, "known", use_rep="X_pcaa")


def test_features_where_there_is_no_graph(cells):
    del cells.obsp["connectivities"]
    linkwise.tl.cluster(cells, "known", n_clusters=3)
    assert cells.uns["linkwise"]["params"]["data"] == "obsm['X_pca']"
    model = Auto(3, random_state=0)
    model.fit(cells.obsm["X_pca"], constraints=Constraints.from_labels(cells.obs["known"]))
    assert cells.obs["linkwise"].tolist() == model.classes_[model.labels_].tolist()
    del cells.obsm["X_pca"]
    with pytest.raises(
        KeyError, match=r"obsm has no 'X_pca', .*scanpy.pp.neighbors.*use_rep: linkwise_proba, X"
    ):
        linkwise.tl.cluster(cells, "known")


def test_pairs_name_cells(cells, tmp_path):
    table = {"i": ["cell0", "cell0"], "j": ["cell1", "cell30"], "link": ["same", "different"]}
    known = Constraints(60, must_link=[(0, 1)], cannot_link=[(0, 30)])
    known.to_csv(tmp_path / "pairs.csv", ids=cells.obs_names)
    answers = []
    for pairs in (table, pandas.DataFrame(table), tmp_path / "pairs.csv", known):
        linkwise.tl.cluster(cells, None, pairs, n_clusters=3)
        answers.append(cells.obs["linkwise"].tolist())
    assert answers[0] == answers[1] == answers[2] == answers[3]
    assert set(answers[0]) == {"0", "1", "2"}
    wrong = Constraints(60, must_link=[(0, 20)])  # cells of different types, both labelled
    with pytest.raises(TypeError, match=r"pairs is a list.*columns i, j, link.*Constraints\(60"):
        linkwise.tl.cluster(cells, pairs=[(0, 1)])
    with pytest.raises(ConflictError, match="the labels T and B"):
        linkwise.tl.cluster(cells, "known", wrong, method="gfhf")


def test_a_copy_leaves_the_cells_as_they_are(cells):
    done = linkwise.tl.cluster(cells, "known", method="gfhf", copy=True, key_added="found")
    assert "found" in done.obs
    assert "found" not in cells.obs
    assert "found" not in cells.uns


def test_clusters_have_the_colours_of_their_labels(cells):
    cells.uns["known_colors"] = ["red", "green", "blue"]
    linkwise.tl.cluster(cells, "known", method="gfhf")
    assert cells.uns["linkwise_colors"].tolist() == ["red", "green", "blue"]
    cells.obs["few"] = cells.obs["known"].where(cells.obs["known"] != "NK")
    cells.obs["few"] = cells.obs["few"].cat.remove_unused_categories()
    cells.uns["few_colors"] = ["red", "green"]
    linkwise.tl.cluster(cells, "few", n_clusters=3)
    assert cells.obs["linkwise"].cat.categories.tolist() == ["T", "B", "cluster 2"]
    assert cells.uns["linkwise_colors"][:2].tolist() == ["red", "green"]
    assert len(set(cells.uns["linkwise_colors"])) == 3
    linkwise.tl.cluster(cells, n_clusters=3)
    assert "linkwise_colors" not in cells.uns  # scanpy chooses


def test_what_is_not_there_is_said(cells):
    with pytest.raises(KeyError, match=r"obs has no column 'knonw'. Did you mean 'known'"):
        linkwise.tl.cluster(cells, "knonw")
    with pytest.raises(ValueError, match=r"There is no method 'gfhg'. Did you mean 'gfhf'"):
        linkwise.tl.cluster(cells, "known", method="gfhg")
    with pytest.raises(ValueError, match="key_added='known' would overwrite the labels"):
        linkwise.tl.cluster(cells, "known", key_added="known")
    with pytest.raises(ValueError, match="E2CP needs n_clusters"):
        linkwise.tl.cluster(cells, method="e2cp")


# Cells that come with scanpy --------------------------------------------------------------------

with_scanpy = pytest.mark.skipif(find_spec("scanpy") is None, reason="scanpy is not installed")


def blood_cells():
    """Return 700 cells of ten types, with their graph; read without importing scanpy."""
    place = Path(find_spec("scanpy").origin).parent / "datasets" / "10x_pbmc68k_reduced.h5ad"
    return anndata.read_h5ad(place)


def with_labels(adata, draw):
    """Give 60 cells their type, and leave the others unknown."""
    known = np.random.RandomState(draw).choice(adata.n_obs, 60, replace=False)
    column = adata.obs["bulk_labels"].copy()
    column[np.setdiff1d(np.arange(adata.n_obs), known)] = np.nan
    adata.obs["known"] = column.cat.remove_unused_categories()


@with_scanpy
def test_sixty_labels_of_blood_cells():
    cells = blood_cells()
    y = cells.obs["bulk_labels"]
    found = {"auto": [], "gfhf": []}
    for draw in range(5):
        with_labels(cells, draw)
        for method, scores in found.items():
            linkwise.tl.cluster(cells, labels="known", method=method)
            scores.append(
                linkwise.metrics.adjusted_rand(y.cat.codes, cells.obs["linkwise"].cat.codes)
            )
    louvain = linkwise.metrics.adjusted_rand(y.cat.codes, cells.obs["louvain"].cat.codes)
    assert np.mean(found["auto"]) > np.mean(found["gfhf"]) > louvain + 0.2


PLOT = """
import sys, warnings
warnings.simplefilter("ignore")
import matplotlib
matplotlib.use("agg")
import scanpy, linkwise
cells = scanpy.datasets.pbmc68k_reduced()
cells.obs["known"] = cells.obs["bulk_labels"].where(cells.obs_names.isin(cells.obs_names[::8]))
cells.uns["known_colors"] = cells.uns["bulk_labels_colors"]
linkwise.tl.cluster(cells, labels="known", method="gfhf")
scanpy.pl.umap(cells, color=["bulk_labels", "linkwise"], show=False)
matplotlib.pyplot.savefig(sys.argv[1])
def colours(column):
    return dict(zip(cells.obs[column].cat.categories, cells.uns[f"{column}_colors"]))
of_types = colours("bulk_labels")
assert all(of_types[name] == colour for name, colour in colours("linkwise").items())
"""


@with_scanpy
def test_scanpy_draws_the_clusters_in_the_colours_of_their_types(tmp_path):
    picture = tmp_path / "umap.png"
    done = subprocess.run(
        [sys.executable, "-c", PLOT, str(picture)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert picture.read_bytes().startswith(b"\x89PNG")
