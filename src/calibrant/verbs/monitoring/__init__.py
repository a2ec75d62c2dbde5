"""Parts of `monitor`: the stream in batches, the baseline, the promise of a policy."""
