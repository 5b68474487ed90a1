"""Digests of files, to tell whether they are still the same."""

import hashlib
from pathlib import Path


def digest_file(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder with their names."""
    digest = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        if path.is_dir():
            digest.update(file.name.encode())
        with file.open("rb") as opened:
            while block := opened.read(2**20):
                digest.update(block)
    return digest.hexdigest()
