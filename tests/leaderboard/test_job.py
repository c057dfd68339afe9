"""The process that evaluates: what it may do, what is left of it, and that nothing leaks."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from truegap.leaderboard import Limits, job
from truegap.leaderboard.confined import Rules
from truegap.leaderboard.job import clean, environment, run_job

LIMITS = Limits(log=2000)
SECRET = "hf_aTokenThatNobodyMaySee"  # noqa: S105  # opens nothing

ATTACK = """
import json, os, socket, sys
from truegap.leaderboard.confined import Rules, confine

rules, secret, port = Rules(**json.loads(sys.argv[1])), sys.argv[2], int(sys.argv[3])
version, parent = confine(rules), os.getppid()

def tried(attack):
    try:
        attack()
    except (OSError, MemoryError) as error:
        return type(error).__name__
    return "done"

print(json.dumps({
    "version": version,
    "own file": tried(lambda: open(os.path.join(rules.write[0], "own"), "w").write("x")),
    "read": tried(lambda: open(secret).read()),
    "list": tried(lambda: os.listdir(os.path.dirname(secret))),
    "write": tried(lambda: open(secret, "w")),
    "remove": tried(lambda: os.unlink(secret)),
    "link": tried(lambda: open(os.path.join(rules.write[0], "link")).read()),
    "environment": tried(lambda: open(f"/proc/{parent}/environ", "rb").read()),
    "network": tried(lambda: socket.create_connection(("127.0.0.1", port), 5)),
    "signal": tried(lambda: os.kill(parent, 0)),
    "memory": tried(lambda: bytearray(rules.memory)),
    "large file": tried(lambda: os.truncate(os.path.join(rules.write[0], "own"), rules.file + 1)),
}))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job").mkdir()
    return tmp_path / "job"


def run(code, folder, monkeypatch, *arguments, limits=LIMITS, stopped=lambda: False):
    """Runs Python code in place of truegap, with all that is around it."""
    monkeypatch.setattr(job, "_CONFINED", code)
    return run_job(arguments, folder, read=[], limits=limits, stopped=stopped)


def test_a_confined_process_reads_its_own_and_nothing_of_its_parent(folder, tmp_path):
    import socket

    secret = tmp_path / "secrets" / "token"
    secret.parent.mkdir()
    secret.write_text(SECRET)
    (folder / "link").symlink_to(secret)
    rules = Rules(["/usr", "/lib", "/proc", *job._libraries()], [str(folder)], 4 * 1024**3, 1_000_000)
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-c", ATTACK, rules.as_json(), str(secret), str(server.getsockname()[1])]
        # The signal that tells of a file too large would end the process: Python ignores it.
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    found = json.loads(done.stdout)
    assert (found["own file"], found["memory"], found["large file"]) == ("done", "MemoryError", "OSError")
    if not (version := found.pop("version")):
        pytest.skip("this system has no Landlock: files are not held")
    held = ["read", "list", "write", "remove", "link", "environment"]
    held += ["network"] * (version >= 4) + ["signal"] * (version >= 6)
    assert {name: found[name] for name in held} == dict.fromkeys(held, "PermissionError")
    assert secret.read_text() == SECRET


def test_the_process_has_no_token_and_another_home(folder, monkeypatch):
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "OAUTH_CLIENT_SECRET", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, SECRET)
    code = "import os, sys, json; json.dump([dict(os.environ), os.getcwd(), sys.argv], open('seen.json', 'w'))"
    outcome = run(code, folder, monkeypatch, "one", "--two")
    assert outcome.status == 0
    seen, place, arguments = json.loads((folder / "seen.json").read_text())
    assert SECRET not in str(seen)
    assert (seen["HOME"], seen["TMPDIR"], place) == (str(folder),) * 3
    assert (seen["HF_HUB_OFFLINE"], seen["HF_HUB_DISABLE_IMPLICIT_TOKEN"]) == ("1", "1")
    assert arguments[2:] == ["one", "--two"]
    assert set(seen) - {"LC_CTYPE"} == set(environment(folder))


def test_the_folder_that_somebody_works_in_is_no_library(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    outcome = run("import json; print('ours')", folder, monkeypatch)
    assert (outcome.status, outcome.log) == (0, "ours\n")
    assert str(tmp_path) not in job._libraries()


def test_truegap_runs_confined(folder):
    outcome = run_job(["--version"], folder, read=[], limits=LIMITS, stopped=lambda: False)
    assert outcome.status == 0
    assert "truegap 0." in outcome.log


def test_a_users_mistake_is_told_by_its_status(folder):
    outcome = run_job(["evaluate", "--profile=huge"], folder, read=[], limits=LIMITS, stopped=lambda: False)
    assert outcome.status == 2


def test_a_long_log_keeps_its_beginning_and_its_end(folder, monkeypatch):
    outcome = run("print('first'); print('x' * 300_000); print('last')", folder, monkeypatch)
    assert outcome.log.startswith("first\n")
    assert outcome.log.endswith("last\n")
    assert "bytes left out]" in outcome.log
    assert len(outcome.log) < LIMITS.log + 100


def test_no_secret_and_no_trick_is_in_a_log(folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "another-kind-of-token")
    monkeypatch.setenv("MY_API_KEY", "key-of-mine")
    said = [SECRET, "Bearer abc.def", "http://me:pass@proxy", "another-kind-of-token", "key-of-mine"]
    said += ["\x1b[31mred\x1b[0m\x1b]0;title\x07", "\u202eevil", "a\rb", f"{folder}/run", "plain ☃"]
    outcome = run(
        f"import sys; sys.stdout.reconfigure(encoding='utf-8')\nfor x in {said!r}: print(x)", folder, monkeypatch
    )
    for hidden in (SECRET, "abc.def", "pass", "another-kind-of-token", "key-of-mine", "\x1b", "\x07", "\u202e", "\r"):
        assert hidden not in outcome.log
    assert str(folder) not in outcome.log
    assert "~/run\nplain ☃\n" in outcome.log


def test_secrets_are_found_by_their_names(tmp_path):
    told = clean("say friend and enter 12", tmp_path, {"DOOR_PASSWORD": "friend", "SHORT_TOKEN": "12", "HOME": "enter"})
    assert told == "say … and enter 12"


def test_what_takes_too_long_is_ended(folder, monkeypatch):
    outcome = run("import time; time.sleep(600)", folder, monkeypatch, limits=Limits(seconds=0.0))
    assert (outcome.status, outcome.late) == (None, True)


def test_what_is_stopped_is_ended_with_all_that_it_started(folder, monkeypatch):
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('child', 'w').write(str(child.pid)); os.rename('child', 'started'); time.sleep(600)\n"
    )
    monkeypatch.setattr(job, "_GRACE", 0.5)
    outcome = run(code, folder, monkeypatch, stopped=(folder / "started").exists)
    assert (outcome.status, outcome.late) == (None, False)
    # A killed process is gone when the system comes to it.
    child, patience = (folder / "started").read_text(), time.monotonic() + 60
    while runs(child) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not runs(child)


def runs(process: str) -> bool:
    """Whether a process runs; a zombie that nobody has collected does not."""
    try:
        stat = Path("/proc", process, "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b") ")[2][:1] not in b"ZX"


def test_a_death_is_told_by_its_signal(folder, monkeypatch):
    assert run("import os; os.kill(os.getpid(), 9)", folder, monkeypatch).status == -9
    assert os.getpid()
