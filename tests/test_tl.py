"""AnnData in, AnnData out."""

from __future__ import annotations

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
