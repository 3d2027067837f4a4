"""What the generated people talk about: facts to state, ways to ask for them, and small talk.

`{v}` is the fact's value, `{w}` who had a part in it, `{s}` the speaker whom a question names,
`{o}` the one who listens. A question is worded unlike its statement, as a person's would be, so
that it shares some terms with it and not all.
"""

from __future__ import annotations

from dataclasses import dataclass

NAMES = (
    ("Amara", "Jonas"), ("Priya", "Mateo"), ("Leila", "Oskar"), ("Hana", "Tomas"),
    ("Ines", "Kofi"), ("Yuki", "Bram"), ("Zofia", "Emeka"), ("Nadia", "Felix"),
    ("Mira", "Anton"), ("Sela", "Rafael"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of fact: how it is told, asked about in four ways, and echoed without being told."""

    values: tuple[str, ...]
    tell: tuple[str, ...]
    ask: tuple[str, ...]
    when: str
    which_all: str
    infer: str
    echo: tuple[str, ...]


TOPICS: tuple[Topic, ...] = (
    Topic(
        ("Lisbon", "Kyoto", "Oaxaca", "Reykjavik", "Tallinn", "Marrakesh", "Valparaiso", "Hanoi"),
        (
            "I just got back from {v}, {w} and I walked the old town until our feet hurt.",
            "Guess what, last weekend I flew to {v} with {w}!",
        ),
        (
            "Who travelled to {v} along with {s}?",
            "Who was the companion of {s} on the trip to {v}?",
        ),
        "When was {s} in {v}?",
        "Which cities has {s} visited?",
        "Would {s} enjoy a guide book about foreign places such as {v}?",
        ("Someone at work keeps raving about {v}.", "There was a film about {v} on last night."),
    ),
    Topic(
        ("a rescue greyhound", "a tabby kitten", "two rabbits", "a parrot", "a tortoise",
         "a beagle"),
        (
            "We finally adopted {v} from the shelter, {w} talked me into it.",
            "You will laugh, I came home with {v} yesterday, {w} drove me.",
        ),
        (
            "Who persuaded {s} about {v}, or gave a lift?",
            "Who had a part in {s} getting {v}?",
        ),
        "When did {s} adopt {v}?",
        "Which pets does {s} have?",
        "Does {s} need somebody to feed {v} during holidays?",
        ("My neighbour wants {v} as well.", "I saw {v} in the park, so sweet."),
    ),
    Topic(
        ("the cello", "watercolour painting", "pottery", "rock climbing", "sign language", "chess",
         "bread baking", "archery"),
        (
            "I signed up for a class in {v} together with {w}, the first lesson was humbling.",
            "My evenings belong to {v} now, {w} practises with me.",
        ),
        (
            "Who learns {v} alongside {s}?",
            "Who shares the hobby of {s}, {v}?",
        ),
        "When did {s} begin with {v}?",
        "Which hobbies has {s} taken up?",
        "Would {s} like a beginner's kit for {v} as a present?",
        ("People say {v} is good for the mind.", "My aunt gave up {v} years ago."),
    ),
    Topic(
        ("peanuts", "shellfish", "strawberries", "cats", "pollen", "penicillin"),
        (
            "The doctor says I am allergic to {v}, {w} had guessed it long ago.",
            "No more {v} for me, my whole face swelled up and {w} called an ambulance.",
        ),
        (
            "Who was around when {s} found out about {v} being a danger?",
            "Who noticed how badly {s} takes {v}?",
        ),
        "When did {s} learn about the allergy to {v}?",
        "What must {s} avoid for health?",
        "Should a host of {s} keep {v} away from the table?",
        ("I read an article on {v} today.", "There is nothing wrong with {v} if you ask me."),
    ),
    Topic(
        ("a night nurse", "a tram driver", "a beekeeper", "a museum guide", "a welder",
         "a translator", "a baker"),
        (
            "Big news: I start as {v} on Monday, {w} put in a word!",
            "They hired me, from next month I work as {v} beside {w}.",
        ),
        (
            "Who is connected to {s} becoming {v}?",
            "Who was involved when {s} got work as {v}?",
        ),
        "When was {s} hired as {v}?",
        "Which jobs has {s} taken?",
        "Could {s} explain the daily work of {v} to a pupil?",
        ("My uncle used to be {v}.", "They were looking for {v} in the paper."),
    ),
    Topic(
        ("a second-hand camper van", "a red tandem", "an espresso machine", "a telescope",
         "a sewing machine", "an upright piano"),
        (
            "I spent my savings on {v}, {w} lent me the rest.",
            "Look what stands in our hallway: {v}, from the flea market, {w} carried it up!",
        ),
        (
            "Who helped {s} to get {v}?",
            "Who gave a hand or money when {s} bought {v}?",
        ),
        "When did {s} buy {v}?",
        "Which larger things has {s} bought?",
        "Does {s} have room for something like {v}?",
        ("You can rent {v} these days.", "I nearly tripped over {v} in a shop."),
    ),
    Topic(
        ("a half marathon", "a spelling contest", "the regional cooking prize", "a photo award",
         "a dance battle", "a quiz night"),
        (
            "I won {v}, can you believe it, {w} cried when they gave me the medal!",
            "Third place in {v}, {w} cheered the whole time.",
        ),
        (
            "Who supported {s} at {v}?",
            "Who was moved by the success of {s} in {v}?",
        ),
        "When did {s} take part in {v}?",
        "In which competitions has {s} taken part?",
        "Is {s} proud of how {v} went?",
        ("The radio talked about {v}.", "Do you think {v} is worth watching?"),
    ),
    Topic(
        ("lentil soup", "plum dumplings", "jollof rice", "mushroom risotto", "fish tacos",
         "saffron buns"),
        (
            "I cooked {v} after grandmother's recipe and {w} asked for more.",
            "Tonight's dinner was {v}, made by me, and {w} washed up.",
        ),
        (
            "Who was at the table when {s} made {v}?",
            "Who ate the {v} that {s} prepared?",
        ),
        "When did {s} cook {v}?",
        "Which dishes has {s} cooked for others?",
        "Would {s} be asked to bring {v} to a party?",
        ("The canteen had {v} again.", "I can smell {v} from the stairs."),
    ),
)  # fmt: skip

COMPANIONS: tuple[str, ...] = (
    "my cousin", "my sister", "an old classmate", "the neighbour", "my godson", "my boss",
    "my aunt", "a friend from the choir",
)  # fmt: skip
SMALL_TALK: tuple[str, ...] = (
    "Hey {o}! Good to hear from you, how have you been?",
    "Same as ever over here, the weather does what it wants.",
    "That sounds lovely, tell me more when you have time.",
    "Work has been busy, but I am not complaining.",
    "Wow, I did not expect that at all!",
    "We should really meet up soon, {o}.",
    "My phone died in the middle of the day, typical.",
    "Honestly, I just want to sleep in for once.",
    "You always know what to say, {o}, thank you.",
    "The kids next door are loud again, but it makes me smile.",
    "I have been thinking about what you said last time.",
    "Ha, that reminds me of our school days.",
    "Have you seen how early it gets dark now?",
    "I am proud of you, really.",
    "Let us talk again next week, take care!",
    "Nothing planned for the weekend, and I like it that way.",
    "The train was late, so I read half a book.",
    "Do not worry about it, {o}, these things take time.",
)
CAPTIONS: tuple[str, ...] = (
    "a photo of a street at dusk", "a photo of a cup of tea on a table", "a photo of two friends",
    "a photo of a muddy garden path", "a photo of a crowded kitchen",
)  # fmt: skip
