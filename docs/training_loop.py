"""Watches a gender gap while a model trains: with `transformers.Trainer`, and in a plain PyTorch loop.

python docs/training_loop.py

A tiny vision transformer learns to say whether a drawn person waves. In the training pictures men wave more often, and
stand before upright stripes more often than women; so the model learns the stripes too, and answers about men and women
differ on test pictures in which they wave equally often. With the background blurred that part of the gap goes away.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import torch
from transformers import EvalPrediction, Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

import truegap

METRICS = Path(__file__).resolve().parents[1] / "metrics"
"""From the Hub it is `evaluate.load("ORG/ygap", revision="v1.0.0")`."""

SIDE = 32


@dataclass(frozen=True)
class Pictures(torch.utils.data.Dataset):
    """Pictures with who is shown, whether the person waves, and the person's mask."""

    images: np.ndarray
    genders: list[str]
    waves: np.ndarray
    masks: np.ndarray
    ids: list[str]

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, n: int) -> dict[str, Any]:
        pixels = torch.from_numpy(self.images[n]).permute(2, 0, 1).float() / 127.5 - 1
        return {"pixel_values": pixels, "labels": int(self.waves[n])}

    def blurred(self) -> Pictures:
        """The same pictures with the background blurred: no person pixel changes."""
        blur = [
            truegap.perturb(image, "background", "strong", image_id=name, person_mask=mask)[0]
            for image, mask, name in zip(self.images, self.masks, self.ids, strict=True)
        ]
        return Pictures(np.stack(blur), self.genders, self.waves, self.masks, self.ids)


def draw(n: int, *, seed: int, lean: float) -> Pictures:
    """Draws pictures, half of women and half of men; `lean` is how much more often men wave."""
    rng = np.random.default_rng(seed)
    man = np.arange(n) % 2
    waves = (rng.random(n) < 0.5 + lean * (man - 0.5)).astype(int)
    images = rng.integers(90, 120, (n, SIDE, SIDE, 3)).astype(np.uint8)
    masks = np.zeros((n, SIDE, SIDE), bool)
    for k in range(n):
        # Stripes that go with the label, as an office or a kitchen might; blurred they are grey.
        upright = rng.random() < 0.1 + 0.8 * man[k]
        images[k, :, ::2] = images[k, :, ::2] + 80 if upright else images[k, :, ::2]
        images[k, ::2] = images[k, ::2] if upright else images[k, ::2] + 80
        masks[k, 4:28, 4:16] = True
        images[k][masks[k]] = 150
        images[k, 4:12, 4:7] = 180 if waves[k] else 120
    names = [f"{seed}-{k:04d}" for k in range(n)]
    return Pictures(images, ["man" if each else "woman" for each in man], waves, masks, names)


def tiny_model(seed: int = 0) -> ViTForImageClassification:
    """A vision transformer small enough for a CPU."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    return ViTForImageClassification(ViTConfig(image_size=SIDE, patch_size=8, num_labels=2, **sizes))


def watch(ygap: evaluate.Metric, pictures: Pictures) -> Callable[[EvalPrediction], dict[str, float]]:
    """`compute_metrics` for a Trainer: predictions come in the order of the evaluation set."""

    def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
        yes = torch.tensor(prediction.predictions).softmax(-1)[:, 1]
        found = ygap.compute(predictions=yes, genders=pictures.genders, images=pictures.ids)
        # A Trainer logs plain numbers; everything else is in `found`.
        return {name: found[name] for name in ("ygap", "ci_low", "ci_high")}

    return compute_metrics


def with_trainer(train: Pictures, test: Pictures, *, epochs: int, out: str) -> list[dict[str, float]]:
    """Trains with `transformers.Trainer`; the gap of every evaluation."""
    arguments = TrainingArguments(
        out,
        num_train_epochs=epochs,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=24,
        learning_rate=3e-3,
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    ygap = evaluate.load(str(METRICS / "ygap"))
    trainer = Trainer(
        tiny_model(), arguments, train_dataset=train, eval_dataset=test, compute_metrics=watch(ygap, test)
    )
    trainer.train()
    return [row for row in trainer.state.log_history if "eval_ygap" in row]


def batches(pictures: Pictures, size: int = 24) -> Iterator[tuple[list[int], torch.Tensor]]:
    """Places and pixels, batch by batch."""
    for start in range(0, len(pictures), size):
        places = list(range(start, min(start + size, len(pictures))))
        yield places, torch.stack([pictures[n]["pixel_values"] for n in places])


@torch.no_grad()
def probabilities(model: ViTForImageClassification, pixels: torch.Tensor) -> torch.Tensor:
    """P(yes) of a batch."""
    return model(pixel_values=pixels).logits.softmax(-1)[:, 1]


def measure(model: ViTForImageClassification, original: Pictures, perturbed: Pictures) -> dict[str, Any]:
    """The gap on original and on perturbed pictures, and how far each picture's answer moves, batch by batch."""
    model.eval()
    alone = evaluate.load(str(METRICS / "ygap"), "images")
    # `combine` passes each module the columns that it names: optional ones are named in the config.
    both = evaluate.combine(
        [evaluate.load(str(METRICS / "ygap"), "images"), evaluate.load(str(METRICS / "feature_sensitivity"))]
    )
    for (places, before), (_, after) in zip(batches(original), batches(perturbed), strict=True):
        people = {"genders": [original.genders[n] for n in places], "images": [original.ids[n] for n in places]}
        first, second = probabilities(model, before), probabilities(model, after)
        alone.add_batch(predictions=first, **people)
        both.add_batch(predictions=second, references=first, **people)
    gap, found = alone.compute(), both.compute()
    return {"ygap": gap["ygap"], "ygap_blurred": found["ygap"], "answers_move": found["abs_change"], "all": gap}


def plain_loop(train: Pictures, test: Pictures, *, epochs: int) -> list[dict[str, Any]]:
    """Trains in a plain PyTorch loop; the gap after every epoch."""
    model, blurred = tiny_model(), test.blurred()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = torch.utils.data.DataLoader(train, batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(0))
    history = []
    for _ in range(epochs):
        model.train()
        for batch in loader:
            model(**batch).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        history.append(measure(model, test, blurred))
    return history


def share_of_processes(rank: int, processes: int, cache: str, pictures: Pictures, yes: np.ndarray) -> dict | None:
    """One of several processes that share an evaluation: each adds its part, the first gets the result."""
    ygap = evaluate.load(
        str(METRICS / "ygap"), process_id=rank, num_process=processes, experiment_id="gap", cache_dir=cache
    )
    mine = range(rank, len(pictures), processes)
    ygap.add_batch(
        predictions=yes[list(mine)],
        genders=[pictures.genders[n] for n in mine],
        images=[pictures.ids[n] for n in mine],
    )
    return ygap.compute()


def main() -> None:
    """Prints the gap after every epoch, both ways."""
    train, test = draw(512, seed=0, lean=0.6), draw(240, seed=1, lean=0.0)
    with tempfile.TemporaryDirectory() as out:
        for row in with_trainer(train, test, epochs=4, out=out):
            interval = f"[{row['eval_ci_low']:+.3f}, {row['eval_ci_high']:+.3f}]"
            print(f"Trainer, epoch {row['epoch']:.0f}: YGap {row['eval_ygap']:+.3f} {interval}")  # noqa: T201
    for epoch, row in enumerate(plain_loop(train, test, epochs=4), start=1):
        said = f"YGap {row['ygap']:+.3f}, background blurred {row['ygap_blurred']:+.3f}"
        print(f"plain loop, epoch {epoch}: {said}, answers move by {row['answers_move']:.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
