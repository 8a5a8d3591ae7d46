"""Emit calls of BLAS for matrix products."""

from __future__ import annotations

from typing import NamedTuple

from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.llvm.function_builder import PREFIX
from tapegrad.compiler.llvm.ssa import literal
from tapegrad.compiler.schedule.step_ir import Gemm


class Product(NamedTuple):
    """Products of one shape: a call over the addresses `{a}`, `{b}` and `{out}`."""

    call: str
    declared: tuple[str, ...]
    trips: int
    kind: str
    strides: tuple[int, int, int]  # from one product to the next, of a, b and the result


def product_of(step: Gemm) -> Product:
    """Row-major matrices are the transposes to BLAS: it computes out' = b' a'."""
    (count, rows, inner), columns = step.a.shape, step.b.shape[2]
    single = step.out.buffer.dtype.itemsize == 4
    kind, routine = ("float", "sgemm") if single else ("double", "dgemm")
    (turned_a, lead_a), (turned_b, lead_b) = _layout(step.a), _layout(step.b)
    declared = [f"declare void @{PREFIX}{routine}({', '.join(['ptr'] * 13)})"]

    def known(kind: str, value: float) -> str:
        """The address of a constant."""
        digits = literal(value, kind).name
        declared.append(f"@{kind}.{digits} = internal constant {kind} {digits}")
        return f"ptr @{kind}.{digits}"

    turns = [known("i8", ord("T" if turned else "N")) for turned in (turned_b, turned_a)]
    sizes = [known("i32", n) for n in (columns, rows, inner)]
    args = [
        *turns, *sizes, known(kind, 1.0), "ptr {b}", known("i32", lead_b), "ptr {a}",
        known("i32", lead_a), known(kind, 0.0), "ptr {out}", known("i32", columns),
    ]  # fmt: skip
    call = f"call void @{PREFIX}{routine}({', '.join(args)})"
    strides = (step.a.strides[0], step.b.strides[0], step.out.strides[0])
    return Product(call, tuple(declared), count, kind, strides if count > 1 else (0, 0, 0))


def _layout(place: Place) -> tuple[bool, int]:
    """Whether BLAS has to transpose a matrix, and its leading dimension."""
    (_, rows, columns), (_, down, right) = place.shape, place.strides
    if right == 1 and (down >= columns or rows == 1):
        return False, max(down, columns)
    return True, max(right, rows)


def repeated(name: str, product: Product) -> str:
    """The function of a strided batch of products."""
    names = ("a", "b", "out")
    lines = [
        f"define internal void @{name}({', '.join([f'ptr %{x}' for x in names])}) #0 {{",
        "start:", "br label %loop",
        "loop:", "%i = phi i64 [ 0, %start ], [ %next, %loop ]",
    ]  # fmt: skip
    for x, step in zip(names, product.strides, strict=True):
        lines += [
            f"%{x}.steps = mul i64 %i, {step}",
            f"%{x}.at = getelementptr {product.kind}, ptr %{x}, i64 %{x}.steps",
        ]
    return "\n".join([
        *lines, product.call.format(**{x: f"%{x}.at" for x in names}),
        "%next = add i64 %i, 1", f"%more = icmp ult i64 %next, {product.trips}",
        "br i1 %more, label %loop, label %done", "done:", "ret void", "}",
    ])  # fmt: skip
