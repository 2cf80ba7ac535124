"""The recall set: what a person told an agent in sixty sessions, and the questions that come afterwards.

Made from a seed, so that it is the same everywhere. 330 facts about seven projects and five people; a third of them
are changed in a later session, half of the changes in the words of the fact, half in others. A fact is said in passing,
between requests and small talk, and asked for in words that are not the ones it was said in. Other facts share its
subject, its kind and often its value, so that no single word gives an answer away.

Run: python bench/recall_set.py    (what is in it)
"""

import random
from dataclasses import dataclass, field

SEED = 2027
SESSIONS = 60
FIRST_DAY = 1_735_725_600  # 1 January 2025, 10:00 UTC
DAY_S = 86_400
CHANGED = 3  # one fact in so many

PROJECTS = ("Heron", "Marlin", "Orchid", "Tundra", "Quartz", "Saffron", "Bramble")
PEOPLE = ("Ines", "Tobias", "Marguerite", "Kwame", "Yuki")

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
CITIES = ("Lisbon", "Utrecht", "Leipzig", "Nairobi", "Osaka", "Halifax", "Bologna", "Ghent")


@dataclass(frozen=True)
class Kind:
    """One kind of fact. `{e}` is what it is about, `{v}` its value; each text stands for itself, in other words."""

    said: tuple[str, str]
    asked: tuple[str, str]
    changed: str  # the change in other words than `said`
    values: tuple[str, ...]


ABOUT_PROJECTS = (
    Kind(
        ("We ship {e} every {v}.", "The release day of {e} is {v}."),
        ("On which weekday does a new version of {e} go out?", "When in the week do users get {e} updates?"),
        "From now on customers receive {e} on {v}s instead.",
        DAYS,
    ),
    Kind(
        ("{e} keeps its data in {v}.", "The database behind {e} is {v}."),
        ("Where are the records of {e} persisted?", "Which storage engine should I connect to for {e}?"),
        "We migrated the rows of {e} over to {v} last night.",
        ("PostgreSQL", "MariaDB", "SQLite", "CockroachDB", "MongoDB", "DynamoDB"),
    ),
    Kind(
        ("{v} is in charge of {e}.", "The lead of {e} is {v}."),
        ("Who is responsible for {e}?", "Whom do I ask for a decision about {e}?"),
        "{v} took over {e} from the person who ran it before.",
        ("Amara", "Benedikt", "Chiara", "Dmitri", "Eleni", "Farouk"),
    ),
    Kind(
        ("The tests of {e} run with {v}.", "For {e} you start the test suite with {v}."),
        ("How do I check that a change in {e} did not break anything?", "What is the command to verify {e}?"),
        "Whoever wants to verify {e} types {v} these days.",
        ("make check", "tox -q", "pnpm verify", "just test", "bazel run ci", "nox -s all"),
    ),
    Kind(
        ("{e} listens on port {v}.", "The port of {e} is {v}."),
        ("Under which number does the server of {e} answer locally?", "What do I put behind localhost: to reach {e}?"),
        "Something else occupied the old socket, so {e} is reachable at {v} now.",
        ("8117", "9044", "7350", "6221", "5480", "4719"),
    ),
    Kind(
        ("{e} is written in {v}.", "The code of {e} is {v}."),
        ("What programming language do I need to know for {e}?", "Which compiler or interpreter does {e} need?"),
        "The rewrite of {e} is finished, everything is {v} by now.",
        ("Rust", "Kotlin", "Elixir", "Go", "Haskell", "TypeScript"),
    ),
    Kind(
        ("{e} is hosted at {v}.", "We run {e} on {v}."),
        ("Which cloud do the machines of {e} belong to?", "Where is {e} deployed?"),
        "The contract ended, and the servers of {e} stand at {v} since then.",
        ("Hetzner", "Scaleway", "Fly", "Linode", "OVH", "Exoscale"),
    ),
    Kind(
        ("The budget of {e} is {v} euros a month.", "{e} may cost {v} euros per month."),
        ("How much money can be spent on {e}?", "What is the spending limit of {e}?"),
        "Finance cut us back: for {e} there are {v} euros left each month.",
        ("1,200", "850", "3,400", "2,750", "640", "5,100"),
    ),
    Kind(
        ("The logo of {e} is {v}.", "{e} has a {v} logo."),
        ("What colour identifies {e} on slides?", "How should the emblem of {e} be painted?"),
        "After the rebranding everything that shows {e} has to be {v}.",
        ("teal", "crimson", "amber", "indigo", "olive", "magenta"),
    ),
    Kind(
        ("Errors of {e} are reported to {v}.", "For {e} we collect crashes in {v}."),
        ("Where can I look at exceptions thrown by {e}?", "Which service has the stack traces of {e}?"),
        "The old tracker is switched off, look at {v} for what goes wrong in {e}.",
        ("Sentry", "Rollbar", "Honeybadger", "Bugsnag", "Airbrake", "GlitchTip"),
    ),
    Kind(
        ("{e} is due on {v}.", "The deadline of {e} is {v}."),
        ("By what date must {e} be finished?", "How long do we still have for {e}?"),
        "They gave us another date for {e}: everything has to be done by {v}.",
        ("14 March", "30 June", "2 September", "21 November", "8 May", "17 December"),
    ),
    Kind(
        ("The customer of {e} is {v}.", "We build {e} for {v}."),
        ("Who pays for {e}?", "Which company ordered {e}?"),
        "{v} bought the rights, so {e} is done for them from here on.",
        ("Nordwind", "Alba Foods", "Kestrel Air", "Montblanc Bank", "Tidal Labs", "Velo City"),
    ),
    Kind(
        ("Commit messages of {e} begin with {v}.", "In {e} each commit subject starts with {v}."),
        ("What prefix do I write in front of a commit in {e}?", "How are changes to {e} labelled in git?"),
        "The convention in {e} is different since the audit: put {v} at the front.",
        ("a ticket number", "an emoji", "the module name", "a verb", "the word chore", "the author's initials"),
    ),
    Kind(
        ("Logs of {e} are kept for {v}.", "{e} deletes its logs after {v}."),
        ("How far back can I read what {e} printed?", "What is the retention of {e}?"),
        "Legal asked for it: traces of {e} disappear after {v}.",
        ("ten days", "six weeks", "half a year", "three months", "two years", "48 hours"),
    ),
    Kind(
        ("{e} sends its mail through {v}.", "Mail from {e} goes out by {v}."),
        (
            "Which provider delivers the messages that {e} writes to users?",
            "How do notifications of {e} get to inboxes?",
        ),
        "Too much landed in spam, {v} delivers what {e} writes since Tuesday.",
        ("Postmark", "Mailgun", "SparkPost", "Sendgrid", "Mailjet", "Brevo"),
    ),
    Kind(
        ("The staging server of {e} is called {v}.", "{e} is tried out on the machine {v}."),
        ("On which host can I preview {e}?", "Where do I try {e} before production?"),
        "The box for rehearsals of {e} died, {v} does that job.",
        ("otter", "badger", "lynx", "weasel", "stoat", "marten"),
    ),
    Kind(
        ("The main branch of {e} is {v}.", "In {e} we merge into {v}."),
        ("What should a pull request of {e} target?", "Which line of development does {e} release from?"),
        "Please open pull requests of {e} against {v}, the former one is frozen.",
        ("trunk", "develop", "stable", "next", "mainline", "release"),
    ),
    Kind(
        ("{e} formats code with {v}.", "The formatter of {e} is {v}."),
        ("What makes the style of {e} uniform?", "Which tool decides about whitespace in {e}?"),
        "We got tired of arguing about style in {e} and let {v} decide.",
        ("prettier", "ruff", "biome", "gofumpt", "dprint", "treefmt"),
    ),
    Kind(
        ("The licence of {e} is {v}.", "{e} is published under {v}."),
        ("Under which terms may others use {e}?", "What are the legal conditions for copying {e}?"),
        "The lawyers put {e} under {v} for the next version.",
        ("MIT", "Apache 2.0", "AGPL", "BSD", "MPL 2.0", "EUPL"),
    ),
    Kind(
        ("Secrets of {e} are in {v}.", "{e} reads its credentials from {v}."),
        ("Where do the passwords of {e} live?", "From where does {e} get its tokens?"),
        "After the incident the keys of {e} moved into {v}.",
        ("Vault", "1Password", "Doppler", "SOPS", "Infisical", "Bitwarden"),
    ),
    Kind(
        ("{e} has {v} users.", "About {v} people use {e}."),
        ("How large is the audience of {e}?", "How many accounts does {e} serve?"),
        "The count came in: {e} stands at {v} by now.",
        ("1,900", "42,000", "310", "7,600", "120,000", "15,500"),
    ),
    Kind(
        ("The weekly meeting of {e} is on {v}.", "We talk about {e} every {v}."),
        ("When does the team of {e} sit together?", "Which day is blocked for the {e} sync?"),
        "The round about {e} was shifted, everybody comes together on {v}.",
        DAYS,
    ),
    Kind(
        ("{e} caches in {v}.", "The cache of {e} is {v}."),
        ("What holds the hot values of {e}?", "What do I flush when {e} shows something stale?"),
        "Memory was too expensive, hot values of {e} sit in {v}.",
        ("Redis", "Memcached", "Valkey", "Dragonfly", "Hazelcast", "Varnish"),
    ),
    Kind(
        ("{e} wants version {v} of Node.", "The Node of {e} is {v}."),
        ("Which runtime release do I install for {e}?", "What has to be in the .nvmrc of {e}?"),
        "The pipeline of {e} was lifted to {v} of the JavaScript runtime.",
        ("18.19", "20.11", "22.3", "16.20", "21.7", "23.1"),
    ),
    Kind(
        ("Designs of {e} are in {v}.", "The mock-ups of {e} are made in {v}."),
        ("Where do I see how {e} is meant to look?", "Which app opens the screens of {e}?"),
        "The designers left their tool; screens of {e} are drawn in {v}.",
        ("Figma", "Penpot", "Sketch", "Framer", "Zeplin", "Lunacy"),
    ),
)

ABOUT_PEOPLE = (
    Kind(
        ("{e} lives in {v}.", "{e}'s home is {v}."),
        ("In which city would I visit {e}?", "Where is {e} based?"),
        "{e} packed everything and moved to {v}.",
        CITIES,
    ),
    Kind(
        ("{e} drinks {v} in the morning.", "{e}'s breakfast drink is {v}."),
        ("What should I order for {e} before nine?", "What wakes {e} up?"),
        "{e} gave that up and has {v} after getting up.",
        ("green tea", "espresso", "cocoa", "oat milk", "lemon water", "chicory"),
    ),
    Kind(
        ("{e}'s birthday is on {v}.", "{e} was born on {v}."),
        ("When do we congratulate {e}?", "What date do I reserve for a cake for {e}?"),
        "I had it wrong all the time: the party for {e} belongs to {v}.",
        ("3 February", "19 April", "27 July", "11 October", "6 August", "24 January"),
    ),
    Kind(
        ("{e} is allergic to {v}.", "{e} cannot eat {v}."),
        ("What must not be in a meal for {e}?", "Which ingredient would make {e} ill?"),
        "The doctor tested {e} again, and the trouble is caused by {v}.",
        ("peanuts", "shellfish", "gluten", "sesame", "celery", "mustard"),
    ),
    Kind(
        ("{e} plays the {v}.", "{e}'s instrument is the {v}."),
        ("Which music does {e} make?", "What would {e} bring to a band?"),
        "{e} sold it and practises the {v} every evening.",
        ("cello", "oboe", "accordion", "banjo", "harp", "trombone"),
    ),
    Kind(
        ("{e} goes to work by {v}.", "{e} commutes by {v}."),
        ("How does {e} get to the office?", "What means of transport does {e} take every day?"),
        "Since the strike {e} takes the {v} to get here.",
        ("tram", "bicycle", "ferry", "scooter", "train", "bus"),
    ),
    Kind(
        ("{e}'s dog is called {v}.", "{e} has a dog named {v}."),
        ("How do I call the pet of {e}?", "What is the name of the animal that {e} walks?"),
        "{e} adopted another one after the old one died, and shouts {v} in the park.",
        ("Biscuit", "Pixel", "Nero", "Waffle", "Juno", "Moss"),
    ),
    Kind(
        ("{e} wants to be written to by {v}.", "The best way to reach {e} is {v}."),
        ("Which channel should I use to contact {e}?", "How does {e} like to get messages?"),
        "Please do not use the former way for {e} any more, only {v}.",
        ("Signal", "e-mail", "Matrix", "text message", "Threema", "Telegram"),
    ),
    Kind(
        ("{e} works until {v}.", "{e}'s working day ends at {v}."),
        ("After what time is {e} off duty?", "How late can I still get an answer from {e}?"),
        "{e} rearranged the hours and leaves at {v}.",
        ("15:00", "16:30", "17:15", "18:45", "14:20", "19:00"),
    ),
    Kind(
        ("{e} edits in {v}.", "{e}'s editor is {v}."),
        ("Which program does {e} write code with?", "For what do I have to make shortcuts when {e} pairs with me?"),
        "{e} was converted and types everything into {v}.",
        ("Helix", "Emacs", "Zed", "Neovim", "Kakoune", "Sublime"),
    ),
    Kind(
        ("{e} is learning {v}.", "{e} takes lessons in {v}."),
        ("What does {e} study in the evenings?", "Which tongue could I practise with {e}?"),
        "{e} dropped the course and sits in a class for {v}.",
        ("Portuguese", "Finnish", "Swahili", "Korean", "Welsh", "Catalan"),
    ),
    Kind(
        ("{e}'s desk is in room {v}.", "{e} sits in room {v}."),
        ("Where in the building do I find {e}?", "Behind which door does {e} work?"),
        "Facilities shuffled everybody, the chair of {e} stands in {v}.",
        ("4.12", "2.07", "1.30", "5.01", "3.18", "6.22"),
    ),
    Kind(
        ("{e} supports {v}.", "{e}'s team is {v}."),
        ("Whom does {e} cheer for at the weekend?", "Which club makes {e} happy when it wins?"),
        "You will not believe it, {e} bought a scarf of {v}.",
        ("Ajax", "Celtic", "Benfica", "Rapid", "Torino", "Union"),
    ),
    Kind(
        ("{e} reads books by {v}.", "{e}'s favourite author is {v}."),
        ("What should I give {e} to read?", "Which novelist does {e} love?"),
        "{e} cannot put {v} down these weeks, everything before is forgotten.",
        ("Le Guin", "Calvino", "Achebe", "Tokarczuk", "Borges", "Szymborska"),
    ),
    Kind(
        ("{e} holidays in {v}.", "{e} spends the summer in {v}."),
        ("Where does {e} go when the office closes?", "What is {e}'s place for a vacation?"),
        "The old cottage is sold, {e} relaxes in {v} now.",
        ("Brittany", "the Tatra", "Crete", "Jutland", "Madeira", "the Azores"),
    ),
    Kind(
        ("{e} reports to {v}.", "{e}'s manager is {v}."),
        ("Who approves the leave of {e}?", "Whom does {e} answer to?"),
        "There was a reorganisation, and {v} signs for {e}.",
        ("Gudrun", "Hakim", "Isolde", "Jerome", "Katya", "Lorenzo"),
    ),
    Kind(
        ("{e}'s phone ends in {v}.", "The last digits of {e}'s phone are {v}."),
        ("How can I recognise a call by {e}?", "What does the number of {e} finish with?"),
        "{e} lost the handset; look for {v} at the end of the display.",
        ("7741", "0923", "5518", "3360", "8207", "1194"),
    ),
    Kind(
        ("{e} wears size {v}.", "{e}'s T-shirt is a {v}."),
        ("Which shirt do I order for {e}?", "What fits {e}?"),
        "The last shirt was wrong on {e}, take {v}.",
        ("small", "medium", "large", "extra large", "a kids' 164", "double extra large"),
    ),
    Kind(
        ("{e} pays with {v}.", "{e}'s money is at {v}."),
        ("Which bank do I transfer the expenses of {e} to?", "Where is the account of {e}?"),
        "{e} closed that one, wire the expenses to {v}.",
        ("Triodos", "Revolut", "Postbank", "Crédit Mutuel", "N26", "Wise"),
    ),
    Kind(
        ("{e} prefers {v} for reviews.", "{e} wants reviews as {v}."),
        ("In what form do I give feedback to {e}?", "How should comments for {e} be delivered?"),
        "{e} is fed up with that form, feedback has to be {v}.",
        ("a video call", "line comments", "one long text", "a voice memo", "pair programming", "a checklist"),
    ),
    Kind(
        ("{e} is on call in {v}.", "{e}'s on-call month is {v}."),
        ("When is {e} woken up at night by pagers?", "In which month do alerts go to {e}?"),
        "They swapped the rota, the pager is with {e} in {v}.",
        ("January", "April", "June", "September", "November", "August"),
    ),
    Kind(
        ("{e} rides a {v}.", "{e}'s bike is a {v}."),
        ("What does {e} lock up in the yard?", "Which brand of wheels does {e} own?"),
        "Thieves got the old one, {e} pedals a {v}.",
        ("Brompton", "Gazelle", "Surly", "Koga", "Batavus", "Specialized"),
    ),
    Kind(
        ("{e} has {v} children.", "There are {v} children in {e}'s family."),
        ("How many kids does {e} bring along?", "How big a table for the little ones does {e} need?"),
        "A baby came to {e}, that makes {v}.",
        ("two", "three", "four", "five", "six", "seven"),
    ),
    Kind(
        ("{e} cooks {v} best.", "{e}'s best dish is {v}."),
        ("What should {e} prepare for the team dinner?", "Which meal is {e} famous for?"),
        "Everybody asks {e} for {v} these days, nobody for the former one.",
        ("ramen", "moussaka", "pierogi", "paella", "injera", "laksa"),
    ),
    Kind(
        ("{e} is paid for {v} days a week.", "{e}'s contract has {v} days a week."),
        ("How much of the week does {e} work?", "What share of a full position does {e} have?"),
        "{e} signed an addendum, it is {v} days from here on.",
        ("two", "three", "four", "five", "one and a half", "two and a half"),
    ),
    Kind(
        ("{e} studied {v}.", "{e}'s degree is in {v}."),
        ("What did {e} do at university?", "Which subject is {e} an expert of by training?"),
        "I mixed that up, the diploma of {e} says {v}.",
        ("physics", "law", "linguistics", "geology", "music theory", "nursing"),
    ),
    Kind(
        ("{e} is travelling to {v} next.", "{e}'s next trip goes to {v}."),
        ("Where will {e} fly soon?", "For which destination does {e} need a ticket?"),
        "Plans of {e} were thrown over, the suitcase goes to {v}.",
        CITIES,
    ),
    Kind(
        ("{e} types on a {v} layout.", "{e}'s keyboard is {v}."),
        ("How are the keys arranged that {e} uses?", "What do I set before {e} touches my computer?"),
        "{e} retrained the fingers and swears by {v}.",
        ("Dvorak", "Colemak", "Neo", "Bépo", "Workman", "QWERTZ"),
    ),
    Kind(
        ("{e} gets up at {v}.", "{e}'s alarm rings at {v}."),
        ("At what hour does {e} start the day?", "From when on may I ring at {e}'s door?"),
        "The baby changed it all, {e} is on the feet at {v}.",
        ("5:40", "6:15", "7:05", "7:50", "8:30", "9:10"),
    ),
    Kind(
        ("{e} collects {v}.", "{e}'s hobby is collecting {v}."),
        ("What souvenir would please {e}?", "What are the shelves of {e} full of?"),
        "{e} gave the collection away and hunts for {v} at flea markets.",
        ("stamps", "fountain pens", "vinyl", "minerals", "old maps", "typewriters"),
    ),
    Kind(
        ("{e} wants the invoice on the {v}.", "{e} is billed on the {v} of the month."),
        ("When do we charge {e}?", "Which day of the month does {e} expect a bill?"),
        "Accounting of {e} changed its cycle, send it on the {v}.",
        ("1st", "5th", "10th", "15th", "20th", "28th"),
    ),
)

BEFORE = (
    "",
    "",
    "By the way: ",
    "Before I forget: ",
    "Just so you know. ",
    "Good morning! ",
    "That looks fine, thanks. ",
    "Let us leave the build alone for a moment. ",
    "I talked to the others at lunch. ",
    "One more thing while that runs. ",
)
AFTER = (
    "",
    "",
    " Can you rename the helper in the parser now?",
    " Please go on with the list.",
    " And then look at the failing job again.",
    " Nothing to do for you there.",
    " What was the next item?",
    " Write that down somewhere sensible.",
    " The rest stays as it was.",
    " I will be back in an hour.",
)
ANSWERS = (
    "Understood.",
    "Noted: {fact}",
    "Thanks, I will keep that in mind.",
    "All right. I renamed the helper and the tests pass.",
    "Good to know. The next item on the list is the parser.",
    "Got it, {fact}",
)
SMALL_TALK = (
    ("Why does this loop allocate so much?", "It builds a new list in each round; a generator would not."),
    ("Rename `fetch` to `load` in the whole folder.", "Done, eleven places in four files."),
    ("What does this traceback mean?", "The file is opened twice, and the second handle is closed."),
    ("Write a short mail that says we are late.", "Dear all, we need two more days and will write again."),
    ("Run the linter again, please.", "It is clean."),
    ("How do I rebase without losing my changes?", "Commit or stash them, then rebase onto the other branch."),
    ("Is the job green by now?", "Two checks are still running, the others passed."),
    ("Explain what a semaphore is.", "A counter that lets so many in at once; whoever comes later waits."),
    ("Make the table narrower.", "I dropped two columns and shortened the headings."),
    ("Who changed the deployment script last?", "The history names three people in the last month."),
    ("The customer called, they were not happy.", "I am sorry to hear that. Shall we look at their ticket?"),
    ("Is there a database migration in this branch?", "Yes, one, and it adds a column."),
    ("Which day is best for a release in general?", "Early in the week, so that people are there afterwards."),
    ("Book a room for the meeting.", "I cannot do that from here, but I can write the request."),
    ("What is the weather like in your data centre?", "I would not know; it is dry inside."),
    ("Compare three test runners for me.", "The first is quick, the second is thorough, the third is both and new."),
    ("My keyboard is broken, I type slowly today.", "Take your time."),
    ("Let us talk about the budget some other day.", "As you like."),
    ("I need a coffee.", "Enjoy it."),
    ("Delete the old log files in tmp.", "They are deleted, 40 MB are free again."),
)


@dataclass(frozen=True)
class Said:
    """One turn of a session."""

    session: int
    at: float
    user: str
    assistant: str


@dataclass
class Fact:
    """What is asked afterwards, and which turns said it. `old` is set when the fact was changed."""

    question: str
    value: str
    turn: int = -1  # of `RecallSet.turns`, where the value that counts was said
    old_value: str = ""
    old_turn: int = -1
    in_other_words: bool = False


@dataclass
class RecallSet:
    """Turns in the order of time, and the facts that they hold."""

    turns: list[Said] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)


@dataclass(frozen=True)
class _Line:
    """A sentence that is to be said in a session."""

    session: int
    text: str
    fact: Fact
    is_old: bool


def recall_set(seed: int = SEED) -> RecallSet:
    """The whole set; the same for the same seed."""
    rng = random.Random(seed)
    made = RecallSet()
    lines: list[_Line] = []
    pairs = [(one, kind) for kind in ABOUT_PROJECTS for one in PROJECTS]
    pairs += [(one, kind) for kind in ABOUT_PEOPLE for one in PEOPLE]
    rng.shuffle(pairs)
    changed = 0
    for number, (about, kind) in enumerate(pairs):
        first, second = rng.sample(kind.values, 2)
        form = rng.randrange(2)
        fact = Fact(rng.choice(kind.asked).format(e=about), first)
        made.facts.append(fact)
        said = kind.said[form].format(e=about, v=first)
        if number % CHANGED:
            lines.append(_Line(rng.randrange(SESSIONS), said, fact, is_old=False))
            continue
        early = rng.randrange(SESSIONS - 10)
        later = rng.randrange(early + 1, SESSIONS)
        fact.value, fact.old_value, fact.in_other_words = second, first, bool(changed % 2)
        now = kind.changed if fact.in_other_words else kind.said[form]
        changed += 1
        lines.append(_Line(early, said, fact, is_old=True))
        lines.append(_Line(later, now.format(e=about, v=second), fact, is_old=False))
    _tell(made, lines, rng)
    return made


def _tell(made: RecallSet, lines: list[_Line], rng: random.Random) -> None:
    for session in range(SESSIONS):
        here: list[_Line | None] = [line for line in lines if line.session == session]
        here += [None] * rng.randrange(4, 9)
        rng.shuffle(here)
        begin = FIRST_DAY + session * 5 * DAY_S
        for place, line in enumerate(here):
            at = begin + place * 300.0
            if line is None:
                made.turns.append(Said(session, at, *rng.choice(SMALL_TALK)))
                continue
            if line.is_old:
                line.fact.old_turn = len(made.turns)
            else:
                line.fact.turn = len(made.turns)
            user = f"{rng.choice(BEFORE)}{line.text}{rng.choice(AFTER)}"
            made.turns.append(Said(session, at, user, rng.choice(ANSWERS).format(fact=line.text)))


def main() -> None:
    made = recall_set()
    changed = [fact for fact in made.facts if fact.old_value]
    others = sum(fact.in_other_words for fact in changed)
    print(f"{len(made.facts)} facts in {len(made.turns)} turns of {SESSIONS} sessions")
    print(f"{len(changed)} changed later, {others} of them in other words")
    for fact in made.facts[:6]:
        print(f"  {fact.question}  -> {fact.value}{f' (was {fact.old_value})' if fact.old_value else ''}")


if __name__ == "__main__":
    main()
