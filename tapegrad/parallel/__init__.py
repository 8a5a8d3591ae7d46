"""Work on several threads: a pool that waits in compiled code, and elementwise loops on it.

The kernels of large arrays, the dispatch of operations and the sweeps may import from here; this
package imports kernels and the table of operations.
"""
