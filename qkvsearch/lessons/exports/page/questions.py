"""Quizzes as forms: the script judges them; without it, the worked answer can be unfolded."""

import json
from collections.abc import Sequence

from qkvsearch.lessons.markup import Html, element, prose
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz


def questions(quizzes: Sequence[Quiz], lesson: str) -> Html:
    """Return the section of a lesson's quizzes."""
    place = f"quiz-{lesson}"
    forms = [form(quiz, number, f"{place}-{number}") for number, quiz in enumerate(quizzes, 1)]
    return element(
        "section",
        element("h3", say("Check yourself"), id=place),
        *forms,
        class_="quizzes",
        aria_labelledby=place,
    )


def form(quiz: Quiz, number: int, place: str) -> Html:
    """Return a question as a form. place: a part of its ids, unique in the page."""
    worked = element(
        "details",
        element("summary", say("The worked answer")),
        element("p", prose(quiz.worked)),
        element("p", say("Answer: {answer}", answer=quiz.solution)),
        class_="worked",
    )
    question = [element("span", f"{number}.", class_="counter"), " ", prose(quiz.question)]
    if quiz.choices:
        asked = element("fieldset", element("legend", *question), *_choices(quiz, place))
    else:
        asked = element("div", element("label", *question, for_=place), _entry(quiz, place))
    return element(
        "form",
        asked,
        element("p", element("button", say("Check"), type="submit"), class_="check", hidden=True),
        element("p", class_="verdict", role="status"),
        worked,
        class_="quiz",
        data_quiz=quiz.name,
        data_kind="words" if isinstance(quiz.answer, frozenset) else "numbers",
        data_tolerance=quiz.tolerance,
        data_answer=json.dumps(quiz.to_record()["answer"]),
        data_wrong=json.dumps(
            [
                [sorted(wrong) if isinstance(wrong, frozenset) else wrong, shows]
                for wrong, shows in quiz.wrong_answers
            ],
            ensure_ascii=False,
        ),
    )


def _choices(quiz: Quiz, place: str) -> list[Html]:
    return [
        element(
            "div",
            element(
                "input", type="radio", id=f"{place}-{i}", name=place, value=str(i), required=True
            ),
            element("label", prose(choice), for_=f"{place}-{i}"),
            class_="choice",
        )
        for i, choice in enumerate(quiz.choices)
    ]


def _entry(quiz: Quiz, place: str) -> Html:
    # No word at all is an answer, too: no cell becomes 0.
    may_be_empty = quiz.answer == frozenset()
    return element(
        "input",
        type="text",
        id=place,
        name=place,
        autocomplete="off",
        spellcheck="false",
        required=not may_be_empty,
    )
