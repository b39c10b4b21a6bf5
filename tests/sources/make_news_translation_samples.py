"""Writes the parquet samples of CNN/DailyMail and OPUS-100; every text in them was written for this project.

Run it from the repository's root after changing a text: `python tests/sources/make_news_translation_samples.py`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SAMPLES = Path(__file__).parents[2] / "sources" / "samples"

ARTICLES = [
    """A ferry that ran aground off the island of Skerry on Friday night was pulled free at dawn, and all 64 people on
board are safe. The captain said a fishing net had wrapped itself around both propellers in heavy fog. Passengers were
given blankets and soup by volunteers from the lifeboat station while they waited five hours for the tide. 'We sang to
keep the children calm,' said Morag Lyle, a teacher on her way to a wedding. The operator has cancelled sailings until
Monday and will pay for hotels. An inquiry will look into why two warning buoys were not lit.""",
    """The city council of Halden voted nine to four on Tuesday to turn a disused railway tunnel into a mushroom farm.
The tunnel, closed since 1971, keeps a steady eleven degrees all year, which growers say will save them most of the
cost of cooling. A cooperative of three families has signed a twenty-year lease and plans to sell its first oyster
mushrooms in spring. Opponents had wanted a cycle path. Mayor Ingrid Sol said a second, shorter tunnel could still
become one, if the region pays half.""",
    """Astronomers using a telescope in the Atacama desert have found a planet whose year lasts barely nine hours. It
circles so near to its star that one side is probably a sea of molten rock. The team noticed the tiny dips in starlight
in data that had been set aside as faulty. 'Someone finally asked why the fault was so punctual,' said Dr Lucía Ferrer,
who led the work. The planet is about twice as heavy as the Earth. A space telescope will look for vapour of sodium
above its night side next year.""",
    """A 71-year-old gardener has won the right to keep a hedge in the shape of a sleeping dragon after a dispute of
three years with her neighbours. The hedge, 22 metres long, was judged to block the light of a bathroom window. A court
in Leeds found that the window had been added later and that the dragon was 'plainly there first'. Joan Akers began to
clip it in 1988 for a grandson. She has offered to trim the tail by a metre, 'as a courtesy, not a surrender'.""",
    """Bus drivers in the capital will begin a two-day strike on Wednesday after talks over night shifts broke down.
The union says its members are given as little as eight hours between a late and an early turn. The transport company
offered ten hours and a bonus, but not before next summer. About 400,000 people use the buses every day. Schools have
been told to open an hour later, and the metro will run trains until two in the morning. Both sides said they were
ready to meet again on Thursday.""",
    """Farmers in the Po valley are flooding their rice fields a month early this year, because snow in the Alps melted
in March. Water boards warn that canals filled now may be empty in July. Some growers have turned to varieties that can
stand dry weeks, though the harvest is a tenth smaller. 'My grandfather flooded on the feast of Saint Joseph or not at
all,' said Carlo Bassi, who farms 90 hectares near Vercelli. The region has set aside 12 million euros to line old
canals with clay.""",
    """A swimmer has become the first person to cross Lake Tanganyika at its widest point without a wetsuit. Neema
Mollel, 29, took 27 hours and 14 minutes and was followed by two boats, one of them watching for crocodiles. She ate
mashed banana from a pole and was stung twice by jellyfish the size of a coin. Doctors who met her on the beach said
she was tired but well. The money she raised, some 80,000 dollars, will pay for swimming lessons in lakeside villages
where drowning is common.""",
    """The national library has bought the notebooks of a lighthouse keeper who recorded the weather every three hours
for 41 years. Climate scientists had asked for them because no other station on that coast was manned through the
1930s. Between wind and pressure, Ewan Tait also noted birds, shipwrecks and the price of tobacco. The 112 volumes had
lain in a barn; mice had eaten part of 1952. Scanning will take until autumn, and volunteers are sought to copy out
the figures at home.""",
    """A start-up from Tallinn that grows leather from the roots of mushrooms said on Monday it had raised 40 million
euros to build its first full factory. The material has so far been used for watch straps and a few hundred pairs of
shoes. Critics point out that it is backed with a layer of plastic. The founders say a version without one will be
ready in two years. Two car makers are among the investors. The factory, in an old paper mill, is to employ 130 people
from next March.""",
    """Health officials have recalled 60,000 bicycle helmets sold since May after tests showed that the buckle can
open in a crash. No injuries have been reported. The helmets carry the model name Breeze and a number that ends in K7
inside the shell. Owners can return them to any shop without a receipt. The importer blamed a supplier that had changed
the plastic of the clip without saying so. A consumer group called for helmets to be tested again each year, not only
when a model is new.""",
    """Archaeologists clearing a car park in Winchester have uncovered a Roman bakery with a loaf still in the oven.
The bread, black as coal and marked into eight parts, was found under a fallen roof. Grain beside it will be tested to
learn where it grew. 'Somebody ran and never came back for breakfast,' said site director Priya Nair. The council had
planned to reopen the car park in June; it now expects to build a glass floor over the oven and lose eleven spaces.""",
    """The under-18 chess champion of Ghana was stopped at an airport for carrying what a scanner took for ammunition:
a bag of 32 brass pieces, a gift from her coach. Abena Owusu, 15, missed her flight to a tournament in Warsaw while
guards unwrapped each pawn. She played two of them at a game in the waiting room and beat both. The airline put her on
the next plane. She lost her first match, then won six in a row and took the silver medal.""",
    """House prices in the north of the country fell for the fourth quarter in a row, while those in the south rose
by three per cent, figures published on Thursday show. Economists put the gap down to the closure of two steelworks
and to trains that take longer than they did in 1995. Young buyers are the winners, said one estate agent, who sold a
terraced house for less than a new car. The central bank is expected to leave interest rates as they are when it meets
next week.""",
    """A school in Oaxaca has stopped ringing its bell. Pupils now move to their next lesson when a short piece of
music begins, chosen each week by another class. Teachers say corridors are calmer and fewer children arrive late.
'With the bell we ran. With the marimba we walk,' said Diego, aged nine. The idea came from a parent who repairs
loudspeakers. Not all are pleased: a neighbour has asked for a week without trumpets. The head teacher has promised
him the cello.""",
    """Rescuers freed a young humpback whale from a rope it had dragged for at least ten days along the coast of New
South Wales. The crew waited for calm water, then cut the line with a blade on a pole as the animal rested. It dived at
once and came up half a mile away, slapping the sea with its fin. The rope was marked with the number of a crab fisher,
who had reported it lost in a storm and will not be fined. It was the ninth such rescue this season.""",
    """Engineers have begun to lower the water behind the Kestrel dam after a crack as long as a bus was found in its
spillway. People in two villages were told to pack a bag, but not to leave. The dam, finished in 1962, holds drinking
water for half a million homes. Divers sent a camera into the gap and saw clean rock, a good sign, the utility said.
If the level falls by four metres before the rains, repairs could start in October. Tankers are ready in case taps run
dry.""",
    """A computer that beat three professional pilots in a race of drones lost on Saturday to a fourth, aged 13. Kenji
Watanabe took a gap between two hoops that the program had marked as too narrow. 'It flies perfectly, so you know what
it will do,' he said. The university that built the program said the defeat was the most useful flight of the year,
since its data held no pilot who took such risks. A rematch is planned for the spring, on a course that neither side
will see before.""",
]

# Config, code and text of one side, code and text of the other; as the source has them, some sides are null or blank.
Pair = tuple[str | None, str | None]
TRANSLATIONS: dict[str, list[Pair]] = {
    "cs-en": [
        ("Vlak do Brna má dnes dvacet minut zpoždění.", "The train to Brno is twenty minutes late today."),
        (
            "Babička suší houby na půdě, kde voní celé léto.",
            "Grandmother dries mushrooms in the attic, which smells of them all summer.",
        ),
    ],
    "da-en": [
        (
            "Husk at låse cyklen, når du går ind på biblioteket.",
            "Remember to lock your bike when you go into the library.",
        ),
        ("Forslaget blev vedtaget med 54 stemmer mod 31.", "The proposal was adopted by 54 votes to 31."),
    ],
    "de-en": [
        (
            "Der Antrag muss spätestens am dritten Werktag schriftlich eingereicht werden.",
            "The application must be submitted in writing by the third working day at the latest.",
        ),
        ("Ich habe den Schlüssel unter die Fußmatte gelegt.", "I put the key under the doormat."),
        ("   ", "A blank sentence must not become a prompt."),
    ],
    "de-fr": [
        (
            "Die Gletscher ziehen sich schneller zurück, als man vor zehn Jahren annahm.",
            "Les glaciers reculent plus vite qu'on ne le pensait il y a dix ans.",
        ),
        ("Wer hat die Milch offen stehen lassen?", "Qui a laissé le lait ouvert ?"),
    ],
    "en-es": [
        (
            "Turn off the main valve before you change the filter.",
            "Cierre la llave de paso antes de cambiar el filtro.",
        ),
        ("She had never seen the sea so quiet.", "Nunca había visto el mar tan tranquilo."),
        (None, "Falta la frase inglesa."),
    ],
    "en-ja": [
        ("Please take your shoes off at the entrance.", "玄関で靴を脱いでください。"),
        ("The festival was put off until Sunday because of the typhoon.", "台風のため、祭りは日曜日に延期された。"),
    ],
    "en-no": [
        ("The road over the mountain is closed until Easter.", "Veien over fjellet er stengt til påske."),
        ("Do you want the soup with or without cream?", "Vil du ha suppen med eller uten fløte?"),
    ],
    "en-ru": [
        (
            "The committee will publish its findings at the end of the month.",
            "Комитет опубликует свои выводы в конце месяца.",
        ),
        ("Two cups of flour, a pinch of salt and patience.", "Два стакана муки, щепотка соли и терпение."),
    ],
    "en-zh": [
        ("The museum is closed on Mondays, except on public holidays.", "博物馆星期一闭馆，法定节假日除外。"),
        ("He folded the letter twice and put it into his pocket.", "他把信折了两折，放进口袋里。"),
    ],
}


def articles() -> pa.Table:
    """Return the articles under ids as the source makes them, with empty, null and repeated odd rows at the end."""
    texts = [" ".join(article.split()) for article in ARTICLES]
    rows = [
        {"article": text, "highlights": f"{text.split('. ')[0]} .", "id": _sha1(f"sample/{i}")}
        for i, text in enumerate(texts)
    ]
    rows += [
        {"article": "", "highlights": "An empty article .", "id": _sha1("sample/empty")},
        {"article": None, "highlights": None, "id": _sha1("sample/null")},
        {"article": "This article stands without an id, which the source never does.", "highlights": "", "id": None},
        {"article": texts[0], "highlights": "", "id": _sha1("sample/again")},
    ]
    schema = pa.schema([("article", pa.string()), ("highlights", pa.string()), ("id", pa.string())])
    return pa.Table.from_pylist(rows, schema)


def translations(config: str) -> pa.Table:
    """Return the pairs of one config in the source's schema: one struct column with a field a language."""
    first, second = config.split("-")
    schema = pa.schema([("translation", pa.struct([(first, pa.string()), (second, pa.string())]))])
    rows: list[dict[str, dict[str, str | None] | None]] = [
        {"translation": {first: a, second: b}} for a, b in TRANSLATIONS[config]
    ]
    return pa.Table.from_pylist([*rows, {"translation": None}] if config == "en-zh" else rows, schema)


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", write_statistics=False)


def main() -> None:
    """Write every file in place."""
    _write(articles(), SAMPLES / "cnn_dailymail" / "3.0.0" / "test-00000-of-00001.parquet")
    for config in TRANSLATIONS:
        _write(translations(config), SAMPLES / "opus_100" / config / "test-00000-of-00001.parquet")


if __name__ == "__main__":
    main()
