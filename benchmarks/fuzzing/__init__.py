"""What `fuzz.py` draws."""
