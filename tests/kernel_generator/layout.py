"""Unusual formatting: comments, line breaks and continued lines wherever C++ allows them."""

import random

BLANKS = [
    "  ",
    "\n",
    "\t",
    " /* } */ ",
    " /* if (i < n) return; */ ",
    " \\\n",
    " // c += 1; {\n",
    "\n\n",
    " /* __syncthreads();\n */ ",
    "\r\n",
    " /**/",
    " // \\ not continued? yes\n",
    "\v",
]


def messy(text, seed):
    """The same tokens with other blanks between them."""
    draw = random.Random(f"layout {seed}")
    lines, continued = [], False
    for line in text.split("\n"):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        if directive or any(mark in line for mark in ('"', "'", "//", "/*", "\\")):
            lines.append(line)
            continue
        words = line.split(" ")
        blanks = [draw.choice(BLANKS) if draw.random() < 0.12 else " " for _ in words[1:]]
        lines.append(
            "".join(word + blank for word, blank in zip(words, [*blanks, ""], strict=True))
        )
    return "\n".join(lines)
