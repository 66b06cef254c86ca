"""The page of a report: its sections, their titles, and what stands around them."""

import datetime
from collections.abc import Sequence

from analysis.report import benchmark, html, matrices, optional, study_page
from analysis.report.inputs import Study
from analysis.selection.algorithm import Selection

_SOURCES = (
    "Overlap, benchmark selection and balance: Laugros, Caplier, Ospici, “Using the Overlapping Score to Improve "
    "Corruption Benchmarks” and “Increasing the Coverage and Balance of Robustness Benchmarks by Using Non-Overlapping "
    "Corruptions”."
)


def document(study: Study, selections: Sequence[Selection] | None, strips) -> html.Html:
    """Puts the page together.

    Args:
      study: of `analysis.report.inputs.read`.
      selections: benchmarks by threshold (`analysis.report.benchmark.sweep`), or None.
      strips: sample pictures (`analysis.report.samples.Strips`), or a sentence that says why there
        are none.
    """
    sections = (
        ("study", "What was run", study_page.study_section(study)),
        ("overlap", "Overlap", matrices.overlap_section(study)),
        ("transfer", "Transfer", matrices.transfer_section(study)),
        ("balance", "Balance", benchmark.balance_section(study)),
        ("sweep", "Thresholds", benchmark.sweep_section(study, selections)),
        ("benchmark", "Benchmark", benchmark.benchmark_section(study, strips)),
        ("warnings", "Warnings", study_page.warnings_section(study)),
        ("further", "Further results", optional.optional_section(study)),
    )
    tag = html.tag
    contents = tag("ol", *(tag("li", tag("a", short, href=f"#{identity}")) for identity, short, _ in sections))
    return html.page(
        study_page.title(study),
        html.join([section for _, _, section in sections], "\n"),
        summary=study_page.summary(study),
        contents=contents,
        footer=f"Made by tools.report on {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC. {_SOURCES}",
    )
