"""Categories in PyTorch: the gradient estimator for symbolical features under any optimizer of torch.optim."""

from __future__ import annotations

from tabsym_torch.bridge import WideInput, WideModule, to_torch
from tabsym_torch.gse import GSE
from tabsym_torch.layers import OneHotLinear

__all__ = ["GSE", "OneHotLinear", "WideInput", "WideModule", "to_torch"]
