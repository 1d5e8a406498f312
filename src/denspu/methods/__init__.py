"""Whole PU methods, one a file; build them by key with :func:`denspu.make`."""
