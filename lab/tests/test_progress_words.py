"""What a run prints of its samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import fake_results

from bolide_lab import cli
from bolide_lab.report import data


def test_many_samples_are_told_by_the_middle_time_of_each_arm(tmp_path: Path) -> None:
    run = data.read(fake_results.write(tmp_path / "run"), {})
    one = run.samples[0]
    several = [
        replace(one, scenario=f"C1:{arm}", seconds=seconds)
        for arm, seconds in (("h3", 0.1), ("h2", 0.2), ("h3", 0.3), ("h2", 0.4), ("h3", 0.2))
    ]
    assert cli._told(several) == "5 samples: C1:h3 200.0 ms, C1:h2 400.0 ms"
    assert " req/s " in cli._told([one])
