"""Sampled answers with references: read in any shape, clustered, graded and scored."""

from calibrant.inputs.samples.read import SampleColumns, Samples, read_samples
from calibrant.inputs.samples.source import GradedSamples, grade_samples

__all__ = ["GradedSamples", "SampleColumns", "Samples", "grade_samples", "read_samples"]
