"""What is known as memory that ran out."""

from __future__ import annotations

import pytest

from truegap.models._memory import is_out_of_memory


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("MPS backend out of memory"), True),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
            True,
        ),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("index out of range"), False),
        (ValueError("NaN"), False),
    ],
)
def test_every_device_says_it_in_its_way(error, known):
    assert is_out_of_memory(error) is known
