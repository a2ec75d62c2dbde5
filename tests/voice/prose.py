"""Sentences of pages, help and messages, for the tests of this folder."""

import ast
import functools
import re

from support import ROOT

SOURCE = ROOT / "src" / "calibrant"
_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|vs|cf|et al|Eq|Fig|Sec)\.")
_END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(*_]*(?:[A-Z0-9`]|calibrant|torch))")


def sentences_of_page(text):
    """Return the sentences of running text; tables, code and headings are left out."""
    text = _COMMENT.sub("", _FENCE.sub("\n\n", text))
    text = re.sub(r"^:::.*(\n    .*)*", "", text, flags=re.MULTILINE)
    blocks, block = [], []
    for line in text.splitlines():
        bare = line.strip()
        starts = re.match(r"([-*+]|\d+\.)\s", bare)
        if not bare or starts or bare.startswith(("|", "#", ">")):
            blocks.append(" ".join(block))
            block = []
        if bare and not bare.startswith(("|", "#")):
            block.append(re.sub(r"^([-*+]|\d+\.|>)\s", "", bare))
    blocks.append(" ".join(block))
    return [sentence for block in blocks for sentence in sentences(block)]


def sentences(text):
    """Return the sentences of a paragraph, code and addresses as one word each."""
    text = _IMAGE.sub("", text).replace("\n  -> ", ". X ")
    text = _LINK.sub(r"\1", text)
    text = _CODE.sub("CODE", text)
    text = _ABBREVIATED.sub(r"\1", text)
    return [part.strip() for part in _END.split(text) if len(part.split()) > 1]


def length(sentence):
    """Return the number of words: what has a letter or a digit in it."""
    return sum(1 for word in sentence.split() if re.search(r"\w", word))


def text_of(node):
    """Return the text of a string expression; what is filled in stands as one word."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else "X" for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None and right is None else (left or "X") + (right or "X")
    if isinstance(node, ast.Call) and _name(node.func) == "Hint" and node.args:
        return text_of(node.args[0])
    return None


def _name(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@functools.cache
def nodes():
    """Return every string and every call of the source, with its file: read once."""
    kinds = ast.Call | ast.Constant | ast.JoinedStr
    return [
        (path.relative_to(SOURCE), node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, kinds)
    ]


def calls(*names):
    """Yield every call of one of these names in the source: file, line and node."""
    for path, node in nodes():
        if isinstance(node, ast.Call) and _name(node.func) in names:
            yield path, node.lineno, node


def messages():
    """Yield every message of an error and every hint: where, and its text."""
    errors = (
        "InputError", "UnavailableError", "SchemaError", "BudgetError", "CapabilityError",
        "ClaimFailed", "ClientError", "PermanentClientError", "MissingDependencyError",
    )  # fmt: skip
    for path, line, node in calls(*errors):
        parts = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "hint")]
        for part in parts:
            text = text_of(part)
            if text:
                yield f"{path}:{line}", text
