"""What the docs claim about speed and memory, measured: `python -m benchmarks [NAME …]`."""
