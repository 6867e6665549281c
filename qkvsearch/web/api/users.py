"""`users`, and what one of them did."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from qkvsearch.data.ids import id_text
from qkvsearch.engine import Engine
from qkvsearch.search.listing import Listing
from qkvsearch.web.api.answers import Asked, Listed, as_json, check_count, listed, shown
from qkvsearch.web.api.questions import (
    Count,
    ListedQuestion,
    Offset,
    QueryParameters,
    Text,
    UserPath,
)
from qkvsearch.web.problems import Problem

router = APIRouter(tags=["users"])


class UsersQuestion(ListedQuestion):
    """Which users."""

    begins: Annotated[Text, Field(description="Those whose id begins so, in either case.")] = ""


class HistoryQuestion(QueryParameters):
    """Which rows of it."""

    k: Count = 20
    offset: Offset = 0


@router.get("/users", responses=shown(Listed), summary="List the users")
async def users(service: Asked, question: Annotated[UsersQuestion, Query()]) -> Response:
    """With how many items each one interacted. `where` is over id, interactions and recorded."""
    check_count(service, question.k)
    if question.begins and question.where is not None:
        raise Problem(400, "`begins`: not together with `where`")
    return await service.ask(lambda engine: as_json(answer(engine, question)))


def answer(engine: Engine, question: UsersQuestion) -> dict[str, Any]:
    """A page of rows."""
    if not question.begins:
        return listed(engine.users.list(**question.options("begins")))
    wanted, rows = question.begins.casefold(), engine.users
    found = [id_ for id_ in rows if id_text(id_).casefold().startswith(wanted)]
    page = found[question.offset : question.offset + question.k]
    return listed(
        Listing([rows[id_] for id_ in page], len(found), ("id", "interactions"), question.offset)
    )


@router.get("/users/{user:path}/history", responses=shown(Listed), summary="What a user did")
async def history(
    service: Asked, user: UserPath, question: Annotated[HistoryQuestion, Query()]
) -> Response:
    """The latest first."""
    check_count(service, question.k)
    asked = question.options()
    return await service.ask(lambda engine: as_json(listed(engine.history(user, **asked))))
