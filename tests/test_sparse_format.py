"""Damaged sparse matrices are refused at every door; compiled code would end the process."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, diags_array, lil_array, random_array

from linkwise import METHODS, Affinity, NCut, Prepared
from linkwise._inputs import checked_format
from linkwise.evaluate import Problem
from linkwise.graph.transformer import transformer_graph
from linkwise.metrics import ncut
from linkwise.report import render_report

FAR, NEGATIVE = 10**9, -7
labels = np.repeat([0, 1], 10)


def features():
    """As many rows as columns, but not symmetric, as a graph would be."""
    A = a_graph()
    return csr_array(diags_array(np.arange(1.0, A.shape[0] + 1)) @ A)


def a_graph():
    A = random_array((20, 20), density=0.4, random_state=np.random.default_rng(0))
    return csr_array(A + A.T)


def damaged(what, A=None):
    A = a_graph() if A is None else A
    if what == "pointer":
        A.indptr[3] = A.indptr[5] + 1
    elif what == "last pointer":
        A.indptr[-1] = FAR
    elif what == "short":
        A.indices = A.indices[:-3]
    else:
        A.indices[4] = what
    return A


DAMAGE = [FAR, NEGATIVE, 20, "pointer", "last pointer", "short"]


@pytest.mark.parametrize("what", DAMAGE, ids=str)
@pytest.mark.parametrize("to", ["csr", "csc", "bsr"])
def test_what_does_not_fit_together_is_refused(what, to):
    A = a_graph().tobsr() if to == "bsr" else a_graph().asformat(to)
    with pytest.raises(ValueError, match=r"^W is a damaged sparse matrix of shape \(20, 20\)"):
        checked_format(damaged(what, A), "W")


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("index", [FAR, NEGATIVE, 20])
def test_entries_and_lists_outside_are_refused(axis, index):
    A = coo_array(a_graph())
    getattr(A, axis)[2] = index
    with pytest.raises(ValueError, match=f"index {index} is outside"):
        checked_format(A)
    lists = lil_array((20, 20))
    lists[1, 2] = 1.0
    lists.rows[1][0] = index
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        checked_format(lists)


def test_a_sound_matrix_comes_back_untouched():
    A = a_graph()
    parts = A.indices, A.indptr, A.data
    assert checked_format(A) is A
    assert all(a is b for a, b in zip((A.indices, A.indptr, A.data), parts, strict=True))
    assert checked_format(lil_array(A)).format == "csr"
    assert checked_format(coo_array((3, 0))).shape == (3, 0)


@pytest.mark.parametrize("key", METHODS)
def test_every_method_refuses_a_damaged_matrix(key):
    Method = METHODS[key]
    for affinity in ("precomputed", None):
        settings = {"affinity": affinity} if "affinity" in Method().get_params() else {}
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            Method(2, **settings).fit(damaged(FAR))


DOORS = {
    "Affinity.fit": lambda A: Affinity().fit(A),
    "Affinity.extend": lambda A: Affinity().fit(a_graph()).extend(A),
    "predict": lambda A: NCut(2, random_state=0).fit(features()).predict(A),
    "predict, graph": lambda A: (
        NCut(2, affinity="precomputed", random_state=0).fit(a_graph()).predict(A)
    ),
    "Prepared": Prepared,
    "transformer": lambda A: transformer_graph(A, (20, 20), "Own"),
    "metrics": lambda A: ncut(A, labels),
    "Problem, W": lambda A: Problem(None, labels, W=A),
    "Problem, X": lambda A: Problem(A, labels),
}


@pytest.mark.parametrize("what", [FAR, NEGATIVE])
@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_a_damaged_matrix(door, what):
    with pytest.raises(ValueError, match="is a damaged sparse matrix"):
        DOORS[door](damaged(what))


@pytest.mark.parametrize("part", ["X", "W", "feature_values"])
def test_the_report_refuses_a_damaged_matrix(part):
    pytest.importorskip("jinja2")
    with pytest.raises(ValueError, match=f"{part} is a damaged sparse matrix"):
        render_report(labels=labels, **{part: damaged(FAR)})


@pytest.mark.parametrize("what", [FAR, NEGATIVE, "pointer"])
def test_a_damaged_file_is_bad_input(tmp_path, capsys, what):
    main = pytest.importorskip("linkwise.cli").main
    pytest.importorskip("pandas")
    A = damaged(what)
    parts = {"indices": A.indices, "indptr": A.indptr, "data": A.data, "shape": A.shape}
    np.savez(tmp_path / "W.npz", format=np.bytes_("csr"), **parts)
    assert main(["cluster", str(tmp_path / "W.npz"), "-k", "2"]) == 2
    assert "damaged sparse matrix" in capsys.readouterr().err
