"""Memory of one picture after another is found once."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_FAULTS = """
import resource
import numpy as np
from truegap.memory import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        picture = np.ones((512, 512, 4), np.uint8)
        picture + 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert keep_memory()
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator can be told")
def test_pictures_take_no_fresh_pages():
    # given a process that was told to keep memory; when it makes forty pictures of a mebibyte, one after another
    done = subprocess.run([sys.executable, "-c", _FAULTS], check=True, capture_output=True, text=True)
    # then hardly any of their 10,000 pages is found anew
    assert int(done.stdout) < 100
