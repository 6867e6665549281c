"""Records what MiniLM makes of the examples of the Attend page: python docs/recorded_attention.py

Writes qkvsearch/web/static/attend/recorded.json, which the page shows where no transformer is
installed. It has the answers of /api/v1/attend to the examples of `web/attend_examples.py`, in
order, and to the sentences that they are compared with, with weights in thousandths. Of the model
it holds no weight. Needs qkvsearch[encoders] and `qkvsearch model fetch minilm`.
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


def recorded(asked: dict[str, str]) -> dict[str, Any]:
    """Return an answer, with weights as integers. asked: text, and against."""
    answer = answer_of(MODEL, pretrained(MODEL), AttendParameters(**asked, mask="padding"))
    for one in answer["maps"]:
        one["weights"] = [
            [None if weight is None else round(weight * UNIT) for weight in row]
            for row in one["weights"]
        ]
    return answer


def main() -> None:
    asked = [{name: one[name] for name in ("text", "against") if name in one} for one in EXAMPLES]
    answers = [recorded(one) for one in asked]
    controls = [recorded({"text": one["against"]}) if "against" in one else None for one in asked]
    written = {"unit": UNIT, "answers": answers, "controls": controls}
    OUT.write_text(json.dumps(written, separators=(",", ":")) + "\n")
    print(f"{OUT}: {OUT.stat().st_size / 1e3:.0f} KB")


if __name__ == "__main__":
    main()
