"""What is different where a command has a process of its own: how it ends."""

import os
import subprocess
import sys

import pytest

LEFT = """
import atexit, sys, threading, time
from qkvsearch.__main__ import process
{before}
process()
"""


def ended(*args, before="", **options):
    command = [sys.executable, "-c", LEFT.format(before=before), *args]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize(
    ("args", "code"), [(["--version"], 0), (["show", "nowhere"], 1), (["show", "--nowhere"], 2)]
)
def test_codes_and_output_arrive(args, code, tmp_path):
    run = ended(*args, stdout=subprocess.PIPE, cwd=tmp_path)
    assert run.returncode == code
    assert run.stdout.startswith("qkvsearch") if code == 0 else "Error" in run.stderr


def test_what_is_to_be_done_at_exit_is_done(tmp_path):
    before = "atexit.register(lambda: print('at exit'))"
    assert ended("--version", before=before, stdout=subprocess.PIPE).stdout.endswith("at exit\n")


def test_threads_come_to_their_end():
    before = "threading.Thread(target=lambda: (time.sleep(.3), print('done'))).start()"
    assert "done" in ended("--version", before=before, stdout=subprocess.PIPE).stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_no_success():
    with open("/dev/full", "w") as full:
        assert ended("--help", stdout=full).returncode != 0


# Ctrl-C comes while a module is imported, and a library there makes something else of it.
FINDER = """
import signal

class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name == {name!r}:
            {how}

sys.meta_path.insert(0, Finder)
"""
PRESSED = "signal.raise_signal(signal.SIGINT)"
HOW = {
    "plain": PRESSED,
    "as an ImportError": f"""
            try: {PRESSED}
            except BaseException: raise ImportError(name)""",
    "where nobody hears": f"type('', (), {{'__del__': lambda self: {PRESSED}}})()",
}


@pytest.mark.parametrize("how", list(HOW))
@pytest.mark.parametrize("name", ["click", "numpy"])
def test_ctrl_c_while_importing_is_exit_130_in_one_line(tmp_path, name, how):
    (tmp_path / "items.csv").write_text("id,title\n1,Tent\n")
    before = FINDER.format(name=name, how=HOW[how])
    files = ("-w", str(tmp_path / "ws"), "build", "--items", str(tmp_path / "items.csv"))
    done = ended(*files, before=before, stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr.strip()) == (130, "Stopped.")


def test_ctrl_c_at_the_end_is_no_traceback(tmp_path):
    before = "import signal; atexit.register(lambda: signal.raise_signal(signal.SIGINT))"
    done = ended("--version", before=before, stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")


needs_a_shell = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed")
    (folder / "items.csv").write_text("id,title\na,red fox\nb,blue sea\nc,green tea\n")
    (folder / "log.csv").write_text("user,item\nann,a\nbob,b\nann,b\n")
    build = ["-q", "-w", "ws", "build", "items.csv", "--interactions", "log.csv"]
    assert ended(*build, "--encoder", "corpus", cwd=folder).returncode == 0
    return folder


def in_shell(folder, arguments, redirection):
    environment = {**os.environ, "QKVSEARCH_WORKSPACE": "ws"}
    command = f'"{sys.executable}" -m qkvsearch {arguments} {redirection}'
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        timeout=120,
    )


@needs_a_shell
@pytest.mark.parametrize(
    ("arguments", "redirection", "code", "said"),
    [
        ("search red", ">&-", 1, "stdout is closed"),
        ("search red", ">&- 2>&-", 1, ""),
        ("record ann a", ">&-", 0, "Recorded"),
        ("record ann a --format json", ">&-", 1, "the change is made"),
        ("-q record ann a --format json", ">&-", 1, "the change is made"),
        ("record ann a -o nowhere/x.json", "", 1, "the change is made"),
        ("record ann a", "2>&-", 0, ""),
        ("record ann a", "<&- >&- 2>&-", 0, ""),
        ("search -", "<&-", None, ""),
        ("forget ann", "<&-", 2, "--yes"),
        ("show nothing", "2>&-", 1, ""),
        ("--help", ">&-", 1, "stdout is closed"),
        ("show a --nowhere", "2>&-", 2, ""),
    ],
)
def test_closed_streams_are_no_traceback(built, arguments, redirection, code, said):
    run = in_shell(built, arguments, redirection)
    assert "Traceback" not in run.stderr
    assert "Exception" not in run.stderr
    assert said in run.stderr
    assert code in (None, run.returncode)


@needs_a_shell
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_change_is_done_though_no_message_can_be_written(built):
    def n_records():
        run = in_shell(built, "records --format jsonl", "")
        return run.stdout.count("\n")

    before = n_records()
    assert in_shell(built, "record bob c", "2>/dev/full").returncode == 0
    assert n_records() == before + 1


@needs_a_shell
def test_add_says_what_is_done_where_its_second_half_fails(built):
    (built / "wrong.csv").write_text("user,item\nann,nowhere\n")
    run = in_shell(built, "-q add items.csv --interactions wrong.csv", "")
    assert run.returncode == 1
    assert "the items are added, and no interaction is recorded" in run.stderr
