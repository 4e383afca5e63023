"""Loops that only read are checked once in the checked build, and what they do wrong is found."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import checked
import rewrite

SOURCE = Path(__file__).resolve().parents[1] / "emulator" / "checked" / "quick_loops.cu"


# --- which loops ---------------------------------------------------------------------------------

KERNEL = """\
enum { TILE = 16 };
static const int kTile = 16;
__device__ float own(float x) { return x; }
__device__ float table[100];
__device__ int count;
static const float kHalf = 0.5f;
struct Pair { int n; };
template <typename T>
__global__ void kernel(int n, int m, const float* a, const int* at, float* out, T* of_t, Pair p,
                       volatile float* v, const float4* wide) {
  __shared__ float tile[16];
  extern __shared__ float dynamic[];
  int i = blockIdx.x * blockDim.x + threadIdx.x, other = 0;
  const float* moved = a;
  float sum = 0, local[4] = {0, 0, 0, 0};
  %s
  out[i] = sum;
}
"""


def copies(loop):
    """How many loops of a kernel get a copy, and the rewritten source."""
    source = KERNEL % loop
    text, _ = rewrite.rewrite(source, "k.cu", rewrite.CHECKED)
    return text.count("emulator_is_settled(emulator_read[0]"), text


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 0; k < n; ++k) sum += a[i * n + k];",
        "for (int k = 0; k < n; k++) { sum += a[k * m + i]; }",
        "for (int64_t k = threadIdx.x; k <= n - 1; k += blockDim.x) sum = fmaxf(sum, a[k]);",
        "for (unsigned k = 0; k < kTile * TILE; ++k) if (a[k] > 0) sum += a[k] * a[n - k];",
        "for (int k = 0; k < n; ++k) { const int j = k * m + i; float x = a[j]; sum += x; }",
        "for (size_t k = 0; k < (size_t)n; ++k) sum += a[static_cast<size_t>(i) * n + k];",
        "#pragma unroll\n  for (int j = 0; j < 2; ++j)\n"
        "    for (int k = 0; k < n; ++k) sum += a[j * n + k];",
        "if (n > 3) for (int k = 0; k < n; ++k) sum += a[k]; else sum = 1;",
        "for (int k = 0; k < n; ++k) sum += of_t[k] == a[k] && at[k] != 3 ? 1 : 2;",
        "for (int k = 0; k < n; ++k) sum = expf(a[k] - sum) / max(sum, a[2 * k + 1]);",
        "for (int k = 0; k < n; ++k) { sum += a[k];  // a comment\n    other += at[k]; }",
        "for (int k = 0; k < n; ++k) if (a[k] > 0) sum += a[k]; else if (a[k] < -1) ++other;",
        "for (int k = 0; k < n / m; ++k) sum += (a[k] + 1) * (float)(at[2 * k + 12 / 5]);",
        "for (int k = 0; k < n; ++k) { float x = a[k], y = x; sum += x > (y) ? x : 1; }",
    ],
)
def test_a_loop_that_only_reads_gets_a_copy(loop):
    count, text = copies(loop)
    assert count == 1
    head = re.search(r"for \(\w+ k.*?\)", loop).group()
    assert text.count(head) == 2  # and itself stays


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 0; k < n; ++k) out[k] = a[k];",
        "for (int k = 0; k < n; ++k) sum += out[k]++;",
        "for (int k = 0; k < n; ++k) sum += ++out[k];",
        "for (int k = 0; k < n; ++k) out[k] += a[k];",
        "for (int k = 0; k < n; ++k) out[k] <<= 1;",
        "for (int k = 0; k < n; ++k) local[k] = a[k];",
        "for (int k = 0; k < n; ++k) sum += local[k] + a[k];",
        "for (int k = 0; k < n; ++k) sum += tile[k] * a[k];",
        "for (int k = 0; k < n; ++k) sum += dynamic[k] * a[k];",
        "for (int k = 0; k < n; ++k) sum += table[k] * a[k];",
        "for (int k = 0; k < n; ++k) sum += own(a[k]);",
        "for (int k = 0; k < n; ++k) sum += a[at[k]];",
        "for (int k = 0; k < n; ++k) sum += a[k * k];",
        "for (int k = 0; k < n; ++k) sum += a[k / 2];",
        "for (int k = 0; k < n; ++k) sum += a[k % m];",
        "for (int k = 0; k < n; ++k) sum += a[k ^ 1];",
        "for (int k = 0; k < n; ++k) { sum += a[other]; other += m; }",
        "for (int k = 0; k < n; ++k) { sum += a[k]; n -= 1; }",
        "for (int k = 0; k < n; ++k) { sum += a[k]; if (sum > 3) break; }",
        "for (int k = 0; k < n; ++k) { sum += a[k]; if (sum > 3) return; }",
        "for (int k = 0; k < n; ++k) { sum += a[k]; ++k; }",
        "for (int k = 0; k < n; ++k) { sum += a[k]; __syncthreads(); }",
        "for (int k = 0; k < n; ++k) sum += *moved++;",
        "for (int k = 0; k < n; ++k) { sum += moved[k]; ++moved; }",
        "for (int k = 0; k < n; ++k) { const float* q = a + k; sum += q[k]; }",
        "for (int k = 0; k < n; ++k) { float& r = sum; r += a[k]; }",
        "for (int k = 0; k < n; ++k) sum += *(a + k);",
        "for (int k = 0; k < n; ++k) sum += v[k];",
        "for (int k = 0; k < n; ++k) sum += wide[k].x;",
        "for (int k = 0; k < p.n; ++k) sum += a[k];",
        "for (int k = 0; k < at[0]; ++k) sum += a[k];",
        "for (int k = n; k > 0; --k) sum += a[k];",
        "for (int k = 0; k < n && sum < 3; ++k) sum += a[k];",
        "for (int k = 0, j = 0; k < n; ++k) sum += a[k + j];",
        "int k = 0; for (; k < n; ++k) sum += a[k];",
        "for (int k = 0; k < n; ++k) sum += 1;",
        "for (float k = 0; k < n; ++k) sum += a[int(k)];",
        "for (int k = 0; k < n; ++k) asm(\"\");",
        # Calls: of what a variable or a type of the template is.
        "auto f = [&](float x) { sum += x; }; for (int k = 0; k < n; ++k) f(a[k]);",
        "for (int k = 0; k < n; ++k) sum += T()(a[k]);",
        "for (int k = 0; k < n; ++k) sum += T(a[k])(3);",
        # Changes of what stands in brackets.
        "for (int k = 0; k < n; ++k) { (out[k]) = a[k]; }",
        "for (int k = 0; k < n; ++k) { ++(out[k]); sum += a[k]; }",
        "for (int k = 0; k < n; ++k) { (out[k])--; sum += a[k]; }",
        "for (int k = 0; k < n; ++k) (a[k] > 0 ? sum : local[0]) += a[k];",
        "for (int k = 0; k < n; ++k) static_cast<float&>(sum) += a[k];",
        # What the loop may never work out: a division by 0.
        "for (int k = 0; k < n; ++k) sum += m ? a[i % m + k] : a[k];",
        "for (int k = 0; k < n; k += n / m) sum += a[k];",
        # Bounds that are no whole numbers.
        "for (int k = 0; k < kHalf; ++k) sum += a[k];",
        "for (int k = 0; k < 1e3 / 7; ++k) sum += a[k];",
        # A global, and below it a variable of its name.
        "for (int k = 0; k < n; ++k) { sum += count; int count = k; sum += a[k] * count; }",
        "for (int k = 0; k < n; ++k) if (float x = a[k]) sum += x;",
        "Pair two = p; auto [q] = two; for (int k = 0; k < q; ++k) sum += a[k];",
        "for (int k = 0; k < n; ++k) sum += atomicAdd(out, a[k]);",
        "for (int k = 0; k < n; ++k) { const float* b = &sum; sum += a[k] + *b; }",
        "for (int k = 0; k < n; ++k) printf(\"%%f\", a[k]);",
    ],
)  # fmt: skip
def test_any_other_loop_stays_alone(loop):
    count, text = copies(loop)
    assert count == 0
    assert "emulator_turn" not in text


def test_lines_and_columns_stay(tmp_path):
    loop = "if (n > 3)   for (int k = 0; k < n; ++k) {\n      sum += a[k]; }  int last = undefined;"
    source = KERNEL % loop
    text, _ = rewrite.rewrite(source, "k.cu", rewrite.CHECKED)
    at = {}
    number, name = 0, ""
    for line in text.split("\n"):
        if line.startswith("# "):
            number, name = int(line.split()[1]) - 1, line.split()[-1]
        else:
            number += 1
            for word in ("for (int k", "sum += a[k]; }", "undefined;"):
                if word in line and name != "3":
                    at.setdefault(word, (number, line.index(word)))
    original = source.split("\n")
    for word, (line, column) in at.items():
        assert original[line - 1][column:].startswith(word)
    assert len(at) == 3


# --- what they do --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """The checked build, and quick_loops.cu in it and, as `plain`, without a copy of any loop."""
    kit = checked.CheckedKit(tmp_path_factory.mktemp("quick"))
    kit.build_library()
    for name, mode in (("quick", rewrite.CHECKED), ("plain", rewrite.THREADS)):
        compiled = kit.compile_kernels(SOURCE, name, mode=mode)
        wrap = "-Wl,--wrap=emulator_is_settled"
        rpath = f"-Wl,-rpath,{kit.folder}"
        program = kit.folder / name
        words = [compiled, "-o", program, kit.library, rpath, wrap, *kit.libraries]
        done = kit.call(*kit.cxx, *words)
        assert done.returncode == 0, done.stderr
    return kit


def run(kit, case, program="quick", **env):
    """What a case prints, and what is found."""
    path = kit.folder / f"{case}.findings"
    path.unlink(missing_ok=True)
    done = kit.call(kit.folder / program, case, env={"EMULATOR_FINDINGS": str(path), **env})
    bits, asked, settled = done.stdout.split()
    found = checked.checked_findings.read_report(str(path)) if path.exists() else []
    found = [finding for finding in found if not finding.kind.startswith("advice")]
    return SimpleNamespace(bits=bits, asked=int(asked), settled=int(settled), found=found)


def line_of(text):
    """The number of the line that ends with a comment."""
    lines = SOURCE.read_text().split("\n")
    return 1 + next(i for i, line in enumerate(lines) if line.endswith(f"// {text}"))


@pytest.mark.parametrize("env", [{}, {"EMULATOR_SHUFFLE": "5"}])
@pytest.mark.parametrize("case", ["product", "ways", "another value"])
def test_a_correct_loop_gives_the_same_bits_and_no_finding(kit, case, env):
    quick, plain = run(kit, case, **env), run(kit, case, "plain", **env)
    assert quick.bits == plain.bits
    assert quick.found == [] and plain.found == []
    assert plain.asked == 0
    assert quick.settled > quick.asked / 2  # the first blocks to read are the exception


def test_what_threads_of_a_block_have_read_is_settled_for_those_behind_them(kit):
    done = run(kit, "alone")
    assert done.found == []
    watched = 32  # for advice, in the first block
    assert done.asked == 2 * 256
    assert done.settled >= 2 * (256 - watched - 2)  # two read first


@pytest.mark.parametrize("env", [{}, {"EMULATOR_SHUFFLE": "5"}])
@pytest.mark.parametrize(
    ("case", "kind", "lines"),
    [
        ("past the end", "out-of-bounds read global", ["product"]),
        ("without a value", "uninitialised read global", ["product"]),
        ("freed", "use after free", ["product"]),
        ("written early", "race global", ["written early", "product written"]),
        ("written late", "race global", ["written late", "product written"]),
        ("written between", "race global", ["written between", "read by all"]),
        ("written behind", "race global", ["written behind", "read again"]),
    ],
)
def test_what_a_loop_does_wrong_is_found_at_its_lines(kit, case, kind, lines, env):
    done = run(kit, case, **env)
    assert kind in {finding.kind for finding in done.found}
    named = {place.line for finding in done.found if finding.kind == kind
             for place in (finding.at, finding.other and finding.other.at) if place}  # fmt: skip
    assert named == {line_of(line) for line in lines}


def test_a_thread_that_is_followed_tells_every_access(kit):
    done = kit.call(kit.folder / "quick", "product", env={"EMULATOR_THREAD": "4,5,0,3,2,0"})
    entries = [line for line in done.stderr.split("\n") if '"trace": true' in line]
    assert len(entries) >= 2 * 100 + 1  # clang's code may read a word twice
