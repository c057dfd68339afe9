"""Every command that a document or a help text shows is one that truegap takes, with the options that it names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import truegap
from truegap.cli.app import app

ROOT = Path(truegap.__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "benchmarks/*.md", "datasets/*/*.md", "metrics/*/*.md", "spaces/*/*.md")
    for path in ROOT.glob(pattern)
)
ELLIPSIS = {"…", "..."}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command of truegap that does something, by its words."""
    waiting = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        inner = getattr(command, "commands", {})
        waiting += [(f"{name} {verb}".strip(), each) for verb, each in sorted(inner.items())]
        if not inner:
            yield name, command


COMMANDS = dict(commands())


def lines(text: str) -> Iterator[str]:
    """Commands as they are typed: lines of their own, joined where a backslash ends them, without remarks."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        typed = re.sub(r"\s#.*$", "", line.strip().removeprefix("$ "))
        if typed.count('"') % 2:
            typed = typed.removesuffix('"')  # the end of a script in quotation marks
        if re.match(r"(truegap|python|make) [\w<…-]", typed) and not typed.endswith((".", ",", ";")):
            yield typed


def blocks(document: str) -> Iterator[str]:
    for block in re.findall(r"^```\w*\n(.*?)^```", document, re.MULTILINE | re.DOTALL):
        yield from lines(block)


def inline(document: str) -> Iterator[str]:
    without = re.sub(r"^```\w*\n.*?^```", "", document, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([^`]+)`", without):
        yield from lines(" ".join(code.split()))


def taken(words: list[str]) -> tuple[str, list[str]]:
    """The command at the start of what follows `truegap`, and the words behind it."""
    for count in range(len(words), 0, -1):
        if (name := " ".join(words[:count])) in COMMANDS:
            return name, words[count:]
    pytest.fail(f"there is no command `truegap {' '.join(words)}`")


def check_whole(typed: str) -> None:
    """That a command line parses as it stands, with every argument that the command needs."""
    name, words = taken(shlex.split(typed)[1:])
    with COMMANDS[name].make_context(name, words):
        pass


def check_mentioned(typed: str) -> None:
    """That a command exists, or is a group of some, and that it has the options that are named with it."""
    words = typed.split()[1:]
    if any(name.startswith(f"{' '.join(words)} ") for name in COMMANDS):
        return
    name, rest = taken(words)
    known = {option for each in COMMANDS[name].params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    assert {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)} <= known, typed


def check_other(typed: str) -> None:
    """That a script or a target of the Makefile is there."""
    program, *words = typed.split()
    if program == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in words if "=" not in word and word not in ELLIPSIS} <= set(targets), typed
    elif words[0] != "-m" and "/" in words[0]:
        place = ROOT / words[0]
        assert place.is_file() or (place / "__main__.py").is_file(), typed


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_document_shows_can_be_typed(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    for typed in blocks(text):
        (check_whole if typed.startswith("truegap ") else check_other)(typed)
    for typed in inline(text):
        (check_mentioned if typed.startswith("truegap ") else check_other)(typed)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_examples_of_a_help_text_can_be_typed(name):
    told = COMMANDS[name].help or ""
    typed = [
        line for line in lines(re.split(r"^Examples?:$", told, flags=re.MULTILINE)[-1]) if line.startswith("truegap ")
    ]
    assert typed, "a help text has examples"
    for line in typed:
        check_whole(line)


def test_a_command_that_is_not_there_is_seen():
    """That these checks can fail."""
    (typed,) = blocks("```console\n$ truegap build facet \\\n    --source /data --oops  # no such option\n```")
    with pytest.raises(Exception, match="No such option: --oops"):
        check_whole(typed)
    for text in ("`truegap build --oops`", "`truegap unbuild`", "`python benchmarks/nothing.py`", "`make nothing`"):
        (typed,) = inline(text)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            (check_mentioned if typed.startswith("truegap ") else check_other)(typed)
