"""HIPS autograd's names and meanings: its users move by changing what they import.

=============================  ==================================================
`import autograd.numpy as np`  `import tapegrad.compat.autograd.numpy as np`
`from autograd import grad`    `from tapegrad.compat.autograd import grad`
=============================  ==================================================

`extend`, `builtins`, `misc`, `test_util` and `scipy` are there too.  In programs that are written
anew use `tapegrad.grad` and the others, over NumPy itself.

>>> import tapegrad.compat.autograd.numpy as np
>>> from tapegrad.compat.autograd import elementwise_grad, grad
>>> grad(lambda a, x: np.sum(a * np.tanh(x)), argnum=1)(2.0, np.array([0.0, 1.0]))
array([2.        , 0.83994868])
>>> elementwise_grad(elementwise_grad(np.sin))(np.array([0.0, 1.0]))
array([-0.        , -0.84147098])
"""

from tapegrad.compat.autograd.builtins import dict, isinstance, list, tuple, type
from tapegrad.compat.autograd.extend import defjvp, defvjp, primitive
from tapegrad.compat.autograd.operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)

__all__ = [
    "checkpoint", "defjvp", "defvjp", "deriv", "dict", "elementwise_grad", "grad", "grad_and_aux",
    "grad_named", "hessian", "hessian_tensor_product", "hessian_vector_product", "isinstance",
    "jacobian", "list", "make_ggnvp", "make_hvp", "make_jvp", "make_vjp", "primitive",
    "tensor_jacobian_product", "tuple", "type", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip
