"""The emulated GPU's numbers of 16 bits, bit by bit against numpy and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

NAN = 0x7FFF


@pytest.fixture
def results(kit, tmp_path):
    """Runs a case on a file of operands; returns what it writes."""

    def run(case, operands, dtype):
        np.asarray(operands).tofile(tmp_path / "operands")
        done = kit.run("numbers", case, OPERANDS=str(tmp_path / "operands"),
                       RESULTS=str(tmp_path / "results"))  # fmt: skip
        assert done.returncode == 0, done.stderr
        return np.fromfile(tmp_path / "results", dtype)

    return run


def floats():
    """Floats around every half, halfway between two, and at random."""
    with np.errstate(invalid="ignore"):
        halves = np.arange(65536, dtype="u2").view("f2").astype("f4")
    halves = halves[np.isfinite(halves)]
    ties = (halves + np.roll(halves, 1)) / 2
    near = [np.nextafter(ties, np.float32(end)) for end in (np.inf, -np.inf)]
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 1 << 32, 20000, dtype="u4").view("f4")
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 65519.9, 65520, 1e-8, 2**-25], "f4")
    return np.concatenate([halves, ties, *near, anything, special]).astype("f4")


def canonical(bits, is_nan):
    """Bits with one pattern for NaN, as a GPU has it."""
    return np.where(is_nan, NAN, bits).astype("u2")


def as_bfloat(x):
    """The bits of floats, rounded to the nearest bfloat16, ties to even."""
    bits = x.view("u4").astype("u8")
    return canonical((bits + 0x7FFF + (bits >> 16 & 1)) >> 16, np.isnan(x))


def test_floats_become_halves_as_in_numpy(results):
    x = floats()
    got = results("round_a_file", x, "u2").reshape(-1, 8)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got[:, 0], canonical(x.astype("f2").view("u2"), np.isnan(x)))


def test_floats_become_bfloats_by_their_bits(results):
    x = floats()
    got = results("round_a_file", x, "u2").reshape(-1, 8)
    np.testing.assert_array_equal(got[:, 4], as_bfloat(x))


def widened(bits, dtype):
    """Doubles of 16 bits."""
    narrow = bits.view("f2") if dtype == "half" else (bits.astype("u4") << 16).view("f4")
    with np.errstate(invalid="ignore"):
        return narrow.astype("f8")


@pytest.mark.parametrize("dtype, first", [("half", 0), ("bfloat", 4)])
def test_directed_rounding_gives_the_neighbours(results, dtype, first):
    x = floats()
    x = x[np.isfinite(x)]
    got = results("round_a_file", x, "u2").reshape(-1, 8)[:, first : first + 4]
    nearest, zero, up, down = (widened(got[:, i].copy(), dtype) for i in range(4))
    exact = nearest == x
    assert np.all((down <= x) & (x <= up)) and np.all((up == down) == exact)
    np.testing.assert_array_equal(zero, np.where(x < 0, up, down))
    # Nothing lies between them.
    assert np.all(np.isin(nearest, [np.inf, -np.inf]) | (nearest == up) | (nearest == down))
    steps = np.abs(got[:, 2].astype("i4") - got[:, 3].astype("i4"))
    assert np.all(exact | (steps == 1) | ((up == 0) | (down == 0)))


def test_all_halves_and_bfloats_become_floats(results):
    got = results("widen_all", np.zeros(1, "f4"), "f4")
    bits = np.arange(65536, dtype="u2")
    np.testing.assert_array_equal(got[:65536], bits.view("f2").astype("f4"))
    np.testing.assert_array_equal(got[65536:].view("u4"), bits.astype("u4") << 16)


def operands(n):
    """Triples of any 16 bits, many of them close together."""
    rng = np.random.default_rng(n)
    anything = rng.integers(0, 65536, (n, 3), dtype="u2")
    like = anything[:, :1] ^ rng.integers(0, 2048, (n, 3), dtype="u2")
    return np.concatenate([anything, like])


def test_arithmetic_of_halves_is_that_of_numpy(results):
    bits = operands(20000)
    got = results("compute_a_file_of_halves", bits, "u2").reshape(-1, 8)
    a, b = bits[:, 0].copy().view("f2"), bits[:, 1].copy().view("f2")
    with np.errstate(all="ignore"):
        wanted = [
            a + b,
            a - b,
            a * b,
            a / b,
            None,
            np.sqrt(np.abs(a)),
            np.fmax(a, b),
            np.fmin(a, b),
        ]
    for i, values in enumerate(wanted):
        if values is None:
            continue
        same = got[:, i] == canonical(values.view("u2"), np.isnan(values))
        zeros = (values == 0) & (got[:, i].view("f2") == 0) if i >= 6 else False  # max(-0, 0)
        assert np.all(same | zeros), (i, np.flatnonzero(~(same | zeros))[:5])


def test_arithmetic_of_bfloats_rounds_once(results):
    bits = operands(20000)
    got = results("compute_a_file_of_bfloats", bits, "u2").reshape(-1, 8)
    a, b = ((bits[:, i].astype("u4") << 16).view("f4") for i in (0, 1))
    with np.errstate(all="ignore"):
        # float has 24 bits of mantissa, more than twice the 8 of a bfloat16, and two more.
        wanted = [a + b, a - b, a * b, a / b, None, np.sqrt(np.abs(a))]
    for i, values in enumerate(wanted):
        if values is not None:
            normal = (np.abs(values) > 1e-37) | (values == 0) | np.isnan(values)
            np.testing.assert_array_equal(got[normal, i], as_bfloat(values)[normal])


def nearest(exact, floats):
    """Index of the float that is nearest to a fraction; `floats` ascend, ties go to even bits."""
    i = int(np.searchsorted(floats, float(exact)))
    near = [j for j in (i - 1, i, i + 1) if 0 <= j < len(floats)]
    return min(near, key=lambda j: (abs(Fraction(float(floats[j])) - exact), j % 2))


@pytest.mark.parametrize(
    "case, dtype, top", [("halves", "half", 0x7C00), ("bfloats", "bfloat", 0x7F80)]
)
def test_a_fused_product_and_sum_rounds_once(results, case, dtype, top):
    bits = operands(3000)
    # Products whose sum with a tiny number is next to a tie.
    one = 0x3C00 if dtype == "half" else 0x3F80
    bits = np.concatenate([bits, [[one + 1, one + 2**k, s] for k in range(6) for s in (1, 0x8001)]])
    bits = bits.astype("u2")
    got = results(f"compute_a_file_of_{case}", bits, "u2").reshape(-1, 8)[:, 4]
    # All that are not negative, and ends of their range as the next power of 2.
    values = widened(np.arange(top, dtype="u2"), dtype)
    values = np.append(values, 2.0 * 2.0 ** np.floor(np.log2(values[-1])))
    a, b, c = (widened(bits[:, i].copy(), dtype) for i in range(3))
    for i in np.flatnonzero(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)):
        exact = Fraction(a[i]) * Fraction(b[i]) + Fraction(c[i])
        if exact == 0:
            assert got[i] & 0x7FFF == 0
        else:
            assert got[i] == nearest(abs(exact), values) + (0x8000 if exact < 0 else 0), bits[i]
