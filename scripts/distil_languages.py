"""Write src/afresh/extract/language_table.bin, a small part of the model of py3langid (BSD 3-Clause).

.venv/bin/python -m pip install py3langid==0.4.0 && .venv/bin/python scripts/distil_languages.py

py3langid knows 142 languages and dialects by 100,000 byte sequences and takes 80 MB. This keeps the languages
with two letters and the sequences that say most about each of them, in steps of half a unit of log probability.
"""

import json
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from py3langid.langid import MODEL_FILE, LanguageIdentifier

TABLE = Path(__file__).resolve().parents[1] / "src" / "afresh" / "extract" / "language_table.bin"
SEQUENCES = 16_000
STEP = 0.5
# Languages that a script of their own tells apart need few sequences.
FEW = 25
OWN_SCRIPT = "am as bn dz el gu he hy ja ka km kn ko lo ml my or pa si ta te th zh"
NOTICE = (
    "From the model of py3langid 0.4.0. BSD 3-Clause License. Modifications (fork): Copyright (c) 2021, Adrien "
    "Barbaresi. Original code: Copyright (c) 2011 Marco Lui. Based on research by Marco Lui and Tim Baldwin. "
    "See language_table.license."
)


def sequences_of(model: LanguageIdentifier) -> dict[int, bytes]:
    """Return the byte sequence of each feature: the shortest path to a state of the automaton that reports it."""
    nodes = {0: b""}
    found: dict[int, bytes] = {}
    for state in (queue := [0]):
        feature = model.tk_output[state]
        if feature >= 0:
            found.setdefault(feature, nodes[state])
        row = model._rowbase[state]
        for byte, after in enumerate(model.tk_nextmove[row : row + 256]):
            if after not in nodes:
                nodes[after] = nodes[state] + bytes([byte])
                queue.append(after)
    return found


def choose(weights: np.ndarray, languages: list[str]) -> set[int]:
    """Return the features that say most about a language, in turns."""
    probable = np.exp(weights)
    says = probable * (weights - np.log(probable.mean(1, keepdims=True)))
    best = np.argsort(-says, axis=0)
    chosen: set[int] = set()
    for place, features in enumerate(best):
        if len(chosen) >= SEQUENCES:
            break
        chosen |= {
            int(feature)
            for feature, language in zip(features, languages, strict=True)
            if place < FEW or language not in OWN_SCRIPT.split()
        }
    return chosen


def main() -> None:
    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    model.set_languages([label for label in model.labels if len(label) == 2])
    sequences = sequences_of(model)
    weights = model.nb_ptc.astype(np.float64)
    features = sorted(choose(weights, model.nb_classes), key=lambda each: (len(sequences[each]), sequences[each]))
    floors = weights.min(0)
    units = np.round((weights[features] - floors) / STEP).astype(np.uint8)
    head = {
        "notice": NOTICE,
        "languages": model.nb_classes,
        "priors": [round(float(each), 4) for each in model.nb_pc],
        "floors": [round(float(each), 4) for each in floors],
        "step": STEP,
        "sequences": sorted(Counter(len(sequences[each]) for each in features).items()),
    }
    data = b"".join(sequences[each] for each in features) + units.tobytes()
    TABLE.write_bytes(json.dumps(head).encode() + b"\n" + zlib.compress(data, 9))


if __name__ == "__main__":
    main()
