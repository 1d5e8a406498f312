"""The command ``denspu``: parse, call the library, turn errors into exit codes."""

from denspu.cli.app import main

__all__ = ["main"]
