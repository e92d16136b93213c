"""Pairs of items: which of them, how far apart, in what order. One engine, one tie rule, one cap.

`pairset` says which pairs (all, or a seeded sample without replacement past `MAX_PAIRS`), `distances` how far
apart their items are, `ranks` in what order, with ties told by what rounding can have moved.
"""
