"""Damaged and forged files for every reader: `python -m tests.fuzz --help`."""
