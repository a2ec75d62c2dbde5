"""Places at an endpoint: nobody takes one twice, and none is lost."""

import asyncio

from calibrant.models.dispatch.limits import AdaptiveLimit


async def settle():
    for _ in range(3):
        await asyncio.sleep(0)


def test_who_waits_comes_before_who_asks_later():
    async def go():
        limit, order = AdaptiveLimit(1), []

        async def wait(name):
            await limit.acquire()
            order.append(name)

        assert limit.try_acquire()
        waiters = [asyncio.create_task(wait(name)) for name in "ab"]
        await settle()
        limit.release()
        assert not limit.try_acquire(), "the place belongs to the first who waits"
        await settle()
        limit.release()
        await asyncio.gather(*waiters)
        assert order == ["a", "b"]

    asyncio.run(go())


def test_a_place_handed_to_one_who_is_cancelled_goes_on_to_the_next():
    async def go():
        limit = AdaptiveLimit(1)
        assert limit.try_acquire()
        first, second = (asyncio.create_task(limit.acquire()) for _ in range(2))
        await settle()
        limit.release()  # handed to the first, which is cancelled before it runs
        first.cancel()
        await asyncio.wait_for(second, 1.0)
        await asyncio.gather(first, return_exceptions=True)
        assert first.cancelled()
        limit.release()
        assert limit.try_acquire(), "no place was lost"

    asyncio.run(go())


def test_one_who_gives_up_waiting_takes_no_place():
    async def go():
        limit = AdaptiveLimit(1)
        assert limit.try_acquire()
        waiting = asyncio.create_task(limit.acquire())
        await settle()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        limit.release()
        assert limit.try_acquire()

    asyncio.run(go())


def test_listeners_hear_of_free_places_and_nobody_starts_during_a_pause():
    async def go():
        limit, heard = AdaptiveLimit(2), []
        limit.listen(lambda: heard.append(limit.try_acquire()))
        assert limit.try_acquire()
        limit.release()
        assert heard == [True]
        loop = asyncio.get_running_loop()
        limit.overloaded(now=loop.time(), retry_after=0.02)
        limit.release()
        assert heard == [True, False]
        await limit.acquire()
        assert limit.paused_for() <= 0

    asyncio.run(go())
