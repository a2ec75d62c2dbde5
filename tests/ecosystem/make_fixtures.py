"""Write the fixture logs with the real frameworks: `python tests/ecosystem/make_fixtures.py`.

Needs inspect-ai, lm-eval, crfm-helm, uqlm and lm-polygraph, the last three with torch: name a
function (`make_fixtures.py inspect_logs`) to run one of them in an environment of its own.
"""

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE / "fixtures"


def inspect_logs():
    from inspect_ai import eval as inspect_eval

    sys.path.insert(0, str(HERE))
    import inspect_tasks

    for name, questions, epochs, log_format in (
        ("inspect.eval", 8, 10, "eval"),
        ("inspect.json", 4, 3, "json"),
    ):
        folder = FIXTURES / "work"
        logs = inspect_eval(
            inspect_tasks.capitals(questions),
            epochs=epochs,
            max_connections=1,
            max_samples=1,
            log_dir=str(folder),
            display="none",
            log_format=log_format,
        )
        shutil.move(logs[0].location, FIXTURES / name)
        shutil.rmtree(folder)


def lm_eval_samples():
    folder = FIXTURES / "work"
    subprocess.run([sys.executable, str(HERE / "lm_eval_run.py"), str(folder)], check=True)
    target = FIXTURES / "lm_eval"
    shutil.rmtree(target, ignore_errors=True)
    shutil.move(next(folder.iterdir()), target)
    shutil.rmtree(folder)


def helm_run():
    subprocess.run([sys.executable, str(HERE / "helm_run.py"), str(FIXTURES / "helm")], check=True)


def uqlm_table():
    subprocess.run([sys.executable, str(HERE / "uqlm_table.py"), FIXTURES / "uqlm.csv"], check=True)


def polygraph_run():
    target = FIXTURES / "lm_polygraph.pth"
    subprocess.run([sys.executable, str(HERE / "polygraph_run.py"), target], check=True)


if __name__ == "__main__":
    for make in (inspect_logs, lm_eval_samples, helm_run, uqlm_table, polygraph_run):
        if len(sys.argv) == 1 or make.__name__ in sys.argv[1:]:
            make()
