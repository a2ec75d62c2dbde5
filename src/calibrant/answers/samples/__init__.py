"""Sampled answers with references: read in any shape, clustered, graded and scored."""

from calibrant.answers.samples.read import SampleColumns, Samples, read_samples
from calibrant.answers.samples.source import GradedSamples, grade_samples

__all__ = ["GradedSamples", "SampleColumns", "Samples", "grade_samples", "read_samples"]
