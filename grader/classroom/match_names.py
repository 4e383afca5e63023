"""Finds the student of the roster that a name in a download means. Reports ambiguous names, and
never guesses.

Names are compared by their words, in any order: letters and digits alone, in lower case and one
Unicode form, so that "Smith, Bob" and "bob_smith" are equal. A name in one word, such as Canvas's
"smithbob", is compared with the words joined, starting at any of them.
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
    """The student found, or why none was found ("" if the name means nobody).

    Attributes:
        by_name: whether only a name, which two people may share, tells it.
    """

    person: Person | None = None
    doubt: str = ""
    by_name: bool = False


def words(name: str) -> list[str]:
    """The words of a name, in one Unicode form. An apostrophe does not end a word."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())
    kept = "".join(
        c if unicodedata.category(c)[0] in "LNM" else "" if c in _APOSTROPHES else " "
        for c in folded
    )
    return kept.split()


def _forms(name: str) -> set[str]:
    """The name in one word, starting at each of its words."""
    parts = words(name)[:MAX_WORDS]
    return {"".join(parts[at:] + parts[:at]) for at in range(len(parts))}


def _agree(one: str, other: str) -> bool:
    return not _forms(one).isdisjoint(_forms(other))


def _key(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip()).casefold()


class Matcher:
    """Finds students of a roster by what a download says of them."""

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
        """The student whose id, login, e-mail address or name a folder or archive bears."""
        found = self._known(label)
        if found:
            return _one(found, f"{shown(label)!r} is one student's id and another's login")
        return self.by_name(label)

    def by_name(self, name: str) -> NameMatch:
        """The student with this full name, its words in any order or joined."""
        parts = words(name)
        found = set(self.words.get(tuple(sorted(parts)), ())) if parts else set()
        for form in _forms(name):
            # "Ann Alee" is not "Anna Lee": one of the two has to be run together
            joined = self.joined.get(form, set())
            found |= {one for one in joined if len(parts) == 1 or len(words(one.name)) == 1}
        match = _one(found, f"{shown(name)!r} may be any of several in the roster")
        return NameMatch(match.person, match.doubt, by_name=True)

    def by_canvas(self, number: str, name: str) -> NameMatch:
        """The student with this number in Canvas; by name if the roster lacks the number."""
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
        """The student with this number in Moodle and this name, if the roster has such numbers, as
        Moodle's worksheet does; else by name. The number holds for one assignment alone."""
        same = self.by["student"].get(_key(number), set())
        if same := {each for each in same if _agree(each.name or _UNNAMED, name or _UNNAMED)}:
            return _one(same, "")
        return self.by_name(name)

    def by_account(self, sid: str, email: str, name: str) -> NameMatch:
        """The student with this id, else with this e-mail address, else with this name. If id and
        address are those of two students, the match is in doubt."""
        numbered = self.by["student"].get(_key(sid), set())
        addressed = self.by["email"].get(_key(email), set())
        if numbered and addressed and not numbered & addressed:
            return NameMatch(
                doubt=f"id {shown(sid)} and address {shown(email)} belong to two students"
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
