"""The Python array API standard, edition 2024.12, on Tensors.

Code that is written for the standard asks its arguments for this namespace, and so differentiates.

>>> import tapegrad as tg
>>> def scaled(x):
...     xp = x.__array_namespace__()
...     return (x - xp.mean(x)) / xp.std(x)
>>> x = tg.tensor([1.0, 2.0, 4.0], requires_grad=True)
>>> scaled(x)[0].backward()
>>> x.grad
tensor([ 0.2291, -0.3436,  0.1145])
"""

from math import e, inf, nan, pi

from tapegrad.array_api import arrays, creation, elementwise, fft, linalg
from tapegrad.array_api.arrays import *
from tapegrad.array_api.creation import *
from tapegrad.array_api.data_types import astype, can_cast, finfo, iinfo, isdtype, result_type
from tapegrad.array_api.elementwise import *
from tapegrad.array_api.info import __array_namespace_info__
from tapegrad.base.devices import device as Device
from tapegrad.base.dtypes import bool_ as bool
from tapegrad.base.dtypes import (
    complex64,
    complex128,
    dtype,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tapegrad.base.public_names import dir_of
from tapegrad.tensor import Tensor

newaxis = None
__array_api_version__ = "2024.12"
__all__ = [
    "Device", "Tensor", "__array_api_version__", "__array_namespace_info__", "astype", "bool",
    "can_cast", "complex64", "complex128", "dtype", "e", "fft", "finfo", "float32", "float64",
    "iinfo", "inf", "int8", "int16", "int32", "int64", "isdtype", "linalg", "nan", "newaxis", "pi",
    "result_type", "uint8", "uint16", "uint32", "uint64", *arrays.__all__, *creation.__all__,
    *elementwise.__all__,
]  # fmt: skip
__dir__ = dir_of(globals())
