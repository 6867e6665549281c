"""Records what MiniLM's attention shows of the last lesson's sentence: python docs/evidence.py.

Needs `qkvsearch model fetch minilm`. The lesson computes the same where the model is installed;
elsewhere it shows what was recorded, and says so.
"""

from qkvsearch.lessons.compute.learning import ANIMAL, RECORDED, measured, to_record
from qkvsearch.text.encoders import pretrained

if __name__ == "__main__":
    found = measured(pretrained("minilm"), ANIMAL.sentences[0], "it", "animal", has_twin=True)
    RECORDED.write_text(to_record(found), encoding="utf-8")
