"""Reasons of real answers: they add up, the constant is one, and what they claim of words is so."""

import copy
import pickle
import re

import numpy as np
import pytest

from qkvsearch._utils.shown_sums import AVERAGE_ITEM, reasons_adding_up
from qkvsearch.errors import QkvError
from qkvsearch.rank.reasons import MAX_LINES, WordReasons, constant
from qkvsearch.text.analysis import Analyzer

# What a kind of heads adds, in the text of a line.
KIND = re.compile(r" ([+-]\d+\.\d{3})\b")
QUERIES = ["how to tie a knot", "the of and", "注意力 机制", "first aid for a burnt hand", "v285"]
ANSWERS = {
    **{
        f"search {query}": lambda e, query=query: e.search(query, k=4, anyway=True)
        for query in QUERIES
    },
    "lexical": lambda e: e.search("knot in a net", heads="lexical"),
    "semantic": lambda e: e.search("knot in a net", heads="semantic"),
    "search for a user": lambda e: e.search("knot in a net", user="w001"),
    "similar": lambda e: e.similar("v285"),
    "similar to several": lambda e: e.similar(["v285", "v001", "v004"]),
    "recommend": lambda e: e.recommend(user="w001"),
    "recommend, damped": lambda e: e.recommend(user="w001", damping=0.5, diversity=0.5),
    "recommend by likes": lambda e: e.recommend(likes=["v001", "v004"]),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_parts_and_reasons_add_up_to_the_score(videos, answer, assert_adds_up):
    ranking = answer(videos)
    assert ranking
    for i, hit in enumerate(ranking):
        few, reasons = ranking.explain(i), ranking.reasons(i)
        parts = ranking.explain(i, full=True)
        assert len(few) == min(len(parts), 21)
        for listed in (few, parts):
            assert_adds_up([part.value for part in listed], hit.score)
        assert_adds_up(hit.heads.values(), hit.score)
        reasoned, total = sum(one.value for one in reasons), sum(part.value for part in parts)
        assert reasoned == pytest.approx(total, abs=1e-9 + 1e-6 * sum(abs(p.value) for p in parts))
        assert len(reasons) <= MAX_LINES + 4
        assert all(one.text == " ".join(one.text.split()) for one in reasons)


@pytest.mark.parametrize("name", ["search how to tie a knot", "similar", "similar to several"])
def test_what_everything_gets_is_the_same_for_every_item(videos, name):
    head = ANSWERS[name](videos).head
    found = {
        tuple((one.text, round(one.value, 9)) for one in constant(head.parts(position)))
        for position in range(0, videos.n_items, 7)
    }
    assert len(found) == 1
    ((only,),) = found
    assert only[0] == AVERAGE_ITEM
    assert only[1] < 0


def test_a_word_brings_in_the_lexical_head_what_its_item_loses_without_it(videos):
    words = ["knot", "net", "boats", "uncle"]
    full = videos.head("lexical", " ".join(words))
    position = int(np.argmax(full.scores))
    lines = dict.fromkeys(words, 0.0)
    for part in full.parts(position):
        for word in part.query.split():  # both words of a pair
            lines[word] += part.value
    for word in words:
        without = videos.head(
            "lexical", " ".join("xyzzyqq" if one == word else one for one in words)
        )
        lost = full.scores[position] - without.scores[position]
        assert lines[word] == pytest.approx(float(lost), abs=1e-5)


def meaningful_words(text):
    return [token.text for token in Analyzer().meaningful_tokens(text)]


def test_the_word_with_the_largest_line_is_mostly_the_one_that_the_item_needs_most(videos):
    """Queries of two words of one video and one of another: by how much the best hit's score falls
    where a word is left out.
    """
    rng, right = np.random.default_rng(1), []
    texts = videos.texts
    for position in rng.choice(videos.n_items, 25, replace=False):
        own, other = (
            meaningful_words(" ".join(texts.item_texts.of(int(row))))
            for row in (position, rng.integers(videos.n_items))
        )
        words = list(dict.fromkeys([*rng.choice(own, 2), rng.choice(other)]))
        fused = texts.fused(" ".join(words))
        best = int(np.argmax(fused.scores))
        falls = {}
        for word in words:
            rest = texts.fused(" ".join(one for one in words if one != word))
            falls[word] = -np.inf if rest is None else fused.scores[best] - rest.scores[best]
        first = WordReasons(" ".join(words))(best, fused.parts(best))[0].text
        needed = max(falls, key=falls.get)
        right.append(first.startswith((f"{needed}:", f"{needed} ~")))
    assert np.mean(right) >= 0.7


def test_a_history_is_grouped_by_what_the_catalog_knows(movies):
    ranking = movies.recommend(user="u001", k=3, explain=True)
    for i, hit in enumerate(ranking):
        largest = ranking.reasons(i)[0]
        _, n, _, kind = largest.text.split(",")[0].split()
        named = [reason["title"] for reason in hit.because if reason["title"] in largest.text]
        assert len(named) >= 1
        liked = {reason["id"]: reason["contribution"] for reason in hit.because}
        of_kind = [item for item in liked if kind in movies.items[item]["genres"].split("|")]
        assert int(n) == len(of_kind)  # the first group has all of its kind
        assert largest.value == pytest.approx(sum(liked[item] for item in of_kind), abs=1e-9)


@pytest.mark.parametrize(
    "query", ["bread", "how do transformers work", "slow sourdough bread at home"]
)
def test_what_is_no_word_is_named_and_only_words_are_others(videos, query):
    ranking = videos.search(query, user="w001", k=20)
    names = {"overall meaning", "average item (subtracted)", "your taste"}
    n_words = len(query.split())
    for i in range(len(ranking)):
        texts = [reason.text for reason in ranking.reasons(i)]
        assert len(names & set(texts)) >= 2
        others = [text for text in texts if re.fullmatch(r"\d+ others?.*", text)]
        assert all(text.endswith(" other words") for text in others)
        assert (
            sum(int(text.split()[0]) for text in others) + len(texts) - len(others) <= n_words + 3
        )


def test_the_kinds_of_a_line_add_up_to_the_line_as_it_is_shown(videos, all_heads):
    """Guards against rounding them to the exact value: the lines are rounded once more, so that
    they add up to the score.
    """
    n_lines = 0
    for query in ('"river bank"', "bread oven", "space robots", "deep sea fish", "guitar chords"):
        ranking = videos.search(query, k=20)
        for i, hit in enumerate(ranking):
            reasons = ranking.reasons(i)
            shown = reasons_adding_up(reasons, hit.score)
            for reason, value in zip(reasons, shown, strict=True):
                kinds = [float(number) for number in KIND.findall(reason.text)]
                if kinds:
                    n_lines += 1
                    assert sum(kinds) == pytest.approx(value, abs=1e-9), (query, reason.text)
    assert n_lines > 50


@pytest.mark.parametrize("index", [99, -99, "a", 0.5, True])
def test_a_hit_that_is_not_there_is_said(videos, index):
    ranking = videos.search("knot", k=2)
    for method in (ranking.reasons, ranking.explain, ranking.sentence, ranking.smallest):
        with pytest.raises(QkvError, match="`index` must be the place of a hit"):
            method(index)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))])
@pytest.mark.parametrize("ask", ANSWERS.values(), ids=ANSWERS)
def test_a_copy_of_a_ranking_has_its_hits_but_no_way_back(videos, ask, copied):
    ranking = ask(videos)
    copy_of_it = copied(ranking)
    assert copy_of_it.envelope() == ranking.envelope()
    assert str(copy_of_it) == str(ranking)
    if len(ranking):
        assert ranking.reasons(0)  # the ranking itself still has it
        with pytest.raises(QkvError, match="copy"):
            copy_of_it.reasons(0)
