"""``python -m seqlm``: the command ``seqlm``."""

from seqlm.command import main

if __name__ == "__main__":
    main()
