"""What the readers of CUDA make of small texts: parameters, scopes, and where a file begins."""

import pytest

from cuda_source.kernel_starts import parameters_of
from cuda_source.statements import Parser, resolve
from cuda_source.tokens import Tokens, without_prelude
from findings.discarded import is_discarded


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("void", []),
        ("void *p", ["p"]),
        ("int a", ["a"]),
        ("const float *a, int n", ["a", "n"]),
        ("int", ["made_up_0"]),
        ("int a, float", ["a", "made_up_1"]),
    ],
)
def test_a_kernel_has_the_parameters_between_its_brackets(text, names):
    tokens = Tokens(f"f({text})")
    found = parameters_of(tokens, 2, len(tokens.all) - 2, "made_up_%d")
    assert [parameter.given for parameter in found] == names


SCOPES = """{
  int a = 1, b = a;
  { int a = b; a = 2; }
  for (int i = a; i < b; i++) { b += i; }
  if (a) int c = b;
  c = a.b;
}"""


def test_every_use_is_of_the_variable_that_is_seen_there():
    tokens = Tokens(SCOPES)
    block = Parser(tokens).block(0)
    resolve(tokens, block, [])
    found = [v for each in block.walk() for v in getattr(each, "variables", [])]
    assert [variable.name for variable in found] == ["a", "b", "a", "i", "c"]
    lines = [
        [SCOPES.count("\n", 0, tokens.all[use].start) + 1 for use in variable.uses]
        for variable in found
    ]
    # The last `c` is of another scope, and `.b` a member.
    assert lines == [[2, 4, 5, 6], [3, 4, 4, 5], [3], [4, 4, 4], []]
    assert [variable.is_shadowed for variable in found] == [True, False, True, False, False]


ENTERED = """# 1 "a.cu"
# 1 "<built-in>"
# 1 "<command-line>"
# 1 "prelude.h" 1
int prelude;
# 1 "<command-line>" 2
%s# 1 "a.cu"
int own;
"""
MORE = '# 1 "more.h" 1\nint more;\n# 1 "<command-line>" 2\n'


def test_what_the_options_include_behind_the_prelude_is_kept():
    assert without_prelude(ENTERED % "", "a.cu") == "int own;\n"
    assert without_prelude(ENTERED % MORE, "a.cu") == (
        '# 1 "more.h"\nint more;\n# 1 "a.cu"\nint own;\n'
    )
    assert without_prelude("int own;\n", "a.cu") == "int own;\n"


@pytest.mark.parametrize(("line", "is_thrown_away"), [(0, False), (1, True), (2, True), (3, False)])
def test_calls_on_the_first_and_the_last_line_are_seen(line, is_thrown_away):
    assert is_discarded("{ f(a);\n f(b); }", line, "f") is is_thrown_away
