"""A comparison as one HTML page: collect → plain summary → template."""

from thinkalike.report.methods_text import methods_text
from thinkalike.report.page import write_report

__all__ = ["methods_text", "write_report"]
