"""Words that end in a full stop without ending a sentence, in small letters; the language of a text is not known."""


def _words(*lists: str) -> frozenset[str]:
    return frozenset(word for words in lists for word in words.split())


ALWAYS = _words(  # never the last word of a sentence
    "mr mrs ms dr prof rev hon gen col maj capt cpt lt sgt gov sen st mt messrs mme mlle mgr",  # titles
    "hr hrn fr frl dipl ing univ geb sra srta dña dott sig avv",
    "vs cf viz approx dept esp incl excl ibid",  # English
    "bzw ca evtl exkl ggf inkl vgl resp sog usf zzgl abzgl zzt gem bspw str",  # German
    "env av bd boul chap éd ecc eds pág págs tfno núm bijv dhr mevr",  # French, Italian, Spanish, Portuguese, Dutch
    "np tzn tzw ul wg inż např tzv ул стр рис табл др проф акад см ср напр вул ім",  # Slavic languages
    "डॉ श्री श्रीमती रु",  # Hindi
)
BEFORE_NUMBERS = _words(  # only there: "No. 5", but "No. She stayed."
    "no nos nr nrn num n° art arts abs fig figs abb abt kap kapitel bd ch chap ex eq eqs vol vols sec sect pp p pag",
    "tab anm rn rdnr ziff lit tz tel fax ver v op par para rz",
    "jan feb mar mär mrz apr jun jul aug sep sept okt oct nov dez dec janv févr avr juil déc ene abr ago dic",
    "с стр п пп ст рис табл т № гл čl č odst",
)
# Perhaps the last word: it is, if what follows begins as sentences often do.
PERHAPS = _words("inc ltd co corp jr sr bros llc plc u.s u.k u.n e.u ph.d m.d b.a m.a d.c usa")
BEGINNINGS = _words(  # words that follow as the beginning of a sentence rather than as a name
    "a after all although an and as at because before but by did do does during each every for from he her his how",
    "however i if in is it its many most my no not on one our she since so some that the their then there these they",
    "this those though to under until we what when where which while who why with yes you your",
    "aber als am an auch auf aus bei bis da damit dann das dass dem den der des die dies diese dieser dieses doch",
    "durch ein eine einem einen einer er es für hier ich ihr im in ist ja jedoch jetzt man mit nach nein nun nur ob",
    "oder seine sie sind so um und uns unter viele von vor war warum was weil wenn wer wie wir wo zu zum zur",
    "au aux avec ce ces cette dans de des elle elles en et il ils je la le les lorsque mais nous on où par pas pour",
    "quand que qui sa se ses si son sur un une vous",
    "al con cuando de del el ella ellos en es esta este esto la las lo los no para pero por que se si sin su un una",
    "che come da del della di e gli i il io la le lo ma nel nella non per quando questo se sono un una",
)
# Before a number with a full stop, in languages that write ordinals so: "der 2. Weltkrieg", "am 3. Oktober".
BEFORE_ORDINALS = _words(
    "der die das dem den des am im vom zum zur beim ab bis seit ins und oder jeder jede jedes jeden",
    "unser unsere ihr ihre ihrem ihren ihrer sein seine seinem seinen seiner mein meine meinem meinen meiner",
)
MONTHS = _words("januar jänner februar märz april mai juni juli august september oktober november dezember")
