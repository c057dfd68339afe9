"""The command as a person runs it: exit status, one line, help."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from truegap.cli.progress import progress

TRUEGAP = [sys.executable, "-c", "from truegap.cli import main; main()"]


def truegap(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([*TRUEGAP, *arguments], capture_output=True, text=True, timeout=900, check=False, **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "imagenet", "--out", "x"], "unknown benchmark 'imagenet': use one of coco-gender"),
        (["build", "coco-gender", "--out", "x"], "coco-gender needs --source DIR"),
        (["build", "synthetic", "--out", "x", "--encoding", "gif"], "unknown encoding 'gif'"),
        (
            ["build", "synthetic", "--out", "x", "--configs", "blurry"],
            "unknown config blurry: use some of standard, extra, original",
        ),
        (["build", "synthetic", "--out", "x", "--strong-gap", "12"], "strong_gap=12: use one of 10, 20"),
        (["build", "synthetic", "--out", "x", "--rho", "background"], "--rho background: give features and numbers"),
        (["build", "synthetic", "--out", "x", "--workers", "0", "--limit", "2"], "--workers 0"),
        (["evaluate", "--model", "m", "--benchmark", "nowhere"], "nowhere is neither a folder nor"),
        (
            ["evaluate", "--model", "m", "--benchmark", "b", "--protocol", "quiz"],
            "unknown protocol 'quiz': use vqa, retrieval",
        ),
        (["evaluate", "--model", "m", "--benchmark", "b", "--k", "five"], "--k five: give whole numbers"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--prompts", "mine"], "prompts 'mine': neither one of"),
        (["report", "nowhere", "--out", "x"], "nowhere"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_2(tmp_path, arguments, message):
    done = truegap(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("truegap: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_mistakes_in_the_command_line_exit_2():
    assert truegap("build").returncode == 2
    assert truegap("evaluate", "--model").returncode == 2
    assert truegap("nonsense").returncode == 2


@pytest.mark.parametrize("verb", ["demo", "build", "evaluate", "report", "leaderboard"])
def test_help_has_examples(verb):
    done = truegap(verb, "--help", env={**os.environ, "COLUMNS": "120"})
    assert done.returncode == 0
    assert f"truegap {verb}" in re.sub(r"\s+", " ", done.stdout).replace("Usage: truegap", "")


def test_version():
    assert truegap("--version").stdout.startswith("truegap 0.")


def test_help_loads_no_heavy_library():
    code = (
        "import sys; from truegap.cli.app import app; print({'torch', 'datasets', 'cv2', 'gradio'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


@pytest.mark.slow
def test_interrupted_build_exits_130_and_goes_on(tmp_path):
    command = ["build", "synthetic", "--out", str(tmp_path / "b"), "--limit", "600", "--workers", "1"]
    running = subprocess.Popen([*TRUEGAP, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 900
    while not list(tmp_path.glob("b.partial/shards/0*/shard.json")) and time.monotonic() < deadline:
        assert running.poll() is None, running.communicate()[1]
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=900)
    assert running.returncode == 130
    assert "the same command goes on from here" in said
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "b.partial/shards/00000/shard.json").exists()
    done = truegap(*command)
    assert done.returncode == 0
    assert "original                 600     300     300" in done.stdout
    again = truegap(*command)
    assert "finished already: nothing to do" in again.stderr


def test_progress_in_a_log_is_a_few_lines(capsys):
    with progress("counting", 1000) as advance:
        for _ in range(1000):
            advance(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "counting: 1000 of 1000"
    assert len(lines) <= 5


@pytest.mark.slow
def test_killed_build_leaves_no_worker_and_goes_on(tmp_path):
    # given a build of several shards whose parent is killed, not its workers; then they end, and the command goes on
    out = tmp_path / "b"
    command = [
        "build",
        "synthetic",
        "--out",
        str(out),
        "--limit",
        "700",
        "--workers",
        "2",
        "--configs",
        "original,control",
    ]
    running = subprocess.Popen([*TRUEGAP, *command], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 900
    while not list(tmp_path.glob("b.partial/shards/.0*")) and time.monotonic() < deadline:
        assert running.poll() is None
        time.sleep(0.05)
    children = subprocess.run(
        ["pgrep", "-P", str(running.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    running.kill()
    running.wait()
    assert children
    assert not out.exists()
    while any(os.path.exists(f"/proc/{child}") for child in children) and time.monotonic() < deadline:  # noqa: PTH110
        time.sleep(0.05)
    assert not [child for child in children if os.path.exists(f"/proc/{child}")]  # noqa: PTH110
    assert truegap(*command).returncode == 0
    assert not list(out.rglob("*.aside"))
    reference = tmp_path / "reference"
    assert truegap(*[str(reference) if each == str(out) else each for each in command]).returncode == 0
    assert (out / "manifest.json").read_bytes() == (reference / "manifest.json").read_bytes()


@pytest.mark.parametrize(
    ("out", "message"),
    [("/", "give a folder of its own"), ("file/x", "Not a directory"), ("/proc/x", "/proc/x")],
)
def test_impossible_places_are_one_line(tmp_path, out, message):
    (tmp_path / "file").write_text("")
    done = truegap("build", "synthetic", "--out", out, "--limit", "2", "--workers", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_options_of_another_benchmark_are_refused(tmp_path):
    done = truegap("build", "synthetic", "--out", "b", "--split", "val2017", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "truegap: synthetic has no option --split: leave it out\n")
    done = truegap("build", "coco-gender", "--out", "b", "--source", ".", "--rho", "object=1", cwd=tmp_path)
    assert "coco-gender has no option --rho" in done.stderr
    assert "ask for at least 1" in truegap("build", "synthetic", "--out", "b", "--limit", "0", cwd=tmp_path).stderr
