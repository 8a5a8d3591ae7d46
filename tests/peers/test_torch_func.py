"""Transforms under PyTorch's names: one body runs on both libraries, and the outcome is the same.

An outcome is the values, shapes and structure of the result and whether it requires grad, or the
type of the exception.
"""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch: `make peers` installs it")

import tapegrad as tg  # noqa: E402

pytestmark = [
    pytest.mark.peer,
    pytest.mark.tapegrad_only("runs both libraries itself"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def _same_default_dtype():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


class Library:
    """A library, and the same data on it."""

    def __init__(self, library):
        self.t = library
        self.functional = library.autograd.functional
        self.forward_ad = library.autograd.forward_ad
        self.func = library.func
        self.x = library.tensor([1.0, 2.0, 3.0])
        self.y = library.ones(2)
        self.m = library.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    def needing(self, t):
        return t.clone().requires_grad_()


def outcome(body, library):
    try:
        return flat(body(Library(library)), library)
    except Exception as problem:
        return type(problem)


def flat(found, library):
    if isinstance(found, library.Tensor):
        return np.array(found.detach().tolist()).reshape(tuple(found.shape)), found.requires_grad
    if isinstance(found, (tuple, list)):
        return [flat(part, library) for part in found]
    if isinstance(found, dict):
        return {key: flat(part, library) for key, part in found.items()}
    return found


def compare(mine, theirs, batched=False):
    if isinstance(theirs, tuple):
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-10, atol=1e-12)
        assert mine[0].shape == theirs[0].shape
        # PyTorch's batched sweeps take some derivatives that are constant for recorded ones.
        assert mine[1] == theirs[1] or (batched and theirs[1]), "requires_grad"
    elif isinstance(theirs, list):
        assert len(mine) == len(theirs)
        for part, other in zip(mine, theirs, strict=True):
            compare(part, other, batched)
    elif isinstance(theirs, dict):
        assert mine.keys() == theirs.keys()
        for key, other in theirs.items():
            compare(mine[key], other, batched)
    else:
        assert mine == theirs


CASES = {}


def case(name, body):
    assert name not in CASES
    CASES[name] = body


# What is differentiated: a name, the function, and the inputs.
FUNCTIONS = {
    "square": (lambda t, a: a * a, lambda e: e.x),
    "linear": (lambda t, a: 2 * a, lambda e: e.x),
    "constant": (lambda t, a: t.ones(2), lambda e: e.x),
    "scalar": (lambda t, a: (a**3).sum(), lambda e: e.x),
    "linear scalar": (lambda t, a: a.sum(), lambda e: e.x),
    "constant scalar": (lambda t, a: t.tensor(1.0), lambda e: e.x),
    "one element": (lambda t, a: (a**3).sum().reshape(1, 1), lambda e: e.x),
    "matrix": (lambda t, a: (a @ a.T).tanh(), lambda e: e.m / 9),
    "two in": (lambda t, a, b: (a.sum() * b * b).sum(), lambda e: (e.x, e.y)),
    "two in, two out": (lambda t, a, b: (a.sum() * b, a**2), lambda e: (e.x, e.y)),
    "two in, apart": (lambda t, a, b: (a**3).sum() + (b**3).sum(), lambda e: (e.x, e.y)),
    "unused": (lambda t, a, b: (a * a).sum(), lambda e: (e.x, e.y)),
    "tuple of one": (lambda t, a: (a * a,), lambda e: (e.x,)),
    "captured": (lambda t, a: a * t.ones(3, requires_grad=True), lambda e: e.x),
    "a number": (lambda t, a: 2.0, lambda e: e.x),
    "a list": (lambda t, a: [a], lambda e: e.x),
    "given a number": (lambda t, a: a, lambda e: 2.0),
    "given a list": (lambda t, a, b: a, lambda e: [e.x, e.y]),
    "given integers": (lambda t, a: a * 2, lambda e: e.x.long()),
}
FLAGS = [{"create_graph": c, "strict": s} for c, s in itertools.product((False, True), repeat=2)]


def _partial(e, function):
    return lambda *xs: function(e.t, *xs)


def _needing(e, inputs, wished):
    if not wished:
        return inputs
    return tuple(map(e.needing, inputs)) if isinstance(inputs, tuple) else e.needing(inputs)


for (_what, (_f, _in)), _flags in itertools.product(FUNCTIONS.items(), FLAGS):
    _graph = _flags["create_graph"] and not _what.startswith("given")
    for _vectorize in (False, True):
        for _name in ("jacobian", "hessian"):
            case(
                f"{_name} {_what} {_flags} vectorize={_vectorize}",
                lambda e, n=_name, f=_f, i=_in, k=_flags, v=_vectorize, g=_graph: getattr(
                    e.functional, n
                )(_partial(e, f), _needing(e, i(e), g), vectorize=v, **k),
            )
    for _name in ("hvp", "vhp", "jvp"):
        case(
            f"{_name} {_what} {_flags}",
            lambda e, n=_name, f=_f, i=_in, k=_flags, g=_graph: getattr(e.functional, n)(
                _partial(e, f), _needing(e, i(e), g), i(e), **k
            ),
        )
    for _vector in (None, "ones"):
        case(
            f"vjp {_what} {_flags} {_vector}",
            lambda e, f=_f, i=_in, k=_flags, g=_graph, v=_vector: e.functional.vjp(
                _partial(e, f), _needing(e, i(e), g), v and e.t.ones(3), **k
            ),
        )

for _what, (_f, _in) in FUNCTIONS.items():
    # In forward mode PyTorch's result requires grad for what is captured, and integers are a
    # ValueError, in reverse mode they are a RuntimeError.
    if _what not in ("captured", "given integers"):
        case(
            f"jacobian {_what} forward",
            lambda e, f=_f, i=_in: e.functional.jacobian(
                _partial(e, f), i(e), vectorize=True, strategy="forward-mode"
            ),
        )
for _name, _what in (("jacobian", "strategy"), ("hessian", "outer_jacobian_strategy")):
    for _flags in (
        {_what: "x"},
        {_what: "forward-mode"},
        {_what: "forward-mode", "vectorize": True, "strict": True},
        {_what: "forward-mode", "vectorize": True, "create_graph": True},
    ):
        case(
            f"{_name} {_flags}",
            lambda e, n=_name, k=_flags: getattr(e.functional, n)(lambda a: (a**3).sum(), e.x, **k),
        )
case("jacobian inside grad", lambda e: e.func.grad(
    lambda a: e.functional.jacobian(lambda b: b * b, a).sum())(e.x))  # fmt: skip
case("jacobian inside vmap", lambda e: e.func.vmap(
    lambda a: e.functional.jacobian(lambda b: b * b, a))(e.m))  # fmt: skip


def _second_order(e, name):
    w = e.needing(e.x)
    found = getattr(e.functional, name)(lambda a: (a**4).sum(), w, create_graph=True)
    return found, e.t.autograd.grad(found.sum(), w)


case("the derivative of a Jacobian", lambda e: _second_order(e, "jacobian"))
case("the derivative of a Hessian", lambda e: _second_order(e, "hessian"))


def _batched(e, function, weights, **kwargs):
    w, unused = e.needing(e.x), e.needing(e.y)
    inputs = (w, unused) if kwargs else w
    return e.t.autograd.grad(function(w), inputs, weights, is_grads_batched=True, **kwargs)


case("batched", lambda e: _batched(e, lambda w: w**2, e.t.eye(3)))
case("batched, of two", lambda e: _batched(
    e, lambda w: (w**2, w.sum()), (e.t.eye(3), e.t.ones(3))))  # fmt: skip
case("batched, unused", lambda e: _batched(e, lambda w: w**2, e.t.eye(3), allow_unused=True))
case("batched, unused, error", lambda e: _batched(e, lambda w: w, e.t.eye(3), create_graph=True))
case("batched, no weight", lambda e: _batched(e, lambda w: w.sum(), None))
case("batched, a vector", lambda e: _batched(e, lambda w: w**2, e.x))
case("batched, sizes", lambda e: _batched(e, lambda w: (w, w), (e.t.eye(3), e.m)))

# -- tg.func -----------------------------------------------------------------------------------


def cube(a):
    return (a**3).sum()


case("func.grad", lambda e: e.func.grad(cube)(e.needing(e.x)))
case("func.grad under no_grad", lambda e: e.t.no_grad()(e.func.grad(cube))(e.needing(e.x)))
case("func.grad_and_value", lambda e: e.func.grad_and_value(
    lambda a, b: ((a * b).sum(), {"aux": a}), argnums=(0, 1), has_aux=True)(e.x, e.x))  # fmt: skip
case("func.vjp", lambda e: e.func.vjp(lambda a: (a * a, a), e.x)[1]((e.x, e.x)))
case("func.jvp", lambda e: e.func.jvp(lambda a: (a * a, a), (e.x,), (e.x,), has_aux=True))
case("func.linearize", lambda e: e.func.linearize(lambda a: a * a, e.x)[1](e.x))
case("func.hessian", lambda e: e.func.hessian(
    lambda a, b: (a.sum() * b * b).sum(), argnums=(0, 1))(e.x, e.y))  # fmt: skip
case("func.hessian of several", lambda e: e.func.hessian(lambda a: a**3)(e.x))
for _name in ("jacrev", "jacfwd"):
    case(f"func.{_name}", lambda e, n=_name: getattr(e.func, n)(
        lambda d: {"o": d["a"].sum() * d["b"]})({"a": e.x, "b": e.y}))  # fmt: skip
    case(f"func.{_name} twice", lambda e, n=_name: getattr(e.func, n)(
        getattr(e.func, n)(lambda a: a**3))(e.x))  # fmt: skip
case("func.vmap of grad", lambda e: e.func.vmap(e.func.grad(cube))(e.m))
case(
    "func.vmap of jacobians", lambda e: e.func.vmap(e.func.jacrev(lambda a: a.cumsum(0) ** 2))(e.m)
)
case("func.vmap of jvp", lambda e: e.func.vmap(
    lambda a: e.func.jvp(e.t.sin, (a,), (e.x,)))(e.m))  # fmt: skip
case("func.jvp of vmap", lambda e: e.func.jvp(
    e.func.vmap(lambda a: a.softmax(0)), (e.m,), (e.m,)))  # fmt: skip
case("func.grad of autograd.grad, not recorded", lambda e: e.func.grad(
    lambda a: e.t.autograd.grad(cube(a), a)[0].sum())(e.x))  # fmt: skip

# -- forward_ad --------------------------------------------------------------------------------


def dual(body):
    def inside(e):
        with e.forward_ad.dual_level():
            return body(e)

    return inside


def _reverse(e, of):
    w = e.needing(e.x)
    d = e.forward_ad.make_dual(w, e.t.ones(3))
    value, tangent = e.forward_ad.unpack_dual((d**3).sum())
    if of == "backward":
        (d**3).sum().backward()
        return w.grad
    if of == "tangent":
        return e.t.autograd.grad(tangent, w)
    (found,) = e.t.autograd.grad((d**3).sum(), d if of == "dual" else w)
    return value, e.forward_ad.unpack_dual(found)


for _of in ("tangent", "dual", "leaf", "backward"):
    case(f"forward over reverse: {_of}", dual(lambda e, of=_of: _reverse(e, of)))


def _in_place(e):
    w = e.needing(e.x)
    kept = w * 1
    d = e.forward_ad.make_dual(kept, e.t.ones(3))
    d.mul_(w)
    d[1:].pow_(2)
    value, tangent = e.forward_ad.unpack_dual(d)
    first = e.t.autograd.grad(tangent.sum(), w, retain_graph=True)
    return value, tangent, first, e.t.autograd.grad(value.sum(), w), kept


case("in place on duals", dual(_in_place))


def _into_a_constant(e):
    buffer = e.t.zeros(3)
    buffer[1:] = e.forward_ad.make_dual(e.y, e.y) * 2
    return e.forward_ad.unpack_dual(buffer)


case("in place, a dual into a constant", dual(_into_a_constant))


def _after(e):
    w = e.needing(e.x)
    with e.forward_ad.dual_level():
        d = e.forward_ad.make_dual(w, e.x)
        z = d * d
        view = z[1:]
    z.mul_(2)
    return z, view, e.t.autograd.grad(view.sum(), w), e.forward_ad.unpack_dual(z).primal


case("after the level", _after)
for _view in ("T", "diagonal", "row", "reshape"):
    case(f"a view of a dual: {_view}", dual(lambda e, v=_view: e.forward_ad.unpack_dual({
        "T": lambda d: d.T, "diagonal": lambda d: d.diagonal(), "row": lambda d: d[0],
        "reshape": lambda d: d.reshape(3, 2),
    }[v](e.forward_ad.make_dual(e.m, 10 * e.m)))))  # fmt: skip
case("outside: make_dual", lambda e: e.forward_ad.make_dual(e.x, e.x))
case("outside: exit", lambda e: e.forward_ad.exit_dual_level())
case("nested", dual(dual(lambda e: e.x)))
case("tangent shape", dual(lambda e: e.forward_ad.make_dual(e.x, e.y)))
case("tangent dtype", dual(lambda e: e.forward_ad.make_dual(e.x, e.x.long())))
case("dual of a dual", dual(lambda e: e.forward_ad.make_dual(
    e.forward_ad.make_dual(e.x, e.x), e.x)))  # fmt: skip
case("another level", dual(lambda e: e.forward_ad.make_dual(e.x, e.x, level=1)))
case("detached", dual(lambda e: e.forward_ad.unpack_dual(
    e.forward_ad.make_dual(e.x, e.x).detach()).tangent is None))  # fmt: skip


def called(e, given, *args, **options):
    """A call of a small model, which PyTorch wants to be a Module."""
    nn = torch.nn if e.t is torch else None
    parameter = nn.Parameter if nn else lambda x: x.requires_grad_()

    class Model(nn.Module if nn else object):
        def __init__(self):
            if nn:
                super().__init__()
            self.weight, self.shift = parameter(e.t.ones(3)), parameter(e.t.zeros(3))
            self.tied = self.weight

        def __call__(self, x, scale=1.0):
            return (x * self.weight + self.shift + self.tied) * scale

    return e.func.functional_call(Model(), given, *args, **options)


case("call", lambda e: called(e, {"weight": e.x, "shift": e.y[:1]}, e.x, {"scale": 2.0}))
case("call: tied", lambda e: called(e, {"tied": e.x}, (e.x,)))
case("call: not tied", lambda e: called(e, ({"tied": e.x}, {"shift": e.x}), e.x, tie_weights=False))
case("call: tied to two", lambda e: called(e, {"tied": e.x, "weight": 2 * e.x}, e.x))
case("call: twice", lambda e: called(e, [{"tied": e.x}, {"tied": e.x}], e.x))
case("call: no dict", lambda e: called(e, e.x, e.x))
case("call: no dicts", lambda e: called(e, [e.x], e.x))
case("call: no Tensor", lambda e: called(e, {"weight": 1.0}, e.x))
case("call: strict", lambda e: called(e, {"weight": e.x}, e.x, strict=True))
case("call: unknown and strict", lambda e: called(
    e, {"weight": e.x, "shift": e.x, "tied": e.x, "no": e.x}, e.x, strict=True))  # fmt: skip
case("call: gradient", lambda e: e.func.grad(lambda p: called(e, p, e.x).sum())(
    {"weight": e.x, "shift": e.x}))  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_outcome(name):
    compare(outcome(CASES[name], tg), outcome(CASES[name], torch), "vectorize=True" in name)
