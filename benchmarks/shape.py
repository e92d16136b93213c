"""The size and shape of the code, then and now: `python -m benchmarks.shape [COMMIT]`.

The table of docs/architecture.md: COMMIT (by default the one before the packages were cut anew) beside the
working tree.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from statistics import median, quantiles

HERE = Path(__file__).parents[1] / "src"
BEFORE = "fe41898"
OUTSIDE = ("recipes", "training")  # not counted in "the package itself"

CAPABILITIES = {
    "certainty: ranges, nulls, ceilings, other analyses": (
        "charts/specifications", "comparison/analyses", "comparison/analysing", "comparison/concluding",
        "comparison/diagnostics", "comparison/replicates", "comparison/rereading",
        "comparison/robustness", "comparison/system_cautions", "encoding/resampled_sums",
        "encoding/resampling", "encoding/strengths", "inference/agreement", "inference/block_tests",
        "inference/blocks", "inference/clusters", "inference/conclusions", "inference/geometry_tests",
        "inference/groups", "inference/halves", "inference/left_out", "inference/null_calibration",
        "inference/over_models", "inference/ranges", "inference/sentences", "inference/separation",
        "measures/pair_forms",
    ),
    "many models: fingerprints, atlas, why, diff, trace": (
        "charts/population_charts", "cli/atlas", "cli/diff", "cli/fingerprint", "inference/redundancy",
        "populations/", "report/population_answer", "report/population_page",
    ),
    "beyond one machine: addresses, tasks, plans": (
        "addresses", "dispatch", "leases", "parallel", "activations/expiry", "comparison/costs",
        "comparison/expiring", "comparison/planning", "comparison/run_plan", "comparison/tasks",
        "comparison/text_planning", "measures/large_cka", "stitching/stitch_tasks",
    ),
    "inside the layer: heads, experts, latents, states": (
        "activations/autoencoders", "activations/parts", "activations/sparse_latents", "cli/autoencoder",
        "comparison/part_answers", "comparison/probe_table", "measures/probes", "systems/carried_states",
        "systems/chats", "systems/continuations", "systems/windows",
    ),
    "brains, subjects, quantised weights, further measures": (
        "activations/brain_files", "activations/distance_sources", "charts/subject_charts", "cli/group",
        "cli/outputs", "comparison/group", "comparison/group_ceilings", "comparison/group_features",
        "comparison/group_profile", "comparison/group_scoring", "encoding/rank_fit",
        "inference/over_subjects", "measures/distance_correlation", "measures/dynamics",
        "measures/outputs", "measures/spread", "measures/topology", "pairs/preprocessing", "pairs/runs",
        "streaming/output_distances", "systems/quantised",
    ),
    "what people see: a page to explore, methods, logs, resuming": (
        "charts/group_charts", "charts/notebook", "cli/config", "cli/methods", "cli/recording",
        "cli/resume", "cli/serve", "report/methods", "report/methods_text", "serving/",
    ),
    "solid ground: files, owners, failures, finished runs, results kept": (
        "checkpoint", "files", "foreign_json", "machine", "options", "ownership", "registry", "saving",
        "activations/seals", "charts/range_charts", "cli/boundary", "cli/failures", "cli/finished",
        "cli/interrupts", "cli/once", "cli/record",
    ),
}  # fmt: skip
"""What came after the commit before: modules, or packages that end with a slash, that serve it alone"""

# Which modules' functions run while two systems of arrays, or two bundled models, are compared; what runs
# only because a module is imported (class bodies, tables) does not count.
WALK = """
import sys, threading, warnings
import numpy as np
import thinkalike as ta
warnings.simplefilter("ignore")
stimuli = ta.Stimuli.from_grammar(30, 0)
rng = np.random.default_rng(0)
arrays = {name: {k: rng.normal(size=(len(stimuli), 8)) for k in range(2)} for name in "ab"}
systems = arrays if sys.argv[1] == "arrays" else ["nano-bert", "nano-gpt2"]
ran = set()
def ours(frame):
    return frame.f_globals.get("__name__", "").startswith("thinkalike")
def importing(frame):
    while frame is not None and not (frame.f_code.co_name == "<module>" and ours(frame)):
        frame = frame.f_back
    return frame is not None
def note(frame, event, argument):
    if event == "call" and ours(frame) and frame.f_globals["__name__"] not in ran and not importing(frame):
        ran.add(frame.f_globals["__name__"])
if sys.argv[2]:
    threading.setprofile(note)
    sys.setprofile(note)
ta.compare(systems, stimuli)
sys.setprofile(None)
print(*sorted(ran))
"""


def modules(src: Path) -> list[Path]:
    """Every module of the installed package."""
    return sorted((src / "thinkalike").rglob("*.py"))


def docstrings(tree: ast.AST) -> Iterator[ast.Expr]:
    """The docstring statements of a module, its classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                yield first


def lines_of(path: Path) -> tuple[int, int, int]:
    """Lines, lines of code, lines of docstrings of a module; comments and blanks count only as lines."""
    text = path.read_text(encoding="utf-8")
    documented = {
        number
        for statement in docstrings(ast.parse(text))
        for number in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    }
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    written: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in empty | {tokenize.ENCODING, tokenize.ENDMARKER}:
                written.update(range(token.start[0], token.end[0] + 1))
    return text.count("\n"), len(written - documented), len(documented)


def function_lengths(path: Path) -> list[tuple[int, int]]:
    """How many lines each function has, and how many of them its body has, docstring aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        ((node.end_lineno or node.lineno) - node.lineno + 1, _body(node))
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def _body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    rest = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (rest[-1].end_lineno or rest[-1].lineno) - rest[0].lineno + 1 if rest else 0


def tests_to_code(package: str) -> str:
    """Lines of a package's own tests, over those of the package."""
    tests, code = (
        sum(lines_of(path)[0] for path in (root / package).rglob("*.py"))
        for root in (HERE.parent / "tests", HERE / "thinkalike")
    )
    return f"{tests / code:.2f}"


class Names:
    """What the names in the annotations of a package stand for, through imports and aliases.

    An alias whose definition has `Any` in it, or another such alias, stands for `Any`: hiding it behind a
    name does not give it a type.
    """

    def __init__(self, paths: list[Path], src: Path) -> None:
        self.trees = {
            ".".join(p.relative_to(src).with_suffix("").parts): ast.parse(p.read_text(encoding="utf-8"))
            for p in paths
        }
        self.imported = {
            (module, alias.asname or alias.name): (node.module or "", alias.name)
            for module, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        self.aliases = {
            (module, name): value
            for module, tree in self.trees.items()
            for name, value in map(alias_of, tree.body)
            if value is not None
        }
        self.unknown = {("typing", "Any")}
        while found := {k for k, v in self.aliases.items() if self.count(k[0], v)} - self.unknown:
            self.unknown |= found

    def count(self, module: str, node: ast.AST) -> int:
        """How many names below a node stand for `Any`."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        return sum(self.imported.get((module, n), (module, n)) in self.unknown for n in names)

    def unknown_types(self) -> int:
        """Over all annotations, casts and aliases."""
        written = sum(self.count(m, a) for m, tree in self.trees.items() for a in annotations(tree))
        return written + sum(self.count(module, value) for (module, _), value in self.aliases.items())


def alias_of(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """The name and the definition of a type alias; definition None: not an alias."""
    if isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
        return ast.unparse(node.target), node.value
    if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Subscript, ast.BinOp, ast.Name)):
        return ast.unparse(node.targets[0]), node.value
    return "", None


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    """Every annotation of a module, and the type of every cast; those in quotes are read as well."""
    for node in ast.walk(tree):
        found: ast.expr | None = None
        if isinstance(node, (ast.arg, ast.AnnAssign)):
            found = node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found = node.returns
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            found = node.args[0]
        if isinstance(found, ast.Constant) and isinstance(found.value, str):
            found = ast.parse(found.value, mode="eval").body
        if found is not None:
            yield found


def modules_that_run(src: Path, what: str, compiled: Path) -> list[str]:
    """Whose functions run in one `ta.compare` of arrays or of models, with nothing kept before.

    A first time without counting compiles the loops: Numba, watched call by call, would take half an hour.
    """
    for counted in ("", "counted"):
        with tempfile.TemporaryDirectory() as cache:
            places = {"THINKALIKE_CACHE": cache, "XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": str(compiled)}
            ran = subprocess.run(
                [sys.executable, "-c", WALK, what, counted],
                env={**os.environ, "PYTHONPATH": str(src), **places},
                capture_output=True,
                text=True,
                check=True,
            )
    return [name.removeprefix("thinkalike.") for name in ran.stdout.splitlines()[-1].split()]


def running_in(src: Path, compiled: Path) -> dict[str, list[str]]:
    """What is compared → the modules that run; compiled loops are kept in a folder."""
    return {what: modules_that_run(src, what, compiled) for what in ("arrays", "models")}


def by_package(names: Sequence[str]) -> dict[str, list[str]]:
    """Package → its modules; single modules are the ground."""
    found: dict[str, list[str]] = {}
    for name in names:
        package, dot, module = name.partition(".")
        found.setdefault(package if dot else "the ground", []).append(module or name)
    return found


def shape(src: Path, running: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What → how much, in the order of the table; `running`: what is compared → the modules that run."""
    paths = modules(src)
    counted = {path: lines_of(path) for path in paths}
    itself = [p for p in paths if p.relative_to(src / "thinkalike").parts[0] not in OUTSIDE]
    names = Counter(p.name for p in paths if not p.name.startswith("__"))
    repeated = [f"{name.removesuffix('.py')} ×{n}" for name, n in sorted(names.items()) if n > 1]
    lengths, bodies = (
        sorted(both) for both in zip(*(pair for p in paths for pair in function_lengths(p)), strict=True)
    )
    code = sum(c for _, c, _ in counted.values())
    documented = sum(d for _, _, d in counted.values())
    sizes = [lines for lines, _, _ in counted.values()]
    return {
        "lines": f"{sum(sizes):,}",
        "lines of code (without docstrings, comments, blanks)": f"{code:,}",
        "the same without recipes and training": f"{sum(counted[p][1] for p in itself):,}",
        "lines of docstrings, as a share of the code": f"{documented:,} ({documented / code:.0%})",
        "modules": f"{len(paths)}",
        "lines of a module, median / longest": f"{median(sizes):.0f} / {max(sizes)}",
        "file names that occur more than once": f"{len(repeated)}: {', '.join(repeated)}",
        "lines of a function, median / 90 % / longest": _three(lengths),
        "the same of its body, signature and docstring aside": _three(bodies),
        "types not known: `Any`, and names that stand for it": f"{Names(paths, src).unknown_types()}",
        f"modules that run in `ta.compare`, {' / '.join(running)}": (
            " / ".join(f"{len(names)}" for names in running.values())
        ),
    }


def _three(lengths: list[int]) -> str:
    return f"{median(lengths):.0f} / {quantiles(lengths, n=10)[8]:.0f} / {lengths[-1]}"


def by_capability(src: Path) -> dict[str, int]:
    """Lines of code of what came later, each by itself, and of all the rest; without recipes and training."""
    left = {
        path.relative_to(src / "thinkalike").with_suffix("").as_posix(): lines_of(path)[1]
        for path in modules(src)
        if path.relative_to(src / "thinkalike").parts[0] not in OUTSIDE
    }
    found = {}
    for what, places in CAPABILITIES.items():
        own = [
            name
            for name in left
            if name in places or any(p[-1] == "/" and name.startswith(p) for p in places)
        ]
        found[what] = sum(left.pop(name) for name in own)
    return {"what there was before, as it is now": sum(left.values()), **found}


def checked_out(commit: str, folder: Path) -> Path:
    """The `src` of a commit, unpacked into a folder."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=HERE.parent, capture_output=True, check=True
    )
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def main() -> None:
    commit = sys.argv[1] if len(sys.argv) > 1 else BEFORE
    with tempfile.TemporaryDirectory() as folder:
        before = checked_out(commit, Path(folder))
        then = shape(before, running_in(before, Path(folder, "then")))
        running = running_in(HERE, Path(folder, "now"))
        now = shape(HERE, running)
    print(f"| | {commit} | now |\n|---|---|---|")
    for what in now:
        print(f"| {what} | {then[what]} | {now[what]} |")
    print("\nLines of tests ÷ lines of the package:", end=" ")
    print(", ".join(f"{package} {tests_to_code(package)}" for package in ("stitching", "recipes")))
    print("\n| lines of code | |\n|---|---|")
    for what, lines in by_capability(HERE).items():
        print(f"| {what} | {lines:,} |")
    print("\n| what runs | modules |\n|---|---|")
    for package, names in by_package(running["models"]).items():
        print(f"| {package} ({len(names)}) | {', '.join(f'`{name}`' for name in names)} |")


if __name__ == "__main__":
    main()
