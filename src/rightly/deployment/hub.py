"""The Hub's layout: a folder with config.json, the calibrator and a model card."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rightly.atomic_write import write_atomically
from rightly.calibrators import FittedCalibrator
from rightly.deployment.metadata import checked_identity
from rightly.deployment.model_card import card_of

CONFIG, CALIBRATOR, CARD = "config.json", "calibrator.safetensors", "README.md"


def write(folder: Path, calibrator: FittedCalibrator, identity: Mapping[str, Any]) -> None:
    """Writes the three files; a card that somebody edited is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    calibrator.save(folder / CALIBRATOR)
    text = json.dumps(dict(identity), indent=2) + "\n"
    write_atomically(folder / CONFIG, lambda part: part.write_text(text))
    if not (folder / CARD).exists():
        card = card_of(identity)
        write_atomically(folder / CARD, lambda part: part.write_text(card))


def located(name: str | os.PathLike[str]) -> Path:
    """A folder here, or a repository on the Hub fetched to one."""
    folder = Path(name)
    if folder.is_dir():
        return folder
    repository = str(name)
    if repository.count("/") != 1 or folder.is_absolute() or repository.startswith("."):
        raise FileNotFoundError(
            f"there is no folder {name}: give what save_pretrained wrote, or a Hub repository as "
            "owner/name"
        )
    wanted = [CONFIG, CALIBRATOR, CARD]
    return Path(_package().snapshot_download(repository, allow_patterns=wanted))


def must_match_config(folder: Path, calibrator: FittedCalibrator) -> None:
    """Refuses a folder whose config and calibrator were not written together."""
    path = folder / CONFIG
    try:
        values = json.loads(path.read_text())
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no {CONFIG} in {folder}: it must be what save_pretrained wrote"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    identity = checked_identity(values, path)
    said = (identity["method"], identity["class_count"], tuple(identity["views"]))
    if said != (calibrator.title, calibrator.class_count, calibrator.view_names):
        raise ValueError(
            f"{path} speaks of {said}, but {CALIBRATOR} beside it is {calibrator.title} of "
            f"{calibrator.class_count} classes with views {list(calibrator.view_names)}: "
            "save both together"
        )


def push(repo_id: str, save: Callable[[Path], None], **options: Any) -> str:
    """Uploads what `save` writes to a folder; returns where it is."""
    api = _package().HfApi(token=options.pop("token", None))
    created = api.create_repo(repo_id, private=options.pop("private", None), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder))
        api.upload_folder(repo_id=repo_id, folder_path=folder, **options)
    return str(created)


def _package() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(
            "the Hub needs the package huggingface_hub: pip install 'rightly[hub]'"
        ) from error
    return huggingface_hub
