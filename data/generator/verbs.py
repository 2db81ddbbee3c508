"""The verbs of both languages, by construction, with the nouns that make sense as their objects."""

from dataclasses import dataclass
from typing import Any

from generator import english
from generator.german import conjugate_present, stem_of
from generator.nouns import Noun, join_continuations, select_nouns

# English forms = German forms : objects. English: base, then past and participle if irregular; a particle follows
# a plus sign. German: infinitive (a bar after a separable prefix), the du and er forms if the vowel changes, the
# participle; then "sein" if that is the auxiliary, and the imperative after "!" if it is irregular.
TRANSITIVE = """
buy bought bought = kaufen gekauft : food drink text clothing furniture vehicle device vessel tool container plant
    gift ball ring ticket map doll instrument house picture game -story -message -report -letter -train -ship -tram
    -plane -bus -tree -poem -heater
sell sold sold = verkaufen verkauft : food clothing furniture car bicycle boat motorcycle device house picture ring
    ticket instrument flower rose book newspaper magazine map dog horse cow -heater
see saw seen = sehen siehst sieht gesehen !sieh : person profession animal building vehicle place film picture tree
    rose mistake
find found found = finden gefunden : tool container ring ticket map doll ball photo letter book dog cat hat glove
    scarf shoe mistake restaurant hotel station answer
look+for = suchen gesucht : tool container ring ticket map doll ball photo letter book dog cat hat glove scarf shoe
    doctor policeman hotel restaurant station
eat ate eaten = essen isst isst gegessen !iss : food
drink drank drunk = trinken getrunken : drink
read read read = lesen liest liest gelesen !lies : text
write wrote written = schreiben geschrieben : letter novel poem report story message book song
visit = besuchen besucht : kin friend neighbour colleague museum castle city church island village school
hear heard heard = hören gehört : song bird dog story radio child neighbour bus train guitar piano
cook = kochen gekocht : soup potato egg rice meat carrot
bake = backen gebacken : cake bread
clean = putzen geputzt : kitchen bathroom bedroom window door shoe mirror oven lamp
repair = reparieren repariert : car bicycle bus boat motorcycle device chair table bed lamp door window wall guitar
    shoe bridge
carry = tragen trägst trägt getragen : container table chair picture child mirror carpet machine radio
wear wore worn = tragen trägst trägt getragen : clothing ring
lose lost lost = verlieren verloren : key pen umbrella bag suitcase ring ticket ball glove scarf shoe hat game photo
open = öffnen geöffnet : door window letter bottle suitcase box bag gift shop wardrobe
close = schließen geschlossen : door window suitcase box bag shop wardrobe restaurant
draw drew drawn = zeichnen gezeichnet : flower tree rose animal house castle church bridge ship tower map
wash = waschen wäschst wäscht gewaschen : clothing car apple tomato carrot potato strawberry cherry pear dog horse cup
    glass plate -hat -shoe
use = benutzen benutzt : computer telephone camera machine oven knife spoon fork pen umbrella map word bicycle bus
    tram
build built built = bauen gebaut : house school church hospital bridge tower boat ship factory hotel theatre
understand understood understood = verstehen verstanden : question answer word problem poem story report letter novel
    mistake idea exercise film song teacher
forget forgot forgotten = vergessen vergisst vergisst vergessen !vergiss : key umbrella bag ticket word answer hat map
    camera
ask = fragen gefragt : person profession kin -actress
greet = begrüßen begrüßt : person profession kin
meet met met = treffen triffst trifft getroffen !triff : person profession kin
take took taken = nehmen nimmst nimmt genommen !nimm : bus train tram key umbrella bag apple egg cup pen ball
photograph = fotografieren fotografiert : person animal building mountain lake island garden flower rose tree ship
feed fed fed = füttern gefüttert : animal child -mouse -bear
cut cut cut = schneiden geschnitten : bread cake cheese meat tomato apple sausage carrot potato rose
sing sang sung = singen gesungen : song
order = bestellen bestellt : soup salad cake coffee tea beer wine water juice sausage meat book chair table computer
pay+for paid paid = bezahlen bezahlt : coffee tea beer wine soup cake ticket gift book trip coat dress hotel bicycle
hide hid hidden = verstecken versteckt : key gift letter chocolate ring photo ball egg doll
describe = beschreiben beschrieben : man woman child picture house city garden problem mountain trip film machine
    castle
learn = lernen gelernt : word poem song language
translate = übersetzen übersetzt : letter book poem novel story report message word song question answer
explain = erklären erklärt : question answer word problem mistake idea exercise game picture
receive = bekommen bekommen : letter message gift answer newspaper magazine ticket book
paint = malen gemalt : picture
turn+on = ein|schalten eingeschaltet : radio computer television machine heater oven lamp light camera
turn+off = aus|schalten ausgeschaltet : radio computer television machine heater oven lamp light camera
tidy+up = auf|räumen aufgeräumt : kitchen room cellar bathroom bedroom garage office wardrobe desk shelf
call = an|rufen angerufen : person kin doctor teacher policeman nurse engineer -child -boy -girl -tourist
pick+up = ab|holen abgeholt : person kin teacher doctor suitcase letter ticket car -boy
invite = ein|laden lädst lädt eingeladen : person profession kin -tourist -customer -guest
throw+away threw thrown = weg|werfen wirfst wirft weggeworfen !wirf : newspaper magazine letter bottle box shoe glove
    carpet photo flower ball bread ticket lamp chair
bring+along brought brought = mit|bringen mitgebracht : food wine juice beer gift friend brother sister colleague
    guitar game ball photo umbrella camera book -egg -rice -butter
put+on put put = an|ziehen angezogen : coat dress shirt skirt jacket sweater shoe glove
take+off took taken = aus|ziehen ausgezogen : coat dress shirt skirt jacket sweater shoe glove
try+on = an|probieren anprobiert : clothing
unpack = aus|packen ausgepackt : suitcase bag box gift basket
lock = ab|schließen abgeschlossen : door house office wardrobe bicycle car garage cellar
hang+up hung hung = auf|hängen aufgehängt : picture mirror lamp coat jacket dress photo clock map shirt
prepare = vor|bereiten vorbereitet : exam trip report exercise game
"""

# Verbs that are used in the present only, because their German perfect would sound odd.
STATIVE = """
have had had = haben gehabt : brother sister son daughter uncle aunt friend dog cat horse rabbit car bicycle boat
    motorcycle house garden computer camera radio television instrument question problem idea answer map ticket key
know knew known = kennen gekannt : person teacher doctor judge writer actress song story film book poem game city
    village museum hotel restaurant castle answer
love = lieben geliebt : kin woman man child animal song film game poem novel city village garden chocolate cheese
    honey -mouse -bear -pig
need = brauchen gebraucht : tool container clothing car bicycle computer telephone camera lamp ticket map doctor bread
    milk water answer idea
like = mögen gemocht : neighbour teacher colleague waiter writer actress dog cat horse rabbit song film game poem
    novel city museum restaurant park beach picture soup cake milk coffee tea wine dress coat hat
"""

DATIVE = """
help = helfen hilfst hilft geholfen !hilf : person profession kin
thank = danken gedankt : person profession kin
follow = folgen gefolgt sein : man woman teacher guest boy girl policeman nurse waiter gardener dog cat father mother
    grandfather
trust = vertrauen vertraut : person profession kin
congratulate = gratulieren gratuliert : person profession kin
listen+to = zu|hören zugehört : person profession kin -tourist
"""

# The objects here are the things that are given.
DITRANSITIVE = """
give gave given = geben gibst gibt gegeben !gib : book letter newspaper picture photo ring gift ball doll key pen
    apple orange cake bread milk water flower rose ticket map hat umbrella answer cup
show showed shown = zeigen gezeigt : picture photo letter book house garden map museum camera room city ring dress car
    castle film mistake
send sent sent = schicken geschickt : letter message gift book photo picture report flower poem
bring brought brought = bringen gebracht : letter book newspaper coffee tea water juice milk soup cake bread plate cup
    glass bottle chair coat umbrella flower key
tell told told = erzählen erzählt : story
sell sold sold = verkaufen verkauft : house car bicycle boat ring picture horse computer camera book ticket guitar
    piano
lend lent lent = leihen geliehen : book car bicycle pen umbrella knife camera coat key suitcase guitar boat
"""

# English says to whom with "to" after the thing: explains the word to the child.
DITRANSITIVE_WITH_TO = """
explain = erklären erklärt : question answer word problem mistake idea exercise game picture
recommend = empfehlen empfiehlst empfiehlt empfohlen !empfiehl : book novel film hotel restaurant museum wine doctor
    magazine game
describe = beschreiben beschrieben : man picture house city garden problem mountain film machine
read read read = vor|lesen liest liest vorgelesen !lies : story poem letter book report message
"""

INTRANSITIVE = """
sleep slept slept = schlafen schläfst schläft geschlafen
work = arbeiten gearbeitet
laugh = lachen gelacht
cry = weinen geweint
sing sang sung = singen gesungen
dance = tanzen getanzt
play = spielen gespielt
wait = warten gewartet
swim swam swum = schwimmen geschwommen sein
get+up got got = auf|stehen aufgestanden sein
wake+up woke woken = auf|wachen aufgewacht sein
fall+asleep fell fallen = ein|schlafen schläfst schläft eingeschlafen sein
arrive = an|kommen angekommen sein
come+back came come = zurück|kommen zurückgekommen sein
go+out went gone = aus|gehen ausgegangen sein
leave left left = ab|fahren fährst fährt abgefahren sein
live = wohnen gewohnt
stay = bleiben geblieben sein
be was been = sein gewesen sein
rain = regnen geregnet
snow = schneien geschneit
"""

MOTION = """
go went gone = gehen gegangen sein
run ran run = rennen gerannt sein
drive drove driven = fahren fährst fährt gefahren sein
travel = reisen gereist sein
fly flew flown = fliegen geflogen sein
come came come = kommen gekommen sein
"""

# Verbs with a fixed preposition: English preposition, German preposition and its case stand before the objects.
PREPOSITIONAL = """
wait = warten gewartet : for auf accusative : bus train tram ship plane friend doctor teacher guest waiter kin letter
    message answer
think thought thought = denken gedacht : of an accusative : kin friend child trip exam problem house
dream dreamed dreamed = träumen geträumt : of von dative : house car horse trip castle island boat garden dog cake
talk = sprechen sprichst spricht gesprochen !sprich : to mit dative : person profession kin
talk = sprechen sprichst spricht gesprochen !sprich : about über accusative : film book novel trip problem exam idea
    question story song game poem
laugh = lachen gelacht : about über accusative : story film picture mistake question letter answer dog cat
play = spielen gespielt : with mit dative : ball doll dog cat child rabbit friend brother sister
look+after = auf|passen aufgepasst : - auf accusative : child dog cat house garden horse grandmother son daughter
    suitcase
"""

# Where things lie, stand and hang, and who puts them there; the English verb "put" is legen or stellen by the thing.
POSITION = """
lie lay lain = liegen gelegen
stand stood stood = stehen gestanden
hang hung hung = hängen gehangen
put put put = legen gelegt
put put put = stellen gestellt
hang hung hung = hängen gehängt
"""


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb with its forms in both languages and the objects that suit it."""

    base: str
    particle: str
    past: str
    participle: str
    infinitive: str  # without the separable prefix
    prefix: str
    german_participle: str
    auxiliary: str = "haben"
    irregular_present: tuple[str, str] | None = None
    irregular_imperative: str = ""
    objects: tuple[Noun, ...] = ()
    english_preposition: str = ""
    german_preposition: str = ""
    preposition_case: str = ""

    @property
    def name(self) -> str:
        """The English dictionary form."""
        return f"{self.base} {self.particle}".strip()

    @property
    def full_infinitive(self) -> str:
        """The German dictionary form."""
        return self.prefix + self.infinitive

    @property
    def imperative(self) -> str:
        """What one says to a friend, without the separable prefix."""
        return self.irregular_imperative or stem_of(self.infinitive) + "e"

    @property
    def has_ambiguous_past(self) -> bool:
        """Tell whether the past looks like the present, as in "they read"."""
        return self.past == self.base

    def german_present(self, person: str) -> str:
        """Give the finite form, without the separable prefix."""
        return conjugate_present(self.infinitive, person, self.irregular_present)


def read_german_forms(text: str) -> dict[str, Any]:
    """Read the German half of a line."""
    text, _, imperative = text.partition("!")
    forms = text.split()
    auxiliary = forms.pop() if forms[-1] == "sein" and len(forms) > 2 else "haben"
    prefix, _, infinitive = forms[0].rpartition("|")
    return {
        "prefix": prefix,
        "infinitive": infinitive,
        "german_participle": forms[-1],
        "auxiliary": auxiliary,
        "irregular_present": (forms[1], forms[2]) if len(forms) == 4 else None,
        "irregular_imperative": imperative.strip(),
    }


def read_verb(line: str) -> Verb:
    """Read one line of a table."""
    forms, *rest = line.split(" : ")
    english_forms, german_forms = forms.split(" = ")
    first, *irregular = english_forms.split()
    base, _, particle = first.partition("+")
    past, participle = irregular or [english.regular_past(base)] * 2
    preposition: dict[str, Any] = {}
    if len(rest) == 2:
        keys = ("english_preposition", "german_preposition", "preposition_case")
        preposition = dict(zip(keys, rest[0].replace("-", "").split(" "), strict=True))
    return Verb(
        base=base,
        particle=particle,
        past=past,
        participle=participle,
        objects=select_nouns(rest[-1]) if rest else (),
        **read_german_forms(german_forms),
        **preposition,
    )


def read_verbs(table: str) -> tuple[Verb, ...]:
    """Read a table of verbs."""
    return tuple(read_verb(line) for line in join_continuations(table))


TRANSITIVE_VERBS = read_verbs(TRANSITIVE)
# What happens to people: nobody is asked to do it, or is just doing it.
HAPPENING = ("see", "hear", "find", "lose", "forget", "understand", "receive", "meet")
DELIBERATE_VERBS = tuple(verb for verb in TRANSITIVE_VERBS if verb.name not in HAPPENING)
STATIVE_VERBS = read_verbs(STATIVE)
DATIVE_VERBS = read_verbs(DATIVE)
DITRANSITIVE_VERBS = read_verbs(DITRANSITIVE)
DITRANSITIVE_VERBS_WITH_TO = read_verbs(DITRANSITIVE_WITH_TO)
PREPOSITIONAL_VERBS = read_verbs(PREPOSITIONAL)
INTRANSITIVE_VERBS = {verb.name: verb for verb in read_verbs(INTRANSITIVE)}
MOTION_VERBS = {verb.name: verb for verb in read_verbs(MOTION)}
LIE, STAND, HANG, LAY_DOWN, SET_DOWN, HANG_ON = read_verbs(POSITION)
BE = INTRANSITIVE_VERBS["be"]
HAVE, KNOW_SOMEONE = STATIVE_VERBS[:2]
TRANSITIVE_BY_NAME = {verb.name: verb for verb in TRANSITIVE_VERBS}
BELONG = read_verb("belong+to = gehören gehört")
# German has fear where English is afraid; the fear itself is said by the phrase after the verb.
BE_AFRAID = read_verb("be was been = haben gehabt")
THINKING_VERBS = read_verbs(
    """
know knew known = wissen gewusst
believe = glauben geglaubt
say said said = sagen gesagt
hope = hoffen gehofft
"""
)
TRYING_VERBS = read_verbs(
    """
try = versuchen versucht
forget forgot forgotten = vergessen vergisst vergisst vergessen
begin began begun = beginnen begonnen
promise = versprechen versprichst verspricht versprochen
hope = hoffen gehofft
"""
)
