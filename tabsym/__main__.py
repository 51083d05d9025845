"""`python -m tabsym`: the command `tabsym`, where the scripts of an environment are not on the path."""

import sys

from tabsym.cli import main

if __name__ == "__main__":  # which workers of a comparison import under another name
    sys.exit(main())
