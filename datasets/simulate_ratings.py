"""Simulate 300 people who watch and rate the films of movies.csv.

The films are real, the people are not. Each person mixes two or three of the taste profiles
below, prefers films of some period, and has a mean and a spread of their own. Each film has a
hidden quality and popularity. People mostly choose popular films to their taste, and rate them
by taste, quality and noise, in half stars (half of the people use whole stars only).

Run `python datasets/simulate_ratings.py` to write ratings.csv beside this file. The seed is
fixed, so every run with the same NumPy writes the same bytes.
"""

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SEED = 20250101
N_USERS = 300
FIRST_DAY, LAST_DAY = 1_672_531_200, 1_767_225_600  # 2023-01-01 and 2026-01-01, in UTC

TASTES = {
    "family night": {"Family": 3, "Animation": 3, "Musical": 1, "Crime": -2, "Horror": -3},
    "space and robots": {"Sci-Fi": 4, "Action": 1, "Adventure": 0.5, "Musical": -1},
    "crime stories": {"Crime": 3, "Thriller": 1.5, "Mystery": 1, "Family": -2, "Animation": -1},
    "love stories": {"Romance": 3, "Drama": 0.5, "Musical": 1, "Horror": -2, "War": -1},
    "midnight horror": {"Horror": 3, "Thriller": 1, "Mystery": 1, "Musical": -2, "Family": -1},
    "war and history": {"War": 3, "Historical": 2, "Drama": 1, "Fantasy": -1},
    "worlds of wonder": {"Fantasy": 3, "Animation": 2, "Adventure": 1, "Crime": -2, "War": -1},
    "big adventure": {"Adventure": 2, "Action": 3, "Drama": -1, "Animation": -1},
    "on the frontier": {"Western": 4, "Adventure": 1, "Animation": -1},
    "quiet drama": {"Drama": 2.5, "Documentary": 2, "Action": -1.5, "Adventure": -1},
    "a good laugh": {"Comedy": 3, "Family": 0.5, "War": -1, "Horror": -1},
    "puzzles": {"Mystery": 3, "Thriller": 2, "Family": -1},
}


def read_movies(path: Path) -> tuple[list[str], np.ndarray, list[list[str]]]:
    """Return the ids, the release years and the genres of the films."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    years = np.array([int(row["year"]) for row in rows])
    return [row["id"] for row in rows], years, [row["genres"].split("|") for row in rows]


def taste_for_films(genres: list[list[str]]) -> np.ndarray:
    """Return how well each film suits each taste: (tastes, films), every row standardised."""
    fit = np.array(
        [
            [sum(taste.get(genre, 0) for genre in film) / len(film) ** 0.5 for film in genres]
            for taste in TASTES.values()
        ]
    )
    return (fit - fit.mean(axis=1, keepdims=True)) / fit.std(axis=1, keepdims=True)


def draw_user(fit: np.ndarray, years: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return how much one new person is drawn to each film."""
    tastes = rng.choice(len(fit), size=rng.integers(2, 4), replace=False)
    # A small concentration makes one taste lead: people with an even mix have no neighbours.
    liking = rng.dirichlet(np.full(len(tastes), 0.7)) @ fit[tastes]
    period = rng.normal(1996, 12)
    return liking / liking.std() - 0.8 * np.minimum(np.abs(years - period) / 25, 1.4)


def simulate(years: np.ndarray, genres: list[list[str]]) -> list[tuple[int, int, float, int]]:
    """Return (user, film, rating, timestamp) rows, each person's in order of time."""
    rng = np.random.default_rng(SEED)
    fit = taste_for_films(genres)
    quality = rng.normal(0, 0.3, len(genres))
    # Good films are seen more often, but luck matters more; the floor leaves no film unseen.
    popularity = quality + np.maximum(rng.normal(0, 0.6, len(genres)), -0.6)
    rows = []
    for user in range(N_USERS):
        drawn = draw_user(fit, years, rng)
        n_seen = int(np.clip(rng.lognormal(3.45, 0.4), 15, 70))
        # Gumbel noise turns "take the top" into sampling without replacement.
        wish = 1.1 * drawn + popularity + rng.gumbel(size=len(genres))
        seen = rng.permutation(np.argsort(-wish, kind="stable")[:n_seen])
        mean, spread = rng.normal(3.5, 0.35), rng.uniform(0.4, 0.9)
        step = rng.choice([0.5, 1.0])
        # People choose what they like, so the personal mean is that of the films they chose.
        liked = drawn[seen] - drawn[seen].mean()
        stars = mean + spread * liked + quality[seen] + rng.normal(0, 0.4, n_seen)
        stars = np.clip(np.round(stars / step) * step, 1, 5)
        # A person is active for some months after joining, not evenly over the three years.
        joined = rng.integers(FIRST_DAY, LAST_DAY - 200 * 86_400)
        days = rng.choice(200 * 86_400, size=n_seen, replace=False)
        rows += zip([user] * n_seen, seen, stars, np.sort(joined + days), strict=True)
    return rows


def main() -> None:
    """Read movies.csv and write ratings.csv beside it."""
    movies, years, genres = read_movies(HERE / "movies.csv")
    with (HERE / "ratings.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["user", "movie", "rating", "timestamp"])
        for user, film, rating, timestamp in simulate(years, genres):
            writer.writerow([f"u{user + 1:03d}", movies[film], f"{rating:.1f}", timestamp])


if __name__ == "__main__":
    main()
