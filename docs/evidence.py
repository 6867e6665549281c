"""Records what MiniLM's attention shows of the last lesson's sentence: python docs/evidence.py.

Needs `qkvsearch model fetch minilm`. The lesson computes the same where the model is installed;
elsewhere it shows what was recorded, and says so.
"""

import json

import numpy as np

from qkvsearch.lessons.compute.learning import ANIMAL, RECORDED, HeadEvidence, measured
from qkvsearch.text.encoders import pretrained


def to_record(found: HeadEvidence) -> str:
    """Return what the file holds, a line for each field."""
    lines = []
    for name in ("cosines", "other_cosine", "turns", "removed"):
        plain = json.dumps(getattr(found, name), default=np.ndarray.tolist)
        rounded = json.loads(plain, parse_float=lambda number: round(float(number), 5))
        lines.append(f'"{name}": {json.dumps(rounded)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    found = measured(pretrained("minilm"), ANIMAL.sentences[0], "it", "animal", has_twin=True)
    RECORDED.write_text(to_record(found), encoding="utf-8")
