"""Do p-values and ranges hold what they say? Simulated worlds, and how often a claim was true in them."""
