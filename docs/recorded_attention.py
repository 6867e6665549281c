"""Records what transformers make of the examples of the Attend page:
python docs/recorded_attention.py

Writes qkvsearch/web/static/attend/recorded-*.json, a file for each language. The page shows it
where no transformer is installed that reads the language. It has the answers of /api/v1/attend to
the examples of `web/attend_examples.py`, in order, and to the sentences that they are compared
with, with weights in thousandths. Of the models it holds no weight. Needs qkvsearch[encoders],
`qkvsearch model fetch minilm` and `qkvsearch model fetch e5`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qkvsearch.text.encoders import pretrained
from qkvsearch.web.api.attend_routes import AttendParameters, answer_of
from qkvsearch.web.attend_examples import EXAMPLES, Examples

OUT = Path(__file__).parent.parent / "qkvsearch/web/static/attend"
UNIT = 1000


def recorded(model: str, text: str, against: str = "") -> dict[str, Any]:
    """Return an answer, with weights as integers."""
    asked = AttendParameters(text=text, against=against, mask="padding")
    answer = answer_of(model, pretrained(model), asked)
    for one in answer["maps"]:
        one["weights"] = [
            [None if weight is None else round(weight * UNIT) for weight in row]
            for row in one["weights"]
        ]
    return answer


def record(examples: Examples) -> None:
    """Write the file of these examples."""
    model = examples.model
    answers = [recorded(model, one["text"], one["against"]) for one in examples.sentences]
    controls = [recorded(model, one["against"]) for one in examples.sentences]
    written = {"unit": UNIT, "answers": answers, "controls": controls}
    out = OUT / examples.file
    out.write_text(json.dumps(written, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(f"{out.name}: {out.stat().st_size / 1e3:.0f} KB")


def main() -> None:
    for examples in EXAMPLES.values():
        record(examples)


if __name__ == "__main__":
    main()
