"""`qkvsearch demo`: search, recommendation and attention on the bundled samples."""

import shlex

import click

from qkvsearch.cli.context import settings
from qkvsearch.cli.hits import ranking_table
from qkvsearch.cli.render import write_text

VIDEOS, FILMS = ("-w", "sample:videos"), ("-w", "sample:movies")
LIKES = ("Up", "Coco")
QUERY = "attention in a transformer"


@click.command(short_help="See search, recommendation and their reasons on sample data.")
def demo() -> None:
    """See search, recommendation and their reasons on the bundled films and videos.

    \b
    Example:
      qkvsearch demo
    """
    from qkvsearch.cli.heatmap import heat_map

    run = settings()
    videos, films = run.open_sample("videos"), run.open_sample("movies")

    click.echo("One formula, softmax(QKᵀ/√d + mask)·V: a query meets keys, and values answer.")
    _step("Search: the query is a text, the keys are the videos' words and vectors.",
          *VIDEOS, "search", QUERY, "-k", "4")  # fmt: skip
    ranking = videos.search(QUERY, k=4, explain=True)
    write_text(ranking_table(ranking.to_records(), ranking))

    _step("Why the first one? Its score is a sum of these parts.",
          *VIDEOS, "search", QUERY, "-k", "1", "--explain")  # fmt: skip
    ranking = videos.search(QUERY, k=1, explain=True)
    write_text(ranking_table(ranking.explained_records(), ranking))

    likes = [word for title in LIKES for word in ("--like", title)]
    _step("Recommend: the query is a person, made from what they like; the keys, films.",
          *FILMS, "recommend", *likes, "-k", "4", "--explain")  # fmt: skip
    ranking = films.recommend(likes=LIKES, k=4, explain=True)
    write_text(ranking_table(ranking.explained_records(), ranking))

    _step("The same for an existing user: what they have seen is masked.",
          *FILMS, "recommend", "--user", "u001", "-k", "4", "--where", "year >= 1990")  # fmt: skip
    ranking = films.recommend(user="u001", k=4, where="year >= 1990")
    write_text(ranking_table(ranking.to_records(), ranking))

    _step("Similar: the query is a film, and only the film itself is masked.",
          *FILMS, "similar", "Heat", "-k", "4")  # fmt: skip
    ranking = films.similar("Heat", k=4)
    write_text(ranking_table(ranking.to_records(), ranking))

    text = "guitar bass fishing lake"
    _step("Attend: the words of a text are queries, keys and values at once.",
          *VIDEOS, "attend", text)  # fmt: skip
    write_text(heat_map(videos.attend(text)))
    click.echo("\nNow with your own files:  qkvsearch build --help")


def _step(what: str, *words: str) -> None:
    click.echo(f"\n{what}")
    click.echo(click.style(f"$ qkvsearch {shlex.join(words)}", bold=True))
