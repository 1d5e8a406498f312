"""What a run says of itself where little is known."""

from __future__ import annotations

import warnings

from tests.runs.test_fit_run import make_table, options

from denspu.runs import fit_run
from denspu.runs.words import result


def test_a_check_that_could_not_be_made_is_neither_good_nor_bad(tmp_path):
    """Five held-out positives cannot show whether labels were given at random."""
    make_table(tmp_path / "t.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts, _ = fit_run(options(tmp_path))
    check = next(c for c in facts.checks if c["name"] == "labels at random")
    assert check["ok"] is None
    assert check["sentence"].startswith("Too few rows to compare")
    told = [sentence for _, sentence in result(facts, options(tmp_path))]
    assert check["sentence"] not in told
