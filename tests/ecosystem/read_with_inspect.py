"""Read logs with Inspect's own reader and write their tables: `read_with_inspect.py LOG..`."""

import sys
from pathlib import Path

from calibrant.records.convert import ReadOptions
from calibrant.records.convert.inspect_log import read_inspect_with_framework

if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        log = read_inspect_with_framework(path, ReadOptions())
        for table in ("questions", "draws", "scores"):
            getattr(log, table).write_parquet(f"{path.name}.{table}.parquet")
