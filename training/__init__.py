"""How the nano models were trained, and how to train them again: `python -m training`."""
