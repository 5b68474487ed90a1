"""Examples in the schema of the API."""

from collections.abc import Mapping
from typing import Any

from rightly.serving.uploads import FIELDS

ANSWER: Mapping[str, Any] = {
    "predictions": [
        {
            "file": "photo.jpg",
            "class": 3,
            "name": "cat",
            "confidence": 0.71,
            "raw_confidence": 0.96,
            "temperature": 1.84,
            "accept": False,
            "top": [
                {"class": 3, "name": "cat", "probability": 0.71},
                {"class": 5, "name": "dog", "probability": 0.24},
            ],
            "prediction_set": [
                {"class": 3, "name": "cat", "probability": 0.71},
                {"class": 5, "name": "dog", "probability": 0.24},
            ],
            "views": [
                {"view": "hflip", "class": 5, "name": "dog", "confidence": 0.55},
                {"view": "translation", "class": 3, "name": "cat", "confidence": 0.91},
            ],
        }
    ],
    "model": {
        "method": "correctness_logistic",
        "threshold": 0.9,
        "guarantee": None,
        "coverage": 0.95,
        "set_guarantee": "Prediction sets (lac) hold the true class of 95 % of images like the "
        "2,500 held out: given these, of 94.1 % to 95.8 % with probability 0.95; holds for data "
        "like the calibration data, which the server cannot know",
        "void": None,
    },
}

FORM: Mapping[str, Any] = {
    "required": True,
    "description": f"One or more files, each in a field called one of {', '.join(FIELDS)}.",
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "image": {"type": "string", "format": "binary"},
                    "images": {"type": "array", "items": {"type": "string", "format": "binary"}},
                },
            }
        }
    },
}


def _make_samples(*commands: str) -> dict[str, Any]:
    return {"x-codeSamples": [{"lang": "shell", "source": command} for command in commands]}


CURL: Mapping[str, dict[str, Any]] = {
    "predict": _make_samples(
        "curl -F image=@photo.jpg {base}/predict",
        "curl -F images=@first.jpg -F images=@second.png {base}/predict",
    ),
    "healthz": _make_samples("curl {base}/healthz"),
    "shift": _make_samples("curl {base}/shift"),
    "drift": _make_samples("curl {base}/drift"),
    "model": _make_samples("curl {base}/model"),
    "metrics": _make_samples("curl {base}/metrics"),
}
