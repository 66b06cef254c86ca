"""Fixtures of the tests of training: a mesh of one device, and few images of the embedded dataset."""

import pytest

import data
from runtime import meshes


@pytest.fixture(scope="session")
def mesh():
    return meshes.data_mesh()


@pytest.fixture(scope="session")
def dataset():
    return data.load("shapes", train_limit=160, test_limit=70)
