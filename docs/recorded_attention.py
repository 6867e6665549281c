"""Records what MiniLM makes of the examples of the Attend page: python docs/recorded_attention.py

Writes qkvsearch/web/static/attend/recorded.json, which the page shows where no transformer is
installed. It has the answers of /api/v1/attend to the examples of `web/attend_examples.py`, in
order, with weights in thousandths. Of the model it holds no weight. Needs qkvsearch[encoders] and
`qkvsearch model fetch minilm`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qkvsearch.text.encoders import pretrained
from qkvsearch.web.api.attend_routes import AttendParameters, answer_of
from qkvsearch.web.attend_examples import EXAMPLES, RECORDED

OUT = Path(__file__).parent.parent / "qkvsearch/web/static/attend" / RECORDED
MODEL = "minilm"
UNIT = 1000


def recorded(example: dict[str, str]) -> dict[str, Any]:
    """Return the answer to an example, with weights as integers."""
    asked = {name: example[name] for name in ("text", "mask", "against") if name in example}
    answer = answer_of(MODEL, pretrained(MODEL), AttendParameters(**asked))
    for one in answer["maps"]:
        one["weights"] = [
            [None if weight is None else round(weight * UNIT) for weight in row]
            for row in one["weights"]
        ]
    return answer


def main() -> None:
    answers = [recorded(dict(example)) for example in EXAMPLES]
    OUT.write_text(json.dumps({"unit": UNIT, "answers": answers}, separators=(",", ":")) + "\n")
    print(f"{OUT}: {OUT.stat().st_size / 1e3:.0f} KB")


if __name__ == "__main__":
    main()
