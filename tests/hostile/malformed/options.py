"""Options and arguments: values out of range, of the wrong type, or without a meaning here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.hostile.malformed.cases import Malformed, both, good_arrays, good_csv, sentences, vectors


def option_cases() -> Iterator[Malformed]:
    for command, start, bad in (
        ("extract", ("extract", "nano-pythia-64", "--stimuli", "w.csv", "--out", "x.zarr"), EXTRACT),
        ("profile", ("profile", "nano-pythia-64", "--stimuli", "w.csv", "--out", "p"), PROFILE),
        ("cka", ("cka", "nano-pythia-64", "--text", "t.txt", "--out", "c", "--max-batches", "2"), CKA),
        ("outputs", ("outputs", "nano-gelu-3l", "nano-solu-3l", "--text", "t.txt", "--out", "u"), OUTPUTS),
        ("group", ("group", "nano-pythia-64", "--stimuli", "w.csv", "--out", "g"), GROUP),
        ("stitch", ("stitch", "nano-gelu-3l", "nano-solu-3l", "--text", "t.txt", "--out", "o"), STITCH),
        ("stimuli", ("stimuli", "-n", "20"), STIMULI),
    ):
        for options in lines(bad):
            yield Malformed(
                f"{command} {' '.join(options)[:60]}", (*start, *options), both(sentences, text_files)
            )
    yield Malformed(
        "stimuli --items sentences", ("stimuli", "-n", "20", "--items", "sentences"), text_files, "accepted"
    )
    for arguments in lines(COMMANDS):
        yield Malformed(
            f"command {' '.join(arguments)[:60]!r}", arguments, both(sentences, text_files, good_csv)
        )
    for out in ("s.csv/run", "x" * 400, "s3://b/k", "memory://x", "http://x.y/z", "s.csv"):
        make = both(good_csv, good_arrays, lambda folder: np.savez(folder / "a.npz", x=vectors()))
        start = ("compare", "a.npz", "b.npz", "--stimuli", "s.csv", "--resamples", "0")
        yield Malformed(f"compare --out {out[:20]!r}", (*start, "--out", out), make)


def lines(text: str) -> Iterator[tuple[str, ...]]:
    """One case a line, as it would be typed; LONG, HUGE and DIGITS stand for what they say."""
    meant = {"LONG": "x" * 400, "HUGE": "9" * 20, "DIGITS": "9" * 5000}
    for line in text.strip().splitlines():
        yield tuple(
            re.sub("LONG|HUGE|DIGITS", lambda found: meant[found[0]], word) for word in shlex.split(line)
        )


def text_files(folder: Path) -> None:
    lines = [f"The king of {k} said so, and {k} times he went away and came again." for k in range(80)]
    (folder / "t.txt").write_text("\n\n".join(lines))
    (folder / "empty.txt").write_text("")
    (folder / "bytes.txt").write_bytes(bytes(range(128, 256)) * 20)
    (folder / "folder").mkdir()


EXTRACT = """
--pooling zzz
--pooling cls
--site zzz
--part zzz
--part encoder
--blocks zzz
--blocks ''
--revision zzz
--seed -1
--seed x
--drop-first -1
--drop-first 1000
--dtype float99
--dtype ''
--device zzz
--device cuda
--device cuda:7
--device meta
--device mps
--device ''
--device-map zzz
--batch-size 0
--batch-size -1
--batch-size x
--batch-size 1.5
--batch-size ''
--gguf-file zzz.gguf
--gguf-file ''
--gguf-file ../w.csv
--blocks 5:1
--blocks 99
--blocks -1
--blocks 1,x
--revision ''
--revision @
--untrained --seed HUGE
--device-map auto --device cpu
--window 0
--window 7
--window x
--generate 0
--generate -1
--generate HUGE
--system-turn x
--chat
--column text
--column text=zzz
--column sentence=word
--features zzz
--drop f,g,zzz
--kind f=numeric
--layer 1
--latents 0
--site ''
--pooling ''
--dtype int8
--dtype bfloat17
--out s3://
--out w.csv
--stimuli none.csv
--stimuli folder
--zzz
extra
"""
PROFILE = """
--step zzz
--step pca
--step pca:0
--step pca:-1
--step pca:HUGE
--step pca:99999999999999999999
--step pca:2.5
--step demean:zzz
--step ''
--layer 1
--autoencoder t.txt --layer 1 --latents 1
--autoencoder folder --layer 1 --best number
--autoencoder nowhere --layer 1
--preset zzz
--distance zzz
--ordered zzz
--pooling zzz
--site zzz
--resamples -1
--resamples HUGE
--device zzz
--dtype zzz
--batch-size 0
--features ''
--drop f,g
--kind f=numeric
--column text=zzz
--importance zzz
--seed HUGE
--workers 0
--scheduler zzz
--window 3
--generate 0
--figure ''
--figure folder
--figure p.zzz
--figure p
--figure w.csv/p.png
--out w.csv/p
--out LONG
--drop-first x
"""
OUTPUTS = """
--length 0
--length -1
--length HUGE
--max-passages 0
--max-passages x
--split zzz
--device zzz
--dtype zzz
--text empty.txt
--text nowhere.txt
"""
GROUP = """
--measure rsa
--subjects nowhere.npy
--subjects t.txt
--subjects w.csv
--subjects =
--subjects t.txt --measure zzz
"""
CKA = """
--precision 0
--precision -1
--precision nan
--precision inf
--precision x
--level zzz
--batch zzz
--batch tokens --batch-size 0
--batch tokens --batch-size -5
--batch tokens --batch-size 1
--length 0
--length -1
--length 1
--length HUGE
--split zzz
--padding x
--no-pack --padding x
--drop-first -1
--drop-first 9999
--site zzz
--average zzz
--max-batches 0
--max-batches -1
--max-batches HUGE --max-batches 0
--device zzz
--device cuda
--device meta
--dtype zzz
--seed -1
--text none.txt
--text empty.txt
--text folder
--text bytes.txt
--text /dev/null
--out w.csv/c
--out LONG
"""
STITCH = """
--kind zzz
--fit zzz
--layers zzz
--layers 99
--layers -1
--layers ''
--layers 1:2:3
--layers 1:99
--layers ,
--layers HUGE
--layers 1 --kind low-rank --rank 0
--layers 1 --kind low-rank --rank -1
--layers 1 --kind low-rank --rank 9999
--layers 1 --rank 3
--fit task --steps 0
--fit task --steps -1
--fit task --optimizer zzz
--fit task --learning-rate -1
--fit task --learning-rate nan
--fit task --learning-rate 0
--fit task --learning-rate inf
--fit task --start zzz
--fit task --batch-tokens 0
--fit task --batch-tokens -1
--length 0
--length -1
--length 1
--split zzz
--max-tokens 0
--max-tokens -1
--max-tokens 3
--task zzz
--task masked
--task classification
--device zzz
--device cuda
--dtype zzz
--seed -1
--text none.txt
--text empty.txt
--text folder
--text w.csv
--text bytes.txt
--test none.txt
--test empty.txt
--run folder
--run none
--out w.csv/o
--kind identity --fit task
--floor zzz
--floor -1
--ceiling zzz
--both-ways --run none
--layers 1 --floor none
--layers 0:0,1:99
--layers 1.5
--layers 1:
--layers :1
--workers 0
--scheduler zzz
--learning-rate 0.1
--batch-tokens 99
--start identity
--length HUGE
--max-tokens HUGE --length 1
--test t.txt --split zzz
"""
STIMULI = """
--sentences 0
--sentences -5
--sentences x
--sentences 1.5
--sentences HUGE
--sentences 10000000
--seed -1
--seed x
--grammar zzz
--grammar ''
--grammar folder
--grammar none.toml
--grammar w.csv
--lexicon none.toml
--lexicon folder
--items zzz
--conllu none.conllu
--conllu folder
--conllu w.csv
--check w.csv --conllu w.csv
--copy-grammar folder --grammar zzz
--copy-grammar ''
--out ''
--out .csv
--out folder
--out x.jsonl
--features zzz
--features ''
--drop zzz
--kind number=numeric
--kind number=a,b
--kind zzz=nominal
--seed HUGE
--lexicon ''
--check ''
--check folder
--figure ''
--figure w.csv/x.png
--conllu ''
--items ''
"""
COMMANDS = """
zzz
--zzz
explain
explain folder
explain folder a:1 b:2
explain none a:1 b:2
explain w.csv a:1 b:2
report folder
report none
report w.csv
report
report folder --figures gif
report folder --pair a b
reproduce zzz
reproduce salle2024 --scale zzz
reproduce salle2024 --scale smoke --set zzz=1
reproduce salle2024 --scale smoke --set zzz
reproduce salle2024 --set =
reproduce salle2024 --scale smoke --set seed=nan
reproduce salle2024 --scale smoke --set seed=x
reproduce salle2024 --scale smoke --set seed=-1
reproduce salle2024 --scale smoke --set 'seed=[1]'
reproduce salle2024 --scale smoke --set seed=1e400
reproduce salle2024 --scale smoke --set sentences=0
reproduce salle2024 --scale smoke --set sentences=-3
reproduce salle2024 --scale smoke --set sentences=x
reproduce salle2024 --scale smoke --set treebank=none.conllu
reproduce salle2024 --scale smoke --set preset=zzz
reproduce salle2024 --scale paper --models folder --out r
reproduce salle2024 --scale smoke --out w.csv
reproduce salle2024 --scale smoke --out w.csv/r
compare
compare nano-pythia-64 --stimuli w.csv
compare x x
compare nano-pythia-64 nano-pythia-64
compare a= b=
compare none.npz none2.npz
compare nano-pythia-64 nano-bert --stimuli none.csv
compare nano-pythia-64 nano-bert --sentences 0
compare nano-pythia-64 nano-bert --sentences -4
compare nano-pythia-64 nano-bert --sentences 1
compare nano-pythia-64 nano-bert --stimuli w.csv --out folder/../w.csv
stitch nano-pythia-64 nano-bert --text t.txt
stitch nano-pythia-64
stitch nano-pythia-64 nano-gelu-3l --text t.txt --layers 9
demo --sentences 0
demo --sentences -1
demo --resamples -1
demo --out w.csv
demo --resamples x
models zzz
cka
cka --text t.txt
extract
extract nano-pythia-64
profile
profile nano-pythia-64 --sentences 0
profile nano-pythia-64 --sentences 1
profile nano-pythia-64 --sentences -1
profile nano-pythia-64 --stimuli none.csv
"""
