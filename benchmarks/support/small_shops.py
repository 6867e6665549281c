"""Two small shops of our own writing, in English and in German: a product in several versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

# A kind of product: its category and a sentence about it.
OUTDOOR: Mapping[str, tuple[str, str]] = {
    "tent": ("Shelter", "Sleeps two or three and is up in five minutes, with a groundsheet."),
    "tarp": ("Shelter", "A waterproof sheet with eyelets, for a roof between two trees."),
    "hammock": ("Shelter", "Hangs between trees and packs to the size of a fist."),
    "sleeping bag": ("Sleeping", "Down filling, warm to five degrees below zero."),
    "sleeping mat": ("Sleeping", "Inflates by itself and keeps the cold of the ground away."),
    "pillow": ("Sleeping", "A small inflatable cushion for nights on the way."),
    "backpack": ("Bags", "Fifty litres, a padded hip belt and a rain cover."),
    "daypack": ("Bags", "Twenty litres for a walk between breakfast and supper."),
    "duffel": ("Bags", "A bag of tarpaulin that a baggage carousel does not hurt."),
    "dry sack": ("Bags", "Rolls shut and keeps clothes dry in a canoe."),
    "rain jacket": ("Clothing", "Waterproof and breathable, with a hood for a helmet."),
    "fleece": ("Clothing", "Warm, light and dry again in an hour."),
    "down vest": ("Clothing", "Goose feathers without sleeves, under a shell or alone."),
    "wool socks": ("Clothing", "Merino that does not smell after three days."),
    "gloves": ("Clothing", "Windproof, with fingertips that a telephone understands."),
    "beanie": ("Clothing", "A knitted hat that covers the ears."),
    "hiking boots": ("Shoes", "Leather to above the ankle, a stiff sole for rocky paths."),
    "trail shoes": ("Shoes", "Light shoes with a deep profile for running off the road."),
    "sandals": ("Shoes", "Straps that dry quickly, for rivers and hot days."),
    "gas stove": ("Cooking", "Boils a litre of water in four minutes."),
    "cooking pot": ("Cooking", "Aluminium, with a lid that is a pan."),
    "mug": ("Cooking", "Enamelled steel for coffee by the fire."),
    "water bottle": ("Cooking", "Stainless steel, a wide mouth, three quarters of a litre."),
    "water filter": ("Cooking", "Makes a stream safe to drink."),
    "cool box": ("Cooking", "Keeps food cold for two days with ice."),
    "headlamp": ("Light", "Three hundred lumens on the forehead, rechargeable."),
    "lantern": ("Light", "A warm glow for the table, with a hook for the ceiling."),
    "climbing rope": ("Climbing", "A dynamic single rope of sixty metres."),
    "harness": ("Climbing", "Padded leg loops and four loops for gear."),
    "carabiner": ("Climbing", "Screws shut and holds twenty-two kilonewtons."),
    "chalk bag": ("Climbing", "Dry hands on the wall, with a brush holder."),
    "trekking poles": ("Walking", "Carbon, foldable, with cork handles."),
    "compass": ("Walking", "A needle in oil and a mirror for bearings."),
    "map case": ("Walking", "A clear pouch in which a map stays dry."),
    "pocket knife": ("Tools", "Two blades, a corkscrew and tweezers."),
    "axe": ("Tools", "Splits kindling, with a hickory handle."),
    "first aid kit": ("Tools", "Plasters, bandages and a blanket of foil."),
    "folding chair": ("Furniture", "Weighs a kilogram and carries a hundred and twenty."),
    "camping table": ("Furniture", "Rolls up, for four plates."),
    "kayak": ("Boats", "Inflatable, for one, with a paddle and a pump."),
}
KITCHEN: Mapping[str, tuple[str, str]] = {
    "Kochtopf": ("Töpfe", "Edelstahl mit dickem Boden, für Gas und Induktion."),
    "Bratpfanne": ("Töpfe", "Beschichtet, damit kein Ei mehr anhängt."),
    "Schnellkochtopf": ("Töpfe", "Gart Bohnen in einem Drittel der Zeit."),
    "Wasserkocher": ("Geräte", "Bringt einen Liter in drei Minuten zum Sieden."),
    "Toaster": ("Geräte", "Zwei breite Schlitze und eine Schublade für Krümel."),
    "Kaffeemühle": ("Geräte", "Mahlt Bohnen so fein, wie man will."),
    "Stabmixer": ("Geräte", "Püriert Suppen gleich im Topf."),
    "Brotmesser": ("Messer", "Eine lange Klinge mit Wellenschliff."),
    "Kochmesser": ("Messer", "Zwanzig Zentimeter Stahl für Gemüse und Fleisch."),
    "Schneidebrett": ("Messer", "Aus Eiche, mit einer Rinne für den Saft."),
    "Suppenteller": ("Geschirr", "Tiefes Porzellan, auch für die Spülmaschine."),
    "Teekanne": ("Geschirr", "Aus Glas, mit einem Sieb für lose Blätter."),
    "Kaffeebecher": ("Geschirr", "Fasst einen Viertelliter und hält warm."),
    "Weinglas": ("Geschirr", "Dünnes Glas mit langem Stiel."),
    "Salatschüssel": ("Geschirr", "Groß genug für acht Gäste."),
    "Springform": ("Backen", "Löst den Kuchen, ohne ihn zu zerbrechen."),
    "Nudelholz": ("Backen", "Aus Buche, mit Griffen, die sich mitdrehen."),
    "Küchenwaage": ("Backen", "Auf ein Gramm genau bis fünf Kilogramm."),
    "Geschirrtuch": ("Textilien", "Halbleinen, das mit jedem Waschen besser trocknet."),
    "Kochschürze": ("Textilien", "Mit Tasche, für Kinder und Erwachsene."),
    "Regenjacke für Kinder": ("Garten", "Wasserdicht, mit Kapuze, für den Garten im Regen."),
    "Gießkanne": ("Garten", "Zehn Liter, mit Brause aus Messing."),
    "Gartenschere": ("Garten", "Schneidet Zweige bis zwei Zentimeter."),
    "Blumentopf": ("Garten", "Ton, mit Untersetzer."),
}
MAKERS: Sequence[str] = ("Alvra", "Birkholm", "Cordan", "Dunmoor", "Elvet")
COLOURS: Sequence[str] = ("red", "green", "black", "grey", "orange")
FARBEN: Sequence[str] = ("rot", "grün", "schwarz", "grau", "weiß")


def outdoor_shop() -> pd.DataFrame:
    """200 things for walks and nights outside. Nothing is cheap, and only kayaks are blue."""
    items = _products(OUTDOOR, COLOURS)
    is_kayak = items["title"].str.contains("kayak")
    items.loc[is_kayak, "colour"] = "blue"
    return items


def kitchen_shop() -> pd.DataFrame:
    """120 things for kitchen and garden, in German."""
    return _products(KITCHEN, FARBEN)


def _products(kinds: Mapping[str, tuple[str, str]], colours: Sequence[str]) -> pd.DataFrame:
    rows = []
    for kind, (category, text) in kinds.items():
        for i, maker in enumerate(MAKERS):
            title = f"{maker} {kind} {i + 1}"
            rows.append((title, category, colours[(len(rows) + i) % len(colours)], text))
    items = pd.DataFrame(rows, columns=["title", "category", "colour", "text"])
    return items.assign(id=[f"p{number:03}" for number in range(len(rows))])
