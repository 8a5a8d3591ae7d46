"""Ranges, queries, conversions, in-place functions, as calls that PyTorch understands too."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

from tests.peers.torch_cases import M, R, V, case, positive

# fmt: off
case(lambda t: [t.logspace(0, 2, 3), t.logspace(0, 2, 5, 2), t.logspace(1, -1, 4, base=3.5), t.logspace(0, 1, 0), t.logspace(2, 9, 1)])
case(lambda t: [t.logspace(0, 3, 7, base=2, dtype=t.int64), t.logspace(0, 2, 3, base=-2.0), t.logspace(0, 2, 3, 0), t.logspace(0, 1, 2, dtype=t.float32)])
case(lambda t: [t.range(1, 4), t.range(0, 1, 0.3), t.range(4, 1, -1), t.range(1.5, 4), t.range(start=1, end=1), t.range(1, 4, dtype=t.int64)])
case(lambda t: [t.scalar_tensor(3), t.scalar_tensor(True), t.scalar_tensor(2.5, dtype=t.int32), t.scalar_tensor(1j, dtype=t.complex64), t.scalar_tensor(t.tensor(2))])
case(lambda t: [tuple(x.stride()) + tuple(x.shape) for x in (t.empty_strided((2, 3), (1, 2)), t.empty_strided((2, 0), (7, 1)), t.empty_strided((), ()), t.empty_strided((2, 3), (0, 1)))])
case(lambda t, a: [tuple(a.new_empty_strided((2,), (3,)).stride()), a.new_empty_strided((2,), (3,)).fill_(1.0), t.empty_strided((2,), (2,), dtype=t.int32).zero_()], M)
case(lambda t: [t.can_cast(getattr(t, a), getattr(t, b)) for a in KINDS for b in KINDS])
case(lambda t: [t.is_nonzero(t.tensor([0.0])), t.tensor(1j).is_nonzero(), t.is_signed(t.tensor(True)), [t.is_signed(t.zeros(1, dtype=getattr(t, k))) for k in KINDS]])
case(lambda t, a: [t.is_same_size(a, a[0]), a.is_same_size(a * 2), a.is_signed(), a.ndimension(), t.is_conj(a), a.is_conj(), t.is_neg(a), a.is_neg(), t.is_signed(a)], M)
case(lambda t, a: [t.resolve_conj(a), a.resolve_conj(), t.resolve_neg(a), a.resolve_neg(), t.resolve_conj(t.tensor([1 + 2j]).conj())], M)
case(lambda t, a: [a.byte(), a.char(), a.detach().cfloat(), a.detach().cdouble()], positive(2, 3))
case(lambda t, a: [(a * 1).sgn_(), t.conj_physical_(a * 1), (a * 1).conj_physical_(), t.tensor([2j, 0]).sgn_(), t.conj_physical_(t.tensor([1 + 1j]))], M)
case(lambda t, a: [t.clamp_(a * 1, 0, 1), t.clip_(a * 1, max=0.5), t.fill_(a * 1, 2.0), t.zero_(a * 1), t.round_(a * 1), t.nan_to_num_(a * 1), t.threshold_(a * 1, 0.5, 7.0)], M)
case(lambda t, a, m, v: [t.addmv_(a * 1, m, v), t.logit_(a * 1, 0.1), t.ldexp_(a * 1, t.tensor(2))], positive(2), M, R, integers=False)
case(lambda t, a: [t.as_strided_(a * 1, (2, 2), (1, 1)), t.detach_(a * 1)], V)

KINDS = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
REFUSED: dict[str, Any] = {
    "logspace of less than no steps": (lambda t: t.logspace(0, 1, -1), []),
    "range without an end": (lambda t: t.range(3), []),
    "range the wrong way": (lambda t: t.range(4, 1), []),
    "range without a step": (lambda t: t.range(1, 4, 0), []),
    "scalar_tensor of a list": (lambda t: t.scalar_tensor([1.0]), []),
    "scalar_tensor of a complex number": (lambda t: t.scalar_tensor(1j), []),
    "empty_strided of other lengths": (lambda t: t.empty_strided((2,), (1, 2)), []),
    "empty_strided backwards": (lambda t: t.empty_strided((2, 3), (1, -2)), []),
    "is_nonzero of many": (lambda t, a: t.is_nonzero(a), [M]),
    "is_nonzero of nothing": (lambda t: t.is_nonzero(t.ones(0)), []),
}
