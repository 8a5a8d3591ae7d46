"""Nestings of transforms, written once: `T` is tapegrad or jax, `xp` is np or jax.numpy."""

import numpy as np

X = np.array([0.3, 0.7, -1.1])
A = np.arange(12.0).reshape(3, 4) / 10 - 0.4
TWO = np.stack([X, X + 1])
EYE = np.eye(3)

F = lambda xp: lambda x: xp.sum(xp.sin(x) * x**2) + xp.sum(x) * x[0] * x[1]
G = lambda xp: lambda y: xp.sin(y) * xp.exp(y[0] * y) * y[1] / (1 + y**2)

CASES = {
    "vmapgrad": lambda T, xp: T.vmap(T.grad(F(xp)))(A),
    "gradvmap": lambda T, xp: T.grad(lambda X: xp.sum(T.vmap(F(xp))(X)))(A),
    "jfjr": lambda T, xp: T.jacfwd(T.jacrev(F(xp)))(X),
    "jrjf": lambda T, xp: T.jacrev(T.jacfwd(F(xp)))(X),
    "jrjr": lambda T, xp: T.jacrev(T.jacrev(F(xp)))(X),
    "jfjf": lambda T, xp: T.jacfwd(T.jacfwd(F(xp)))(X),
    "hess": lambda T, xp: T.hessian(F(xp))(X),
    "hessvmap": lambda T, xp: T.hessian(lambda X: xp.sum(T.vmap(F(xp))(X) ** 2))(A),
    "vmaphess": lambda T, xp: T.vmap(T.hessian(F(xp)))(A),
    "vmaphess1": lambda T, xp: T.vmap(T.hessian(F(xp)), in_axes=1, out_axes=-1)(A),
    "vmapjf": lambda T, xp: T.vmap(T.jacfwd(lambda x: xp.sin(x) * x[0]))(A),
    "vmapjr": lambda T, xp: T.vmap(T.jacrev(lambda x: xp.sin(x) * x[0]))(A),
    "jfvmap": lambda T, xp: T.jacfwd(lambda X: T.vmap(lambda x: xp.sin(x) * x[0])(X))(A),
    "jrvmap": lambda T, xp: T.jacrev(lambda X: T.vmap(lambda x: xp.sin(x) * x[0])(X))(A),
    "vv": lambda T, xp: T.vmap(
        T.vmap(lambda x, y: x * y + xp.sin(x), in_axes=(0, None)), in_axes=(None, 0), out_axes=1
    )(X, A[0]),
    "vv2": lambda T, xp: T.vmap(
        lambda r: T.vmap(lambda c: xp.sum(r) * xp.sum(c), in_axes=1)(A * 1.0)
    )(A),
    "vv3": lambda T, xp: T.vmap(lambda r: T.vmap(lambda c: xp.sum(r) * c + r[0])(r))(A),
    "gradvmapclosure": lambda T, xp: T.grad(
        lambda w: xp.sum(T.vmap(lambda x: xp.sin(w @ x) * x[0])(A))
    )(np.ones(4)),
    "gradvmapgradclosure": lambda T, xp: T.grad(
        lambda w: xp.sum(T.vmap(T.grad(lambda x: xp.sin(w @ x) * x[0]))(A))
    )(np.ones(4)),
    "jvpvmapgrad": lambda T, xp: T.jvp(
        lambda w: T.vmap(T.grad(lambda x: xp.sin(w @ x) * x[0]))(A),
        (np.ones(4),),
        (np.arange(4.0),),
    ),
    "jvpclosure": lambda T, xp: T.jvp(
        lambda w: T.jvp(lambda x: w * x * x, (3.0,), (1.0,))[1] * w, (2.0,), (1.0,)
    ),
    "lininside": lambda T, xp: T.grad(lambda x: T.linearize(lambda y: xp.sin(y * x), x)[1](x**2))(
        0.6
    ),
    "lininsidejvp": lambda T, xp: T.jvp(
        lambda x: T.linearize(lambda y: xp.sin(y * x), x)[1](x**2), (0.6,), (1.0,)
    ),
    "lininvmap": lambda T, xp: T.vmap(lambda x: T.linearize(lambda y: xp.sin(y * x), x)[1](x**2))(
        X
    ),
    "lingrad": lambda T, xp: T.linearize(T.grad(F(xp)), X)[1](np.ones(3)),
    "gradlintangent": lambda T, xp: T.grad(
        lambda t: T.linearize(lambda y: xp.sin(y) * y, 0.6)[1](t) ** 2
    )(0.4),
    "gradoutsidelin": lambda T, xp: (lambda l: T.grad(lambda t: l(t) ** 2)(0.4))(
        T.linearize(lambda y: xp.sin(y) * y, 0.6)[1]
    ),
    "jvpoutsidelin": lambda T, xp: (lambda l: T.jvp(lambda t: l(t) ** 2, (0.4,), (1.0,)))(
        T.linearize(lambda y: xp.sin(y) * y, 0.6)[1]
    ),
    "vmapoutsidelin": lambda T, xp: (lambda l: T.vmap(l)(EYE))(
        T.linearize(lambda y: xp.sin(y) * y[0], X)[1]
    ),
    "vmapvjpfun": lambda T, xp: (lambda l: T.vmap(l)(EYE))(T.vjp(lambda y: xp.sin(y) * y[0], X)[1]),
    "gradvjpfun": lambda T, xp: (lambda l: T.grad(lambda w: xp.sum(l(w)[0] ** 2))(np.ones(3)))(
        T.vjp(lambda y: xp.sin(y) * y[0], X)[1]
    ),
    "jvpvjpfun": lambda T, xp: (
        lambda l: T.jvp(lambda w: xp.sum(l(w)[0] ** 2), (np.ones(3),), (np.arange(3.0),))
    )(T.vjp(lambda y: xp.sin(y) * y[0], X)[1]),
    "vjpinsidegrad": lambda T, xp: T.grad(
        lambda x: xp.sum(T.vjp(lambda y: xp.sin(y) * x, x)[1](x)[0])
    )(X),
    "vjpinsidejvp": lambda T, xp: T.jvp(
        lambda x: xp.sum(T.vjp(lambda y: xp.sin(y) * x, x)[1](x)[0]), (X,), (np.ones(3),)
    ),
    "vjpinsidevmap": lambda T, xp: T.vmap(lambda x: T.vjp(lambda y: xp.sin(y) * x, x)[1](x)[0])(A),
    "vjpinsidevmap2": lambda T, xp: T.vmap(
        lambda x: T.vjp(lambda y: xp.sin(y) * 2, np.ones(4))[1](x)[0]
    )(A),
    "vjpinsidevmap3": lambda T, xp: T.vmap(
        lambda x: T.vjp(lambda y: xp.sin(y) * x, np.ones(4))[1](np.ones(4))[0]
    )(A),
    "gradconstinvmap": lambda T, xp: T.vmap(lambda x: T.grad(lambda y: xp.sum(y**2))(np.ones(4)))(
        A
    ),
    "gradconstinvmap2": lambda T, xp: T.vmap(
        lambda x: T.grad(lambda y: xp.sum(y**2 * x))(np.ones(4))
    )(A),
    "valconstinvmap": lambda T, xp: T.vmap(
        lambda x: T.value_and_grad(lambda y: xp.sum(y**2))(np.ones(4))
    )(A),
    "jacconstinvmap": lambda T, xp: T.vmap(lambda x: T.jacfwd(lambda y: y**2)(np.ones(4)))(A),
    "jac2constinvmap": lambda T, xp: T.vmap(lambda x: T.jacrev(lambda y: y**2)(np.ones(4)))(A),
    "jvpconstinvmap": lambda T, xp: T.vmap(lambda x: T.jvp(lambda y: y**2, (np.ones(4),), (x,)))(A),
    "jvpconstinvmap2": lambda T, xp: T.vmap(lambda x: T.jvp(lambda y: y**2, (x,), (np.ones(4),)))(
        A
    ),
    "nogradconst": lambda T, xp: T.grad(lambda x: T.grad(lambda y: x * 1.0)(2.0) * x)(3.0),
    "nogradconst2": lambda T, xp: T.grad(lambda x: T.value_and_grad(lambda y: x * 1.0)(2.0)[0] * x)(
        3.0
    ),
    "nogradconst3": lambda T, xp: T.jvp(
        lambda x: T.value_and_grad(lambda y: x * 1.0)(2.0)[0] * x, (3.0,), (1.0,)
    ),
    "jvpoutconst": lambda T, xp: T.grad(lambda x: T.jvp(lambda y: x * 1.0, (2.0,), (1.0,))[0] * x)(
        3.0
    ),
    "jvptanouter": lambda T, xp: T.grad(lambda x: T.jvp(lambda y: y**2, (2.0,), (x,))[1] * x)(3.0),
    "jvptanouterjvp": lambda T, xp: T.jvp(
        lambda x: T.jvp(lambda y: y**2, (2.0,), (x,))[1] * x, (3.0,), (1.0,)
    ),
    "outnone": lambda T, xp: T.vmap(
        lambda x, y: (x * y, y.sum()), in_axes=(0, None), out_axes=(0, 0)
    )(A, A[0]),
    "vmapdict": lambda T, xp: T.vmap(
        lambda d, b: {"s": d["a"] * b, "t": (d["c"] @ d["a"],)},
        in_axes=({"a": 0, "c": None}, None),
        out_axes={"s": 1, "t": 0},
    )({"a": A, "c": np.ones(4)}, 2.0),
    "vmapneg": lambda T, xp: T.vmap(lambda x: xp.cumsum(x), in_axes=-1, out_axes=-1)(A),
    "vmapscalarout": lambda T, xp: T.vmap(lambda x: 1.0)(A),
    "vmapindex": lambda T, xp: T.vmap(lambda x, i: x[i], in_axes=(0, 0))(A, np.array([0, 3, 1])),
    "gradvmapindex": lambda T, xp: T.grad(
        lambda M: xp.sum(T.vmap(lambda x, i: x[i] ** 2, in_axes=(0, 0))(M, np.array([0, 3, 1])))
    )(A),
    "argn": lambda T, xp: T.grad(lambda a, b, c: a * b**c, argnums=(0, 2))(2.0, 3.0, 4.0),
    "argnneg": lambda T, xp: T.grad(lambda a, b, c: a * b**c, argnums=-1)(2.0, 3.0, 4.0),
    "argnlist": lambda T, xp: T.grad(lambda a, b, c: a * b**c, argnums=(1,))(2.0, 3.0, 4.0),
    "hessargn": lambda T, xp: T.hessian(lambda a, b: xp.sum(a * xp.sin(b)) ** 2, argnums=(0, 1))(
        X, X + 1
    ),
    "hessdict": lambda T, xp: T.hessian(lambda p: xp.sum(p["a"] * p["b"] ** 2))({"a": X, "b": 2.0}),
    "hessaux": lambda T, xp: T.hessian(lambda a: (xp.sum(a**3), a[0]), has_aux=True)(X),
    "jfaux": lambda T, xp: T.jacfwd(lambda a: (a**3, a[0]), has_aux=True)(X),
    "jraux": lambda T, xp: T.jacrev(lambda a: (a**3, a[0]), has_aux=True)(X),
    "vaux": lambda T, xp: T.value_and_grad(lambda a: (xp.sum(a**3), {"k": a[0]}), has_aux=True)(X),
    "gradauxg": lambda T, xp: T.grad(
        lambda x: (lambda r: r[0] * r[1])(T.grad(lambda a: (a**3 * x, a * x), has_aux=True)(x))
    )(2.0),
    "jvpauxg": lambda T, xp: T.jvp(
        lambda x: (lambda r: r[0] * r[1])(T.grad(lambda a: (a**3 * x, a * x), has_aux=True)(x)),
        (2.0,),
        (1.0,),
    ),
    "v1": lambda T, xp: T.vmap(lambda x: T.vmap(T.vjp(G(xp), x)[1])(EYE))(TWO),
    "v2": lambda T, xp: T.jvp(lambda x: T.vmap(T.vjp(G(xp), x)[1])(EYE), (X,), (X * 2,)),
    "v3": lambda T, xp: T.vmap(T.jacrev(G(xp)))(TWO),
    "v4": lambda T, xp: T.jvp(T.jacrev(G(xp)), (X,), (X * 2,)),
    "v5": lambda T, xp: T.vmap(lambda x: T.jvp(T.vjp(G(xp), x)[1], (x * 2,), (x * 3,)))(TWO),
    "v6": lambda T, xp: T.jvp(
        lambda x: T.jvp(T.vjp(G(xp), x)[1], (x * 2,), (x * 3,)), (X,), (X + 1,)
    ),
    "v7": lambda T, xp: T.vmap(lambda x: T.jacrev(T.jacrev(G(xp)))(x))(TWO),
    "v8": lambda T, xp: T.jacfwd(T.jacrev(T.jacrev(G(xp))))(X),
    "v9": lambda T, xp: T.jacrev(T.jacfwd(T.jacrev(G(xp))))(X),
    "v10": lambda T, xp: T.jacrev(T.vmap(T.jacrev(G(xp))))(TWO),
    "v11": lambda T, xp: T.jacfwd(T.vmap(T.jacrev(G(xp))))(TWO),
    "v12": lambda T, xp: T.vmap(T.vmap(T.jacrev(G(xp))))(
        np.stack([X, X + 1, X - 1, X * 3]).reshape(2, 2, 3)
    ),
    "v13": lambda T, xp: T.vmap(lambda x: T.vmap(T.linearize(G(xp), x)[1])(EYE))(TWO),
    "v14": lambda T, xp: T.vmap(
        lambda x: T.vmap(lambda e: T.jvp(T.linearize(G(xp), x)[1], (e,), (e * x,)))(EYE)
    )(TWO),
    "v15": lambda T, xp: T.jvp(lambda x: T.vmap(T.linearize(G(xp), x)[1])(EYE), (X,), (X * 2,)),
    "v16": lambda T, xp: T.grad(lambda x: xp.sum(T.vmap(T.vjp(G(xp), x)[1])(EYE)[0] ** 2))(X),
    "v17": lambda T, xp: T.vmap(lambda e: T.jvp(lambda x: T.vjp(G(xp), x)[1](e)[0], (X,), (e,)))(
        EYE
    ),
    "v18": lambda T, xp: T.vmap(
        lambda x: T.vmap(lambda w: T.grad(lambda u: xp.sum(T.vjp(G(xp), x)[1](u)[0] ** 2))(w))(EYE)
    )(TWO),
    "v19": lambda T, xp: T.jvp(
        lambda x: T.vmap(T.jacrev(lambda y: G(xp)(y * x)))(TWO), (X,), (X * 2,)
    ),
    "v20": lambda T, xp: T.vmap(
        lambda x: (lambda pb: T.vmap(lambda w: T.vmap(lambda q: pb(w * q)[0])(EYE))(EYE + 1))(
            T.vjp(G(xp), x)[1]
        )
    )(TWO),
    "v21": lambda T, xp: T.vmap(
        lambda x: (lambda pb: T.jvp(lambda w: T.vmap(lambda q: pb(w * q)[0])(EYE), (X,), (x,)))(
            T.vjp(G(xp), x)[1]
        )
    )(TWO),
    "v22": lambda T, xp: T.jvp(
        lambda x: (lambda pb: T.jvp(lambda w: T.vmap(lambda q: pb(w * q)[0])(EYE), (X,), (x,)))(
            T.vjp(G(xp), x)[1]
        ),
        (X,),
        (X + 1,),
    ),
    "v23": lambda T, xp: T.vmap(T.hessian(lambda x: xp.sum(G(xp)(x))))(TWO),
    "v24": lambda T, xp: T.vmap(T.jacrev(T.hessian(lambda x: xp.sum(G(xp)(x)))))(TWO),
    "hess3": lambda T, xp: T.jacfwd(T.hessian(F(xp)))(X),
    "hess3r": lambda T, xp: T.jacrev(T.hessian(F(xp)))(X),
    "gradofhess": lambda T, xp: T.grad(lambda x: xp.sum(T.hessian(F(xp))(x) ** 2))(X),
    "jfjfprod": lambda T, xp: T.jacfwd(T.jacfwd(lambda x: xp.prod(x) * x))(X),
    "jrjfprod": lambda T, xp: T.jacrev(T.jacfwd(lambda x: xp.prod(x)))(X),
}
