"""The shared byte-level BPE vocabulary, and documents as arrays of token ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from training.corpus import Document, sentences

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

VOCABULARY = 4096
CONTEXT = 256
SPECIAL = {
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "eos_token": "<eos>",
}


def train_tokenizer(texts: Iterable[str], *, size: int = VOCABULARY) -> PreTrainedTokenizerFast:
    """Learn the merges. A text begins as if after a space, so a word is the same token wherever it stands."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return wrap(tokenizer)


def wrap(tokenizer: object) -> PreTrainedTokenizerFast:
    """The transformers face of a `tokenizers.Tokenizer` with our special tokens."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=CONTEXT, clean_up_tokenization_spaces=False, **SPECIAL
    )


def for_masked_models(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """The same vocabulary, with `[CLS] … [SEP]` put around every text."""
    from tokenizers import Tokenizer, processors

    inner = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    around = [(token, inner.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    inner.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            processors.TemplateProcessing(
                single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=around
            ),
        ]
    )
    return wrap(inner)


def encode_running(
    tokenizer: PreTrainedTokenizerFast, documents: Iterable[Document]
) -> tuple[np.ndarray, np.ndarray]:
    """All paragraphs, each ended by `<eos>`, as one stream of ids, and where in it the sentences start."""
    paragraphs = [p for document in documents for p in document.paragraphs]
    pieces = [sentences(paragraph) for paragraph in paragraphs]
    encoded = _encode(tokenizer, [piece for group in pieces for piece in group])
    last = np.cumsum([len(group) for group in pieces]) - 1
    for k in last:
        encoded[k].append(tokenizer.eos_token_id)
    return _concatenate(encoded)


def encode_sentences(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """The texts, each ended by `<eos>`, as one stream of ids, and where in it they start."""
    encoded = _encode(tokenizer, texts)
    for ids in encoded:
        ids.append(tokenizer.eos_token_id)
    return _concatenate(encoded)


def _encode(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> list[list[int]]:
    # The inner tokenizer, because a stream longer than the context is meant here.
    encodings = tokenizer.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def _concatenate(encoded: Sequence[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(ids) for ids in encoded])
    ids = np.fromiter((i for group in encoded for i in group), dtype=np.uint16, count=int(lengths.sum()))
    return ids, np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)


def special_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """The ids of the special tokens by short names: `pad`, `cls`, `sep`, `mask`, `eos`."""
    vocabulary = tokenizer.get_vocab()
    return {role.removesuffix("_token"): vocabulary[token] for role, token in SPECIAL.items()}
