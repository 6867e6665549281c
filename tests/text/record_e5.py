"""Records what `transformers` makes of texts in many languages: e5_vectors.json.

python tests/text/record_e5.py MODEL_FOLDER     (needs: pip install torch transformers)

The folder is that of `qkvsearch model fetch e5`, so that both read the same weights.
"""

import json
import sys
from pathlib import Path

TEXTS = [
    "How do rivers change their course?",
    "长江是亚洲第一长河，全长六千三百公里。",
    "宇航员独自留在火星",
    "Wie funktioniert ein Vulkan?",
    "Die Donau fließt durch zehn Länder. " * 40,
    "ما هي عاصمة فرنسا؟",
    "Почему небо голубое?",
    "แมวดำตัวหนึ่งนอนอยู่บนหลังคา",
    "हिमालय की सबसे ऊँची चोटी",
    "İstanbul'da bugün hava nasıl?",
    "トマトとなすのパスタ、ＡＢＣ①",
    "한국의 전통 음식",
    "¿Dónde está la biblioteca?",
    "self-attention (2017) — “all you need” 🚀",
    "e = mc²; x_i ≤ 3.5, ½ l",
    "深海 deep sea 심해",
]
# How many numbers of each vector are kept.
N_KEPT = 8


def main(folder):
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, __version__

    model = BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=False).eval()
    weights = load_file(f"{folder}/model.safetensors")
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{folder}/tokenizer.json")
    vectors = {}
    for kind in ("query", "passage"):
        rows = []
        for text in TEXTS:
            tokens = tokenizer(
                f"{kind}: {text}", return_tensors="pt", truncation=True, max_length=512
            )
            with torch.no_grad():
                final = model(tokens["input_ids"], tokens["attention_mask"]).last_hidden_state[0]
            mean = final.mean(dim=0)
            rows.append((mean / mean.norm())[:N_KEPT].tolist())
        vectors[kind] = [[round(number, 8) for number in row] for row in rows]
    recorded = {"by": f"transformers {__version__}, multilingual-e5-small from 4-bit weights"}
    lines = json.dumps(recorded | {"vectors": vectors}, indent=0)
    lines = (
        lines.replace(",\n", ", ").replace("], ", "],\n").replace("[\n", "[").replace("\n]", "]")
    )
    Path(__file__).with_name("e5_vectors.json").write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
