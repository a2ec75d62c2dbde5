"""An independent look at the fixture logs: command-line tools and plain Python, no calibrant."""

import json
import zipfile
from collections import Counter

import numpy as np
import zstandard


def inspect_samples(path):
    """Yield the samples of an Inspect archive, in the way of the zip specification."""
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.filename.startswith("samples/"):
                continue
            at = info.header_offset
            skip = 30 + int.from_bytes(data[at + 26 : at + 28], "little")
            skip += int.from_bytes(data[at + 28 : at + 30], "little")
            packed = data[at + skip : at + skip + info.compress_size]
            content = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
            yield json.loads(content)


def binned_error(confidence, correct, bins):
    """Expected calibration error with equal-width bins, written out."""
    confidence, correct = np.asarray(confidence, float), np.asarray(correct, float)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    total = 0.0
    for number in set(place.tolist()):
        here = place == number
        total += here.sum() / len(confidence) * abs(correct[here].mean() - confidence[here].mean())
    return total


def auroc_by_pairs(confidence, correct):
    """Share of (right, wrong) pairs in which the right one has the higher confidence."""
    right = [c for c, grade in zip(confidence, correct, strict=True) if grade]
    wrong = [c for c, grade in zip(confidence, correct, strict=True) if not grade]
    wins = sum((r > w) + 0.5 * (r == w) for r in right for w in wrong)
    return wins / (len(right) * len(wrong))


def modal(answers):
    """Return the most frequent answer (the first one on a tie) and its share."""
    counts = Counter(answers)
    answer = max(counts, key=lambda text: (counts[text], -answers.index(text)))
    return answer, counts[answer] / len(answers)
