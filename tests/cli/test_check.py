"""`linkwise check`: the logic of a file of pairs, told in its own names and lines."""

from __future__ import annotations

import json

import pytest

from linkwise import Constraints

pytest.importorskip("click")

FINE = "i,j,link,belief\na,b,must,1\nb,c,must,1\nc,d,cannot,1\nd,e,cannot,0.5\n\nf,g,must,1\n"


def write(tmp_path, text, name="pairs.csv"):
    (tmp_path / name).write_text(text)
    return name


def test_what_follows_is_counted(linkwise, tmp_path):
    run = linkwise("check", write(tmp_path, FINE))
    assert run.code == 0
    assert run.out.splitlines() == [
        "3 must-links and 2 cannot-links (1 of belief below 1, which entail nothing) "
        "between 7 of 7 samples",
        "no conflicts",
        "together with what follows: 4 must-links and 3 cannot-links",
        "2 groups of must-linked samples:",
        "  3: a, b, c",
        "  2: f, g",
        "at least 2 clusters needed; so many suffice",
        "  because of rows that are pairwise kept apart (rows a, d; line 4)",
    ]


def test_all_conflicts_are_listed_with_chains_and_lines(linkwise, tmp_path):
    text = (
        "i,j,link\n"
        "ann,bob,must\n"  # 2
        "bob,cy,must\n"  # 3
        "cy,dan,must\n"  # 4
        "ann,dan,cannot\n"  # 5
        "eve,flo,must\n"  # 6
        "flo,eve,cannot\n"  # 7
        "bob,cy,cannot\n"  # 8
    )
    run = linkwise("check", write(tmp_path, text))
    assert run.code == 1
    lines = run.out.splitlines()
    assert lines[1] == "3 conflicts:"
    assert sorted(lines[2:]) == [
        "  ann and dan are cannot-linked (line 5), but these belong together: ann - bob (line 2), "
        "bob - cy (line 3), cy - dan (line 4). Remove one of these lines, or give it a belief "
        "below 1.",
        "  bob and cy are cannot-linked (line 8), but these belong together: bob - cy (line 3). "
        "Remove one of these lines, or give it a belief below 1.",
        "  eve and flo are cannot-linked (line 7), but these belong together: eve - flo (line 6). "
        "Remove one of these lines, or give it a belief below 1.",
    ]
    few = linkwise("check", "pairs.csv", "--limit", 1)
    assert "... and 2 more (--limit)" in few.out


def test_blank_lines_do_not_shift_the_numbers(linkwise, tmp_path):
    text = "i,j,link\n\na,b,must\n\n\nb,a,cannot\n"
    run = linkwise("check", write(tmp_path, text))
    assert "(line 6)" in run.out
    assert "(line 3)" in run.out


def test_names_are_looked_up_in_the_data(linkwise, tmp_path):
    write(tmp_path, "who,x\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\ng,7\nh,8\n", "t.csv")
    run = linkwise("check", write(tmp_path, FINE), "t.csv", "--id", "who")
    assert run.code == 0
    assert "between 7 of 8 samples" in run.out
    run = linkwise("check", write(tmp_path, "i,j,link\na,z,must\n"), "t.csv", "--id", "who")
    assert run.code == 2
    assert "line 2: j is 'z', which is not among the 8 ids" in run.error


def test_positions_need_no_names(linkwise, tmp_path):
    write(tmp_path, "x,y\n1,0\n2,0\n4,1\n", "t.csv")
    run = linkwise("check", write(tmp_path, "i,j,link\n0,2,must\n"), "t.csv")
    assert run.code == 0
    assert "  2: 0, 2" in run.out
    run = linkwise("check", write(tmp_path, "i,j,link\n0,3,must\n"), "t.csv")
    assert run.code == 2
    assert "there are only 3 samples" in run.error


def test_labels_take_part(linkwise, tmp_path):
    write(tmp_path, "id,x,kind\na,1,red\nb,2,\nc,3,blue\nd,4,\n", "t.csv")
    pairs = write(tmp_path, "i,j,link\na,b,must\nb,c,must\n")
    run = linkwise("check", pairs, "t.csv", "--labels", "kind")
    assert run.code == 1
    assert "have the labels" in run.out
    assert "red" in run.out
    assert "(line 3)" in run.out


def clique(n):
    rows = [f"n{i},n{j},cannot" for j in range(n) for i in range(j)]
    return "\n".join(["i,j,link", *rows]) + "\n"


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_a_clique_needs_as_many_clusters_as_it_has_members(n, linkwise, tmp_path):
    pairs = write(tmp_path, clique(n))
    enough = linkwise("check", pairs, "-k", n)
    assert enough.code == 0
    assert f"at least {n} clusters needed; so many suffice" in enough.out
    few = linkwise("check", pairs, "-k", n - 1)
    assert few.code == 1
    assert f"-k {n - 1} is too few" in few.out


def test_the_number_of_clusters_is_bracketed_by_proof_and_example():
    from linkwise.cli.check import clusters_needed

    # The Groetzsch graph has no triangle, yet needs four colours.
    outer = [(i, (i + 1) % 5) for i in range(5)]
    inner = [(i + 5, (i + d) % 5) for i in range(5) for d in (1, 4)]
    spokes = [(10, i + 5) for i in range(5)]
    c = Constraints(11, cannot_link=outer + inner + spokes)
    lower, upper, why = clusters_needed(c)
    assert (lower, upper) == (4, 4)
    assert why.kind == "minimal set"
    assert clusters_needed(Constraints(3, must_link=[(0, 1)])) == (1, 1, None)
    assert clusters_needed(Constraints(4, cannot_link=[(0, 1), (2, 3)]))[:2] == (2, 2)


def test_json(linkwise, tmp_path):
    told = json.loads(linkwise("check", write(tmp_path, FINE), "--json").out)
    assert told["entailed_must_links"] == 4
    assert told["entailed_cannot_links"] == 3
    assert told["clusters_needed"] == told["clusters_sufficient"] == 2
    assert told["exit_code"] == told["n_conflicts"] == 0
    run = linkwise("check", write(tmp_path, "i,j,link\na,b,must\nb,a,cannot\n"), "--json")
    assert run.code == json.loads(run.out)["exit_code"] == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("none.csv",), "There is no file none.csv"),
        ((".",), "is a folder"),
        (("empty.csv",), "is empty"),
        (("header.csv",), "has a header but no pairs"),
        (("latin.csv",), "not UTF-8"),
        (("good.csv", "none.csv"), "There is no file none.csv"),
        (("good.csv", "--id", "x"), "no DATA was given"),
    ],
)
def test_bad_input(arguments, part, linkwise, tmp_path):
    write(tmp_path, "", "empty.csv")
    write(tmp_path, "i,j,link\n", "header.csv")
    write(tmp_path, "i,j,link\na,b,must\n", "good.csv")
    (tmp_path / "latin.csv").write_bytes("i,j,link\n\x81,b,must\n".encode("latin-1"))
    run = linkwise("check", *arguments)
    assert run.code == 2
    assert part in run.error


def test_soft_methods_answer_contradictory_pairs(tmp_path):
    from linkwise.cli import main

    data = tmp_path / "data.csv"
    data.write_text("id,x\n" + "".join(f"s{i},{i // 5}.{i}\n" for i in range(10)))
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("i,j,link\ns0,s1,must\ns1,s2,must\ns0,s2,cannot\n")
    asked = ["cluster", str(data), "-k", "2", "-c", str(pairs), "--quiet"]
    for method, mode in (("cosc", "violations=auto"), ("cut", "constraints_mode=soft")):
        out = tmp_path / f"{method}.csv"
        done = main([*asked, "-m", method, "--set", mode, "-o", str(out)])
        assert done == 0
        assert out.exists()
        assert main([*asked, "-m", method, "-o", str(tmp_path / "no.csv")]) == 1
    pairs.write_text("i,j,link\ns0,s1,must\ns0,s1,cannot\n")
    for method in ("cosc", "cut", "auto"):
        hard = ["--set", "hard=true"] if method == "auto" else []
        assert main([*asked, "-m", method, *hard, "-o", str(tmp_path / "no.csv")]) == 1
    assert not (tmp_path / "no.csv").exists()
    for options in (["cosc", "--set", "violations=auto"], ["auto"]):
        assert main([*asked, "-m", *options]) == 0


def test_groups_that_are_not_shown_are_counted(linkwise, tmp_path):
    pairs = "".join(f"a{k},b{k},must\n" for k in range(7))
    lines = linkwise("check", write(tmp_path, f"i,j,link\n{pairs}")).out.splitlines()
    begin = lines.index("7 groups of must-linked samples:")
    assert lines[begin + 5 : begin + 7] == ["  2: a4, b4", "  ... and 2 more, none of them larger"]


def test_a_command_that_works_is_offered_although_pairs_contradict(linkwise, tmp_path):
    write(tmp_path, "id,x\na,1\nb,2\nc,3\n", "data.csv")
    pairs = write(tmp_path, "A,B,Same?\na,b,yes\nb,a,no\na,z,yes\n")
    run = linkwise("check", pairs, "data.csv")
    assert run.code == 2
    assert "a and b are cannot-linked (line 3)" in run.error
    assert run.suggestion[3:] == ["--pair-columns", "A,B,Same?", "--skip-unknown"]
    assert "This would work" not in run.error
    assert "\nThis would list the conflicts, and end with exit code 1: linkwise check" in run.error
    assert linkwise(*run.suggestion).code == 1
    # Without contradictions it works, unless -k is too few.
    pairs = write(tmp_path, "A,B,Same?\na,b,no\na,c,no\nb,c,no\na,z,yes\n")
    run = linkwise("check", pairs, "data.csv", "-k", 3)
    assert "\nThis would work: linkwise check" in run.error
    assert linkwise(*run.suggestion).code == 0
    run = linkwise("check", pairs, "data.csv", "-k", 2)
    assert "\nThis would list the conflicts, and end with exit code 1: linkwise check" in run.error
    assert linkwise(*run.suggestion).code == 1


def test_contradictions_of_names_in_another_column_are_told_with_it(linkwise, tmp_path):
    write(tmp_path, "id,name,x\na,p,1\nb,q,2\nc,r,3\n", "data.csv")
    pairs = write(tmp_path, "i,j,link\np,q,must\nq,p,cannot\n")
    run = linkwise("check", pairs, "data.csv", "--id", "id")
    assert run.code == 2
    assert "its names are not ids, but those of the column 'name'" in run.error
    assert "p and q are cannot-linked (line 3)" in run.error
    assert "end with exit code 1: linkwise check" in run.error
    assert linkwise(*run.suggestion).code == 1
