"""Several equal endpoints as one: requests spread over them, a dead one is left out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from calibrant.core.errors import InputError, TransientClientError
from calibrant.models import protocol
from calibrant.models.dispatch.limits import AdaptiveLimit

MOST_CALLS = 256
FAILURES = 3
"""Failures in a row after which an endpoint is left out."""
LEFT_OUT_S = 20.0
"""Seconds after which one call finds out whether it is back; doubled while it is not."""
LONGEST_S = 300.0


@dataclass(slots=True)
class _Member:
    """One of the endpoints, and how it does."""

    client: protocol.PreparingClient
    limit: AdaptiveLimit
    under_way: int = 0
    failures: int = 0
    out_since: float = 0.0
    out_until: float = 0.0
    out_for: float = LEFT_OUT_S

    @property
    def load(self) -> float:
        """Calls under way and waiting, per place."""
        return self.under_way / max(1, self.limit.allowed)

    def is_out(self, now: float) -> bool:
        """Whether it is left out, or is being tried by a first call after that."""
        return now < self.out_until or (self.failures >= FAILURES and self.under_way > 0)


class PoolClient:
    """Endpoints that serve the same model with the same settings, asked as one.

    Which of them answers is written down with the draw (`Completion.served_by`) and is no part
    of the ledger key: a draw is the same draw whoever computed it.

    Parameters
    ----------
    clients
        The endpoints.
    name
        Name in the ledger key; the first endpoint's by default, so that a study that began
        with one server keeps its draws when more are added behind it.
    """

    def __init__(
        self, clients: Sequence[protocol.PreparingClient], *, name: str | None = None
    ) -> None:
        names = [client.endpoint for client in clients]
        if len(set(names)) != len(names) or not names:
            raise InputError(f"the endpoints of a pool differ from each other, got {names}")
        self.capabilities = clients[0].capabilities
        most = self.capabilities.concurrency or MOST_CALLS
        self._members = [_Member(client, AdaptiveLimit(most)) for client in clients]
        self.endpoint = name or names[0]

    @property
    def members(self) -> list[protocol.PreparingClient]:
        """The clients themselves."""
        return [member.client for member in self._members]

    def resolve(self, model: str) -> str:
        """Return the exact model behind the name."""
        return self._members[0].client.resolve(model)

    def prepare(self, request: protocol.Request) -> protocol.Request:
        """Return the request as it will be sent, or raise CapabilityError."""
        return self._members[0].client.prepare(request)

    async def ask(self, request: protocol.Request) -> list[protocol.Completion]:
        """Ask the endpoint that has most room; raise ElsewhereError where another may do."""
        member = self._choose()
        member.under_way += 1
        try:
            await member.limit.acquire()
            began = time.monotonic()
            try:
                completions = await member.client.ask(request)
            finally:
                member.limit.release()
        except (TransientClientError, protocol.EndpointRefusedError) as error:
            raise self._failed(member, error) from None
        finally:
            member.under_way -= 1
        member.limit.succeeded()
        # An answer that was under way when it failed does not show that it is back.
        if began >= member.out_since:
            member.failures, member.out_for, member.out_until = 0, LEFT_OUT_S, 0.0
        name = member.client.endpoint
        return [replace(completion, served_by=name) for completion in completions]

    async def close(self) -> None:
        """Close all of them."""
        for member in self._members:
            await member.client.close()

    def _choose(self) -> _Member:
        now = time.monotonic()
        usable = [member for member in self._members if not member.is_out(now)]
        if usable:
            return min(usable, key=lambda member: member.load)
        # Where all are left out, the one that may come back first is asked all the same: its
        # error then reaches the dispatcher, which knows how long to wait and when to give up.
        return min(self._members, key=lambda member: member.out_until)

    def _failed(
        self, member: _Member, error: TransientClientError | protocol.EndpointRefusedError
    ) -> TransientClientError | protocol.EndpointRefusedError:
        """Note the failure; return the error that the dispatcher is to see."""
        now, name, limited = time.monotonic(), member.client.endpoint, False
        if isinstance(error, protocol.OverloadError):
            # Its own calls wait as long as it asks; the others need not.
            member.limit.overloaded(now=now, retry_after=error.retry_after)
            limited = error.rate_limited
        refused = isinstance(error, protocol.EndpointRefusedError)
        member.failures += not limited  # what asks for patience is alive
        was_out = now < member.out_until
        if (member.failures >= FAILURES or refused) and not was_out:
            member.failures = max(member.failures, FAILURES)
            member.out_since, member.out_until = now, now + member.out_for
            member.out_for = min(LONGEST_S, 2 * member.out_for)
        remaining = sum(not peer.is_out(now) for peer in self._members if peer is not member)
        if not remaining:
            return error
        elsewhere = protocol.ElsewhereError(f"{name}: {error}", rate_limited=limited)
        # Calls that were under way fail one by one; the user hears of it once.
        if now < member.out_until and not was_out:
            elsewhere.left_out = name
            elsewhere.notice = (
                f"{name} is left out for {member.out_until - now:.0f} s ({error}); "
                f"{remaining} of {len(self._members)} endpoints go on"
            )
        return elsewhere
