"""The tags of a page, as a browser would see them."""

from html.parser import HTMLParser


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def tags_of(page):
    """Return every tag of a page with its attributes, in order."""
    parser = _Tags()
    parser.feed(page)
    return parser.found
