"""Mamba on a CPU: the scan and the convolution as fused kernels."""
