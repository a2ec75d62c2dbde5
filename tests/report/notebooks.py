"""Notebooks of the documentation, run cell by cell as a notebook would."""

import ast
import json
from pathlib import Path

Output = dict[str, list[str]]


def run_notebook(path: Path) -> dict:
    """Return the notebook with what its cells show now."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            shown = _shown("".join(cell["source"]), names)
            head = {"output_type": "execute_result", "execution_count": cell["execution_count"]}
            cell["outputs"] = [{**head, "metadata": {}, "data": shown}] if shown else []
    return notebook


def write_notebook(notebook: dict, path: Path) -> None:
    """Write it as the editors of notebooks do."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def plain_outputs(notebook: dict) -> list[str]:
    """Return the text that each code cell shows."""
    return [
        "".join(output["data"]["text/plain"])
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
    ]


def html_outputs(notebook: dict) -> str:
    """Return what a browser shows of all cells."""
    return "".join(
        "".join(output["data"].get("text/html", ()))
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
    )


def _shown(source: str, names: dict) -> Output:
    """Run a cell; the value of its last line is shown."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return {}
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    shown = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        shown["text/html"] = value._repr_html_().splitlines(keepends=True)
    return shown
