"""Whom of the roster a download's names mean. What is ambiguous is said, and never guessed.

Names are compared by their words, of letters and digits alone, in small letters and one Unicode
form, in any order: "Smith, Bob" and "bob_smith" are equal. A name run together, as Canvas's
"smithbob", is compared with the words run together, begun at any of them.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from grader.classroom.roster import Person
from grader.submission.archive import shown

MAX_WORDS = 12  # of a name; each may be the first of the family name
_UNNAMED = "Participant"  # what Moodle calls those whom it keeps anonymous
_APOSTROPHES = "'’`´"


@dataclass(frozen=True)
class NameMatch:
    """What was found: a person, or why there is none ("" where nobody is meant).

    Attributes:
        by_name: whether a name alone tells it, which two people may share.
    """

    person: Person | None = None
    doubt: str = ""
    by_name: bool = False


def words(name: str) -> list[str]:
    """A name's words in one Unicode form; an apostrophe parts none."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())
    kept = "".join(
        c if unicodedata.category(c)[0] in "LNM" else "" if c in _APOSTROPHES else " "
        for c in folded
    )
    return kept.split()


def _forms(name: str) -> set[str]:
    """The name run together, begun at each of its words."""
    parts = words(name)[:MAX_WORDS]
    return {"".join(parts[at:] + parts[:at]) for at in range(len(parts))}


def _agree(one: str, other: str) -> bool:
    return not _forms(one).isdisjoint(_forms(other))


def _key(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip()).casefold()


class Matcher:
    """Finds people of a roster by what a download tells of them."""

    def __init__(self, roster: Iterable[Person]) -> None:
        self.by: dict[str, dict[str, set[Person]]] = {
            key: defaultdict(set) for key in ("student", "login", "email", "canvas_id")
        }
        self.words: dict[tuple[str, ...], set[Person]] = defaultdict(set)
        self.joined: dict[str, set[Person]] = defaultdict(set)
        for person in roster:
            for key, index in self.by.items():
                if text := _key(getattr(person, key)):
                    index[text].add(person)
            if person.name:
                self.words[tuple(sorted(words(person.name)))].add(person)
            for form in _forms(person.name):
                self.joined[form].add(person)

    @property
    def knows_canvas(self) -> bool:
        """Whether the roster has Canvas's numbers."""
        return bool(self.by["canvas_id"])

    def by_label(self, label: str) -> NameMatch:
        """By what a folder or an archive is called: an id, a login, an e-mail address or a name."""
        found = self._known(label)
        if found:
            return _one(found, f"{shown(label)!r} is an id of one and a login of another")
        return self.by_name(label)

    def by_name(self, name: str) -> NameMatch:
        """By a full name, its words in any order or run together."""
        parts = words(name)
        found = set(self.words.get(tuple(sorted(parts)), ())) if parts else set()
        for form in _forms(name):
            # "Ann Alee" is not "Anna Lee": one of the two has to be run together
            joined = self.joined.get(form, set())
            found |= {one for one in joined if len(parts) == 1 or len(words(one.name)) == 1}
        match = _one(found, f"{shown(name)!r} may be any of several in the roster")
        return NameMatch(match.person, match.doubt, by_name=True)

    def by_canvas(self, number: str, name: str) -> NameMatch:
        """By Canvas's number of the user, or by the name where the roster lacks the number."""
        if numbered := self.by["canvas_id"].get(_key(number)):
            return _one(numbered, "")
        if not self.knows_canvas:  # a roster made by hand may call Canvas's number the id
            same = self.by["student"].get(_key(number), set())
            if same := {each for each in same if not each.name or _agree(each.name, name)}:
                return _one(same, "")
        match = self.by_name(name)
        if match.person and (own := match.person.canvas_id):
            doubt = f"the name {shown(name)!r} is in the roster, with another Canvas id, {own}"
            return NameMatch(doubt=doubt)
        return match

    def by_participant(self, number: str, name: str) -> NameMatch:
        """By Moodle's number where the roster has it, as its worksheet does, with that name; else
        by the name. The number is of one assignment alone."""
        same = self.by["student"].get(_key(number), set())
        if same := {each for each in same if _agree(each.name or _UNNAMED, name or _UNNAMED)}:
            return _one(same, "")
        return self.by_name(name)

    def by_account(self, sid: str, email: str, name: str) -> NameMatch:
        """By a student's id, else the e-mail address, else the name; an address of somebody else
        than the id's is a doubt."""
        numbered = self.by["student"].get(_key(sid), set())
        addressed = self.by["email"].get(_key(email), set())
        if numbered and addressed and not numbered & addressed:
            return NameMatch(
                doubt=f"id {shown(sid)} and address {shown(email)} are of two students"
            )
        found = numbered or addressed or self._known(sid) or self._known(email)
        if found:
            return _one(found, f"several students have the address {shown(email)}")
        return self.by_name(name)

    def _known(self, label: str) -> set[Person]:
        key = _key(label)
        return set[Person]().union(*(index.get(key, set()) for index in self.by.values()))


def _one(found: set[Person], doubt: str) -> NameMatch:
    if len(found) > 1:
        return NameMatch(doubt=doubt)
    return NameMatch(next(iter(found), None))
