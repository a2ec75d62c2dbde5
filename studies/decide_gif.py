"""The moving picture of the README, and its example page: a limit is dragged, a promise appears.

`python -m studies decide_gif`, on the recorded demo: nothing but what ships is needed.
"""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path
from typing import Any

from PIL import Image

from calibrant.verbs.audit import audit
from calibrant.verbs.demo import demo
from studies.doc_pictures import IMAGES
from studies.gallery import browser

SIZE, SHOWN = (1280, 800), (960, 600)
EXAMPLE = IMAGES.parent / "files" / "example.html"
MODEL, METHOD = "qwen2.5-coder-1.5b", "consistency"
START, END = 0.2, 0.35
STEPS = 14
MOST_BYTES = 1_500_000


def main() -> None:
    window = browser()
    if window is None:
        print("no browser: the picture is left as it is")
        return
    with tempfile.TemporaryDirectory() as name:
        study = Path(name) / "demo"
        demo(study, recorded=True)
        with chdir(name):  # a page names its input as it was typed
            audit("demo", cluster="question_id").to_html(EXAMPLE)
        command = [sys.executable, "-m", "calibrant", "view", str(study), "--no-open"]
        command += ["--cluster", "question_id"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            address = server.stderr.readline().rpartition(" ")[2].strip()
            frames = list(drag(window, address))
            server.terminate()
    window.quit()
    save(frames, IMAGES / "decide.gif")


def drag(window: Any, address: str) -> Any:
    """Yield pictures with the time each is shown: before, while the limit moves, and after."""
    width, height = SIZE
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    window.get(address)
    state = f"tab=decide&model={MODEL}&method={METHOD}&decide.max_error={START}"
    window.get(f"{address.partition('?')[0]}?{state}")
    settle(window)
    window.execute_script("document.querySelector('.drag').scrollIntoView({block: 'nearest'})")
    time.sleep(0.5)
    yield picture(window), 1500
    handle = window.find_element("css selector", ".handle .knob")
    box = window.execute_script("return arguments[0].getBoundingClientRect().toJSON()", handle)
    scale = window.execute_script(
        "const s = document.querySelector('.drag svg');"
        " const d = s.dataset.domain.split(' ').map(Number),"
        " p = s.dataset.plot.split(' ').map(Number), m = s.getScreenCTM();"
        " return (p[3] - p[2]) / (d[3] - d[2]) * m.d"
    )
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse(window, "mousePressed", x, y)
    for step in range(1, STEPS + 1):
        mouse(window, "mouseMoved", x, y + scale * (END - START) * step / STEPS)
        time.sleep(0.05)
        yield picture(window), 130
    mouse(window, "mouseReleased", x, y + scale * (END - START))
    time.sleep(0.3)
    settle(window)
    yield picture(window), 3500


def settle(window: Any) -> None:
    ready = "return !document.querySelector('[aria-busy], .working')"
    for _ in range(300):
        time.sleep(0.2)
        if window.execute_script(ready):
            break
    time.sleep(0.5)


def mouse(window: Any, kind: str, x: float, y: float) -> None:
    button = {"button": "left", "buttons": 0 if kind == "mouseReleased" else 1, "clickCount": 1}
    window.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **button})


def picture(window: Any) -> Image.Image:
    shot = window.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    whole = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    return whole.resize(SHOWN, Image.Resampling.LANCZOS)


def save(frames: list[tuple[Image.Image, int]], path: Path) -> None:
    """Save with one palette for all frames, so that only what moves is stored anew."""
    palette = frames[-1][0].quantize(64)
    images = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame, _ in frames]
    images[0].save(
        path,
        save_all=True,
        append_images=images[1:],
        duration=[shown for _, shown in frames],
        loop=0,
        optimize=True,
    )
    size = path.stat().st_size
    print(f"{path.name}: {len(images)} frames, {size / 1e3:,.0f} kB")
    if size > MOST_BYTES:
        raise RuntimeError(f"{path.name} is larger than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main()
