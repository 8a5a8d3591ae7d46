"""The functions and methods of Tensors, under PyTorch's names."""
