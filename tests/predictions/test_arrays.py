"""Files that people have: one array, tensors, tables; and labels in files of their own."""

import csv
import pickle

import numpy as np
import pytest
import torch

import rightly
from rightly import Predictions

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(12, 3)).astype(np.float32) * 2
LABELS = RNG.integers(0, 3, 12)
P = torch.from_numpy(LOGITS).double().softmax(-1).numpy()


def write(path, values, labels=None, header=("cat", "dog", "emu")):
    """An array in the format that its file's name says."""
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".pt":
        torch.save(torch.from_numpy(values), path)
    else:
        with path.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow([*header, *([] if labels is None else ["label"])])
            for i, row in enumerate(values.tolist()):
                table.writerow([*row, *([] if labels is None else [labels[i]])])
    return path


@pytest.mark.parametrize("suffix", [".npy", ".pt", ".csv"])
def test_logits_and_probabilities_are_what_the_caller_says(suffix, tmp_path):
    predictions, labels = rightly.load(write(tmp_path / f"a{suffix}", LOGITS))
    np.testing.assert_array_equal(predictions.logits, LOGITS)
    assert labels is None
    path = write(tmp_path / f"p{suffix}", P)
    predictions, _ = rightly.load(path, probabilities=True)
    np.testing.assert_allclose(predictions.logits.softmax(-1), P, rtol=1e-12)
    with pytest.raises(ValueError, match=rf"p{suffix}: logits must .* pass probabilities=True"):
        rightly.load(path)
    with pytest.raises(ValueError, match=rf"a{suffix}: probabilities must be non-negative"):
        rightly.load(tmp_path / f"a{suffix}", probabilities=True)


@pytest.mark.parametrize("suffix", [".npy", ".pt", ".csv"])
@pytest.mark.parametrize("shape", [(12,), (12, 1)])
def test_one_number_a_sample_is_of_class_1(suffix, shape, tmp_path):
    if suffix == ".csv" and len(shape) == 1:
        return
    scores = LOGITS[:, 0].reshape(shape)
    predictions, _ = rightly.load(write(tmp_path / f"s{suffix}", scores, header=["score"]))
    one = torch.from_numpy(scores).reshape(-1).double().sigmoid()
    np.testing.assert_allclose(predictions.logits.double().softmax(-1)[:, 1], one, atol=1e-6)
    p = one.numpy().reshape(shape)
    predictions, _ = rightly.load(
        write(tmp_path / f"p{suffix}", p, header=["p"]), probabilities=True
    )
    np.testing.assert_allclose(predictions.logits.double().softmax(-1)[:, 1], one, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 2), (5, 1, 1), ()])
def test_binary_scores_have_one_column(shape):
    with pytest.raises(ValueError, match=r"scores must have shape \(n,\) or \(n, 1\)"):
        Predictions.from_binary(np.zeros(shape))
    with pytest.raises(ValueError, match=r"probabilities must lie in \[0, 1\], got .* 0 to 3"):
        Predictions.from_binary_probabilities([0.0, 3.0])
    with pytest.raises(ValueError, match="scores must be finite"):
        Predictions.from_binary([0.0, float("nan")])


def test_tensors_and_archives_name_what_they_hold(tmp_path):
    torch.save(
        {"logits": torch.from_numpy(LOGITS), "labels": torch.from_numpy(LABELS)},
        path := (tmp_path / "named.pt"),
    )
    predictions, labels = rightly.load(path)
    np.testing.assert_array_equal(predictions.logits, LOGITS)
    np.testing.assert_array_equal(labels, LABELS)
    with pytest.raises(ValueError, match=r"probabilities=True contradicts .*named.pt"):
        rightly.load(path, probabilities=True)
    np.savez(tmp_path / "p.npz", probabilities=P, labels=LABELS)
    predictions, labels = rightly.load(tmp_path / "p.npz")
    np.testing.assert_allclose(predictions.logits.softmax(-1), P, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("y.npy", LABELS),
        ("y.pt", LABELS),
        ("y.npz", LABELS),
        ("y.txt", "\n".join(map(str, LABELS))),
        ("y.csv", "file,label\n" + "\n".join(f"{i}.png,{y}" for i, y in enumerate(LABELS))),
        ("names.csv", "label\n" + "\n".join(np.array(["cat", "dog", "emu"])[LABELS])),
    ],
)
def test_labels_come_in_files_of_their_own(name, content, tmp_path):
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif name.endswith("npz"):
        np.savez(path, labels=content)
    else:
        write(path, content)
    _, labels = rightly.load(write(tmp_path / "a.csv", LOGITS), labels=path)
    np.testing.assert_array_equal(labels, LABELS)
    with_own = write(tmp_path / "own.csv", LOGITS, LABELS)
    with pytest.raises(ValueError, match=r"labels must be given once: .*own.csv has its own"):
        rightly.load(with_own, labels=path)


@pytest.mark.parametrize("labels", [LABELS, np.array(["cat", "dog", "emu"])[LABELS]])
def test_a_table_has_a_column_a_class_and_labels_by_number_or_name(labels, tmp_path):
    predictions, read = rightly.load(write(tmp_path / "a.csv", LOGITS, labels))
    assert predictions.class_names == ("cat", "dog", "emu")
    np.testing.assert_array_equal(read, LABELS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1,2\n1.5,2,3\n", "first line must name the columns, got the numbers"),
        ("cat,cat\n1,2\n", "must name every column once"),
        ("cat,dog\n1\n", "must have rows of 2 cells"),
        ("cat,dog\n", "must have rows of 2 cells"),
        ("cat,dog\n1,tea\n", "could not convert string to float: 'tea'"),
        ("cat,dog,label\n1,2,tea\n", "labels must be whole numbers from 0, or cat, dog, got 'tea'"),
        ("cat,dog,label\n1,2,2\n", r"labels must lie in 0..1 for 2 classes, got 2"),
        ("cat,dog\n1,nan\n", "logits must be finite"),
        ("", "must have rows of 0 cells|first line"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_by_name(text, message, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"a.csv: .*({message})"):
        rightly.load(tmp_path / "a.csv")


class Evil:
    def __reduce__(self):
        return (print, ("code ran",))


def test_nothing_is_ever_unpickled(tmp_path, capsys):
    with (tmp_path / "evil.pt").open("wb") as file:
        pickle.dump(Evil(), file)
    torch.save({"logits": Evil()}, tmp_path / "evil2.pt")
    np.save(tmp_path / "evil.npy", np.array([Evil()]), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes(write(tmp_path / "a.npy", LOGITS).read_bytes()[:-5])
    (tmp_path / "text.pt").write_text("hello")
    torch.save([1, 2], tmp_path / "list.pt")
    for name in ("evil.pt", "evil2.pt", "evil.npy", "cut.npy", "text.pt", "list.pt"):
        with pytest.raises(ValueError, match=name):
            rightly.load(tmp_path / name)
    assert "code ran" not in capsys.readouterr().out
    for suffix in (".npy", ".pt", ".csv"):
        with pytest.raises(FileNotFoundError, match=f"there is no predictions file .*no{suffix}"):
            rightly.load(tmp_path / f"no{suffix}")


def test_whatever_torch_makes_of_a_damaged_file_names_it(tmp_path):
    path = tmp_path / "cal.pt"
    torch.save({"logits": torch.zeros(2, 2), "labels": [[0], [1, 2]]}, path)
    with pytest.raises(ValueError, match=r"cal\.pt cannot be read as tensors"):
        rightly.load(path)
