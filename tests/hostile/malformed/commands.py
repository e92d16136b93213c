"""Commands on many models, on subjects, and on runs: what they are given is not what they take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.hostile.malformed.cases import N_ITEMS, Malformed, both, good_csv, sentences, vectors
from tests.hostile.malformed.options import lines, text_files


def command_cases() -> Iterator[Malformed]:
    make = both(good_csv, sentences, text_files, _files)
    for start, bad in STARTS.items():
        for words in lines(bad):
            arguments = (*start.split(), *words)
            yield Malformed(f"{' '.join(arguments)[:70]}", arguments, make)
    for words in lines(SOUND):
        yield Malformed(f"{' '.join(words)[:70]}", words, make, "accepted")


def _files(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name, layers in (("a", (5, 6)), ("b", (7, 8)), ("one", (9,))):
        np.savez(folder / f"{name}.npz", **{str(k): vectors(seed) for k, seed in enumerate(layers)})
    people = rng.normal(size=(5, N_ITEMS, 6))
    np.save(folder / "people.npy", people)
    np.save(folder / "person.npy", people[:1])
    np.save(folder / "short.npy", people[:, :-1])
    np.save(folder / "flat.npy", people[0, 0])
    people[0] = np.nan
    np.save(folder / "gaps.npy", people)
    tables = {
        "nothing": "",
        "twice": "model,colour\nnano-bert,red\nnano-bert,blue\n",
        "strangers": "model,colour\nzzz,red\nyyy,blue\n",
        "header": "model,colour\n",
        "names": "model\nnano-bert\n",
        "infinite": "model,size\nnano-bert,inf\nnano-gpt2,3\n",
        "same": "model,colour,colour\nnano-bert,red,red\nnano-gpt2,blue,red\n",
        "ragged": "model,colour\nnano-bert,red,blue,green\nnano-gpt2,blue\n",
        "unnamed": "model,\nnano-bert,red\n",
    }
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "noise.csv").write_bytes(bytes(range(256)))
    options = {
        "flag": "sentences = true",
        "date": "sentences = 2026-01-01",
        "list": "sentences = [1, 2]",
        "nested": "drop = [['tense']]",
        "unknown": "sentenses = 3",
        "other": 'command = "compare"',
        "number": "command = 3",
        "cut": "sentences =",
        "tables": "[sentences]\na = 1",
    }
    for name, text in options.items():
        (folder / f"{name}.toml").write_text(text)
    calls = {
        "itself": 'command = "resume"\nfolder = "itself"\n[called]\nfrom = ".."',
        "nobody": 'command = "zzz"\n[called]\nfrom = ".."',
        "version": 'command = "--version"\n[called]\nfrom = ".."',
        "nowhere": 'command = "compare"\n[called]\nfrom = "../gone"',
        "null": 'command = "compare"\n[called]\nfrom = "a\\u0000b"',
        "bare": 'command = "compare"',
    }
    for name, text in calls.items():
        (folder / name).mkdir()
        (folder / name / "command.toml").write_text(text)
    (folder / "run").mkdir()
    (folder / "run" / "run.json").write_text("{}")


ATLAS = """
zzz
nearest
nearest zzz
nearest nano-gpt2 nano-bert
nearest nano-gpt2 -n 0
nearest nano-gpt2 --by zzz
list --at folder
list --at w.csv
list --at nowhere
list --at ''
list --reference zzz
list --sensitivity
map nano-bert
map --figure map.gif
map --figure folder
map --out x.html
why --facts nothing.csv
why --facts twice.csv
why --facts strangers.csv
why --facts noise.csv
why --facts folder
why --facts header.csv
why --facts names.csv
why --facts infinite.csv
why --facts same.csv
why --facts ragged.csv
why --facts unnamed.csv
report --facts header.csv
report --facts names.csv
report --out ''
report --out x.pdf
nearest ''
nearest nano-gpt2 --by ''
nearest nano-gpt2 -n x
list --at http://x.y/z
list --at s3://
list --reference w.csv
map --by zzz
map --figure ''
why --sensitivity --cohort ''
add nano-bert --at mine --workers 0
add nano-bert --at mine --workers 2 --scheduler tcp://127.0.0.1:9
add nano-bert --at mine --scheduler zzz
add nano-bert --at mine --fact =
add x=nano-bert x=nano-gpt2 --at mine
add '' --at mine
add LONG=nano-bert --at mine
why --cohort zzz
report --out folder
report --out w.csv/x.html
add
add nano-bert
add w.csv --at mine
add zzz --at mine
add a.npz --at mine
add nano-bert --at w.csv
add nano-bert --at mine --fact zzz
add nano-bert --at mine --reference zzz
add nano-bert --at mine --dtype zzz
"""
FINGERPRINT = """
zzz
a.npz
w.csv
nano-bert --reference zzz
nano-bert --fact x
nano-bert --fact =3
nano-bert --fact a=1 --fact a=2
nano-bert --out ''
nano-bert --batch-size 0
nano-bert --device zzz
"""
DIFF = """
a.npz b.npz
a.npz zzz --stimuli s.csv
a.npz one.npz --stimuli s.csv
a.npz b.npz --stimuli s.csv --chat
a.npz b.npz --stimuli s.csv --pooling mean
a.npz b.npz --stimuli s.csv --system-turn x
a.npz b.npz --stimuli s.csv --features zzz
a.npz b.npz --stimuli s.csv --drop colour,size,shape
a.npz b.npz --stimuli s.csv --kind colour=zzz
a.npz b.npz --stimuli s.csv --seed -1
a.npz b.npz --stimuli s.csv --out w.csv/x
a.npz b.npz --stimuli s.csv --out ''
a.npz b.npz --stimuli w.csv
nano-bert nano-gpt2 --stimuli w.csv --chat
nano-bert nano-gelu-3l --stimuli w.csv
nano-bert nano-gpt2 --stimuli w.csv --chat --base-chat
nano-bert nano-gpt2 --stimuli w.csv --system-turn x
nano-bert nano-gpt2 --sentences 0
a.npz b.npz --stimuli s.csv --sentences 3
a.npz b.npz --stimuli s.csv --column text
a.npz b.npz --stimuli s.csv --seed HUGE
a.npz = --stimuli s.csv
"""
COMPARE = """
--window 4
--window 9
--generate 0
--generate 3
--chat
--system-turn x
--column text
--column =x
--column zzz=colour
--column text=zzz
--column text=colour --column text=size
--features ''
--features ,
--features zzz
--features colour,colour
--features colour --drop colour
--drop zzz
--drop colour,size,shape
--kind colour
--kind colour=
--kind =nominal
--kind colour=zzz
--kind colour=numeric
--kind colour=red,green
--kind colour=red,red,green,blue
--kind colour=nominal --kind colour=red,green,blue
--kind zzz=nominal
--step pca:99
--step zscore --step zzz
--importance zzz
--null -1
--null x
--null HUGE
--keep zzz
--keep vectors
--workers 0
--workers -1
--workers x
--workers 2 --scheduler tcp://127.0.0.1:9
--scheduler zzz
--scheduler ''
--distance precomputed
--distance crossnobis
--distance ''
--measure ''
--measure probe
--preset salle2024 --resamples 5
--preset salle2024 --distance zzz
--latents 1
--best colour
--layer 1
--seed HUGE
--sentences 3
--dry-run --measure zzz
--dry-run --workers 0
--stimuli ''
--config
"""
NAMES = """
a.npz a.npz
x=a.npz x=b.npz
a.npz =b.npz
a.npz b=
a.npz ''
a.npz ' '
a.npz LONG=b.npz
a.npz one.npz b.npz a=a.npz
a.npz b.npz:untrained
a.npz b.npz@main
a.npz nowhere/b.npz
a.npz people.npy
a.npz flat.npy
a.npz s.csv
a.npz folder
"""
TRACE = """
a.npz --stimuli s.csv
a.npz a.npz --stimuli s.csv
a.npz one.npz --stimuli s.csv
a.npz b.npz --stimuli s.csv --figure x.gif
a.npz b.npz --stimuli s.csv --site mlp
nano-pythia-64@step1 nano-pythia-64@step2 --stimuli w.csv
"""
GROUP = """
a.npz --subjects short.npy
a.npz --subjects flat.npy
a.npz --subjects gaps.npy
a.npz --subjects person.npy --subjects person.npy
a.npz --subjects people.npy --over zzz
a.npz --subjects people.npy --features colour
a.npz --subjects people.npy --permutations 3
a.npz --subjects people.npy --site mlp
a.npz --subjects people.npy --step pca:99
a.npz --subjects people.npy --permutations 0
a.npz --subjects people.npy --permutations HUGE
a.npz --subjects people.npy --measure zzz
a.npz --subjects people.npy --measure ''
a.npz --subjects people.npy --seed -1
a.npz --subjects people.npy --out w.csv/g
a.npz --subjects ''
a.npz --subjects x=
a.npz --subjects people.npy --subjects people.npy
a.npz --subjects people.npy --subjects gaps.npy
a.npz a.npz --subjects people.npy
people.npy --subjects people.npy
--subjects person.npy --stimuli s.csv
--subjects people.npy --stimuli s.csv --clusters
zzz --subjects people.npy
"""
RUNS = """
serve folder
serve w.csv
serve nowhere
serve run
serve --port 99999
methods folder
methods w.csv
methods nowhere
methods run
methods ''
resume ''
report ''
report run
report run --width 0
report run --width x
report run --figures png --pair a
report run --figures ''
explain run
explain run a:0
explain run a:0 b:0
explain run a b
explain '' a:0 b:0
serve ''
serve run --port -1
serve run --port x
models --zzz
demo --sentences HUGE
demo --sentences 1
demo --resamples HUGE
demo --out ''
reproduce salle2024 --scale smoke --out ''
reproduce salle2024 --scale smoke --models no-such-folder --out r
reproduce salle2024 --scale smoke --set sentences=
reproduce salle2024 --scale smoke --set sentences=HUGE
reproduce salle2024 --scale smoke --set seed=DIGITS
reproduce salle2024 --scale smoke --set seed=1 --set seed=2
resume folder
resume w.csv
resume itself
resume nobody
resume version
resume nowhere
resume null
resume bare
"""
CONFIG = """
--config
--config nowhere.toml
--config folder
--config noise.csv
--config flag.toml
--config date.toml
--config list.toml
--config nested.toml
--config unknown.toml
--config other.toml
--config number.toml
--config cut.toml
--config tables.toml
--config=flag.toml
--config flag.toml --config flag.toml
"""
LATENTS = """
--autoencoder nowhere --layer 1 --latents 1
--autoencoder a.npz --layer 1 --latents 1
--autoencoder folder --layer 99 --latents 1
--autoencoder folder --layer 1 --latents -1
--autoencoder folder --layer 1 --latents 1 --best tense
--latents 1
--best tense
"""
STARTS = {
    "atlas": ATLAS,
    "fingerprint": FINGERPRINT,
    "diff": DIFF,
    "trace": TRACE,
    "group": GROUP,
    "": RUNS,
    "stimuli": CONFIG,
    "compare a.npz b.npz --stimuli s.csv --resamples 0 --no-report --out c": COMPARE,
    "compare --stimuli s.csv --resamples 0 --no-report --out c": NAMES,
    "extract nano-pythia-64 --stimuli w.csv --out x": LATENTS,
}
SOUND = """
atlas nearest nano-gpt2 -n 100000
diff a.npz b.npz --stimuli s.csv --out d
group a.npz --subjects people.npy --permutations 19 --out g
"""
