"""How long `import truegap` takes in a fresh interpreter, against an interpreter that imports nothing.

python benchmarks/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 15


def seconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def main() -> None:
    # In turn, so that both sides see the same machine.
    pairs = [(seconds("pass"), seconds("import truegap")) for _ in range(ROUNDS)]
    nothing, package = (statistics.median(each) for each in zip(*pairs, strict=True))
    print(f"python -c pass              {nothing:.3f} s")
    print(f"python -c 'import truegap'  {package:.3f} s (median of {ROUNDS})")
    print(f"import truegap alone        {package - nothing:.3f} s (target: under 0.3 s)")
    heavy = ("numpy", "torch", "datasets", "cv2", "pydantic")
    code = f"import sys, truegap; print(*[name for name in {heavy} if name in sys.modules])"
    print(
        "heavy modules loaded by it:",
        subprocess.check_output([sys.executable, "-c", code], text=True).strip() or "none",
    )


if __name__ == "__main__":
    main()
