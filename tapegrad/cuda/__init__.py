"""There are no graphics processors here; code that asks whether there are gets its answer.

>>> import tapegrad as tg
>>> tg.device("cuda" if tg.cuda.is_available() else "cpu")
device(type='cpu')
"""

from tapegrad.base.public_names import dir_of

__all__ = ["device_count", "is_available"]
__dir__ = dir_of(globals())


def is_available() -> bool:
    """Whether there is a graphics processor to compute on: no.

    >>> import tapegrad as tg
    >>> tg.cuda.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many graphics processors there are to compute on: none.

    >>> import tapegrad as tg
    >>> tg.cuda.device_count()
    0
    """
    return 0
