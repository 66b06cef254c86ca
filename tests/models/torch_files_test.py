"""Files of PyTorch weights: what is read, and that no program in one is ever run."""

import collections
import io
import json
import pathlib
import pickle
import sys
import types
import zipfile

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


class Tensor:
    """Pickled as PyTorch pickles a tensor, whose module need not be there."""

    def __init__(self, values, kind="Float", **changed):
        self.values, self.kind, self.changed = np.asarray(values, np.float32), kind, changed

    def __reduce__(self):
        values = self.values
        given = {"offset": 0, "size": values.shape, "stride": tuple(n // 4 for n in values.strides)} | self.changed
        return sys.modules["torch._utils"]._rebuild_tensor_v2, (Storage(self), *given.values(), False, {})


class Storage:
    def __init__(self, tensor):
        self.values, self.kind = tensor.values.ravel(), getattr(sys.modules["torch"], f"{tensor.kind}Storage")


class Writer(pickle.Pickler):
    """Names storages and keeps them, {key: values}."""

    def __init__(self, file):
        super().__init__(file, protocol=2)
        self.storages = {}

    def persistent_id(self, thing):
        if not isinstance(thing, Storage):
            return None
        key = str(len(self.storages))
        self.storages[key] = thing.values
        return ("storage", thing.kind, key, "cuda:0", thing.values.size, *([None] if self.old else []))


@pytest.fixture(params=["stream", "archive"])
def save(request, monkeypatch):
    """(path, content) -> a file as `torch.save` writes it, in either of its forms."""
    names = {"torch": ("FloatStorage",), "torch._utils": ("_rebuild_tensor_v2", "_rebuild_sparse_tensor")}
    for module, members in names.items():
        made = {name: type(name, (), {"__module__": module}) for name in members}
        monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**made))

    def write(path, content):
        inside = io.BytesIO()
        writer = Writer(inside)
        writer.old = request.param == "stream"
        if writer.old:
            for head in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True, "protocol_version": 1001}):
                pickle.dump(head, inside, 2)
        writer.dump(content)
        if writer.old:
            pickle.dump(sorted(writer.storages), inside, 2)
            values = b"".join(
                a.size.to_bytes(8, "little") + a.tobytes()
                for a in (writer.storages[k] for k in sorted(writer.storages))
            )
            path.write_bytes(inside.getvalue() + values)
            return
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", inside.getvalue())
            for key, values in writer.storages.items():
                archive.writestr(f"archive/data/{key}", values.tobytes())

    return write


def test_safetensors_come_back_as_they_were(tmp_path):
    arrays = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(5, np.int64)}
    save_file(arrays, tmp_path / "x.safetensors", metadata={"format": "pt"})
    found = torch_files.read(tmp_path / "x.safetensors")
    assert found.keys() == arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(found[key], array)
        assert found[key].dtype == array.dtype


def test_a_file_that_runs_a_program_is_refused_and_does_not_run(harmful):
    path, trace = harmful
    with pytest.raises(ValueError, match=r"weights\.pth: expected only tensors and plain containers"):
        torch_files.read(path)
    assert not trace.exists()


def test_no_name_but_the_known_ones_is_called(save, tmp_path, harmful):
    _, trace = harmful
    for found, content in (("sparse", sys.modules["torch._utils"]._rebuild_sparse_tensor), ("getattr", Harm(trace))):
        save(tmp_path / "x.pth", {"w": Tensor([1, 2]), "other": content})
        with pytest.raises(ValueError, match=f"expected only tensors and plain containers, .*{found}"):
            torch_files.read(tmp_path / "x.pth")
    assert not trace.exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"offset": 1},
        {"size": (2, 4)},
        {"stride": (9, 1)},
        {"offset": -1},
        {"stride": (-3, 1)},
        {"size": (2, 3, 1)},
        {"size": (2.0, 3)},
    ],
    ids=str,
)
def test_a_tensor_that_lies_about_its_place_is_refused(save, tmp_path, changed):
    save(tmp_path / "x.pth", {"w": Tensor(np.ones((2, 3)), **changed)})
    with pytest.raises(ValueError, match=r"x\.pth: .*a tensor (that reaches outside|of an impossible form)"):
        torch_files.read(tmp_path / "x.pth")


def test_tensors_are_views_of_their_values(save, tmp_path):
    values = np.arange(12).reshape(3, 4)
    turned = Tensor(values, offset=1, size=(3, 3), stride=(1, 4))
    save(
        tmp_path / "x.pth",
        {"turned": turned, "whole": Tensor(values), "none": Tensor(np.ones((0, 2))), "one": Tensor(3)},
    )
    found = torch_files.read(tmp_path / "x.pth")
    np.testing.assert_array_equal(found["turned"], values.T[1:])
    np.testing.assert_array_equal(found["whole"], values)
    assert found["none"].shape == (0, 2) and found["one"].shape == () and found["one"] == 3


def test_a_file_that_was_cut_is_refused(save, tmp_path):
    save(tmp_path / "x.pth", {"w": Tensor(np.ones((20, 30)))})
    whole = (tmp_path / "x.pth").read_bytes()
    for end in (0, 3, 60, 300, len(whole) - 1):
        (tmp_path / "x.pth").write_bytes(whole[:end])
        with pytest.raises(
            ValueError, match=r"x\.pth: expected only tensors and plain containers, found a damaged file"
        ):
            torch_files.read(tmp_path / "x.pth")


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
def test_weights_are_found_in_files_of_training_scripts(tmp_path, save, layout):
    content = LAYOUTS[layout](collections.OrderedDict({"conv1.weight": Tensor([1, 2]), "fc.bias": Tensor([3])}))
    for ending in ("pth", "pth.tar", "pt"):
        save(tmp_path / f"x.{ending}", content)
        found = torch_files.read(tmp_path / f"x.{ending}")
        assert {name: array.tolist() for name, array in found.items()} == {"conv1.weight": [1, 2], "fc.bias": [3]}


CIRCLE = {"w": Tensor([1])}
CIRCLE["state_dict"] = CIRCLE


@pytest.mark.parametrize(
    "content, message",
    [
        ([Tensor([1])], "expected a state_dict, names with tensors, found list"),
        ({"w": Tensor([1]), "epoch": 3}, "expected only tensors, found others at epoch"),
        ({0: Tensor([1]), "w": Tensor([2])}, "expected names of tensors, found the key 0 of type int"),
        (CIRCLE, "expected only tensors, found others at state_dict"),
    ],
)
def test_what_is_no_state_dict_is_named(tmp_path, save, content, message):
    save(tmp_path / "x.pth", content)
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
@pytest.mark.parametrize("archive", [True, False])
def test_files_of_pytorch_itself(tmp_path, archive):
    import torch

    weights = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).state_dict()
    shared = torch.arange(6)
    tensors = {**weights, "turned": shared.reshape(2, 3).t(), "part": shared[2:], "half": torch.ones(2).bfloat16()}
    tensors["parameter"] = torch.nn.Parameter(torch.ones(3))
    torch.save({"state_dict": tensors, "epoch": 3}, tmp_path / "x.pth", _use_new_zipfile_serialization=archive)
    found = torch_files.read(tmp_path / "x.pth")
    assert found.keys() == tensors.keys() and found["half"].dtype == np.float32
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor.detach().float().numpy())
    odd = {"sparse": torch.eye(2).to_sparse(), "meta": torch.empty(2, device="meta")}
    odd["q"] = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    for kind, tensor in odd.items():
        torch.save({"w": tensor}, tmp_path / "odd.pth", _use_new_zipfile_serialization=archive)
        with pytest.raises(ValueError, match=rf"odd\.pth: expected only tensors .*_rebuild_{kind}"):
            torch_files.read(tmp_path / "odd.pth")
