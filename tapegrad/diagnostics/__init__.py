"""What ``python -m tapegrad`` says: versions, machine and cache, and whether derivatives are right.

`tapegrad.__main__` imports this package.
"""
