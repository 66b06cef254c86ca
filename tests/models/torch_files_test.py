"""Files of PyTorch weights: what is read, and that nothing is ever unpickled by us."""

import json
import pathlib
import pickle
import sys
import traceback
import types

import numpy as np
import pytest
from safetensors.numpy import save_file

from models import torch_files


class Harm:
    """A pickle that leaves a trace when it is loaded by an ordinary unpickler."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return pathlib.Path.touch, (pathlib.Path(self.trace),)


@pytest.fixture
def harmful(tmp_path):
    """(file, what appears next to it when its pickle is run)."""
    path, trace = tmp_path / "weights.pth", tmp_path / "trace"
    path.write_bytes(pickle.dumps({"fc.weight": Harm(trace)}))
    return path, trace


def fake_torch(monkeypatch, version, content):
    """A stand-in for PyTorch that notes how it was asked to load."""
    calls = []

    def load(path, **options):
        calls.append(options)
        return content

    fake = types.SimpleNamespace(__version__=version, load=load, Tensor=Tensor, strided="strided")
    monkeypatch.setitem(sys.modules, "torch", fake)
    return calls


class Tensor:
    layout, is_quantized, is_meta, is_nested = "strided", False, False, False

    def __init__(self, values, **facts):
        self.values = np.asarray(values, np.float32)
        vars(self).update(facts)

    def is_floating_point(self):
        return True

    def element_size(self):
        return 4

    def detach(self):
        return self.values


def test_safetensors_come_back_as_they_were(tmp_path):
    arrays = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(5, np.int64)}
    save_file(arrays, tmp_path / "x.safetensors", metadata={"format": "pt"})
    found = torch_files.read(tmp_path / "x.safetensors")
    assert found.keys() == arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == array.dtype


def test_without_torch_the_way_out_is_told(harmful, monkeypatch):
    path, trace = harmful
    monkeypatch.setitem(sys.modules, "torch", None)  # `import torch` fails as if it were not installed
    with pytest.raises(RuntimeError, match="needs PyTorch") as caught:
        torch_files.read(path)
    assert "save_file(w, 'weights.safetensors')" in str(caught.value) and "'model_state_dict'" in str(caught.value)
    assert "weights_only=True" in str(caught.value) and not trace.exists()


@pytest.mark.parametrize(
    "version, safe", [("1.13.1", False), ("2.5.1+cu1", False), ("2.6.0+cpu", True), ("2.13", True)]
)
def test_only_the_safe_loader_of_a_safe_version_is_used(tmp_path, monkeypatch, version, safe):
    (tmp_path / "x.pt").write_bytes(b"")
    calls = fake_torch(monkeypatch, version, {"state_dict": {"module.w": Tensor([1, 2])}, "epoch": 3})
    if safe:
        found = torch_files.read(tmp_path / "x.pt")
        assert list(found) == ["w"] and found["w"].tolist() == [1, 2]
        assert calls == [{"map_location": "cpu", "weights_only": True}]
    else:
        with pytest.raises(RuntimeError, match=rf"expected PyTorch 2\.6 or newer .* found {version[:5]}"):
            torch_files.read(tmp_path / "x.pt")
        assert not calls


LAYOUTS = {  # of the public files of robust ResNet-50s, but for the number of arrays
    "SIN": lambda w: {"epoch": 60, "arch": "resnet50", "best_prec1": Tensor(60), "state_dict": wrapped(w)},
    "AugMix": lambda w: {"model": "resnet50", "state_dict": wrapped(w), "best_acc1": 77.5, "optimizer": {}},
    "DeepAugment": lambda w: {"epoch": 30, "arch": "resnet50", "state_dict": wrapped(w), "optimizer": {"state": {}}},
    "ANT": lambda w: {"model_state_dict": w, "epoch": 100},
    "model": lambda w: {"model": wrapped(w), "args": None},
    "model of a model": lambda w: {"model": {"state_dict": wrapped(w, "module.model.")}},
    "plain": lambda w: w,
}


def wrapped(weights, before="module."):
    return {before + name: tensor for name, tensor in weights.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_are_found_in_files_of_training_scripts(tmp_path, monkeypatch, layout):
    fake_torch(monkeypatch, "2.6.0", LAYOUTS[layout]({"conv1.weight": Tensor([1, 2]), "fc.bias": Tensor([3])}))
    for ending in ("pth", "pth.tar", "pt"):
        (tmp_path / f"x.{ending}").write_bytes(b"")
        found = torch_files.read(tmp_path / f"x.{ending}")
        assert {name: array.tolist() for name, array in found.items()} == {"conv1.weight": [1, 2], "fc.bias": [3]}


def test_the_refusal_does_not_advise_to_load_without_the_check(tmp_path, monkeypatch):
    """PyTorch's own text does; a traceback would print it as the cause."""
    (tmp_path / "x.pth").write_bytes(b"")
    fake_torch(monkeypatch, "2.6.0", {})

    def load(path, **options):
        raise pickle.UnpicklingError("Re-running `torch.load` with `weights_only` set to `False` will likely succeed")

    monkeypatch.setattr(sys.modules["torch"], "load", load)
    with pytest.raises(ValueError, match=r"x\.pth is refused by torch\.load\(weights_only=True\)") as caught:
        torch_files.read(tmp_path / "x.pth")
    shown = "".join(traceback.format_exception(caught.value))
    assert "False" not in shown and "succeed" not in shown and "safetensors" in shown


CIRCLE = {"w": Tensor([1])}
CIRCLE["state_dict"] = CIRCLE


@pytest.mark.parametrize(
    "content, message",
    [
        ([Tensor([1])], "expected a state_dict, names with tensors, found list"),
        ({"w": Tensor([1]), "epoch": 3}, "expected only tensors, found others at epoch"),
        ({0: Tensor([1]), "w": Tensor([2])}, "expected names of tensors, found the key 0 of type int"),
        (CIRCLE, "expected only tensors, found others at state_dict"),
        ({"w": Tensor([1], layout="sparse_coo")}, "expected dense tensors with values, found a sparse_coo one at w"),
        ({"w": Tensor([1], is_quantized=True)}, "expected dense tensors with values, found a quantised one at w"),
        ({"w": Tensor([1], is_meta=True)}, "expected dense tensors with values, found a meta one at w"),
    ],
)
def test_what_is_no_state_dict_is_named(tmp_path, monkeypatch, content, message):
    (tmp_path / "x.pth").write_bytes(b"")
    fake_torch(monkeypatch, "2.6.0", content)
    with pytest.raises(ValueError, match=rf"x\.pth: {message}"):
        torch_files.read(tmp_path / "x.pth")


def test_unreadable_files_are_named(tmp_path):
    (tmp_path / "cut.safetensors").write_bytes(b"12345")
    header = json.dumps({"x": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "float8.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    for name, error, message in (
        ("missing.safetensors", FileNotFoundError, r"found no file .*missing\.safetensors"),
        ("x.h5", ValueError, r"expected weights in a \.safetensors, \.pth or \.pt file, found .*x\.h5"),
        ("cut.safetensors", ValueError, r"cut\.safetensors is no readable safetensors file"),
        ("float8.safetensors", ValueError, r"float8\.safetensors is no readable safetensors file: .*float8_e4m3fn"),
    ):
        with pytest.raises(error, match=message):
            torch_files.read(tmp_path / name)


@pytest.mark.needs("torch")
def test_pth_files_through_pytorch(tmp_path, harmful):
    import torch

    tensors = {"w": torch.arange(6).reshape(2, 3).float(), "half": torch.ones(2, dtype=torch.bfloat16)}
    torch.save({"state_dict": tensors, "epoch": 3}, tmp_path / "x.pth")
    found = torch_files.read(tmp_path / "x.pth")
    np.testing.assert_array_equal(found["w"], np.arange(6).reshape(2, 3))
    assert found["w"].dtype == found["half"].dtype == np.float32 and found["half"].tolist() == [1, 1]
    odd = {"sparse": torch.eye(2).to_sparse(), "meta": torch.empty(2, device="meta")}
    odd["quantised"] = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    for kind, tensor in odd.items():
        torch.save({"w": tensor}, tmp_path / "odd.pth")
        with pytest.raises(ValueError, match=rf"odd\.pth.*({kind}|refused by torch)"):
            torch_files.read(tmp_path / "odd.pth")
    path, trace = harmful
    with pytest.raises(ValueError, match=r"refused by torch\.load\(weights_only=True\)"):
        torch_files.read(path)
    assert not trace.exists()
