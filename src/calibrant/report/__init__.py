"""Documents become terminals, pages, Markdown, tables and pictures.

Start with `result.Result` (what a verb returns), `cells.Table` (cells that stay numbers until a
writer takes them) and `charts.chart.Chart` (a picture, described once).
"""

from typing import TYPE_CHECKING

# Every kind of document has its class as soon as a result can be made.
import calibrant.report.result  # noqa: F401
from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.report.page import render_html as render_html
    from calibrant.report.terminal import print_block as print_block
    from calibrant.report.terminal import render_markdown as render_markdown
    from calibrant.report.terminal import render_text as render_text
    from calibrant.report.terminal import terminal_blocks as terminal_blocks
else:
    # What draws and fills a page is not loaded for a table in a terminal.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
