"""Questions: files, public question sets, generated benchmarks."""
