"""multilingual-e5-small gives the numbers that `transformers` gives, and int8 nearly the same."""

import json
from pathlib import Path

import numpy as np
import pytest

import qkvsearch as qkv
from qkvsearch.text.pretrained import fetch as models
from qkvsearch.text.pretrained import onnx_layers
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder
from tests.text.record_e5 import N_KEPT, TEXTS

pytestmark = pytest.mark.slow

FILMS = """id,title,summary
1,火星救援,一名宇航员在火星上被同伴误认为死亡，独自留在那里，用马铃薯活了下来。
2,泰坦尼克号,一艘大船撞上冰山沉没，年轻的画家和富家小姐在船上相爱。
3,霸王别姬,两位京剧演员半个世纪的悲欢离合。
4,千与千寻,小女孩误入神灵的世界，在汤屋里工作，寻找回家的路。
5,流浪地球,太阳即将毁灭，人类推动地球离开太阳系。
6,盗梦空间,一群人潜入别人的梦里，偷取和植入念头。
"""


@pytest.fixture(scope="module")
def folder(own_models):
    path = models.find("e5")
    if path is None:
        pytest.skip("needs e5: qkvsearch model fetch e5")
    return path


@pytest.fixture(scope="module")
def plain(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(onnx_layers.VARIABLE, onnx_layers.NUMPY)
        yield TransformerEncoder.from_folder(folder)


def test_the_vectors_are_those_of_transformers(plain):
    recorded = json.loads(Path(__file__).with_name("e5_vectors.json").read_text("utf-8"))["vectors"]
    queries, items = plain.encode_queries(TEXTS), plain.encode_many(TEXTS)
    np.testing.assert_allclose(queries[:, :N_KEPT], recorded["query"], atol=1e-5)
    np.testing.assert_allclose(items[:, :N_KEPT], recorded["passage"], atol=1e-5)
    one = plain.encode(TEXTS[1]).total
    np.testing.assert_allclose(one, queries[1], atol=1e-5)


def test_int8_is_near_in_every_language(folder, plain, monkeypatch):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime: qkvsearch[fast]")
    monkeypatch.setenv(onnx_layers.VARIABLE, onnx_layers.ONNX)
    fast = TransformerEncoder.from_folder(folder)
    assert fast.fast is not None
    cosines = (fast.encode_queries(TEXTS) * plain.encode_queries(TEXTS)).sum(axis=1)
    # Lowest for one sentence forty times over; paragraphs have .995 and more.
    assert np.median(cosines) >= 0.995
    assert cosines.min() >= 0.985


def test_questions_in_another_language_find_and_explain(folder, tmp_path, assert_adds_up):
    (tmp_path / "films.csv").write_text(FILMS, encoding="utf-8")
    qkv.build(tmp_path / "ws", tmp_path / "films.csv", encoder="e5").close()
    with qkv.open(tmp_path / "ws") as engine:
        for query, first in [
            ("astronaut left alone on Mars", 1),
            ("Ein Schiff sinkt nach dem Zusammenstoß mit einem Eisberg", 2),
            ("京剧演员的一生", 3),
        ]:
            ranking = engine.search(query, anyway=True)
            assert str(ranking[0].id) == str(first)
            parts = ranking.explain(0, full=True)
            assert_adds_up([part.value for part in parts], ranking[0].score)
            # The mean item is taken out of each word: no constant is larger than the score.
            assert max(abs(part.value) for part in parts) < abs(ranking[0].score)
