"""ObjectNet is read through its own mapping files."""

import json

import pytest
import torch
from PIL import Image

from rightly.datasets import open_images
from tests.datasets.example_sets import make_objectnet, opened, put


def test_several_classes_of_imagenet_may_mean_one_of_objectnet(tmp_path):
    images, _ = opened(tmp_path, "objectnet")
    assert images.kept_classes == ((409, 530), (671,))
    assert images.class_names == ("alarm_clock", "bicycle")
    assert images.notes == ("1 images of 1 classes that ImageNet does not have are left out",)
    logits = torch.zeros(2, 1000)
    logits[0, 409], logits[0, 530], logits[1, 671] = 1, 5, 3
    logits[:, 0] = 99
    assert images.restrict(logits).tolist() == [[5, 0], [0, 3]]


def test_the_red_border_of_objectnet_is_cut_off(tmp_path):
    root, _, _ = make_objectnet(tmp_path)
    path = root / "objectnet-1.0" / "images" / "bicycle" / "1abc.png"
    picture = Image.new("RGB", (20, 14), (255, 0, 0))
    picture.paste((0, 0, 255), (2, 2, 18, 12))
    picture.save(path)
    read = open_images(root).read(1)
    assert read.size == (16, 10) and read.getcolors() == [(160, (0, 0, 255))]


def test_mappings_of_objectnet_that_count_lines_from_1_are_understood(tmp_path):
    root, _, _ = make_objectnet(tmp_path)
    path = root / "objectnet-1.0" / "mappings" / "pytorch_to_imagenet_2012_id.json"
    path.write_text(json.dumps({k: v + 1 for k, v in json.loads(path.read_text()).items()}))
    assert open_images(root).kept_classes == ((409, 530), (671,))
    path.write_text(json.dumps({"0": 1}))
    with pytest.raises(ValueError, match="lead to each of the 1000 lines"):
        open_images(root)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="pytorch_to_imagenet.*objectnet.dev"):
        open_images(root)


def test_objectnet_folders_that_the_mapping_does_not_know_are_refused(tmp_path):
    root, _, _ = make_objectnet(tmp_path)
    put(root / "objectnet-1.0" / "images" / "unicorn" / "a.png")
    with pytest.raises(ValueError, match="name every folder.*unicorn"):
        open_images(root)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("folder_to_objectnet_label.json", b"[1]", "must be JSON.*not a table"),
        ("folder_to_objectnet_label.json", b'{"bicycle": 1}', "must map names to names"),
        ("folder_to_objectnet_label.json", b"[" * 9000, "must be JSON.*nested"),
        ("pytorch_to_imagenet_2012_id.json", b'{"a": 1}', "must map numbers to numbers"),
        ("pytorch_to_imagenet_2012_id.json", b'{"1": []}', "must map numbers to numbers"),
        ("objectnet_to_imagenet_1k.json", b'{"Bicycle": null}', "must map names to names"),
        ("imagenet_to_label_2012_v2", b"caf\xe9", "must be in UTF-8"),
    ],
)
def test_mappings_of_objectnet_that_are_none_are_refused_by_name(tmp_path, name, content, words):
    root, _, _ = make_objectnet(tmp_path)
    (root / "objectnet-1.0" / "mappings" / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} {words}"):
        open_images(root)
