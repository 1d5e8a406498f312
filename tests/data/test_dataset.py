from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from denspu.data import make_pu


@pytest.fixture
def data():
    X = np.arange(10.0)[:, None]
    return make_pu(X, [1, 0] * 5, n_labeled=2, random_state=0)


def test_x_and_y_do_not_lead_to_the_truth(data):
    assert data.oracle.labels.sum() == 5
    assert data.y.sum() == 2
    assert not np.shares_memory(data.y, data.oracle.labels)
    fields = {field.name for field in dataclasses.fields(data)}
    assert fields == {
        "X", "y", "index", "groups", "scenario", "mechanism", "oracle"
    }  # fmt: skip


def test_reprs_show_no_labels(data):
    assert repr(data.oracle) == "<Oracle of 10 rows>"
    assert repr(data) == (
        "PUDataset(10 rows, n_labeled=2, scenario='one-sample', mechanism='scar')"
    )


def test_a_dataset_is_frozen_and_cannot_be_unpacked(data):
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = data.oracle.labels
    with pytest.raises(TypeError, match="unpack"):
        _X, _y = data


def test_oracle_knows_the_unlabelled_rows(data):
    expected = np.array([1, 0] * 5)[data.unlabeled_index]
    assert (data.oracle.unlabeled_labels == expected).all()
    assert data.oracle.prior == 0.5
    assert data.oracle.prior_in_unlabeled == 3 / 8
