"""An OpenAI-style endpoint on the loopback: 50 ms, 11 kB with log-probs, as cheap as can be.

A bare asyncio protocol with a prepared answer, so that the server's own work does not hide
what the clients cost. Run as a module it prints its port and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import sys

LATENCY_S = 0.05


def answer(tokens: int = 38, top: int = 2) -> bytes:
    """Return a chat completion of about 11 kB."""
    content = [
        {
            "token": f" word{position:03d}",
            "logprob": -0.1234567 - position * 1e-3,
            "bytes": list(f" word{position:03d}".encode()),
            "top_logprobs": [
                {
                    "token": f" alt{position:03d}{other}",
                    "logprob": -1.2345678 - other,
                    "bytes": list(f" alt{position:03d}{other}".encode()),
                }
                for other in range(top)
            ],
        }
        for position in range(tokens)
    ]
    body = {
        "id": "chatcmpl-benchmark",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "".join(entry["token"] for entry in content),
                },
                "logprobs": {"content": content},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": tokens,
            "total_tokens": 20 + tokens,
        },
    }
    raw = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw


class Endpoint(asyncio.Protocol):
    """Reads requests by their content length and answers each after the latency."""

    reply = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            place = head.find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            asyncio.get_running_loop().call_later(LATENCY_S, self.send)

    def send(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(self.reply)


async def serve(tokens: int, top: int) -> None:
    Endpoint.reply = answer(tokens, top)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Endpoint, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], len(Endpoint.reply), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
