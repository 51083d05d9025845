"""Golden masters: what the package computed when it was last asked, stored, and held against what it computes now."""
