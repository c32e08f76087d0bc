"""The sentences that the model of docs' pictures learns: what people do in which clothes, English and German."""
import os
import random

# English; German in the nominative with its article; possessive ("his", "seinem").
PEOPLE = [("man", "ein Mann", "der Mann", "m"), ("boy", "ein Junge", "der Junge", "m"), ("woman", "eine Frau", "die Frau", "f"),
          ("girl", "ein Mädchen", "das Mädchen", "f"), ("teacher", "ein Lehrer", "der Lehrer", "m"), ("nurse", "eine Krankenschwester", "die Krankenschwester", "f")]
COLOURS = [("red", "rot"), ("blue", "blau"), ("green", "grün"), ("black", "schwarz"), ("white", "weiß"), ("yellow", "gelb")]
CLOTHES = [("shirt", "Hemd", "n"), ("jacket", "Jacke", "f"), ("coat", "Mantel", "m"), ("dress", "Kleid", "n"), ("hat", "Hut", "m")]
# Verb, German verb, objects (English, German, gender).
ACTIONS = [("is reading", "liest", [("book", "Buch", "n"), ("letter", "Brief", "m"), ("newspaper", "Zeitung", "f")]),
           ("is throwing", "wirft", [("ball", "Ball", "m"), ("stone", "Stein", "m")]),
           ("is eating", "isst", [("apple", "Apfel", "m"), ("pear", "Birne", "f"), ("cake", "Kuchen", "m")]),
           ("is buying", "kauft", [("car", "Auto", "n"), ("bike", "Fahrrad", "n"), ("watch", "Uhr", "f")])]
SIZES = [("big", "groß"), ("small", "klein"), ("old", "alt"), ("new", "neu")]
TIMES = [("today", "heute"), ("now", "jetzt"), ("here", "hier")]
DATIVE = {"m": ("einem", "en"), "n": ("einem", "en"), "f": ("einer", "en")}
ACCUSATIVE = {"m": ("einen", "en"), "n": ("ein", "es"), "f": ("eine", "e")}
OWN = {"m": ("his", "sein"), "f": ("her", "ihr")}


def article(noun):
    return "an" if noun[0] in "aeio" else "a"


def sentence(draw):
    person, indefinite, definite, sex = draw.choice(PEOPLE)
    is_known = draw.random() < 0.3
    english, german = ("the " if is_known else "a ") + person, definite if is_known else indefinite
    if draw.random() < 0.7:
        colour, wear = draw.choice(COLOURS), draw.choice(CLOTHES)
        one, ending = DATIVE[wear[2]]
        english += f" in a {colour[0]} {wear[0]}"
        german += f" in {one} {colour[1]}{ending} {wear[1]}"
    verb, german_verb, objects = draw.choice(ACTIONS)
    thing, german_thing, gender = draw.choice(objects)
    one, ending = ACCUSATIVE[gender]
    english_object, german_object = f"{article(thing)} {thing}", f"{one} {german_thing}"
    kind = draw.random()
    if kind < 0.35:
        size = draw.choice(SIZES)
        english_object, german_object = f"{article(size[0])} {size[0]} {thing}", f"{one} {size[1]}{ending} {german_thing}"
    elif kind < 0.6:
        own = OWN[sex]
        english_object, german_object = f"{own[0]} {thing}", f"{own[1]}{one[3:]} {german_thing}"
    if draw.random() < 0.5:  # the verb is second in German, so the subject moves behind it
        time = draw.choice(TIMES)
        return f"{time[0]} {english} {verb} {english_object}", f"{time[1]} {german_verb} {german} {german_object}"
    return f"{english} {verb} {english_object}", f"{german} {german_verb} {german_object}"


def write_corpus(folder):
    """train and val .en and .de: the same for every call."""
    draw, seen = random.Random(7), set()
    pairs = []
    while len(pairs) < 6100:
        pair = sentence(draw)
        if pair not in seen:
            seen.add(pair)
            pairs.append(pair)
    os.makedirs(folder, exist_ok=True)
    for part, some in (("val", pairs[:100]), ("train", pairs[100:])):
        for k, language in enumerate(("en", "de")):
            with open(os.path.join(folder, f"{part}.{language}"), "w", encoding="utf-8") as out:
                for pair in some:
                    text = pair[k]
                    out.write(text[0].upper() + text[1:] + ".\n")
