"""Runs truegap where it can do little harm: few files, no TCP connection, limited memory.

A model's files are data and are never run; should a library be made to run them all the same, the process has no token,
sees no file of its parent and makes no TCP connection (Landlock, Linux 5.13 and newer; TCP from 6.7 on). Landlock holds
neither UDP nor sockets in files, so what must reach nothing at all belongs on a machine without a network. What the
system does not have is left out.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import runpy
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of Landlock's system calls, the same on all architectures."""
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_ONLY_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | (1 << 14) | (1 << 15)
_RIGHTS_OF = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""By the version of Landlock: how many rights to files there are."""
_NETWORK_SINCE = 4
_BIND_AND_CONNECT = 3
_SCOPES_SINCE = 6
_SOCKETS_AND_SIGNALS = 3
_CAPABILITIES = 0x20080522
"""Version 3 of the call that sets them."""
_NO_NEW_PRIVILEGES, _NOT_DUMPABLE = 38, 4


@dataclass(frozen=True, slots=True)
class Rules:
    """What a process may do.

    Attributes:
        read: Folders and files that it may read and run programs of.
        write: Folders that it may change.
        memory: Bytes of address space; None for any.
        file: Bytes of the largest file that it may write.
        held: Whether files and network are held; what hands its work on to a cluster needs both.
    """

    read: Sequence[str]
    write: Sequence[str]
    memory: int | None
    file: int
    held: bool = True

    def as_json(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


class _Capabilities(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def confine(rules: Rules) -> int:
    """Puts this process, and all that it starts, under rules that none of them can lift again.

    Returns:
        The version of Landlock that holds the files; 0 where nothing does.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (rules.file, rules.file))
    if rules.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (rules.memory, rules.memory))
    if sys.platform != "linux" or not rules.held:
        return 0
    version = _landlock(rules)
    # An administrator's process may look into others', whatever Landlock says.
    ctypes.CDLL(None).capset(ctypes.byref(_Capabilities(_CAPABILITIES, 0)), (ctypes.c_uint32 * 6)())
    return version


def hide_memory() -> None:
    """Keeps processes of the same user from reading this one's memory and environment, where a token may be."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_NOT_DUMPABLE, 0, 0, 0, 0)


def _landlock(rules: Rules) -> int:
    system = ctypes.CDLL(None, use_errno=True)
    version = int(system.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION))
    if version < 1:
        return 0
    rights = (1 << _RIGHTS_OF.get(version, max(_RIGHTS_OF.values()))) - 1
    network = _BIND_AND_CONNECT if version >= _NETWORK_SINCE else 0
    asked = _Ruleset(rights, network, _SOCKETS_AND_SIGNALS if version >= _SCOPES_SINCE else 0)
    # Older systems know fewer fields, and refuse to be given more.
    size = 24 if version >= _SCOPES_SINCE else 16 if version >= _NETWORK_SINCE else 8
    ruleset = int(system.syscall(_CREATE, ctypes.byref(asked), ctypes.c_size_t(size), 0))
    if ruleset < 0:
        return 0
    for paths, allowed in ((rules.read, _READ), (rules.write, rights)):
        for path in paths:
            _allow(system, ruleset, path, allowed & rights)
    system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    done = int(system.syscall(_RESTRICT, ruleset, 0))
    os.close(ruleset)
    return version if done == 0 else 0


def _allow(system: ctypes.CDLL, ruleset: int, path: str, allowed: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there need not be allowed
    rule = _Beneath(allowed if Path(path).is_dir() else allowed & _ONLY_FILES, place)
    system.syscall(_ADD, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(place)


def main() -> None:
    """Confines itself by the rules in the first argument (JSON), then is `truegap` with the arguments that are left."""
    rules = Rules(**json.loads(sys.argv[1]))
    version = confine(rules)
    sys.stderr.write(f"files and network held by Landlock {version}\n" if version else "files and network not held\n")
    sys.argv = ["truegap", *sys.argv[2:]]
    runpy.run_module("truegap", run_name="__main__", alter_sys=False)
