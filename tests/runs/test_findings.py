"""What a run says of itself where little is known."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from tests.runs.test_fit_run import make_table, options

from denspu._evidence import Evidence
from denspu.exceptions import PriorDisagreementWarning
from denspu.report.words import result_lines
from denspu.runs import findings, fit_run


def test_a_check_that_could_not_be_made_is_neither_good_nor_bad(tmp_path):
    """Five held-out positives cannot show whether labels were given at random."""
    make_table(tmp_path / "t.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts, _ = fit_run(options(tmp_path))
    check = next(c for c in facts.checks if c.name == "labels at random")
    assert check.ok is None
    assert check.sentence.startswith("Too few to compare")
    told = [sentence for _, sentence in result_lines(facts, None)]
    assert check.sentence not in told


@pytest.mark.parametrize("share", [0.05, 0.4, 0.95])
def test_a_given_share_is_a_row_among_what_the_scores_say(monkeypatch, share):
    """Below their interval, inside it and above; what estimators doubt is not told."""
    rng = np.random.default_rng(0)
    hidden, others = rng.normal(3, 1, 80), rng.normal(-3, 1, 120)
    evidence = Evidence(
        rng.normal(3, 1, 40),
        np.concatenate([hidden, others]),
        n_labeled=40,
        prior_in_unlabeled=share,
        prior_interval=(share, share),
    )
    judge = findings.with_estimated_prior

    def doubting(*given):
        warnings.warn("set the prior yourself", PriorDisagreementWarning, stacklevel=2)
        return judge(*given)

    monkeypatch.setattr(findings, "with_estimated_prior", doubting)
    model = SimpleNamespace(evidence_=evidence, threshold_=0.0)
    rows = findings.sensitivity_of(model, findings.Shares(200, 0, 0))
    priors = [row.prior for row in rows]
    low, high = judge(evidence, None, 0).prior_interval
    assert low < 0.4 < high
    assert share in priors
    assert priors[0] == pytest.approx(min(share, low))
    assert priors[-1] == pytest.approx(max(share, high))
