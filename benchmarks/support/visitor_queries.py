"""Sixty queries as a visitor would type them, and the first hit of each.

Twenty ask for films (9,742 titles with genres), twenty for TED talks (titles and tags) and twenty
for products of a small shop that is made here. No query is answered by a file: a person reads the
table and judges whether each first hit is sensible.

QKVSEARCH_DATA=data python -m benchmarks.support.visitor_queries [--encoder static]    (two minutes)
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import data_folder

FILMS = """horror movie set in space
movie about boxing
zombies
james bond
ET
world war ii
time loop
toy story
lord of the rings
star wars the first movie
pixar movie about a fish
romantic comedy about a wedding
dinosaur park
batman and the joker
matrix
shark attack film
harry potter prisoner
vampires in new york
funny animal movies
spiderman""".splitlines()

TALKS = """how to be happy
climate change solutions
why do we sleep
procrastination
dangers of artificial intelligence
body language
what is consciousness
public speaking tips
learning a new language
black holes
how to raise kids
creativity in schools
vaccines
is stress good for you
how to spot a liar
bees are dying
robots that move like animals
poverty in africa
music and the brain
paralysed people walking again""".splitlines()

PRODUCTS = """rain jacket
waterproof boots women
tent for two
something to cook on while camping
usb c cable
kids bike helmet
gift for a coffee lover
noise cancelling headphones
laptop bag 15 inch
running shoes
warm gloves
water bottle
desk lamp led
winter sleeping bag
yoga mat
leather wallet
phone charger
chess set
non stick pan
black cotton t-shirt""".splitlines()

# title; category; description
SHOP = """Storm shell jacket; Clothing, Men; Taped seams and a hood keep rain and wind out
Rain poncho; Clothing, Unisex; Light cover for festivals, packs to the size of a fist
Down jacket; Clothing, Women; Warm goose down for dry winter days
Fleece pullover; Clothing, Men; Soft layer under a shell
Jacket potatoes cookbook; Books; Forty ways to bake a potato in its skin
Hiking boots Alta; Shoes, Women; Waterproof leather boots for wet trails
Hiking boots Alta; Shoes, Men; Waterproof leather boots for wet trails
Rubber boots; Shoes, Kids; For puddles, in yellow and blue
Chelsea boots; Shoes, Women; Suede ankle boots for the city
Trail running shoes; Shoes, Men; Grip on mud, 8 mm drop
Road running shoes; Shoes, Women; Light cushioning for asphalt
House slippers; Shoes, Unisex; Felt with a leather sole
Shoe rack; Furniture; Bamboo, holds twelve pairs of shoes
Dome tent Duo; Camping; Sleeps two people, 2.1 kg, sets up in five minutes
Family tent; Camping; Sleeps six people, two bedrooms
Tent pegs; Camping; Set of ten, aluminium
Gas stove; Camping; Single burner for pots, folds flat
Camping pot set; Camping; Two pots and a lid of titanium
Firelighters; Garden; Wood wool, box of 40
Sleeping bag Polar; Camping; Comfort down to -15 degrees, for winter nights
Sleeping bag Breeze; Camping; Light summer bag, 600 g
Sleeping pad; Camping; Insulated, inflates by itself
Headlamp; Camping; 300 lumens, rechargeable
Drinking bottle; Sports; Steel, 750 ml, keeps water cold for a day
Water filter jug; Kitchen; Takes lime out of tap water
Hot water bottle; Home; Rubber with a knitted cover
Baby bottle; Kids; Glass, 240 ml
USB-C to USB-C cable; Electronics; 2 m, charges with 100 W
USB-A to micro USB cable; Electronics; 1 m, for older phones
HDMI cable; Electronics; 4K at 60 Hz, 3 m
Cable ties; Tools; Reusable, pack of 50
Wall charger 65 W; Electronics; Charges a phone and a laptop at once
Power bank; Electronics; 10,000 mAh, charges a phone twice
Car charger; Electronics; Two ports for the cigarette lighter
Phone case; Electronics; Clear, with raised corners
Bicycle helmet Junior; Bikes, Kids; For heads of 48 to 54 cm, with a light
Bicycle helmet Urban; Bikes, Adults; Matte black with a visor
Kids bike 16 inch; Bikes, Kids; From four years on, with training wheels
Bike lock; Bikes; Steel chain, 90 cm
Bike lights; Bikes; Front and rear, rechargeable
Pour-over coffee set; Kitchen; Glass carafe, dripper and forty filters
Burr grinder; Kitchen; Grinds beans evenly by hand
Espresso cups; Kitchen; Set of four, porcelain
Coffee table; Furniture; Oak, 110 cm
Tea pot; Kitchen; Cast iron, 0.8 l
Gift card; Gifts; For 25, 50 or 100
Gift wrap; Gifts; Recycled paper, five sheets
Over-ear headphones Quiet; Electronics; Active noise cancellation, 30 hours
In-ear headphones; Electronics; Wired, with a microphone
Ear plugs; Home; Foam, against noise, ten pairs
White noise machine; Home; Rain and waves for better sleep
Laptop sleeve 13 inch; Bags; Felt, slim
Messenger bag; Bags; Padded pocket for a laptop up to 15.6 inches
Laptop stand; Electronics; Aluminium, adjustable height
Backpack 30 l; Bags; For day hikes, with a rain cover
Toiletry bag; Bags; Hangs on a hook
Ski gloves; Clothing, Unisex; Insulated and windproof, warm to -20 degrees
Garden gloves; Garden; Cotton with a grip
Boxing gloves; Sports; 12 oz, leather
Wool hat; Clothing, Unisex; Merino, warm and thin
Scarf; Clothing, Women; Cashmere, 180 cm
Desk light Arc; Lamps; LED, dimmable, for the work table
Floor lamp; Lamps; Linen shade, 150 cm
Bedside lamp; Lamps; Touch switch, warm light
LED bulb E27; Lamps; 8 W, as bright as 60 W
Writing desk; Furniture; Walnut with two drawers
Desk mat; Office; Felt, 80 by 30 cm
Exercise mat; Sports; 6 mm, non-slip, for yoga and pilates
Yoga block; Sports; Cork
Door mat; Home; Coconut fibre
Play mat; Kids; Foam puzzle
Bifold wallet; Accessories; Full-grain leather, six cards
Card holder; Accessories; Aluminium, blocks RFID
Leather belt; Accessories; 3.5 cm, brown
Leather care balm; Shoes; For boots and bags
Chess board with pieces; Games; Wooden, folds, 40 cm
Chess openings; Books; A beginner's guide to the first ten moves
Backgammon; Games; Travel size
Jigsaw puzzle; Games; 1,000 pieces, a harbour
Frying pan 28 cm; Kitchen; Ceramic coating, nothing sticks
Cast iron skillet; Kitchen; 26 cm, lasts a lifetime
Saucepan; Kitchen; Steel, 2 l, with a lid
Baking tray; Kitchen; Enamel, 40 cm
Sticky notes; Office; Yellow, six pads
Basic tee; Clothing, Men; Black, 100 % organic cotton, short sleeves
Basic tee; Clothing, Women; White, 100 % organic cotton, short sleeves
Polo shirt; Clothing, Men; Navy, piqué
Cotton socks; Clothing, Unisex; Black, five pairs
Black tea; Food; Assam, 100 g
Cotton pads; Bath; 80 pieces""".splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", default="static")
    encoder = parser.parse_args().encoder
    titles = ["title", "category", "description"]
    shop = pd.DataFrame([line.split("; ") for line in SHOP], columns=titles)
    shop.insert(0, "id", [f"p{row}" for row in range(len(shop))])
    talks = pd.read_csv(data_folder() / "ted" / "talks.csv", dtype=str)
    films = pd.read_csv(data_folder() / "ml-latest-small" / "movies.csv", dtype=str)
    catalogs = (
        ("films", FILMS, films, qkv.Columns(id="movieId", title="title", text=["title", "genres"])),
        ("talks", TALKS, talks, qkv.Columns(id="id", title="title", text=["title", "tags"])),
        ("shop", PRODUCTS, shop, qkv.Columns(id="id", title="title", text=titles)),
    )
    print("| catalog | query | first hit |\n|---|---|---|")
    for name, queries, items, columns in catalogs:
        with (
            TemporaryDirectory() as folder,
            qkv.build(Path(folder, name), items=items, columns=columns, encoder=encoder) as engine,
        ):
            for query in queries:
                hits = engine.search(query, k=1)
                first = "none"
                if len(hits):
                    row = items.loc[items[columns.id].astype(str) == str(hits[0].id)].iloc[0]
                    others = "; ".join(str(row[name]) for name in columns.text[1:])
                    first = f"{row['title']} ({others[:80]})"
                print(f"| {name} | {query} | {first.replace('|', ', ')} |", flush=True)


if __name__ == "__main__":
    main()
