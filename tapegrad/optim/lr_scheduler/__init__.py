"""Learning rate schedulers: rules that change the `lr` of parameter groups from epoch to epoch.

Most compute the next rate from the last, so that several may be used together.
"""

from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of
from tapegrad.optim.lr_scheduler.base import LRScheduler
from tapegrad.optim.lr_scheduler.composition import ChainedScheduler, SequentialLR
from tapegrad.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from tapegrad.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from tapegrad.optim.lr_scheduler.lr_cycles import CyclicLR, OneCycleLR
from tapegrad.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
__dir__ = dir_of(globals())


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.optim.lr_scheduler'", name, __all__)
