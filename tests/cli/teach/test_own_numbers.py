"""`teach` with numbers of one's own, and what cannot be said as a sentence or as wrong usage."""

import pytest

NAME = "self-attention"
OWN = {
    "x.csv": "1;0\n0;1\n",
    "wq.csv": "1,2\n3,4\n",
    "wk.txt": "first second\n1 0\n0 1\n",
    "wv.tsv": "5\t0\t1\n0\t5\t1\n",
}


@pytest.fixture
def own(tmp_path):
    for name, text in OWN.items():
        (tmp_path / name).write_text(text)
    return ["--input", "x.csv", "--wq", "wq.csv", "--wk", "wk.txt", "--wv", "wv.tsv"]


def test_ones_own_matrices_go_through_the_lesson(qkv, own):
    answer = qkv("teach", NAME, *own, "--mask", "causal", "--format", "json")
    parts = [part for step in answer.json()["steps"] for part in step["parts"]]
    matrices = {part["name"]: part for part in parts if part["kind"] == "matrix"}
    assert matrices["queries Q"]["values"] == [[1.0, 2.0], [3.0, 4.0]]
    assert matrices["weights"]["values"][0] == [1.0, 0.0]
    same = qkv("teach", NAME, *own, "--mask", "look-ahead", "--format", "json")
    assert same.stdout == answer.stdout


@pytest.mark.parametrize("heading", ["", "word,x1,x2,x3,x4\n"])
def test_rows_are_called_by_their_names(qkv, tmp_path, heading):
    (tmp_path / "named.csv").write_text(heading + "cat,1.8,0.2,1,0\ndog,1.6,0.1,0,1\n")
    answer = qkv("teach", NAME, "--input", "named.csv", "--format", "json")
    parts = [part for step in answer.json()["steps"] for part in step["parts"]]
    matrices = {part["name"]: part for part in parts if part["kind"] == "matrix"}
    assert matrices["queries Q"]["rows"] == ["cat", "dog"]
    assert matrices["weights"]["columns"] == ["cat", "dog"]
    assert matrices["inputs X"]["values"] == [[1.8, 0.2, 1.0, 0.0], [1.6, 0.1, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cat,1,2\n3,4,5\n", "line 2: the row has no name, but line 1 has 'cat'"),
        ("big cat,1,2\n", "line 1: 'big cat' has a space"),
        ("cat,1,2\ndog,1\n", "line 2: 1 number, but line 1 has 2"),
        ("cat,1,2\ndog,1,red\n", "line 2, column 3: 'red' is not a number"),
        ("cat,1;5,0,1\ndog,1,2,3\n", "line 1: 'cat,1;5.0.1' has no numbers, and is no heading"),
    ],
)
def test_a_name_that_cannot_be_is_a_sentence(qkv, tmp_path, text, said):
    (tmp_path / "named.csv").write_text(text)
    answer = qkv("teach", NAME, "--input", "named.csv")
    assert answer.code == 1
    assert said in answer.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("softmax", "--input", "x.csv"), "--input has no place in the lesson softmax"),
        ((NAME, "--input", "no.csv"), "no.csv: cannot read"),
        ((NAME, "--input", "x.csv"), "--input: 2 columns, but the lesson's weight matrices have 4"),
        ((NAME, "--sentence", "hi"), "--sentence has no place in the lesson self-attention"),
        (("mask",), "no lesson 'mask'; did you mean masks"),
        (("20",), "no lesson '20'"),
        (("9" * 5000,), "no lesson '9999"),
        ((NAME, "--step", "0"), "no step 0 in the lesson self-attention: it has steps 1 to 8\n"),
        ((NAME, "--step", "9"), "no step 9 in the lesson self-attention: it has steps 1 to 8\n"),
        ((NAME, "-o", "nowhere/a.md"), "nowhere/a.md: cannot write"),
    ],
)
def test_what_cannot_be_is_a_sentence(qkv, own, args, said):
    answer = qkv("teach", *args)
    assert (answer.code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("Error: ")
    assert said in answer.stderr


@pytest.mark.parametrize(
    "args",
    [
        (NAME, "--all"), (NAME, "--list"), ("--all", "--list"), ("--step", "1"),
        ("--all", "--step", "1"),
        ("--input", "x.csv"), ("--all", "--mask", "both"),
        ("--save", "a.csv"), ("check", "--save", "a.csv", "--format", "json"),
        (NAME, "--format", "csv"), (NAME, "--format", "jsonl"), (NAME, "-o", "a.parquet"),
        ("--list", "--format", "html"), ("--format", "ipynb"), (NAME, "-o", "a.docx"),
        (NAME, "--step", "1", "--format", "ipynb"), (NAME, "--lang", "de"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_does_not_go_together_is_wrong_usage(qkv, own, args):
    answer = qkv("teach", *args)
    assert (answer.code, answer.stdout) == (2, "")
    assert "Error: " in answer.stderr


@pytest.fixture
def large(tmp_path):
    (tmp_path / "x.csv").write_text("1e300,1e300,-1e300,1e300\n1,2,3,4\n1e300,-1e300,0,1\n")
    for name in ("wq.csv", "wk.csv", "wv.csv"):
        (tmp_path / name).write_text("1,0\n0,1\n1,1\n1,0\n")
    return ["--input", "x.csv", "--wq", "wq.csv", "--wk", "wk.csv", "--wv", "wv.csv"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lesson", [NAME, "masks"])
@pytest.mark.parametrize("form", ["table", "html", "json", "markdown", "ipynb"])
def test_numbers_too_large_are_shown_as_infinite_without_a_warning(qkv, large, lesson, form):
    answer = qkv("teach", lesson, *large, "--format", form)
    assert (answer.code, answer.stderr) == (0, "")
    assert ("inf" if form == "json" else "∞") in answer.stdout
