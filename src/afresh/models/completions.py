"""Chat completions of one run: asked within what may be spent, and no more once the service is down."""

import asyncio

from afresh.errors import AfreshError
from afresh.models.allowance import Allowance
from afresh.models.endpoint import Endpoint, Sleep, utc_now
from afresh.models.refusals import Service, told
from afresh.ports import Caller, Clock, Reply


class Completions:
    """Where a model is asked; make one per run."""

    def __init__(
        self,
        service: Service,
        caller: Caller,
        *,
        base_url: str,
        api_key: str | None,
        allowance: Allowance,
        timeout_seconds: float,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = utc_now,
    ) -> None:
        self.calls = 0
        self.allowance = allowance
        self._service = service
        self._down: AfreshError | None = None
        self._secrets = (api_key,) if api_key else ()
        self._endpoint = Endpoint(
            service,
            caller,
            f"{base_url}/chat/completions",
            {"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout_seconds=timeout_seconds,
            secrets=self._secrets,
            sleep=sleep,
            clock=clock,
        )

    @property
    def host(self) -> str:
        """Who is asked."""
        return self._endpoint.host

    async def ask(self, body: object, *, passes: frozenset[int] = frozenset({200})) -> Reply:
        """The answer to one call that is paid for; other than `passes` is the error that it means."""
        self._check_up()
        if refusal := self.allowance.refusal:
            raise self._service.down(refusal)
        self.allowance.spend()
        self.calls += 1
        return await self._answer(body, passes)

    async def ask_anew(self, body: object, *, passes: frozenset[int]) -> Reply:
        """The answer to the same call in another form, after the server refused the first one."""
        self._check_up()
        return await self._answer(body, passes)

    def refusal(self, reply: Reply) -> AfreshError:
        """What an answer of no use means."""
        return self._endpoint.refusal(reply)

    def told(self, reply: Reply) -> str:
        """Why an answer brought nothing, in its own words and in brackets; empty where it does not say."""
        return told(reply.json, self._secrets)

    def _check_up(self) -> None:
        if self._down is not None:
            raise self._service.down(str(self._down))

    async def _answer(self, body: object, passes: frozenset[int]) -> Reply:
        try:
            reply = await self._endpoint.ask(body)
            if reply.status not in passes:
                raise self._endpoint.refusal(reply)
        except self._service.down as down:
            self._down = down
            raise
        return reply
