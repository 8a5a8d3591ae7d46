"""Other libraries' names and meanings over tapegrad: `tapegrad.compat.autograd`."""
