"""A comparison as one HTML page: collect → plain summary → template."""

from thinkalike.report.page import write_report

__all__ = ["write_report"]
