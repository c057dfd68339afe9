"""Makes `docs/before-after.jpg`, the README's picture, from a public-domain photograph (NASA, in scikit-image).

python docs/before_after.py
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw
from skimage import data

import truegap
from truegap.schema import Region

OBJECTS = [
    Region(1, "space shuttle", (305, 2, 135, 225)),
    Region(2, "flag", (2, 0, 118, 330)),
    Region(3, "helmet", (290, 235, 165, 215)),
]


def person_of(image: np.ndarray) -> np.ndarray:
    """The person's mask, by GrabCut from a box and a few strokes."""
    mask = np.full(image.shape[:2], cv2.GC_BGD, np.uint8)
    mask[5:512, 50:420] = cv2.GC_PR_BGD
    mask[15:260, 150:300] = cv2.GC_PR_FGD
    mask[190:512, 60:410] = cv2.GC_PR_FGD
    mask[40:180, 185:265] = cv2.GC_FGD
    mask[180:280, 165:290] = cv2.GC_FGD
    mask[260:512, 120:290] = cv2.GC_FGD
    mask[0:235, 318:] = cv2.GC_BGD
    mask[240:440, 330:440] = cv2.GC_BGD
    cv2.grabCut(image[..., ::-1].copy(), mask, None, np.zeros((1, 65)), np.zeros((1, 65)), 6, cv2.GC_INIT_WITH_MASK)
    return np.isin(mask, (cv2.GC_FGD, cv2.GC_PR_FGD))


def main() -> None:
    """Writes the picture."""
    image = data.astronaut()
    person = person_of(image)
    shown = {"original": image}
    for feature in ("color", "lighting", "object", "background"):
        # Of the strong draws of ten images, the one that shows most.
        drawn = [
            truegap.perturb(image, feature, "strong", image_id=str(n), person_mask=person, objects=OBJECTS)[0]
            for n in range(10)
        ]
        shown[f"{feature}-strong"] = max(drawn, key=lambda each: np.abs(each.astype(int) - image).mean())
    side, gap, line = 300, 8, 26
    sheet = Image.new("RGB", ((side + gap) * len(shown) - gap, side + line), "white")
    for n, (name, pixels) in enumerate(shown.items()):
        sheet.paste(Image.fromarray(pixels).resize((side, side), Image.Resampling.LANCZOS), (n * (side + gap), 0))
        ImageDraw.Draw(sheet).text((n * (side + gap) + 2, side + 4), name, "black", font_size=16)
    sheet.save(Path(__file__).with_name("before-after.jpg"), quality=85)


if __name__ == "__main__":
    main()
