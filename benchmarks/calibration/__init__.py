"""Does every p-value and range hold what it says? Simulated worlds, and how often a claim was true in them."""
