"""Exported .pt2 files at work: the same as `runtime`, in torch."""

from pathlib import Path
from typing import final

import numpy as np
import torch
from jaxtyping import Float

from rightly.deployment.metadata import PROGRAM_FILE, parse_metadata
from rightly.deployment.outputs import check_output_names
from rightly.deployment.runtime import ExportedModel


@final
class TorchProgram(ExportedModel):
    """A .pt2 file of torch.export. torch unpickles parts of such files: open those you trust."""

    def __init__(self, path: Path) -> None:
        files = {PROGRAM_FILE: ""}
        try:
            program = torch.export.load(path, extra_files=files)
        except Exception as error:  # a damaged archive raises nearly anything
            raise ValueError(f"{path} is not a whole program of torch.export: {error}") from error
        super().__init__(parse_metadata(files[PROGRAM_FILE] or None, path))
        check_output_names(list(program.call_spec.out_spec.context), path)
        self.module = program.module()

    def run(self, images: Float[np.ndarray, "n 3 h w"]) -> dict[str, np.ndarray]:
        with torch.no_grad():
            outputs = self.module(torch.from_numpy(images))
        return {name: value.numpy() for name, value in outputs.items()}
