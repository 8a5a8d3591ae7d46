"""Samples of rows that lay elements out anew: repeats, shifts, and borders."""

from __future__ import annotations

from tests.conformance.samples import row

row("repeat", (2, 3), reps=(1, 2))
row("repeat", (2, 1), reps=(3, 2))
row("repeat", (3,), reps=(0,))
row("repeat", (), reps=())
row("repeat", (0, 3), reps=(2, 1))
row("roll", (5,), shifts=(2,), dims=(0,))
row("roll", (2, 3), shifts=(-1, 4), dims=(0, 1))
row("roll", (0, 3), shifts=(1,), dims=(0,))
row("pad", (2, 3), widths=((1, 0), (0, 2)), value=0.0)
row("pad", (3,), widths=((2, 1),), value=-1.5)
row("pad", (), widths=(), value=1.0)
row("pad", (0, 3), widths=((1, 1), (0, 0)), value=2.0)

ODD = (((2, -1, 2),), (0, 4), ((3, 0, 2),), 4)  # 2 1, the middle, 3 3
CUT = (((2, 1, 2),), (1, 3), (), 5)  # 2 3, the middle, which leaves out an element at each end
for name, n in (("border", 4), ("fold_border", 8)):
    row(name, (n,), dims=(0,), borders=(ODD,))
    row(name, (n, 5), dims=(1, 0), borders=(CUT, ODD))
    row(name, (2, n, 3), dims=(1,), borders=(ODD,))
