"""A page of HTML, read strictly."""

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "input", "br", "wbr", "hr"}


class Page(HTMLParser):
    """A page's tags, attributes and text; every element must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.styles, self.texts, self._open = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        (self.styles if self._open[-1:] == ["style"] else self.texts).append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())
