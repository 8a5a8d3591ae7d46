"""Transforms: functions of functions, over plain arrays and pytrees.

`reverse`, `forward`, `jacobians`, `hessian_products` and `mapping` are `grad` and its kin;
`control` and `looping` are loops and branches, `custom` a user's own derivatives, `checkpointing`
rematerialisation; `call_arguments` and `pytree` take arguments apart and put results together.

`optimize`, `compat`, `func` and `compiler` import from here; this package imports `lift` and
`autograd`.
"""
