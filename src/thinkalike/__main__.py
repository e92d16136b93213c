"""`python -m thinkalike`: the command line."""

from __future__ import annotations

from thinkalike.cli.boundary import main

if __name__ == "__main__":
    main()
