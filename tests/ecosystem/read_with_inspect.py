"""Read logs with Inspect's own reader and write their tables: `read_with_inspect.py LOG..`."""

import json
import sys
from pathlib import Path

from inspect_ai.log import read_eval_log

from calibrant.data.logs.recognise import read_log

if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        # Inspect brings the samples into the layout of its own version, whatever the file's is.
        own = read_eval_log(str(path)).model_dump(mode="json") | {"version": 2}
        copy = Path(f"{path.name}.own.json")
        copy.write_text(json.dumps(own))
        log = read_log(copy, kind="inspect")
        for table in ("questions", "draws", "scores"):
            getattr(log, table).write_parquet(f"{path.name}.{table}.parquet")
