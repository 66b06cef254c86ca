"""A small ImageNet and a store of it, made once in a process; tests that change a store take a copy."""

import shutil

import pytest

from data.imagenet import prepare
from tests.data.imagenet import trees
from tests.data.imagenet.trees import SMALL


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    return trees.write(tmp_path_factory.mktemp("imagenet"))


@pytest.fixture(scope="session")
def prepared(tree, tmp_path_factory):
    out = tmp_path_factory.mktemp("prepared")
    prepare.prepare("imagenet100", tree, out, **SMALL)
    return out


@pytest.fixture
def copy(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "copy")
