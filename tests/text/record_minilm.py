"""Records what sentence-transformers makes of 200 texts of our own: minilm_vectors.json.

python tests/embeddings/record_minilm.py MODEL_FOLDER     (needs: pip install sentence-transformers)
"""

import json
import sys
from itertools import product
from pathlib import Path

SUBJECTS = (
    "The old lighthouse", "A patient teacher", "Our neighbour's parrot", "Dr. O'Neill",
    "注意力机制", "一只黑猫", "Café Zürich", "Nobody", "The night bus N°7", "🚀 A tiny rocket",
)  # fmt: skip
VERBS = ("keeps forgetting", "repaints", "doesn't understand", "学习", "re-reads, slowly:")
OBJECTS = ("the recipe for rye bread", "翻译的历史", "self-attention (2017)", "rain 🌧️ & thunder!")


def texts():
    """200 short texts: English, Chinese, mixed, accents, emoji, punctuation; lengths vary."""
    made = []
    for i, words in enumerate(product(SUBJECTS, VERBS, OBJECTS)):
        kept = words[: 1 + i % 3] if i % 7 else words[i % 3 :]
        made.append(" ".join(kept) + ("", f" ({i})?", " …", f" {i}", " THE END")[i % 5])
    return made


def main(folder):
    from sentence_transformers import SentenceTransformer, __version__

    made = texts()
    model = SentenceTransformer(folder, device="cpu")
    vectors = model.encode(made, normalize_embeddings=True)[:, :8]
    recorded = {
        "by": f"sentence-transformers {__version__}, all-MiniLM-L6-v2: the first 8 components",
        "texts": made,
        "vectors": [[round(float(x), 8) for x in row] for row in vectors],
    }
    lines = json.dumps(recorded, ensure_ascii=False).replace("], [", "],\n[")
    Path(__file__).with_name("minilm_vectors.json").write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
