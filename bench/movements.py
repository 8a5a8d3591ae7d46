"""The other half of the operations: those that move elements, and those that work in place."""

from __future__ import annotations

from typing import Any

from bench.operations import Row, columns, mask, mat, places, positive, row, rows, unit, vec


def _assign(xp: Any, x: Any, v: Any, i: Any) -> Any:
    y = x.clone()
    y[i] = v
    return y


FAMILIES: dict[str, list[Row]] = {
    "shapes": [
        (".reshape", lambda xp, x: x.reshape(-1, x.shape[0]), (mat,), ()),
        (".view", lambda xp, x: x.view(-1), (mat,), ()),
        (".view_as", lambda xp, x, y: x.view_as(y), (mat,), (vec,)),
        (".flatten", lambda xp, x: x.flatten(), (mat,), ()),
        (".unflatten", lambda xp, x: x.unflatten(1, (2, -1)), (mat,), ()),
        (".contiguous", lambda xp, x: x.t().contiguous(), (mat,), ()),
        ("transpose", lambda xp, x: xp.transpose(x, 0, 1), (mat,), ()),
        ("t", lambda xp, x: xp.t(x), (mat,), ()),
        (".mT", lambda xp, x: x.mT, (mat,), ()),
        ("permute", lambda xp, x: xp.permute(x, (1, 0)), (mat,), ()),
        ("movedim", lambda xp, x: xp.movedim(x, 0, 1), (mat,), ()),
        ("swapaxes", lambda xp, x: xp.swapaxes(x, 0, 1), (mat,), ()),
        ("unsqueeze", lambda xp, x: xp.unsqueeze(x, 1), (mat,), ()),
        (".squeeze", lambda xp, x: x.view(1, -1).squeeze(0), (mat,), ()),
        (".expand", lambda xp, x: x.expand(x.shape[0], -1), (row,), ()),
        (".expand_as", lambda xp, x, y: x.expand_as(y), (row,), (mat,)),
        (".broadcast_to", lambda xp, x, y: xp.broadcast_to(x, y.shape), (row,), (mat,)),
        (".narrow", lambda xp, x: x.narrow(1, 5, x.shape[1] - 10), (mat,), ()),
        (".select", lambda xp, x: x.select(1, 5), (mat,), ()),
        (".diagonal", lambda xp, x: x.diagonal(), (mat,), ()),
        (".as_strided", lambda xp, x: x.as_strided(x.shape, (1, x.shape[0])), (mat,), ()),
        (".unfold", lambda xp, x: x.unfold(0, 8, 4), (vec,), ()),
        ("flip", lambda xp, x: xp.flip(x, (0,)), (vec,), ()),
        ("cat", lambda xp, x, y: xp.cat((x, y)), (vec, vec), ()),
        ("stack", lambda xp, x, y: xp.stack((x, y)), (vec, vec), ()),
        (".split", lambda xp, x: x.split(x.shape[0] // 2)[1], (mat,), ()),
        (".tensor_split", lambda xp, x: x.tensor_split(4)[1], (mat,), ()),
        (".chunk", lambda xp, x: x.chunk(4)[1], (mat,), ()),
        (".unbind", lambda xp, x: x.unbind()[1], (mat,), ()),
        ("tril", lambda xp, x: xp.tril(x), (mat,), ()),
        ("triu", lambda xp, x: xp.triu(x), (mat,), ()),
        ("diag", lambda xp, x: xp.diag(x), (row,), ()),
    ],
    "indexing": [
        ("slice", lambda xp, x: x[10:-10], (vec,), ()),
        ("slice, every second column", lambda xp, x: x[:, ::2], (mat,), ()),
        ("index", lambda xp, x, i: x[i], (vec,), (places,)),
        ("index, rows", lambda xp, x, i: x[i], (mat,), (rows,)),
        ("index, columns", lambda xp, x, i: x[:, i], (mat,), (rows,)),
        (".index, by a mask", lambda xp, x, m: x[m], (vec,), (mask,)),
        (".assign", _assign, (vec, vec), (places,)),
        ("index_select", lambda xp, x, i: xp.index_select(x, 0, i), (mat,), (rows,)),
        ("index_select, columns", lambda xp, x, i: xp.index_select(x, 1, i), (mat,), (rows,)),
        (".index_add", lambda xp, x, y, i: x.index_add(0, i, y), (mat, mat), (rows,)),
        (".index_put", lambda xp, x, v, i: x.index_put((i,), v), (vec, vec), (places,)),
        (".gather", lambda xp, x, i: x.gather(1, i), (mat,), (columns,)),
        (".scatter", lambda xp, x, y, i: x.scatter(1, i, y), (mat, mat), (columns,)),
        (".scatter_add", lambda xp, x, y, i: x.scatter_add(1, i, y), (mat, mat), (columns,)),
        (".masked_select", lambda xp, x, m: xp.masked_select(x, m), (vec,), (mask,)),
        ("take", lambda xp, x, i: xp.take(x, i), (vec,), (places,)),
    ],
    # A leaf cannot be written, so each writes a copy of it.
    "in place": [
        (".add_", lambda xp, x, y: x.clone().add_(y), (vec, vec), ()),
        (".sub_", lambda xp, x, y: x.clone().sub_(y), (vec, vec), ()),
        (".mul_", lambda xp, x, y: x.clone().mul_(y), (vec, vec), ()),
        (".div_", lambda xp, x, y: x.clone().div_(y), (vec, positive), ()),
        (".pow_", lambda xp, x: x.clone().pow_(3), (unit,), ()),
        (".exp_", lambda xp, x: x.clone().exp_(), (vec,), ()),
        (".clamp_", lambda xp, x: x.clone().clamp_(-1.0, 1.0), (vec,), ()),
        (".fill_", lambda xp, x: x.clone().fill_(2.0), (vec,), ()),
        (".zero_", lambda xp, x: x.clone().zero_(), (vec,), ()),
        (".copy_", lambda xp, x, y: x.clone().copy_(y), (vec, vec), ()),
        (".masked_fill_", lambda xp, x, m: x.clone().masked_fill_(m, 0.0), (vec,), (mask,)),
        (".index_add_", lambda xp, x, y, i: x.clone().index_add_(0, i, y), (mat, mat), (rows,)),
    ],
}
