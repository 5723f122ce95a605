"""The scenes of the sample's dialogues, what is asked and what is answered; `sample.py` says how they are read.

The answer takes up what the question names. Within an answer, early words often depend on late ones: `both` on `and`,
a verb on the pronoun that follows, a meal on its hour, a coat on the weather, a currency on its city.
"""

from __future__ import annotations

from tigs.data.corpora import sample_dialog_words

RECORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    **sample_dialog_words.RECORDS,
    "scene": (
        ("context", "target"),
        ("{ask_where}", "{hesitation} {tell_where} ."),
        ("{ask_meal}", "{hesitation} {tell_meal} ."),
        ("{ask_invitation}", "{tell_invitation} ."),
        ("{ask_price}", "{hesitation} {tell_price} ."),
        ("{ask_job}", "{tell_job} ."),
        ("{ask_arrival}", "{hesitation} {tell_arrival} ."),
        ("{ask_guests}", "{hesitation} {tell_guests} ."),
        ("{ask_mood}", "{tell_mood} ."),
        ("{ask_show}", "{hesitation} {tell_show} ."),
        ("{ask_way}", "{tell_way} ."),
        ("{ask_drink}", "{tell_drink} ."),
        ("{ask_weather}", "{tell_weather} ."),
        ("{ask_speak}", "{tell_speak} ."),
        ("{ask_which}", "{hesitation} {tell_which} ."),
        ("who {deed} the {look} {object.name} ?", "{tell_deed} ."),
    ),
}

WORDS: dict[str, tuple[str, ...]] = {
    **sample_dialog_words.WORDS,
    # Where is it?
    "ask_where": (
        "where {object.is} the {look} {object.name} ?",
        "have you seen the {look} {object.name} ?",
        "i can't find the {look} {object.name} .",
        "do you need the {look} {object.name} ?",
    ),
    "tell_where": (
        "the {look} {object.name} {object.is} {certainly} {spot} , i {left} {object.them} there {past}",
        "{object.its} {spot} , {person.told} {certainly} {left} {object.them} there {past}",
        "{person.told} {person.has} {object.them} , {person.he} {went} to {town.name} with {object.them} {past}",
        "look {spot} or {spot#2} , {person.told} had {object.them} {past}",
        "i have {object.a} {look#2} {object.one} {spot} , but i don't know where the {look} {object.one} {object.is}",
        "{person.told} {certainly} put the {object.name} {spot} {past}",
        "if {object.it} {object.is} not {spot} , ask {person.told} , {person.he} {took} {object.them} {past}",
    ),
    # Meals.
    "ask_meal": (
        "what did {person.asked} have for {meal.name} ?",
        "did {person.asked} like the {meal.name} ?",
        "was there enough {meal.name} for {person.asked} ?",
        "{person.was} {person.asked} hungry again ?",
    ),
    "tell_meal": (
        "{person.he} {certainly} {ate} {food_{meal.key}} and {food_{meal.key}#2} with {drink} {meal.past}",
        "{meal.past} {person.told} {certainly} {ate} {food_{meal.key}} with {food_{meal.key}#2}",
        "{person.he} {person.was} {degree} {hungry} , so i {made} {food_{meal.key}} for {meal.name}",
        "i {made} {food_{meal.key}} for {meal.name} , but {person.told} {ate} {food_{meal.key}#2} {meal.past}",
        "{meal.future} we will cook {food_{meal.key}} for {meal.name} , please come at {meal.hour} and bring {drink}",
        "{food_{meal.key}} , {food_{meal.key}#2} and {drink}",
    ),
    # Shall we?
    "ask_invitation": (
        "shall we go to {town.name} {future} ?",
        "i'm going to {town.name} {future} , will you come with me ?",
        "are you free {future} ?",
        "let's go to {town.name} {future} .",
    ),
    "tell_invitation": (
        "yes , {person.told} and i want to {town.purpose} , let's meet at {town.name} {future}",
        "i'm sorry , {future} {person.told} and i have to {town#2.purpose} at {town#2.name}",
        "with pleasure , {person.told} {certainly} want{person.s} to {town.purpose} {future}",
        "no , i was at {town.name} {past} , but we could go to {town#2.name} and {town#2.purpose}",
        "{future} i can't , {person.told} {person.is} coming to {town#2.purpose} with me",
        "only if {person.told} come{person.s} too , {person.he} want{person.s} to {town.purpose}",
        "i'd love to {town.purpose} {future}",
    ),
    # Prices.
    "ask_price": (
        "how much {object.is} the {look} {object.name} ?",
        "{object.was} the {look} {object.one} expensive ?",
        "where did you buy the {look} {object.name} ?",
    ),
    "tell_price": (
        "the {look} {object.name} {certainly} cost{object.s} {number} {city.currency} in {city.name}",
        "i {certainly} paid {number} {city.currency} for {object.them} in {city.name} {past}",
        "{number} {city.currency} and not a {city.coin} less , {person.told} got {object.them} in {city.name} {past}",
        "in {city.name} {object.it} cost{object.s} {number} {city.currency} , the {look#2} {object.one} less",
        "{person.told} got {object.them} for {number} {city.currency} , {person.he} work{person.s} in {city.name} now",
    ),
    # Jobs.
    "ask_job": (
        "what {person.does} {person.asked} do ?",
        "where {person.does} {person.asked} work ?",
        "{person.does} {person.asked} like the new job ?",
    ),
    "tell_job": (
        "{person.told} {person.is} {job.{person.number}} , {person.he} {certainly} work{person.s} {job.place} {nearby}",
        "{person.he} {person.was} {job.{person.number}} for {number} years and now work{person.s} {job#2.place}",
        "{job.place} , {person.he} {person.is} {job.{person.number}} like {person#2.told}",
        "{person.hes} {job.{person.number}} in {city.name} and earn{person.s} {number} {city.currency} an hour",
        "{person.he} want{person.s} to be {job.{person.number}} , so {person.he} {person.is} {job.place} {every_day}",
    ),
    # Arrivals.
    "ask_arrival": (
        "when {person.does} {person.asked} arrive ?",
        "will {person.asked} be here {future} ?",
        "how will {person.asked} come to {city.name} ?",
    ),
    "tell_arrival": (
        "{person.his} {vehicle.name} arrives at {clock} , {person#2.told} will meet {person.him} {vehicle.stop}",
        "{person.he} will take the {vehicle.name} {future} , {person#2.told} will wait {vehicle.stop}",
        "{person.told} {certainly} missed the {vehicle.name} to {city.name} and {person.is} still {vehicle.stop}",
        "wait for {person.him} {vehicle.stop} , the {vehicle.name} from {city#2.name} is {number} minutes late",
        "{person.he} came by {vehicle.name} {past}",
    ),
    # Guests.
    "ask_guests": (
        "who is coming to the {event} ?",
        "will {person.asked} come to the {event} ?",
        "are {person.asked} and {person#2.asked} coming to the {event} ?",
    ),
    "tell_guests": (
        "{correlate.first} {person.told} {correlate.second} {person#2.told} {correlate.come} to the {event}",
        "{correlate.first} {person.told} {correlate.second} {person#2.told} {correlate.come} {future}",
        "{person.told} can't come {future} , {person.he} {person.has} to {town.purpose}",
        "{person.told} and {person#2.told}",
        "{person.told} will come {future} and bring {person.his} {look} {object.name}",
    ),
    # Moods.
    "ask_mood": (
        "why {person.is} {person.asked} so {mood.adjective} ?",
        "{person.is} {person.asked} {mood.adjective} today ?",
        "what happened to {person.asked} {past} ?",
    ),
    "tell_mood": (
        "{person.he} {person.is} {mood.adjective} because {person.he} {event_{mood.key}} {past}",
        "{person.told} {certainly} {event_{mood.key}} {past} , so {person.he} {person.is} {degree} {mood.adjective}",
        "{person.he} {event_{mood.key}} and {event_{mood.key}#2} , anyone would be {mood.adjective}",
        "you would be {mood.adjective} too , {person.he} {event_{mood.key}} {past}",
    ),
    "event_happy": (
        "found {person.his} {look} {object.name}",
        "won the {game}",
        "passed the {exam}",
        "got {a_letter} from {person#2.told}",
        "met {person#2.told} at {town.name}",
    ),
    "event_sad": (
        "lost {person.his} {look} {object.name}",
        "missed the {clock} o'clock train",
        "failed the {exam}",
        "broke {person.his} {object.name}",
        "had an argument with {person#2.told}",
    ),
    # Shows.
    "ask_show": (
        "how did you like the {show.name} ?",
        "was the {show.name} any good ?",
        "did you go to {show.place} {past} ?",
    ),
    "tell_show": (
        "the {show.name} was {certainly} {praise_{opinion.key}} and {praise_{opinion.key}#2} , {verdict_{opinion.key}}",
        "it was {degree} {praise_{opinion.key}} , {verdict_{opinion.key}}",
        "{person.told} called it a {praise_{opinion.key}} {show.name} , {verdict_{opinion.key}}",
        "we were at {show.place} {past} , {verdict_{opinion.key}}",
    ),
    "verdict_good": (
        "i want to see it again {future}",
        "we stayed until the end",
        "everybody clapped for {number} minutes",
        "{person#2.told} enjoyed every minute",
    ),
    "verdict_bad": (
        "we left after {number} minutes",
        "i almost fell asleep",
        "{person#2.told} wanted the money back",
        "nobody clapped at the end",
    ),
    # The way.
    "ask_way": (
        "how do i get to {town.name} ?",
        "excuse me , where is {town.name} ?",
        "is {town.name} far from here ?",
    ),
    "tell_way": (
        "turn {side} at {town#2.name} , after {number} minutes you will see {town.name} on your {side#2}",
        "go past {town#2.name} and turn {side} , {town.name} is next to {town#3.name}",
        "take the {vehicle.name} , it's only {number} minutes from {town#2.name}",
        "it's between {town#2.name} and {town#3.name}",
        "from {town#2.name} to {town.name} it's {number} minutes on foot",
    ),
    # Drinks.
    "ask_drink": ("would you like {drink} or {drink#2} ?", "shall i bring {drink} or {drink#2} ?"),
    "tell_drink": (
        "{correlate.first} {drink} {correlate.second} {drink#2} {correlate.verdict} , {correlate.reason}",
        "{drink} , please , i {certainly} had {drink#2} {past}",
        "{drink} for me and {drink#2} for {person.told} , please",
        "i prefer {drink#2} to {drink} , but {person.told} would like {drink#3}",
        "{correlate.first} {drink} {correlate.second} {drink#2} {correlate.verdict}",
    ),
    # Weather.
    "ask_weather": (
        "is it {weather.adjective} in {city.name} ?",
        "what should i take to {city.name} {future} ?",
        "how is the weather in {city.name} ?",
    ),
    "tell_weather": (
        "take {weather.thing} with you , it's {degree} {weather.adjective} in {city.name}",
        "it will {certainly} be a {weather.adjective} day , so bring {weather.thing} for {person.told}",
        "{weather.thing} would be a good idea , {city.name} is {weather.adjective} {future}",
        "it was {weather.adjective} {past} and {person.told} forgot {weather.thing}",
    ),
    # On the telephone.
    "ask_speak": (
        "may i speak to {person.asked} , please ?",
        "{person.is} {person.asked} at home ?",
        "could you call {person.asked} for me ?",
    ),
    "tell_speak": (
        "i'm sorry , {person.hes} at {town.name} , {person.he} will {certainly} be back {future}",
        "{person.he} {certainly} {went} to {town.name} to {town.purpose} {past}",
        "no , {person.told} {went} to {city.name} by {vehicle.name} {past}",
        "just a minute , {person.hes} {room} with {person#2.told}",
        "you can find {person.him} at {town.name} , {person.he} want{person.s} to {town.purpose}",
    ),
    # Which one?
    "ask_which": (
        "which {object.one} do you like , the {look} {object.one} or the {look#2} {object.one} ?",
        "the {look} {object.name} or the {look#2} {object.one} ?",
    ),
    "tell_which": (
        "the {look} {object.name} {object.is} {more} than the {look#2} {object.one}",
        "i like the {look#2} {object.one} , {object.it} look{object.s} {more} than the {look} {object.one}",
        "{person.told} {person.has} {object.a} {look} {object.one} , so i will take the {look#2} {object.one}",
        "take the {look#2} {object.name} , {person.told} will pay {number} {city.currency} for {object.them}",
    ),
    # Who did it?
    "tell_deed": (
        "{person.told} {certainly} {deed} {object.them} {past}",
        "it was {person.told} , {person.he} {deed} {object.them} at {town.name} {past}",
        "not {person.told} , {person.he} {person.was} {room} {past}",
        "{person.told} and {person#2.told} did",
    ),
}
