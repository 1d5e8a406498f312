"""Tables: gaps are filled and marked, names kept, categories refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.persistence.onnx.twins import QUIET, assert_twin, table
from tests.small import small

from denspu._frame import Frame
from denspu.exceptions import ModelFileError
from denspu.persistence.onnx.answers import answers_twin
from denspu.persistence.onnx.inputs import drawn_rows, input_spec

pytestmark = QUIET


def test_gaps_of_a_table_are_filled_and_marked():
    X = table().X.copy()
    X[::7, 2] = np.nan
    model = small("nnpu", random_state=0).fit(X, table().y)
    spec = input_spec(model, None)
    assert np.isnan(drawn_rows(model, spec, 200)[:, 2]).any()
    assert_twin(model, X)


def test_named_columns_of_numbers_are_taken():
    columns = {f"c{i}": table().X[:, i] for i in range(6)}
    model = small("elkan_noto", random_state=0).fit(Frame(columns), table().y)
    assert input_spec(model).columns == tuple(columns)
    assert_twin(model, Frame(columns))


@pytest.mark.parametrize("numbers", [6, 0])
def test_categories_are_refused_by_name(numbers):
    columns = {f"c{i}": table().X[:, i] for i in range(numbers)}
    columns["town"] = np.where(table().X[:, 0] > 4, "A", "B").astype(object)
    model = small("elkan_noto", random_state=0).fit(Frame(columns), table().y)
    for refused in (
        lambda: drawn_rows(model, input_spec(model), 5),
        lambda: answers_twin(model, "float64"),
    ):
        with pytest.raises(ModelFileError, match="town hold categories"):
            refused()
