"""The words of logs: of events, of cells that say what a row is, of users that are many."""

from __future__ import annotations

import json
from pathlib import Path

# likes, dislikes: cells, beside yes and no. events: what common events count. telling, taking_back:
# words of cells, and of names, that say what a row is; telling_signs: within cells without spaces.
# nobody: users that stand for many. rated: words of names of ratings, beside those of `names.json`;
# not_feedback: of numbers that are none.
LOG_WORDS = json.loads(Path(__file__).with_name("log_words.json").read_text(encoding="utf-8"))
