"""The command as a person runs it: exit status, one line, help."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from truegap.build import plan
from truegap.cli import main
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
def test_a_users_mistake_is_one_line_and_exit_2(truegap_here, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert_one_line(truegap_here(*arguments), message, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "synthetic", "--out", "x", "--configs", "blurry"], "unknown config blurry"),
        (["evaluate", "--model", "m", "--benchmark", "b", "--prompts", "mine"], "prompts 'mine': neither one of"),
    ],
)
def test_nothing_else_is_said_by_a_process_of_its_own(tmp_path, arguments, message):
    assert_one_line(truegap(*arguments, cwd=tmp_path), message, tmp_path)


def assert_one_line(done, message, folder):
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("truegap: ")
    assert done.stderr.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_mistakes_in_the_command_line_exit_2(truegap_here):
    assert truegap_here("build").returncode == 2
    assert truegap_here("evaluate", "--model").returncode == 2
    assert truegap_here("nonsense").returncode == 2


@pytest.mark.parametrize("verb", ["demo", "build", "evaluate", "report", "leaderboard"])
def test_help_has_examples(truegap_here, monkeypatch, verb):
    monkeypatch.setenv("COLUMNS", "120")
    done = truegap_here(verb, "--help")
    assert done.returncode == 0
    assert f"truegap {verb}" in re.sub(r"\s+", " ", done.stdout).replace("Usage: truegap", "")


def test_version():
    assert truegap("--version").stdout.startswith("truegap 0.")


def test_help_loads_no_heavy_library():
    code = (
        "import sys; from truegap.cli.app import app; print({'torch', 'datasets', 'cv2', 'gradio'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


IMAGES, SHARD = 120, 20
SYNTHETIC = ("build", "synthetic", "--limit", str(IMAGES))
SMALL_SHARDS = f"from truegap.build import plan; plan.SHARD_SIZE = {SHARD}; from truegap.cli import main; main()"


@pytest.fixture
def begun(tmp_path):
    """Starts a build of several shards in a process of its own, and waits for a file of it."""

    def start(awaited: str, workers: int) -> subprocess.Popen:
        command = [sys.executable, "-c", SMALL_SHARDS, *SYNTHETIC, "--out", tmp_path / "b", "--workers", str(workers)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 900
        while not list(tmp_path.glob(f"b.partial/shards/{awaited}")) and time.monotonic() < deadline:
            assert running.poll() is None, running.communicate()[1]
            time.sleep(0.01)
        return running

    return start


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The manifest of the same build."""
    out = tmp_path_factory.mktemp("undisturbed") / "b"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "SHARD_SIZE", SHARD)
        patch.setattr(sys, "argv", ["truegap", *SYNTHETIC, "--out", str(out), "--workers", "1"])
        with pytest.raises(SystemExit):
            main()
    return (out / "manifest.json").read_bytes()


@pytest.mark.slow
def test_interrupted_build_exits_130_and_goes_on(begun, undisturbed, truegap_here, monkeypatch, tmp_path):
    running = begun("0*/shard.json", workers=1)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=900)
    assert running.returncode == 130
    assert "the same command goes on from here" in said
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "b.partial/shards/00000/shard.json").exists()
    monkeypatch.setattr(plan, "SHARD_SIZE", SHARD)
    command = (*SYNTHETIC, "--out", tmp_path / "b", "--workers", 1)
    done = truegap_here(*command)
    assert done.returncode == 0
    assert f"original {IMAGES} {IMAGES // 2} {IMAGES // 2}" in " ".join(done.stdout.split())
    assert (tmp_path / "b/manifest.json").read_bytes() == undisturbed
    assert "finished already: nothing to do" in truegap_here(*command).stderr


def test_progress_in_a_log_is_a_few_lines(capsys):
    with progress("counting", 1000) as advance:
        for _ in range(1000):
            advance(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "counting: 1000 of 1000"
    assert len(lines) <= 5


@pytest.mark.slow
def test_killed_build_leaves_no_worker_and_goes_on(begun, undisturbed, truegap_here, monkeypatch, tmp_path):
    # given a build of several shards whose parent is killed, not its workers; then they end, and the command goes on
    running = begun(".0*", workers=2)
    children = subprocess.run(
        ["pgrep", "-P", str(running.pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    running.kill()
    running.wait()
    assert children
    assert not (tmp_path / "b").exists()
    deadline = time.monotonic() + 900
    while any(os.path.exists(f"/proc/{child}") for child in children) and time.monotonic() < deadline:  # noqa: PTH110
        time.sleep(0.05)
    assert not [child for child in children if os.path.exists(f"/proc/{child}")]  # noqa: PTH110
    monkeypatch.setattr(plan, "SHARD_SIZE", SHARD)
    assert truegap_here(*SYNTHETIC, "--out", tmp_path / "b", "--workers", 1).returncode == 0
    assert not list((tmp_path / "b").rglob("*.aside"))
    assert (tmp_path / "b/manifest.json").read_bytes() == undisturbed


@pytest.mark.parametrize(
    ("out", "message"),
    [("/", "give a folder of its own"), ("file/x", "Not a directory"), ("/proc/x", "/proc/x")],
)
def test_impossible_places_are_one_line(truegap_here, monkeypatch, tmp_path, out, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    done = truegap_here("build", "synthetic", "--out", out, "--limit", "2", "--workers", "1")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_options_of_another_benchmark_are_refused(truegap_here, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = truegap_here("build", "synthetic", "--out", "b", "--split", "val2017")
    assert (done.returncode, done.stderr) == (2, "truegap: synthetic has no option --split: leave it out\n")
    done = truegap_here("build", "coco-gender", "--out", "b", "--source", ".", "--rho", "object=1")
    assert "coco-gender has no option --rho" in done.stderr
    assert "ask for at least 1" in truegap_here("build", "synthetic", "--out", "b", "--limit", "0").stderr
