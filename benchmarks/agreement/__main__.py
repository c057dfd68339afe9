"""Do the scores agree with independent references? Prints a Markdown table of the largest differences.

    python benchmarks/agreement [--inputs 200]

Every score is computed on many random inputs, small and awkward ones among them (ties, single queries, questions that
were not asked on every image), and beside it by something that shares no code with it: scipy, fairlearn, a closed form,
or the definition written out as a loop, an enumeration of all cases, or a list of copied rows. Some are held against
printed tables too. Differences are relative where values are above 1 (deltas are in percent). Exits with 1 where one is
above its tolerance.
"""

from __future__ import annotations

import argparse
import sys

import fairlearn
import inference
import numpy as np
import printed
import resolution
import retrieval
import scipy
import sensitivity
import ygap
from checks import differences

import counterfactual

KINDS = (ygap, inference, retrieval, resolution, counterfactual, sensitivity, printed)
"""In the order of the table, by which every comparison has its random inputs."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200, help="random inputs for every score")
    inputs = parser.parse_args().inputs
    print(f"NumPy {np.__version__}, scipy {scipy.__version__}, fairlearn {fairlearn.__version__}\n")
    print("| score | reference | inputs | numbers | largest difference | tolerance |")
    print("|---|---|---|---|---|---|")
    checks = [check for kind in KINDS for check in kind.CHECKS]
    failed = 0
    for number, each in enumerate(checks):
        count = 1 if each.inputs is None else each.inputs * inputs
        found = [list(differences(each.measure(np.random.default_rng([number, i])))) for i in range(count)]
        largest, numbers = max(map(max, found)), sum(map(len, found))
        failed += largest > each.tolerance
        bad = " **above**" if largest > each.tolerance else ""
        print(f"| {each.score} | {each.reference} | {count} | {numbers} | {largest:.1e}{bad} | {each.tolerance:.0e} |")
    print(f"\n{len(checks)} comparisons, {failed} above their tolerance")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
