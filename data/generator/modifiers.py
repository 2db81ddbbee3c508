"""Adjectives, names, numbers, and the phrases that say when and where."""

from dataclasses import dataclass

from generator.nouns import NOUNS, Noun, join_continuations, select_nouns

PEOPLE = "person profession kin"
COLOURED = "clothing car bicycle bus boat chair sofa lamp carpet ball umbrella bag suitcase box cup vase door flower"
PRICED = (
    "clothing furniture car bicycle boat motorcycle computer camera television radio hotel restaurant ring ticket "
    "instrument gift"
)

# English = German, comparative : nouns. A slash gives the stem before endings where it differs (teuer, teure), a plus
# sign marks what can be too much, an exclamation mark what one exclaims about, a tilde the comparative with "more".
ADJECTIVES_TABLE = f"""
old+! = alt, älter : map newspaper market wall {PEOPLE} animal text clothing furniture vehicle device building
    interior city village garden container picture photo song film door key ring umbrella instrument -child -boy -girl
    -guest -magazine -message -customer -shop -brother -sister -son -daughter -engineer
young+ = jung, jünger : {PEOPLE} dog cat horse bird cow bear -child -boy -girl -mother -father -grandmother
    -grandfather -parents -guest
tall+! = groß, größer : man woman boy girl brother sister son daughter friend teacher engineer policeman waiter baker
    guest colleague
big+! = groß, größer : egg strawberry carrot pear orange duck map mistake problem market plane dog cat horse bird bear
    cow pig apple potato tomato cake sausage table bed wardrobe mirror carpet sofa ship boat house school church
    museum hospital station airport hotel factory bridge kitchen room cellar garage city garden park forest lake
    island container cup plate bowl pot picture tree ball window wall
small+! = klein, kleiner : strawberry potato carrot pear map mistake problem market plane child boy girl animal apple
    cake egg table chair lamp mirror shelf car boat radio camera clock house church museum station restaurant hotel
    shop castle kitchen room bathroom garage office city village garden park lake river island container cup glass
    bottle key knife spoon doll ring picture window tree
new = neu, neuer : map newspaper shop bottle plane teacher neighbour colleague friend book magazine novel film song
    game clothing furniture vehicle device school museum hospital hotel bridge factory restaurant kitchen office bag
    suitcase key pen umbrella instrument picture idea language exercise
beautiful!~ = schön, schöner : mountain light tower market woman actress horse bird cat clothing lamp carpet mirror
    house church castle hotel bridge kitchen city village garden park forest lake island beach street vase plant
    picture photo song ring doll trip gift
expensive+!~ = teuer/teur, teurer : honey meat chocolate map plane {PRICED} wine cheese vase picture trip
cheap = billig, billiger : meat butter rice cheese beer map bottle {PRICED} wine trip
red = rot : {COLOURED} apple rose wine tomato
blue = blau : {COLOURED} plate bowl pen
green = grün : {COLOURED} apple bird
yellow = gelb : {COLOURED} bird house tram rose
black = schwarz : goat mouse {COLOURED} dog cat horse bird piano tea pen
white = weiß : goat duck mouse {COLOURED} dog cat horse rabbit house wall rose wine plate
heavy+! = schwer, schwerer : container table wardrobe sofa mirror machine television desk pot book piano carpet
long+! = lang, länger : letter novel report poem story message film coat dress skirt scarf street bridge river train
    trip exam knife word
short+ = kurz, kürzer : letter report poem story message film skirt dress coat trip street song word novel exam
dark+! = dunkel/dunkl, dunkler : room cellar kitchen garage bathroom house church forest street coat jacket dress
dirty+! = schmutzig, schmutziger : spoon fork bottle wall clothing car bicycle window plate cup glass carpet kitchen
    bathroom street dog pig river knife spoon fork room
broken = kaputt : device chair table lamp bicycle car door window umbrella cup vase guitar doll
warm+ = warm, wärmer : bedroom coat jacket sweater scarf glove milk water soup room bed bread kitchen
cold+ = kalt, kälter : milk water tea coffee juice beer soup room lake bathroom
hot+ = heiß, heißer : soup tea coffee milk water potato sausage
fresh = frisch, frischer : potato orange banana sausage apple tomato strawberry carrot egg cherry pear bread meat
    butter milk salad juice cheese flower
sweet+! = süß, süßer : chocolate honey apple orange banana pear cherry strawberry cake tea juice wine
good! = gut, besser : salad honey chocolate rice beer newspaper meat butter teacher doctor student friend neighbour
    baker writer book novel film song game restaurant hotel idea answer question wine cheese bread soup cake coffee
    bicycle camera report story
bad! = schlecht, schlechter : book novel film report restaurant hotel idea answer question wine coffee photo
interesting!~ = interessant, interessanter : market newspaper text film game picture museum question answer city trip
    castle idea language exercise -message -letter
boring+!~ = langweilig, langweiliger : book novel film report story museum game trip exercise magazine village
exciting!~ = spannend, spannender : novel story film game trip report book exam
important~ = wichtig, wichtiger : letter message report question answer book customer guest exam word problem idea
    language trip
modern!~ = modern, moderner : plane shop museum hospital station airport hotel theatre library factory kitchen office
    bathroom furniture device bridge train school -heater
quiet+ = ruhig, ruhiger : bedroom street village park garden hotel room beach island lake library child forest
    restaurant
loud+! = laut, lauter : radio street machine train motorcycle child restaurant city factory telephone
empty = leer, leerer : bottle vessel container wardrobe shelf house room restaurant street park beach bus train -plate
round = rund : table mirror carpet window box lamp cake
friendly! = freundlich, freundlicher : {PEOPLE} dog -friend
nice! = nett, netter : {PEOPLE} -judge
clever! = klug, klüger : {PEOPLE} dog horse cat -parents
happy = glücklich, glücklicher : parents man woman child boy girl mother father brother sister son daughter
    grandmother grandfather student guest
sad = traurig, trauriger : man woman child boy girl mother brother sister son daughter student story song film poem
    letter dog
tired+~ = müde/müd, müder : man woman child boy girl mother father brother sister doctor nurse teacher student waiter
    horse dog
rich = reich, reicher : parents man woman uncle aunt neighbour brother writer friend customer
poor+ = arm, ärmer : man woman student writer gardener neighbour boy girl
famous~ = berühmt, berühmter : doctor writer actress chef judge museum castle bridge church picture song novel poem
    film island theatre
strong+! = stark, stärker : beer man woman boy brother sister horse bear coffee tea gardener son
high+! = hoch/hoh, höher : mountain tower wall bridge
difficult+!~ = schwierig, schwieriger : question exercise exam problem word language answer book
bright = hell, heller : light lamp room kitchen bedroom office
hungry = hungrig, hungriger : child boy girl dog cat bird bear guest student
angry = wütend, wütender : man woman customer neighbour guest policeman waiter teacher bear dog
sick+ = krank, kränker : man woman child boy girl mother father sister brother grandmother grandfather dog cat horse
    student teacher
"""


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective with the nouns it makes sense with."""

    english: str
    german: str
    stem: str
    comparative: str
    nouns: tuple[Noun, ...]
    is_long: bool
    can_be_too_much: bool
    is_striking: bool

    @property
    def english_comparative(self) -> str:
        """The comparative form, with -er or more."""
        irregular = {"good": "better", "bad": "worse", "big": "bigger", "sad": "sadder", "hot": "hotter"}
        if self.english in irregular:
            return irregular[self.english]
        if self.english.endswith("y"):
            return self.english[:-1] + "ier"
        if self.is_long:
            return "more " + self.english
        return self.english + ("r" if self.english.endswith("e") else "er")


def read_adjective(line: str) -> Adjective:
    """Read one line of the table."""
    forms, nouns = line.split(" : ")
    english, german = forms.split(" = ")
    positive, _, comparative = german.partition(", ")
    word, _, stem = positive.partition("/")
    return Adjective(
        english=english.rstrip("+!~"),
        german=word,
        stem=stem or word,
        comparative=comparative,
        nouns=select_nouns(nouns),
        is_long="~" in english,
        can_be_too_much="+" in english,
        is_striking="!" in english,
    )


ADJECTIVES = tuple(read_adjective(line) for line in join_continuations(ADJECTIVES_TABLE))
ADJECTIVES_BY_NAME = {adjective.english: adjective for adjective in ADJECTIVES}


def adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    """List the adjectives that make sense with a noun."""
    return ADJECTIVES_OF_NOUN[noun.english]


def predicates_for(noun: Noun) -> tuple[Adjective, ...]:
    """List the adjectives that make sense after "is"; a new teacher is not new."""
    return tuple(a for a in adjectives_for(noun) if not (noun.is_person and a.english == "new"))


ADJECTIVES_OF_NOUN = {name: tuple(a for a in ADJECTIVES if noun in a.nouns) for name, noun in NOUNS.items()}

# Adjectives that speak of the same quality: one thing is described by only one of each line.
QUALITIES = """
red blue green yellow black white
old new young modern fresh
big small tall high
expensive cheap rich poor
warm cold hot
long short
good bad interesting boring exciting
quiet loud
happy sad angry
dark bright
"""
QUALITY_OF_ADJECTIVE = {name: line for line in QUALITIES.strip().splitlines() for name in line.split()}


def go_together(first: Adjective, second: Adjective) -> bool:
    """Tell whether one thing can be both."""
    quality = QUALITY_OF_ADJECTIVE.get(first.english, first.english)
    return quality != QUALITY_OF_ADJECTIVE.get(second.english, second.english)


WOMEN = ("Anna", "Maria", "Lisa", "Emma", "Clara", "Julia", "Laura", "Eva")
MEN = ("Peter", "Paul", "Jan", "Karl", "David", "Martin", "Simon", "Leo")

NUMBERS = {
    "two": "zwei",
    "three": "drei",
    "four": "vier",
    "five": "fünf",
    "six": "sechs",
    "seven": "sieben",
    "eight": "acht",
    "nine": "neun",
    "ten": "zehn",
    "eleven": "elf",
    "twelve": "zwölf",
}

# Words marked with a star are content words; the first starred English word means the first starred German word.
TIMES = {
    "past": """
*yesterday = *gestern
*last *week = *letzte *Woche
*last *year = *letztes *Jahr
*last *summer = *letzten *Sommer
this *morning = heute *Morgen
*two *days ago = vor *zwei *Tagen
""",
    "present": """
*now = *jetzt
every *day = jeden *Tag
every *morning = jeden *Morgen
every *evening = jeden *Abend
at *night = in der *Nacht
""",
    "future": """
*tomorrow = *morgen
*soon = *bald
*next *week = *nächste *Woche
*next *year = *nächstes *Jahr
*next *summer = *nächsten *Sommer
this *evening = heute *Abend
""",
    "any": """
*today = *heute
in the *morning = am *Morgen
in the *afternoon = am *Nachmittag
in the *evening = am *Abend
on *Monday = am *Montag
on *Tuesday = am *Dienstag
on *Wednesday = am *Mittwoch
on *Thursday = am *Donnerstag
on *Friday = am *Freitag
on *Saturday = am *Samstag
on *Sunday = am *Sonntag
at the *weekend = am *Wochenende
in *summer = im *Sommer
in *winter = im *Winter
before *breakfast = vor dem *Frühstück
after *dinner = nach dem *Abendessen
""",
}

# Place = English and German preposition of location, then of direction; a dash where none is used.
PLACES_TABLE = """
house = in in into in
kitchen = in in into in
room = in in into in
bedroom = in in into in
cellar = in in into in
office = in in to in
garden = in in into in
park = in in to in
city = in in to in
village = in in to in
forest = in in into in
museum = in in to in
theatre = in in to in
library = in in to in
restaurant = in in to in
hotel = in in to zu
church = in in to in
school = in in to zu
hospital = in in to in
factory = in in to in
shop = in in into in
castle = in in to zu
station = at an to zu
airport = at an to zu
beach = at an to an
lake = at an to an
river = at an to an
market = at auf to auf
island = on auf to auf
street = on auf - -
bridge = on auf - -
"""


@dataclass(frozen=True)
class Place:
    """A noun with the prepositions that say where and where to."""

    noun: Noun
    english_at: str
    german_at: str
    english_to: str
    german_to: str


PLACES = tuple(Place(NOUNS[line.split()[0]], *line.split()[2:]) for line in PLACES_TABLE.strip().splitlines())
GOALS = tuple(place for place in PLACES if place.english_to != "-")

CITIES = {
    "Berlin": "Berlin",
    "Hamburg": "Hamburg",
    "Munich": "München",
    "Vienna": "Wien",
    "Cologne": "Köln",
    "Zurich": "Zürich",
    "Paris": "Paris",
    "London": "London",
    "Rome": "Rom",
    "Italy": "Italien",
    "France": "Frankreich",
    "Spain": "Spanien",
    "Germany": "Deutschland",
    "Austria": "Österreich",
}
