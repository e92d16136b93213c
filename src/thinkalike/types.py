"""Types that many packages name. What nothing is known of is an `object`: look at it before you use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import torch
    from altair import TopLevelMixin
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

Json: TypeAlias = dict[str, object]
"""Name → what JSON can hold: settings, metadata, what a page shows"""
Facts: TypeAlias = Mapping[str, object]
"""The same, to be read only"""
Option: TypeAlias = object
"""The value of an option that is handed on by its name; whoever takes it knows its type, and checks it"""

Matrix = TypeVar("Matrix", "np.ndarray", "torch.Tensor")
"""(n_items, n_units), a NumPy array or a torch tensor; what comes out is of the kind that went in"""
EitherMatrix: TypeAlias = "np.ndarray | torch.Tensor"
"""One of the two, where nothing that comes out depends on which"""
Value: TypeAlias = object
"""What a caller gave or a result holds, of whatever type: it is looked at before it is used"""
Chart: TypeAlias = "TopLevelMixin"
"""An Altair chart of any kind: layered, repeated, concatenated"""

Tokenizer: TypeAlias = "PreTrainedTokenizerBase"
Processor: TypeAlias = object
"""A tokenizer, image processor or feature extractor: they have no type in common"""
Config: TypeAlias = "PreTrainedConfig"
"""A model's configuration; what it has depends on the architecture"""
Model: TypeAlias = "PreTrainedModel"
"""A loaded model of transformers; its further parts depend on the architecture"""
Answer: TypeAlias = object
"""What a module takes or answers: a tensor, or a tuple or record with tensors in it"""
