"""How fast synthetic pictures are made, on one thread: `python benchmarks/synthetic.py [--images N] [--size S]`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import cv2

from truegap.synthetic import draw_scene, example, region_masks, render, strengths
from truegap.synthetic.readings import readings


def rate(do: Callable[[int], object], images: int) -> float:
    """Images per second of processor time, the best of three runs: other programs do not count."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        for index in range(images):
            do(index)
        seconds.append(time.process_time() - start)
    return images / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--size", type=int, default=224)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    size, rho = options.size, strengths(0.5)

    start = time.process_time()
    for index in range(60):
        render(draw_scene(1, index, rho), size)
    print(f"first 60 pictures with their textures: {time.process_time() - start:.2f} s")
    parts: dict[str, Callable[[int], object]] = {
        "scene and picture": lambda index: render(draw_scene(0, index, rho), size),
        "masks without picture": lambda index: region_masks(draw_scene(0, index, rho), size),
        "example with boxes and encoded masks": lambda index: example(0, index, rho, size),
    }
    images = [example(0, index, rho, size).image for index in range(options.images)]
    pictures = [cv2.cvtColor(render(draw_scene(0, index, rho), size), cv2.COLOR_BGR2RGB) for index in range(32)]
    parts["five readings of a picture"] = lambda index: readings(pictures[index % len(pictures)])
    parts["picture as PNG"] = lambda index: images[index].read()
    for name, do in parts.items():
        print(f"{name:38s} {rate(do, options.images):7.0f} images/s")


if __name__ == "__main__":
    main()
