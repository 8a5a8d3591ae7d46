"""From a Python function to a graph: it runs once on traced Tensors.

`trace` builds the graph, `traced` are the Tensors that stand for its records, `traced_storage`
follows memory and views, `escape_check` refuses changes of what is not the trace's,
`trace_redirect` serves Tensors of a trace that another one took in; `backward` sweeps a trace in
reverse and appends what that computes; `control_flow` and `control_vjp` trace loops and branches
and their derivatives, `custom_functions` a user's `Function`.

`passes` and `front` import from here; this package imports `ir` and the layers below the compiler.
"""
