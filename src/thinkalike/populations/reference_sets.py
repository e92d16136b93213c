"""Reference stimuli: what fingerprints are made from. A name stands for the same items for good.

They are files of the package rather than calls of a grammar, which may learn new words. Other items get
another name: `words-2` would stand beside `words-1`, and fingerprints of the two would not be compared.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from thinkalike.errors import DamagedFile, UnknownName
from thinkalike.stimuli.table import Stimuli

FOLDER = Path(__file__).with_name("reference_stimuli")
WORDS, SENTENCES = "words-1", "sentences-1"
DIGESTS = {
    WORDS: "eed1ac9543a2a3c33e921e3a136b698306a5b7ca632154a2d1d8394febc37c9b",
    SENTENCES: "36f623f02ef77558d7a06075f37b9b19088671d541015a186f572d11d22e3b66",
}
"""Name → digest. words-1: the 1,749 words of 200 sentences of `untangled`, seed 0. sentences-1: 500 whole
sentences of `clauses`, seed 0, each with a capital letter and a full stop."""


@cache
def reference(name: str = WORDS) -> Stimuli:
    """The reference stimuli of that name.

    Parameters
    ----------
    name : {"words-1", "sentences-1"}
        Words in sentences of the grammar `untangled`, or whole sentences of `clauses`.

    Returns
    -------
    Stimuli

    Examples
    --------
    >>> from thinkalike.populations import reference
    >>> len(reference("words-1")), len(reference("sentences-1"))
    (1749, 500)
    """
    if name not in DIGESTS:
        raise UnknownName.among("set of reference stimuli", name, DIGESTS)
    path = FOLDER / f"{name}.parquet"
    found = Stimuli.load(path)
    if found.digest != DIGESTS[name]:
        raise DamagedFile(f"{path} is not the {name} of this version: install thinkalike again.")
    return found


def name_of_digest(digest: str | None) -> str | None:
    """The reference stimuli with that digest, if any."""
    return next((name for name, known in DIGESTS.items() if known == digest), None)
