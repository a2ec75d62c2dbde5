"""A small chat endpoint on this machine: adds up, and errs now and then, the same on every run."""

import json
import random
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


@contextmanager
def serving(seed=3):
    """Yield (URL, replies given so far) while the endpoint is up."""
    rng, given = random.Random(seed), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            size = int(self.headers["Content-Length"])
            request = json.loads(self.rfile.read(size))
            given.append(answer(request["messages"][-1]["content"], rng))
            message = {"role": "assistant", "content": given[-1]}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            body = json.dumps({"model": request["model"], "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/chat/completions", given
        finally:
            server.shutdown()
            thread.join()


def answer(prompt, rng):
    left, right = map(int, re.search(r"(\d+)\+(\d+)", prompt).groups())
    return str(left + right + rng.choice([0, 0, 0, 1]))
