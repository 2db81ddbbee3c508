"""The nouns of both languages, in groups that verbs and adjectives refer to."""

from dataclasses import dataclass
from functools import cache

from generator.english import add_s

# English = article German, German plural. A slash gives an irregular English plural, a star marks a weak noun
# (der Junge, den Jungen), a tilde a noun without plural, a plus sign a noun without singular.
TABLE = """
[person]
man/men = der Mann, Männer
woman/women = die Frau, Frauen
child/children = das Kind, Kinder
boy = der* Junge, Jungen
girl = das Mädchen, Mädchen
neighbour = der* Nachbar, Nachbarn
friend = der Freund, Freunde
guest = der Gast, Gäste
colleague = der* Kollege, Kollegen
tourist = der* Tourist, Touristen
customer = der* Kunde, Kunden

[profession]
teacher = der Lehrer, Lehrer
doctor = der Arzt, Ärzte
student = der* Student, Studenten
baker = der Bäcker, Bäcker
gardener = der Gärtner, Gärtner
engineer = der Ingenieur, Ingenieure
policeman/policemen = der* Polizist, Polizisten
waiter = der Kellner, Kellner
chef = der Koch, Köche
judge = der Richter, Richter
writer = der Schriftsteller, Schriftsteller
pilot = der* Pilot, Piloten
nurse = die Krankenschwester, Krankenschwestern
actress = die Schauspielerin, Schauspielerinnen

[kin]
mother = die Mutter, Mütter
father = der Vater, Väter
brother = der Bruder, Brüder
sister = die Schwester, Schwestern
son = der Sohn, Söhne
daughter = die Tochter, Töchter
uncle = der Onkel, Onkel
aunt = die Tante, Tanten
grandmother = die Großmutter, Großmütter
grandfather = der Großvater, Großväter
parents = die+ Eltern, Eltern

[animal]
dog = der Hund, Hunde
cat = die Katze, Katzen
bird = der Vogel, Vögel
horse = das Pferd, Pferde
cow = die Kuh, Kühe
mouse/mice = die Maus, Mäuse
rabbit = das Kaninchen, Kaninchen
bear = der* Bär, Bären
duck = die Ente, Enten
pig = das Schwein, Schweine
goat = die Ziege, Ziegen

[food]
apple = der Apfel, Äpfel
orange = die Orange, Orangen
banana = die Banane, Bananen
pear = die Birne, Birnen
cherry = die Kirsche, Kirschen
strawberry = die Erdbeere, Erdbeeren
tomato = die Tomate, Tomaten
potato = die Kartoffel, Kartoffeln
carrot = die Karotte, Karotten
egg = das Ei, Eier
sausage = die Wurst, Würste
cake = der Kuchen, Kuchen
soup = die Suppe, Suppen
salad = der Salat, Salate
bread = das~ Brot
cheese = der~ Käse
meat = das~ Fleisch
rice = der~ Reis
butter = die~ Butter
honey = der~ Honig
chocolate = die~ Schokolade

[drink]
milk = die~ Milch
water = das~ Wasser
coffee = der~ Kaffee
tea = der~ Tee
juice = der~ Saft
beer = das~ Bier
wine = der~ Wein

[text]
book = das Buch, Bücher
newspaper = die Zeitung, Zeitungen
letter = der Brief, Briefe
magazine = die Zeitschrift, Zeitschriften
novel = der Roman, Romane
poem = das Gedicht, Gedichte
report = der Bericht, Berichte
story = die Geschichte, Geschichten
message = die Nachricht, Nachrichten

[clothing]
coat = der Mantel, Mäntel
dress = das Kleid, Kleider
shirt = das Hemd, Hemden
hat = der Hut, Hüte
skirt = der Rock, Röcke
jacket = die Jacke, Jacken
sweater = der Pullover, Pullover
shoe = der Schuh, Schuhe
scarf/scarves = der Schal, Schals
glove = der Handschuh, Handschuhe

[furniture]
table = der Tisch, Tische
chair = der Stuhl, Stühle
bed = das Bett, Betten
wardrobe = der Schrank, Schränke
lamp = die Lampe, Lampen
sofa = das Sofa, Sofas
shelf/shelves = das Regal, Regale
mirror = der Spiegel, Spiegel
carpet = der Teppich, Teppiche
desk = der Schreibtisch, Schreibtische

[vehicle]
car = das Auto, Autos
bicycle = das Fahrrad, Fahrräder
bus = der Bus, Busse
train = der Zug, Züge
ship = das Schiff, Schiffe
boat = das Boot, Boote
tram = die Straßenbahn, Straßenbahnen
plane = das Flugzeug, Flugzeuge
motorcycle = das Motorrad, Motorräder

[device]
radio = das Radio, Radios
computer = der Computer, Computer
television = der Fernseher, Fernseher
machine = die Maschine, Maschinen
telephone = das Telefon, Telefone
camera = die Kamera, Kameras
clock = die Uhr, Uhren
heater = die Heizung, Heizungen
oven = der Ofen, Öfen

[building]
house = das Haus, Häuser
school = die Schule, Schulen
church = die Kirche, Kirchen
museum = das Museum, Museen
hospital = das Krankenhaus, Krankenhäuser
station = der Bahnhof, Bahnhöfe
airport = der Flughafen, Flughäfen
restaurant = das Restaurant, Restaurants
hotel = das Hotel, Hotels
theatre = das Theater, Theater
library = die Bibliothek, Bibliotheken
castle = das Schloss, Schlösser
factory = die Fabrik, Fabriken
shop = der Laden, Läden
bridge = die Brücke, Brücken
tower = der Turm, Türme

[interior]
kitchen = die Küche, Küchen
room = das Zimmer, Zimmer
cellar = der Keller, Keller
bathroom = das Badezimmer, Badezimmer
bedroom = das Schlafzimmer, Schlafzimmer
garage = die Garage, Garagen
office = das Büro, Büros

[place]
city = die Stadt, Städte
village = das Dorf, Dörfer
garden = der Garten, Gärten
park = der Park, Parks
street = die Straße, Straßen
forest = der Wald, Wälder
mountain = der Berg, Berge
lake = der See, Seen
river = der Fluss, Flüsse
beach = der Strand, Strände
market = der Markt, Märkte
island = die Insel, Inseln

[vessel]
cup = die Tasse, Tassen
glass = das Glas, Gläser
bottle = die Flasche, Flaschen
plate = der Teller, Teller
vase = die Vase, Vasen
pot = der Topf, Töpfe
bowl = die Schüssel, Schüsseln

[tool]
knife/knives = das Messer, Messer
spoon = der Löffel, Löffel
fork = die Gabel, Gabeln
key = der Schlüssel, Schlüssel
pen = der Stift, Stifte
umbrella = der Regenschirm, Regenschirme

[container]
bag = die Tasche, Taschen
suitcase = der Koffer, Koffer
box = die Kiste, Kisten
basket = der Korb, Körbe

[art]
picture = das Bild, Bilder
photo = das Foto, Fotos
song = das Lied, Lieder
film = der Film, Filme
game = das Spiel, Spiele

[plant]
flower = die Blume, Blumen
tree = der Baum, Bäume
rose = die Rose, Rosen

[thing]
gift = das Geschenk, Geschenke
ball = der Ball, Bälle
ring = der Ring, Ringe
ticket = die Fahrkarte, Fahrkarten
map = die Landkarte, Landkarten
doll = die Puppe, Puppen
door = die Tür, Türen
window = das Fenster, Fenster
light = das Licht, Lichter
wall = die Wand, Wände

[instrument]
guitar = die Gitarre, Gitarren
piano = das Klavier, Klaviere
violin = die Geige, Geigen
flute = die Flöte, Flöten

[abstract]
question = die Frage, Fragen
answer = die Antwort, Antworten
word = das Wort, Wörter
problem = das Problem, Probleme
mistake = der Fehler, Fehler
idea = die Idee, Ideen
exercise = die Übung, Übungen
exam = die Prüfung, Prüfungen
trip = die Reise, Reisen
language = die Sprache, Sprachen
"""

GENDER_OF_ARTICLE = {"der": "m", "die": "f", "das": "n"}

# What a woman of this profession is called; used where the subject of "is a" is a woman.
FEMININE_PROFESSION = {
    "teacher": "Lehrerin",
    "doctor": "Ärztin",
    "student": "Studentin",
    "baker": "Bäckerin",
    "gardener": "Gärtnerin",
    "engineer": "Ingenieurin",
    "chef": "Köchin",
    "judge": "Richterin",
    "writer": "Schriftstellerin",
    "pilot": "Pilotin",
}


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun with its forms in both languages."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    group: str
    is_weak: bool = False
    is_mass: bool = False
    is_plural_only: bool = False

    @property
    def is_person(self) -> bool:
        """Tell whether the noun names people."""
        return self.group in ("person", "profession", "kin")


def join_continuations(text: str) -> list[str]:
    """Split a table into its lines, where an indented line continues the one before."""
    return text.strip().replace("\n    ", " ").splitlines()


def read_noun(line: str, group: str) -> Noun:
    """Read one line of the table."""
    english, german = line.split(" = ")
    singular, _, plural = english.partition("/")
    article, forms = german.split(" ", 1)
    german_singular, _, german_plural = forms.partition(", ")
    return Noun(
        english=singular,
        english_plural=plural or (singular if "+" in article else add_s(singular)),
        german=german_singular,
        german_plural=german_plural,
        gender=GENDER_OF_ARTICLE[article.rstrip("*~+")],
        group=group,
        is_weak="*" in article,
        is_mass="~" in article,
        is_plural_only="+" in article,
    )


def read_table(text: str) -> dict[str, Noun]:
    """Read all nouns, by their English singular."""
    nouns: dict[str, Noun] = {}
    group = ""
    for line in text.strip().splitlines():
        if line.startswith("["):
            group = line.strip("[]")
        elif line:
            noun = read_noun(line, group)
            nouns[noun.english] = noun
    return nouns


NOUNS = read_table(TABLE)


@cache
def select_nouns(description: str) -> tuple[Noun, ...]:
    """Resolve a list of groups and nouns, where a minus sign takes a noun out again."""
    chosen: dict[str, Noun] = {}
    for token in description.split():
        if token.startswith("-"):
            del chosen[token[1:]]
        elif token in NOUNS:
            chosen[token] = NOUNS[token]
        else:
            members = {name: noun for name, noun in NOUNS.items() if noun.group == token}
            if not members:
                raise ValueError(f"no noun and no group of nouns is called {token!r}")
            chosen.update(members)
    return tuple(chosen.values())
