"""The Hub's layout: a folder with config.json, the calibrator and a model card."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rightly.calibrators import Calibrator
from rightly.deployment.card_markdown import render_card
from rightly.deployment.metadata import CALIBRATOR_FILE, CONFIG_FILE, read_config
from rightly.deployment.provenance import check_described
from rightly.files import encode_json, write_atomically
from rightly.optional import require

CARD_FILE = "README.md"


def write_folder(folder: Path, calibrator: Calibrator, metadata: Mapping[str, Any]) -> None:
    """Writes the three files; a card that somebody edited is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    calibrator.save(folder / CALIBRATOR_FILE)
    text = encode_json(metadata, indent=2) + "\n"
    write_atomically(folder / CONFIG_FILE, lambda part: part.write_text(text, encoding="utf-8"))
    if not (folder / CARD_FILE).exists():
        card = render_card(metadata)
        write_atomically(folder / CARD_FILE, lambda part: part.write_text(card, encoding="utf-8"))


def locate_folder(name: str | os.PathLike[str]) -> Path:
    """A folder here, or a repository on the Hub fetched to one."""
    folder = Path(name)
    if folder.is_dir():
        return _check_files(folder)
    repository = str(name)
    if repository.count("/") != 1 or folder.is_absolute() or repository.startswith("."):
        raise FileNotFoundError(
            f"there is no folder {name}: give what save_pretrained wrote, or a Hub repository as "
            "owner/name"
        )
    wanted = [CONFIG_FILE, CALIBRATOR_FILE, CARD_FILE]
    hub = require("huggingface_hub", "hub")
    return _check_files(Path(hub.snapshot_download(repository, allow_patterns=wanted)))


def _check_files(folder: Path) -> Path:
    """Refuses a folder that lacks what `save_pretrained` writes."""
    needed = (CONFIG_FILE, CALIBRATOR_FILE)
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        held = sorted(path.name for path in folder.iterdir())
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        raise FileNotFoundError(
            f"{folder} must hold {' and '.join(needed)}, which save_pretrained writes, but lacks "
            f"{' and '.join(missing)} (it holds {', '.join(held[:5]) or 'nothing'}{more})"
        )
    return folder


def check_config(folder: Path, calibrator: Calibrator) -> None:
    """Refuses a folder whose config and calibrator were not written together."""
    check_described(read_config(folder), calibrator, folder / CONFIG_FILE)


def push_folder(repo_id: str, save: Callable[[Path], None], **options: Any) -> str:
    """Uploads what `save` writes to a folder; returns where it is."""
    api = require("huggingface_hub", "hub").HfApi(token=options.pop("token", None))
    created = api.create_repo(repo_id, private=options.pop("private", None), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder))
        api.upload_folder(repo_id=repo_id, folder_path=folder, **options)
    return str(created)
