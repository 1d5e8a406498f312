"""``python -m denspu`` runs the command line."""

from denspu.cli import main

if __name__ == "__main__":
    main()
