"""The checked build knows what products of cuBLAS read and write, in which stream."""

from pathlib import Path

import pytest

import checked

SOURCE = Path(__file__).resolve().parent / "checked" / "products.cu"
CALLS = ("sgemm", "strided", "batched", "gemm_ex", "lt")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Gives (kind, what did it, whether it writes) of what is found in a case."""
    kit = checked.CheckedKit(tmp_path_factory.mktemp("products"))
    kit.build_library()
    cases = kit.cases(SOURCE)

    def run(*words):
        findings = cases(*words)
        kinds = {(f.kind, f.kernel, f.write) for f in findings}
        return {each for each in kinds if each[0] == "unsynchronised access"}

    return run


@pytest.mark.parametrize("call", CALLS)
def test_products_that_wait_are_not_accused_nor_those_of_other_rows(found, call):
    assert found(call, "nothing") == set()


@pytest.mark.parametrize("call", CALLS)
def test_a_product_that_reads_what_another_stream_writes_is_found(found, call):
    ((_, function, writes),) = found(call, "A is written meanwhile")
    assert function.startswith("cublas") and not writes


@pytest.mark.parametrize("call", CALLS)
def test_a_kernel_that_overwrites_a_product_under_way_is_found(found, call):
    assert found(call, "C is written meanwhile") == {("unsynchronised access", "fill", True)}
