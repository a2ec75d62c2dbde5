"""The input of an audit, whatever it is: rows in memory, sums of a large table, or samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.inputs.audit_options import AuditOptions
from calibrant.inputs.streams.large import is_streamed

if TYPE_CHECKING:
    from calibrant.inputs.audit_source import AuditSource
    from calibrant.inputs.samples.source import SampleRequest


def open_audit(
    data: Any, outcomes: Any, options: AuditOptions, samples: SampleRequest | None = None
) -> AuditSource:
    """Open what an audit was given.

    Parameters
    ----------
    data, outcomes
        As for `audit`.
    options
        The options of `audit`.
    samples
        What was asked for where the data are sampled answers that nobody has graded.
    """
    if samples is not None:
        from calibrant.inputs.samples.source import sample_source

        return sample_source(data, options, samples)
    if is_streamed(data, options.engine, options.needs_all_rows):
        from calibrant.inputs.streams.cell_source import cell_source

        return cell_source(data, options)
    # Both are loaded where they are used: each does without much that the other needs.
    from calibrant.inputs.opened.door import open_input
    from calibrant.inputs.row_source import row_source

    opened = open_input(data, outcomes, scale=options.scale, ranked=True, labels=options.labels)
    return row_source(opened, options)
