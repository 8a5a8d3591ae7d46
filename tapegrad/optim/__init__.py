"""PyTorch's optimizers and learning rate schedulers, under its names and with its update rules."""

from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of
from tapegrad.optim import lr_scheduler
from tapegrad.optim.adadelta import Adadelta
from tapegrad.optim.adafactor import Adafactor
from tapegrad.optim.adagrad import Adagrad
from tapegrad.optim.adam import Adam
from tapegrad.optim.adamax import Adamax
from tapegrad.optim.adamw import AdamW
from tapegrad.optim.asgd import ASGD
from tapegrad.optim.lbfgs import LBFGS
from tapegrad.optim.muon import Muon
from tapegrad.optim.nadam import NAdam
from tapegrad.optim.optimizer import Optimizer
from tapegrad.optim.radam import RAdam
from tapegrad.optim.rmsprop import RMSprop
from tapegrad.optim.rprop import Rprop
from tapegrad.optim.sgd import SGD

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon",
    "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "lr_scheduler",
]  # fmt: skip
__dir__ = dir_of(globals())


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.optim'", name, __all__)
