"""The demo does what the README says."""

from __future__ import annotations

import re

import pytest

from linkwise.demo import main

pytest.importorskip("jinja2", reason="the report needs the extra 'report'")


# Older matplotlib calls names that newer pyparsing has deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_constraints_repair_what_plain_clustering_gets_wrong(tmp_path, capsys):
    main(str(tmp_path))
    printed = capsys.readouterr().out
    before = re.search(r"^Auto +0 +(\d+) +([-\d.]+)", printed, re.M)
    after = re.search(r"^Auto +30 +(\d+) +([-\d.]+)", printed, re.M)
    assert float(before[2]) < 0.5
    assert float(after[2]) > 0.9
    assert int(before[1]) > int(after[1])
    page = (tmp_path / "customers.html").read_text(encoding="utf-8")
    assert "mostly <bdi>groceries</bdi>" in page
    assert f"Wrote {tmp_path / 'customers.html'}" in printed
    plain = re.search(r"^NCut +0 +(\d+) +([-\d.]+)", printed, re.M)
    constrained = re.search(r"^SignedCSC +8 +0 +1\.00", printed, re.M)
    assert plain
    assert int(plain[1]) > 0
    assert float(plain[2]) < 0.1
    assert constrained
    picture = tmp_path / "before-after.png"
    assert str(picture) in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
