"""Measurements that never were, of a machine with a GPU and of one without."""

WHERES = {"GPU": 1, "one CPU core": 500, "numpy": 400, "PyTorch, GPU": 1.5}


def point(where, us, **facts):
    """A point whose quartiles are a tenth off."""
    return {"where": where, "us": [us * 0.9, us, us * 1.1], "samples": 5, "calls": 1,
            "clock": "events", **facts}  # fmt: skip


def measurement(name="NVIDIA H100", backend="cuda", wheres=WHERES):
    """As `grader bench --json` writes it: operations, nets, threads a block."""
    points = [
        point(where, 10.0 * times, what="operation", op=op, n=n, direction=direction,
              flops=2.0 * n**3, bytes=12.0 * n**2)
        for where, times in wheres.items()
        for op in ("matmul", "exp")
        for n in (128, 1024)
        for direction in ("forward", "with gradients")
    ]  # fmt: skip
    points += [
        point(where, 50.0 * times, what="net", layers=layers, batch=batch, parameters=parameters,
              flops=1e9)
        for where, times in wheres.items()
        for layers, batch, parameters in (
            ([400, 16, 16, 10], 5000, 6858), ([400, 256, 64, 10], 5000, 119754),
            ([784, 256, 100, 10], 1000, 227670))
    ]  # fmt: skip
    points += [
        point(
            "GPU",
            us,
            what="blocks",
            kernel="add",
            n=8192,
            threads=threads,
            registers=12,
            occupancy=0.5,
        )
        for threads, us in ((32, 20.0), (256, 10.0), (1024, 12.0))
    ]
    points.append({
        "what": "operation", "op": "matmul", "n": 8192, "where": "one CPU core",
        "direction": "forward", "skipped": "a call would take about 11.0 s",
    })  # fmt: skip
    return {
        "kind": "bench",
        "machine": {"name": name, "backend": backend, "date": "2026-11-25", "processor": "a <CPU>",
                    "processors": 2, "torch": None},
        "missing": {"JAX": "ModuleNotFoundError: No module named 'jax'"},
        "roofs": [{"where": "GPU", "bytes_a_second": 3e12, "flops_a_second": 67e12, "from": "x"}],
        "seconds": 90.0, "compiled_seconds": 30.0, "points": points,
    }  # fmt: skip
