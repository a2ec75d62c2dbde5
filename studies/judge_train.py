"""Trains the embedded judge: a low-rank adapter on the frozen small model.

Every linear map of every layer gets two thin matrices; maps with the same input stand side by side.
`pack` writes what another machine with an accelerator needs, in two parts; `train` runs there and
needs numpy and torch alone:

    python -m studies.judge_train pack FOLDER WEIGHTS.gguf
    python studies/judge_train.py train FOLDER OUT NAME[:key=value,..] ..
"""

from __future__ import annotations

import gzip
import json
import lzma
import math
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

HEADS, SHARED, SIZE, WIDTH, FEED, LAYERS = 9, 3, 64, 576, 1536, 30
_BLOCK, _NUMBERS = 20, 32
# The maps, in the order of their files, and how many rows each has.
MAPS = {
    "attn_q": (HEADS * SIZE, WIDTH),
    "attn_k": (SHARED * SIZE, WIDTH),
    "attn_v": (SHARED * SIZE, WIDTH),
    "attn_output": (WIDTH, HEADS * SIZE),
    "ffn_gate": (FEED, WIDTH),
    "ffn_up": (FEED, WIDTH),
    "ffn_down": (WIDTH, FEED),
}
SIDES = (("attn_q", "attn_k", "attn_v"), ("attn_output",), ("ffn_gate", "ffn_up"), ("ffn_down",))
YES, NO = " yes", " no"


@dataclass
class Settings:
    """How one adapter is trained; `out` leaves sources away, `without` names a kept report."""

    name: str
    rank: int = 8
    epochs: int = 2
    rate: float = 1e-3
    batch: int = 128
    layers: int = LAYERS
    seed: int = 1
    smooth: float = 0.01
    out: str = ""
    without: str = ""
    wordings: int = 0
    worded: float = 1.0
    steps: int = 0
    load: str = ""

    @classmethod
    def read(cls, text: str) -> Settings:
        """Return settings from `NAME:key=value,..`."""
        name, _, rest = text.partition(":")
        given = dict(part.split("=") for part in rest.split(",") if part)
        kinds = {f.name: type(f.default) for f in fields(cls) if f.name != "name"}
        return cls(name, **{key: kinds[key](value) for key, value in given.items()})


def pack(folder: Path, weights: Path) -> None:
    """Write the layers' blocks, the used rows of the vocabulary and the rows' tokens."""
    from calibrant.models.inference.llama import Tokenizer
    from calibrant.models.inference.weights import Gguf

    file = Gguf(weights)
    read = Tokenizer(file.settings["tokenizer.ggml.tokens"], file.settings["tokenizer.ggml.merges"])
    answers = [read(YES)[0], read(NO)[0]]
    with gzip.open(folder / "rows.jsonl.gz", "rt") as stored:
        rows = [json.loads(line) for line in stored]
    used, tokens = np.unique(
        np.concatenate([answers, *(r[-1] for r in rows)]).astype(np.int64), return_inverse=True
    )
    np.savez_compressed(
        folder / "tokens.npz",
        answers=tokens[:2],
        tokens=tokens[2:].astype(np.uint16),
        lengths=np.array([len(r[-1]) for r in rows]),
        right=np.array([r[4] for r in rows]),
        sources=np.array([r[0] for r in rows]),
        tests=np.array([r[5] for r in rows]),
        questions=np.array([hash_of(r[1]) for r in rows]),
    )
    place = file._places["token_embd.weight"]
    raw = np.frombuffer(
        file._bytes, np.uint8, place.shape[0] * 612, file._start + place.offset
    ).reshape(-1, 612)[used]
    norms = [
        file.tensor(f"blk.{n}.{kind}_norm.weight")
        for n in range(LAYERS)
        for kind in ("attn", "ffn")
    ]
    (folder / "a").mkdir(exist_ok=True)
    (folder / "b").mkdir(exist_ok=True)
    np.savez(
        folder / "a" / "rest.npz", norms=np.array(norms), end=file.tensor("output_norm.weight")
    )
    _press(folder / "a" / "vocabulary.xz", raw)
    for number in range(LAYERS):
        blocks = [_raw(file, f"blk.{number}.{name}.weight") for name in MAPS]
        part = "a" if number < 14 else "b"
        _press(folder / part / f"{number}.xz", np.concatenate(blocks).reshape(-1, _BLOCK))


def hash_of(question: str) -> int:
    """Return a number for a question, the same in every run."""
    return zlib.crc32(" ".join(question.lower().split()).encode())


def _raw(file: Any, name: str) -> Any:
    place = file._places[name]
    size = math.prod(place.shape) // _NUMBERS * _BLOCK
    return np.frombuffer(file._bytes, np.uint8, size, file._start + place.offset)


def _press(path: Path, rows: Any) -> None:
    """Write rows of bytes, all first bytes together: scales press well, digits do not."""
    path.write_bytes(lzma.compress(np.ascontiguousarray(rows.T).tobytes(), preset=1))


def _opened(path: Path, width: int) -> Any:
    raw = np.frombuffer(lzma.decompress(path.read_bytes()), np.uint8)
    return np.ascontiguousarray(raw.reshape(width, -1).T)


def _weights(path: Path) -> dict[str, Any]:
    """Return one layer's maps as 32-bit numbers."""
    blocks = _opened(path, _BLOCK)
    scale = np.ascontiguousarray(blocks[:, :4]).view("<f2").astype(np.float32)
    nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    numbers = (nibbles * scale[:, :1] + scale[:, 1:]).reshape(-1)
    found, at = {}, 0
    for name, shape in MAPS.items():
        size = math.prod(shape)
        found[name] = numbers[at : at + size].reshape(shape)
        at += size
    return found


def train(folder: Path, out: Path, specs: list[str]) -> None:
    """Train one adapter after the other; write each with the scores of the kept rows."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    begin = time.time()
    with ThreadPoolExecutor(16) as pool:
        paths = sorted(folder.glob("[ab]/*.xz"), key=lambda path: (len(path.stem), path.stem))
        layers = list(pool.map(_weights, [path for path in paths if path.stem.isdigit()]))
    rest = np.load(folder / "a" / "rest.npz")
    coded = _opened(folder / "a" / "vocabulary.xz", 612).reshape(-1, 34)
    scale = np.ascontiguousarray(coded[:, :2]).view("<f2").astype(np.float32)
    rows = (np.ascontiguousarray(coded[:, 2:]).view(np.int8) * scale).reshape(-1, WIDTH)
    data = dict(np.load(folder / "tokens.npz"))
    if (folder / "extra.npz").exists():
        more = np.load(folder / "extra.npz")
        rows = np.concatenate([rows, more["vocabulary"]])
        data |= {n: np.concatenate([x, more[n]]) for n, x in data.items() if n in more.files}
    model = Model(torch, device, layers, rest["norms"], rest["end"], rows, data["answers"])
    texts = np.split(data["tokens"].astype(np.int64), np.cumsum(data["lengths"])[:-1])
    texts = [t if len(t) <= 256 else np.concatenate([t[:180], t[-76:]]) for t in texts]
    print(f"ready after {time.time() - begin:.0f} s on {device}, {len(texts)} rows", flush=True)
    for spec in specs:
        one(torch, device, model, texts, data, Settings.read(spec), out)


class Model:
    """The frozen model with an adapter, over padded texts."""

    def __init__(
        self,
        torch: Any,
        device: str,
        layers: list[dict[str, Any]],
        norms: Any,
        end: Any,
        rows: Any,
        answers: Any,
    ) -> None:
        self.torch, self.device = torch, device
        self.kind = torch.bfloat16 if device == "cuda" else torch.float32
        put = lambda x: torch.tensor(x, device=device)  # noqa: E731
        self.base = [
            [put(np.concatenate([layer[name] for name in side])).to(self.kind) for side in SIDES]
            for layer in layers
        ]
        self.norms, self.end, self.rows = put(norms), put(end), put(rows)
        self.head = self.rows[int(answers[0])] - self.rows[int(answers[1])]
        turns = 100000.0 ** (-np.arange(0, SIZE, 2) / SIZE)
        angles = np.outer(np.arange(300), turns).astype(np.float32)
        self.cosine = put(np.cos(angles)).to(self.kind)
        self.sine = put(np.sin(angles)).to(self.kind)

    def start(self, settings: Settings) -> list[Any]:
        """Begin an adapter: what is trained, inner matrices drawn and outer ones nought."""
        torch, rank = self.torch, settings.rank
        torch.manual_seed(settings.seed)
        self.layers, self.scale = min(settings.layers, len(self.base)), 2.0
        self.inner, self.outer, self.masks = [], [], []
        for side in SIDES:
            width, high = MAPS[side[0]][1], sum(MAPS[name][0] for name in side)
            inner = torch.randn(self.layers, rank * len(side), width) / math.sqrt(width)
            self.inner.append(inner.to(self.device).requires_grad_(True))
            outer = torch.zeros(self.layers, high, rank * len(side), device=self.device)
            self.outer.append(outer.requires_grad_(True))
            mask, at = torch.zeros(high, rank * len(side), device=self.device), 0
            for n, name in enumerate(side):
                mask[at : at + MAPS[name][0], n * rank : (n + 1) * rank] = 1
                at += MAPS[name][0]
            self.masks.append(mask)
        self.verdict = self.head.clone().requires_grad_(True)
        self.lean = torch.zeros((), device=self.device, requires_grad=True)
        return [*self.inner, *self.outer, self.verdict, self.lean]

    def take(self, stored: Any, settings: Settings) -> None:
        """Set the adapter to one that was written."""
        put = lambda name: self.torch.tensor(stored[name].astype(np.float32))  # noqa: E731
        with self.torch.no_grad():
            for side, inner, outer in zip(SIDES, self.inner, self.outer, strict=True):
                at = 0
                for n, name in enumerate(side):
                    low, high = n * settings.rank, (n + 1) * settings.rank
                    inner[:, low:high] = put(f"{name}.inner")
                    outer[:, at : at + MAPS[name][0], low:high] = put(f"{name}.outer") / self.scale
                    at += MAPS[name][0]
            self.verdict.copy_(put("verdict"))
            self.lean.copy_(put("lean"))

    def scores(self, tokens: Any, lengths: Any) -> Any:
        """Return the log-odds of 'yes' after each text."""
        torch, functional = self.torch, self.torch.nn.functional
        inner = [x.to(self.kind) for x in self.inner]
        outer = [
            (x * m * self.scale).to(self.kind) for x, m in zip(self.outer, self.masks, strict=True)
        ]
        texts, long = tokens.shape
        x = self.rows[tokens].reshape(-1, WIDTH)

        def through(n: int, side: int, h: Any) -> Any:
            thin = h @ inner[side][n].T
            return torch.addmm(h @ self.base[n][side].T, thin, outer[side][n].T)

        def normed(x: Any, weight: Any) -> Any:
            return functional.rms_norm(x, (WIDTH,), weight, 1e-5).to(self.kind)

        cosine = self.cosine[:long, None, :]
        sine = self.sine[:long, None, :]
        for n in range(self.layers):
            mixed = through(n, 0, normed(x, self.norms[2 * n]))
            mixed = mixed.view(texts, long, HEADS + 2 * SHARED, SIZE)
            qk, v = mixed[:, :, : HEADS + SHARED], mixed[:, :, HEADS + SHARED :]
            even, odd = qk[..., 0::2], qk[..., 1::2]
            qk = torch.cat([even * cosine - odd * sine, odd * cosine + even * sine], -1)
            q, k = qk[:, :, :HEADS].transpose(1, 2), qk[:, :, HEADS:].transpose(1, 2)
            seen = functional.scaled_dot_product_attention(
                q, k, v.transpose(1, 2), is_causal=True, enable_gqa=True
            )
            x = x + through(n, 1, seen.transpose(1, 2).reshape(-1, WIDTH)).float()
            hidden = through(n, 2, normed(x, self.norms[2 * n + 1]))
            gate, up = hidden.split(FEED, -1)
            x = x + through(n, 3, functional.silu(gate) * up).float()
        last = x[torch.arange(texts, device=self.device) * long + lengths - 1]
        last = functional.rms_norm(last, (WIDTH,), self.end, 1e-5)
        return last @ self.verdict + self.lean


def learned(settings: Settings, data: Any) -> tuple[Any, Any]:
    """Return the rows to learn from and the rows to report on."""
    tests, sources, questions = data["tests"], data["sources"], data["questions"]
    report = np.isin(tests, ["nqval", "worded", "hard", "fresh", "extra"])
    learn = ~report & ((tests != "all") | (settings.wordings == 1))
    if settings.wordings == 1:
        learn |= tests == "worded"
    for out in filter(None, settings.out.split("+")):
        gone = np.char.startswith(sources, out)
        if settings.without:
            gone |= np.isin(questions, questions[tests == settings.without])
        report |= gone & (np.char.find(sources, "worded") < 0)
        learn &= ~gone
    if settings.worded < 1:
        thin = np.random.default_rng(0).random(len(learn)) > settings.worded
        learn &= ~(thin & (np.char.find(sources, "worded") >= 0))
    return np.flatnonzero(learn), np.flatnonzero(report)


def one(
    torch: Any, device: str, model: Model, texts: Any, data: Any, settings: Settings, out: Path
) -> None:
    """Train one adapter, tell how it does after each epoch, and write it."""
    begin, rng = time.time(), np.random.default_rng(settings.seed)
    learn, report = learned(settings, data)
    if settings.steps:
        learn, report = learn[::500], report[::300]
    trained = model.start(settings)
    if settings.load:
        model.take(np.load(Path(settings.load)), settings)
    optimizer = torch.optim.AdamW(
        trained, lr=settings.rate, weight_decay=0.01, betas=(0.9, 0.98), fused=device == "cuda"
    )
    epochs = 0 if settings.load else settings.epochs
    batches = [_batches(learn, texts, settings.batch, rng) for _ in range(epochs)]
    total, step = sum(map(len, batches)), 0
    for epoch, plan in enumerate(batches):
        losses = []
        for which in plan[: settings.steps or None]:
            warm = min(1.0, (step + 1) / (0.06 * total))
            rate = warm * max(0.02, 0.5 * (1 + math.cos(math.pi * step / total)))
            for group in optimizer.param_groups:
                group["lr"] = settings.rate * rate
            right = torch.tensor(data["right"][which], dtype=torch.float32, device=device)
            aim = right * (1 - 2 * settings.smooth) + settings.smooth
            scores = model.scores(*_padded(torch, device, texts, which))
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, aim)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            losses.append(loss.detach())
            step += 1
        mean = float(torch.stack(losses).mean())
        found = _judged(torch, device, model, texts, report)
        took = f"{time.time() - begin:.0f} s"
        print(settings.name, epoch, f"{mean:.4f}", took, _told(found, report, data), flush=True)
    found = _judged(torch, device, model, texts, report)
    _write(model, settings, found, report, out)


def _batches(which: Any, texts: Any, size: int, rng: Any) -> list[Any]:
    """Return batches of like length, shuffled."""
    mixed, found = rng.permutation(which), []
    for at in range(0, len(mixed), size * 40):
        part = sorted(mixed[at : at + size * 40], key=lambda n: len(texts[n]))
        found += [np.array(part[n : n + size]) for n in range(0, len(part), size)]
    return [found[n] for n in rng.permutation(len(found))]


def _padded(torch: Any, device: str, texts: Any, which: Any) -> tuple[Any, Any]:
    long = -(-max(len(texts[n]) for n in which) // 8) * 8
    tokens = np.zeros((len(which), long), np.int64)
    for place, n in enumerate(which):
        tokens[place, : len(texts[n])] = texts[n]
    lengths = torch.tensor([len(texts[n]) for n in which])
    return torch.from_numpy(tokens).to(device, non_blocking=True), lengths.to(device)


def _judged(torch: Any, device: str, model: Model, texts: Any, which: Any) -> Any:
    order = sorted(range(len(which)), key=lambda n: len(texts[which[n]]))
    found = np.zeros(len(which), np.float32)
    with torch.no_grad():
        for at in range(0, len(order), 512):
            part = order[at : at + 512]
            scores = model.scores(*_padded(torch, device, texts, which[part]))
            found[part] = scores.float().cpu().numpy()
    return found


def _told(scores: Any, report: Any, data: Any) -> str:
    parts = []
    tags = np.where(data["tests"][report] == "", data["sources"][report], data["tests"][report])
    for tag in sorted(set(tags.tolist())):
        here = tags == tag
        y, z = data["right"][report][here], scores[here]
        ranks = np.argsort(np.argsort(z)) + 1
        ones, zeros = y.sum(), len(y) - y.sum()
        area = (ranks[y == 1].sum() - ones * (ones + 1) / 2) / max(ones * zeros, 1)
        parts.append(f"{tag} {len(y)} {((z > 0) == y).mean():.4f} {area:.4f}")
    return " | ".join(parts)


def _write(model: Model, settings: Settings, scores: Any, report: Any, out: Path) -> None:
    """Write the adapter, map by map, in half precision, and the scores."""
    parts = {}
    for side, inner, outer in zip(SIDES, model.inner, model.outer, strict=True):
        at = 0
        for n, name in enumerate(side):
            low, high = n * settings.rank, (n + 1) * settings.rank
            rows = MAPS[name][0]
            thin = inner[:, low:high].detach().cpu().numpy()
            tall = model.scale * outer[:, at : at + rows, low:high].detach().cpu().numpy()
            parts[f"{name}.inner"], parts[f"{name}.outer"] = thin, tall
            at += rows
    parts = {name: part.astype(np.float16) for name, part in parts.items()}
    parts["verdict"] = model.verdict.detach().cpu().numpy()
    parts["lean"] = model.lean.detach().cpu().numpy()
    np.savez_compressed(out / f"{settings.name}.npz", **parts, scores=scores, rows=report)


if __name__ == "__main__":
    first, second = map(Path, sys.argv[2:4])
    pack(first, second) if sys.argv[1] == "pack" else train(first, second, sys.argv[4:])
