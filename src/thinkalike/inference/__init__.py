"""Statistics on results: nulls, resampling, intervals, tests. No prose, no files."""
