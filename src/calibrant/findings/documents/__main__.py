"""Write the JSON Schema files of the documents: ``python -m calibrant.findings.documents``."""

from pathlib import Path

import orjson

from calibrant.findings.documents import FIELDS, document_schema

FOLDER = Path(__file__).parent / "schemas"


def schema_files() -> dict[str, bytes]:
    """Return the schemas by file name."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return {f"{kind}.json": orjson.dumps(document_schema(kind), option=options) for kind in FIELDS}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in schema_files().items():
        (FOLDER / name).write_bytes(text)
