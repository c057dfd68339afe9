"""Training a two-way classifier until it stops getting better: networks, and heads on features."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from truegap.errors import UserError
from truegap.models._memory import is_out_of_memory
from truegap.models._torch import versioned_key

Places = NDArray[np.int64]
Ready = Callable[[torch.Tensor], torch.Tensor]
"""From stored inputs on the device to what the classifier takes."""
HEAD_DEVICE, HEAD_DTYPE = torch.device("cpu"), torch.float32
"""Where small heads are trained, and in which numbers."""


@dataclass(frozen=True, slots=True)
class Training:
    """How a classifier is trained: AdamW at a constant rate, stopped early.

    Attributes:
        epochs: At most so many passes over the training images.
        patience: Stop when the loss on the validation images has not fallen for so many; the best state counts.
        learning_rate: Of AdamW.
        weight_decay: Of AdamW.
        batch_size: Images per step.
    """

    epochs: int
    patience: int
    learning_rate: float
    weight_decay: float
    batch_size: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """What came of a training.

    Attributes:
        correct: Per test image, whether the classifier was right.
        epochs: How many were run.
        best_epoch: The one whose state was tested, from 1.
    """

    correct: NDArray[np.bool_]
    epochs: int
    best_epoch: int


def head_key() -> str:
    """What decides the training of a head beside its inputs: the libraries, and the kind of device."""
    return versioned_key("", HEAD_DEVICE)


def linear(width: int) -> torch.nn.Module:
    """A linear probe: logistic regression on features `(n, width)`."""
    return torch.nn.Linear(width, 2)


def mlp(width: int, hidden: int) -> torch.nn.Module:
    """Two layers with a ReLU between them, for vectors `(n, width)`."""
    return torch.nn.Sequential(torch.nn.Linear(width, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 2))


def standardised(features: NDArray[np.float32], train: Places) -> NDArray[np.float32]:
    """Features with mean 0 and standard deviation 1 over the training images; a constant one becomes 0."""
    mean, spread = features[train].mean(axis=0), features[train].std(axis=0)
    return np.asarray((features - mean) / np.where(spread > 0, spread, np.inf), np.float32)


def fit(
    make: Callable[[], torch.nn.Module],
    inputs: NDArray[np.float32] | NDArray[np.uint8],
    labels: Places,
    parts: tuple[Places, Places, Places],
    training: Training,
    *,
    seed: int,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    ready: Ready | None = None,
    advance: Callable[[int], object] = lambda _: None,
) -> Fitted:
    """Trains a classifier and tests it once.

    Weights and the order of images come from the seed; torch's own random state is left as it was.

    Args:
        make: Gives a new classifier on the CPU, from torch's random state, with an output per class.
        inputs: `(n, ...)`; may be memory-mapped.
        labels: `(n,)` of 0 and 1.
        parts: Positions of training, validation and test images.
        training: How.
        seed: Of weights and order.
        device: Where.
        dtype: Of the activations; weights are float32.
        ready: From a batch of inputs to what the classifier takes; None where they are that.
        advance: Called with 1 per epoch.

    Raises:
        UserError: The loss is no number, or a batch does not fit into memory.
    """
    train, validation, test = parts
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = make().to(device)
        optimizer = torch.optim.AdamW(
            module.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
        )
        run = _Run(module, inputs, labels, training.batch_size, device, dtype, ready)
        best, best_epoch, state = math.inf, 0, dict[str, torch.Tensor]()
        epoch = 0
        try:
            while epoch < training.epochs and epoch - best_epoch < training.patience:
                epoch += 1
                run.train(train, optimizer)
                loss = float(cross_entropy(run.scores(validation), torch.from_numpy(labels[validation])))
                if not math.isfinite(loss):
                    raise UserError("a classifier's loss is no longer a number: give a smaller --learning-rate")
                if loss < best:
                    best, best_epoch = loss, epoch
                    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
                advance(1)
            module.load_state_dict(state)
            right = run.scores(test).argmax(dim=1).numpy() == labels[test]
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise UserError("training does not fit into memory: give a smaller --batch-size or backbone") from error
    return Fitted(np.asarray(right), epoch, best_epoch)


@dataclass(frozen=True, slots=True)
class _Run:
    """A classifier with its inputs."""

    module: torch.nn.Module
    inputs: NDArray[np.float32] | NDArray[np.uint8]
    labels: Places
    batch_size: int
    device: torch.device
    dtype: torch.dtype
    ready: Ready | None

    def train(self, places: Places, optimizer: torch.optim.Optimizer) -> None:
        """One pass, in random order."""
        self.module.train()
        order = places[torch.randperm(len(places)).numpy()]
        # Batches of nearly one size: one image alone has no batch statistics.
        for some in np.array_split(order, math.ceil(len(order) / self.batch_size)):
            optimizer.zero_grad()
            labels = torch.from_numpy(self.labels[some]).to(self.device)
            cross_entropy(self._forward(some).float(), labels).backward()
            optimizer.step()

    @torch.no_grad()
    def scores(self, places: Places) -> torch.Tensor:
        """Scores `(n, 2)` of images, on the CPU."""
        self.module.eval()
        cuts = range(0, len(places), self.batch_size)
        return torch.cat([self._forward(places[at : at + self.batch_size]).float().cpu() for at in cuts])

    def _forward(self, places: Places) -> torch.Tensor:
        batch = torch.from_numpy(np.ascontiguousarray(self.inputs[places])).to(self.device)
        batch = self.ready(batch) if self.ready else batch
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            scores: torch.Tensor = self.module(batch)
        return scores
