"""Derivatives of sums over data that a Dask cluster holds.

Dask comes with ``pip install 'tapegrad[distributed]'``, and is loaded when it is needed.  This
package imports `transforms`.
"""

from tapegrad.base.public_names import dir_of
from tapegrad.distributed.chunk_sums import value_and_grad

__all__ = ["value_and_grad"]
__dir__ = dir_of(globals())
