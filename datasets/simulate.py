"""Simulate people: 400 who rate the films of movies.csv, 250 who watch the videos of videos.csv.

The films are real, the people are not. Each person mixes two or three taste profiles: made of
genres for films (FILM_TASTES), of categories and tags for videos (VIDEO_TASTES). Each item has a
hidden popularity. People mostly choose popular items to their taste. Those who rate films also
prefer some period, and rate by taste, a hidden quality and noise, in half stars (half of the people
use whole stars only). Of those who watch videos, most leave out Chinese titles and some prefer
them; their watches carry no rating.

Run `python datasets/simulate.py` to write ratings.csv and watches.csv beside this file. The seeds
are fixed, so every run with the same NumPy writes the same bytes.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
SEED = 20250101
N_RATERS, N_WATCHERS = 400, 250
FIRST_DAY, LAST_DAY = 1_672_531_200, 1_767_225_600  # 2023-01-01 and 2026-01-01, in UTC

FILM_TASTES: dict[str, dict[str, float]] = {
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
# Categories and tags; each one that a video has counts 1.
VIDEO_TASTES = {
    "machine learning": "deep learning|machine learning|neural network|self-attention|softmax"
    "|language model|embeddings|attention mask|multi-head attention|positional encoding|decoder"
    "|collaborative filtering|recommender systems|matrix factorization|注意力机制|深度学习",
    "search and data": "database|SQL|index|search engine|semantic search|retrieval|search quality"
    "|embeddings|recommender systems|recommendation|ranking metrics|向量检索|推荐系统|冷启动",
    "code": "Technology|python|Python|java|git|clean code|security|linux|command line"
    "|performance|coding|programming|加密|爬虫|编程|regex|shell|data structures|testing",
    "in the kitchen": "Cooking|baking|dessert|家常菜|美食|coffee|food safety|food waste|kitchen",
    "on the road": "Travel|hiking|road trip|train|旅行|camping|mountains|美食|walking|city walk",
    "workshop": "Crafts|woodworking|repair|DIY|maintenance|workshop|维修|electricity|transformer",
    "home and garden": "garden|gardening|home repair|plumbing|houseplants|orchard|pests|养花"
    "|vegetable garden|apple|tiles|decorating|mattress|septic tank|ceiling fan|盆栽|家居",
    "wild things": "Nature|wildlife|birds|birdwatching|snake|reptile|animals|鸟类|动物|biology",
    "how things work": "Science|physics|astronomy|chemistry|electricity|experiment|planet|科普",
    "long ago": "History|archaeology|mythology|medieval|computer history|历史|唐朝|film history",
    "stage and screen": "Music|Film|guitar|singing|bass|music theory|jazz|民乐|film analysis",
    "money": "Finance|saving|savings|investing|budget|理财|personal finance|startup|风险",
    "people and minds": "Education|psychology|relationships|writing|interview|health|parenting"
    "|children|attention span|成语|职场|注意力|mental health|dating|focus",
    "play": "Sports|Gaming|football|retro gaming|technique|training|chess|fitness test",
}
HAN, KANA = re.compile("[\u4e00-\u9fff]"), re.compile("[\u3040-\u30ff]")


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(name: str, header: list[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file beside this program."""
    with (HERE / name).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def fit_to_tastes(features: list[list[str]], tastes: Iterable[Mapping[str, float]]) -> np.ndarray:
    """Return how well each item suits each taste: (tastes, items), every row standardised."""
    scores = [[sum(t.get(f, 0) for f in fs) / len(fs) ** 0.5 for fs in features] for t in tastes]
    fit = np.array(scores)
    return (fit - fit.mean(axis=1, keepdims=True)) / fit.std(axis=1, keepdims=True)


def draw_liking(fit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return how much one new person likes each item."""
    tastes = rng.choice(len(fit), size=rng.integers(2, 4), replace=False)
    # A small concentration makes one taste lead: people with an even mix have no neighbours.
    liking = rng.dirichlet(np.full(len(tastes), 0.7)) @ fit[tastes]
    return liking / liking.std()


def choose(wish: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n items without replacement: Gumbel noise makes "take the top" do just that."""
    return rng.permutation(np.argsort(-wish - rng.gumbel(size=len(wish)), kind="stable")[:n])


def draw_times(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n times in order: people are active for some months, not evenly over the years."""
    joined = rng.integers(FIRST_DAY, LAST_DAY - 200 * 86_400)
    return np.sort(joined + rng.choice(200 * 86_400, size=n, replace=False))


def simulate_ratings(films: list[dict[str, str]]) -> list[tuple[str, str, str, int]]:
    """Return (user, movie, rating, timestamp) rows, each person's in order of time."""
    rng = np.random.default_rng(SEED)
    fit = fit_to_tastes([film["genres"].split("|") for film in films], FILM_TASTES.values())
    years = np.array([int(film["year"]) for film in films])
    quality = rng.normal(0, 0.3, len(films))
    # Good films are seen more often, but luck matters more; the floor leaves no film unseen.
    popularity = quality + np.maximum(rng.normal(0, 0.6, len(films)), -0.6)
    rows = []
    for user in range(1, N_RATERS + 1):
        period = rng.normal(1994, 14)
        drawn = draw_liking(fit, rng) - 0.8 * np.minimum(np.abs(years - period) / 25, 1.4)
        n_seen = int(np.clip(rng.lognormal(3.7, 0.4), 15, 90))
        seen = choose(1.2 * drawn + popularity, n_seen, rng)
        mean, spread = rng.normal(3.5, 0.35), rng.uniform(0.4, 0.9)
        step = rng.choice([0.5, 1.0])
        # People choose what they like, so the personal mean is that of the films they chose.
        liked = drawn[seen] - drawn[seen].mean()
        stars = mean + spread * liked + quality[seen] + rng.normal(0, 0.4, n_seen)
        stars = np.clip(np.round(stars / step) * step, 1, 5)
        for film, star, time in zip(seen, stars, draw_times(n_seen, rng), strict=True):
            rows.append((f"u{user:03d}", films[film]["id"], f"{star:.1f}", time))
    return rows


def simulate_watches(videos: list[dict[str, str]]) -> list[tuple[str, str, int]]:
    """Return (user, video, timestamp) rows, each person's in order of time."""
    rng = np.random.default_rng(SEED + 1)
    tastes = [dict.fromkeys(names.split("|"), 1.0) for names in VIDEO_TASTES.values()]
    fit = fit_to_tastes([[v["category"], *v["tags"].split("|")] for v in videos], tastes)
    # Japanese titles are told from Chinese ones by their kana.
    titles = [video["title"] for video in videos]
    chinese = np.array([bool(HAN.search(t)) and not KANA.search(t) for t in titles])
    popularity = np.maximum(rng.normal(0, 0.6, len(videos)), -0.6)
    rows = []
    for user in range(1, N_WATCHERS + 1):
        reads = rng.choice([-4.0, 0.0, 2.0], p=[0.65, 0.15, 0.2])
        n_seen = int(np.clip(rng.lognormal(3.1, 0.45), 8, 50))
        wish = 1.3 * draw_liking(fit, rng) + popularity + reads * chinese
        for video, time in zip(choose(wish, n_seen, rng), draw_times(n_seen, rng), strict=True):
            rows.append((f"w{user:03d}", videos[video]["id"], time))
    return rows


if __name__ == "__main__":
    ratings, watches = simulate_ratings(read("movies.csv")), simulate_watches(read("videos.csv"))
    write("ratings.csv", ["user", "movie", "rating", "timestamp"], ratings)
    write("watches.csv", ["user", "video", "timestamp"], watches)
