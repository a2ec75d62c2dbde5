"""Vega as one script, shipped with the package.

A page carries it for the charts that a reader can change. It is made from the bundle of
vl-convert, which weighs a hundred times as much and is needed only to write png and pdf files:
`python -m calibrant.report.page.vega` makes it again after an update.
"""

from __future__ import annotations

import base64
import gzip
from functools import lru_cache
from importlib import resources
from pathlib import Path

from calibrant.core.optional import optional_import

_ASSET = "vega.js.gz"


def _packed_bytes() -> bytes:
    return resources.files("calibrant.report").joinpath("assets", _ASSET).read_bytes()


@lru_cache(maxsize=1)
def vega_script() -> str:
    """Return the script.

    Examples
    --------
    >>> "vegaEmbed" in vega_script()
    True
    """
    return gzip.decompress(_packed_bytes()).decode()


@lru_cache(maxsize=1)
def packed_vega() -> str:
    """Return the script packed: it is unpacked and run when a reader opens the first chart."""
    return base64.b64encode(_packed_bytes()).decode()


def _write() -> None:
    convert = optional_import("vl_convert", extra="figures", purpose="making the script again")
    bundle: str = convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    place = Path(__file__).parent.parent / "assets" / _ASSET
    place.write_bytes(gzip.compress(bundle.encode(), 9, mtime=0))


if __name__ == "__main__":
    _write()
