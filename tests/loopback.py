"""An application of aiohttp on the loopback, in a thread of its own."""

import asyncio
import threading
from typing import Self

from aiohttp import web


class LoopbackApp:
    """``with`` it, and it listens at `url`; who inherits it says which routes it has."""

    url: str = ""
    root: str = ""
    """What comes behind host and port."""
    place: tuple[str, int] = ("127.0.0.1", 0)
    """Where it listens; 0 is any port."""
    ends_with_its_caller = False
    """Whether work for a caller that goes away is cancelled."""

    def app(self) -> web.Application:
        """Return the application to serve."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._runner = web.AppRunner(
            self.app(), access_log=None, shutdown_timeout=0.1,
            handler_cancellation=self.ends_with_its_caller,
        )  # fmt: skip

        async def start() -> None:
            await self._runner.setup()
            site = web.TCPSite(self._runner, *self.place)
            await site.start()
            port = site._server.sockets[0].getsockname()[1]
            self.url = f"http://{self.place[0]}:{port}{self.root}"
            ready.set()

        self._loop.run_until_complete(start())
        self._loop.run_forever()
