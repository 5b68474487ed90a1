"""One target a reader, loaded when it is asked for."""

from importlib import import_module

from tests.fuzz.target import Target

NAMES = ("npz", "arrays", "parquet", "safetensors", "onnx", "images", "csv", "json")


def load_target(name: str) -> Target:
    return import_module(f"tests.fuzz.targets.{name}").TARGET
