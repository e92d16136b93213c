"use strict";
// Why two layers are alike, worked out when it is asked for; the rules are those of `comparison/explaining.py`.
const Explaining = (() => {
  // What each feature gives to the weighted τ of two rows of importances (Vigna 2015; `inference/weighted_tau.py`).
  function contributions(x, y) {
    const [first, second] = [signs(x), signs(y)];
    const [one, other] = [byRanking(first, second), byRanking(second, first)];
    return one.map((part, k) => (part + other[k]) / 2);
  }

  const signs = (values) => values.map((a) => values.map((b) => Math.sign((a ?? NaN) - (b ?? NaN))));

  function byRanking(ranking, other) {
    const weight = ranking.map((row, k) => meanWeight(row, other[k]));
    let [ours, theirs] = [0, 0];
    const parts = ranking.map((row, k) => row.reduce((sum, sign, l) => {
      const both = weight[k] + weight[l];
      ours += both * sign ** 2;
      theirs += both * other[k][l] ** 2;
      return sum + both * sign * other[k][l];
    }, 0));
    return parts.map((part) => part / Math.sqrt(ours * theirs));
  }

  // Of a feature with r above it that shares its place with t − 1 others: over ranks r … r + t − 1.
  function meanWeight(row, tieBreaker) {
    const above = row.filter((sign, l) => sign < 0 || (sign === 0 && tieBreaker[l] < 0)).length;
    const sharing = row.filter((sign, l) => sign === 0 && tieBreaker[l] === 0).length;
    let sum = 0;
    for (let rank = above; rank < above + sharing; rank += 1) sum += 1 / (rank + 1);
    return sum / sharing;
  }

  // Of the importance of a layer; negative and missing ones count as 0.
  function shares(importance) {
    const positive = importance.map((value) => Math.max(0, value ?? 0));
    const total = positive.reduce((sum, value) => sum + value, 0);
    return positive.map((value) => (total > 0 ? value / total : 0));
  }

  function listed(names) {
    return names.length === 1 ? names[0] : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  }

  // Where two layers agree and differ: features that matter in both, or in one at least twice as much as in the other.
  function sentence(a, b, features, first, second, matters) {
    const [x, y] = [shares(first), shares(second)];
    const order = features.map((_, k) => k).sort((k, l) => x[l] + y[l] - (x[k] + y[k]));
    const of = (kept) => order.filter(kept).map((k) => features[k]);
    const shared = (k) => Math.min(x[k], y[k]) >= matters;
    const parts = [
      ["both", "are", of(shared)],
      [`only ${a}`, "is", of((k) => !shared(k) && x[k] >= matters && x[k] >= 2 * y[k])],
      [`only ${b}`, "is", of((k) => !shared(k) && y[k] >= matters && y[k] >= 2 * x[k])],
    ].filter(([, , names]) => names.length);
    if (!parts.length) return "No feature organises either of them.";
    const said = parts.map(([who, verb, names], k) => `${who} ${k ? "" : `${verb} organised `}by ${listed(names)}`).join("; ");
    return `${said[0].toUpperCase()}${said.slice(1)}.`;
  }

  return { contributions, shares, sentence };
})();
