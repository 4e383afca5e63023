#!/usr/bin/env bash
# Builds, checks and measures everything on a real GPU. Called by `make gpu-check`, or with
# PYTHON=... where the packages are already there. OUT keeps the logs.
#
#   tools/gpu_check.sh                          all steps but the last ones, which take minutes each
#   tools/gpu_check.sh build ladder class40     these alone
#
# Each step has the machine for itself: what is timed needs that, and a class that is graded wants
# the kit to stay as it is. DATA is the folder of MNIST, IMAGES that of CIFAR-10 as dlsys.train takes
# it; both are searched for otherwise.
set -u
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-$PWD/.venv/bin/python}
OUT=${OUT:-reports/gpu}
mkdir -p "$OUT"
OUT=$(realpath "$OUT")
failed=()
only=" $* "

# wanted NAME: whether a step was named, or none was.
wanted() { [ "$only" = "  " ] || named "$1"; }
named() { [[ "$only" == *" $1 "* ]]; }

# run NAME SECONDS COMMAND...: one step, timed, its output kept.
run() {
  local name=$1 seconds=$2 started=$SECONDS
  shift 2
  wanted "$name" || return 0
  if timeout "$seconds" "$@" >"$OUT/$name.log" 2>&1; then
    printf 'ok    %-28s %4d s\n' "$name" $((SECONDS - started))
  else
    printf 'FAIL  %-28s %4d s (rc %d)\n' "$name" $((SECONDS - started)) $?
    tail -n 25 "$OUT/$name.log"
    failed+=("$name")
  fi
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
run build 300 make -C solution DEVICE=cuda "PYTHON=$PYTHON"
cd solution
run student-tests 120 "$PYTHON" -m pytest -q tests
run nosetests 120 "$PYTHON" -m nose -v tests/test_gpu_op.py
cd ..
run kernel-versions 120 env KIT_DEVICE=cuda "$PYTHON" -m pytest -q tests/checks/test_kernel_versions.py
run cuda-submissions 200 env KIT_DEVICE=cuda "$PYTHON" -m pytest -q tests/grading/test_cuda_submissions.py
run grade-reference 400 "$PYTHON" -m grader grade solution --device cuda --json "$OUT/reference.json"
run grade-classic 400 "$PYTHON" -m grader grade tests/submissions/classic --profile classic \
  --device cuda --json "$OUT/classic.json"
run speed 300 "$PYTHON" tools/speed_check.py --output "$OUT"
run bench 400 "$PYTHON" -m grader.bench --only handout --output handout
run bench-sweep 200 "$PYTHON" -m grader.bench --json "$OUT/bench.json"
cd solution
# initcheck and racecheck slow the kernels of large products by a hundred times; with -s the tests
# run in the process of pytest.
for tool in memcheck synccheck initcheck racecheck; do
  run "$tool" 500 env DLSYS_NO_LIMIT=1 compute-sanitizer --tool $tool --error-exitcode 9 \
    "$PYTHON" -m pytest -q -x -s tests/test_gpu_op.py tests/test_executor.py
done
cd ..
run ops 500 "$PYTHON" -m pytest -q tests/dlsys/test_backend.py tests/dlsys/test_backend_runs.py -k gpu
run ops-table 300 "$PYTHON" tools/ops_table.py --name "${GPU_NAME:-$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)}"
run ops-memcheck 500 compute-sanitizer --tool memcheck --error-exitcode 9 \
  "$PYTHON" -m pytest -q -x tests/dlsys/test_backend.py -k gpu
run profile 200 "$PYTHON" -m pytest -q tests/dlsys/test_step_profile.py tests/dlsys/test_pictures.py -k gpu
run ladder 300 "$PYTHON" tools/gemm_ladder.py --built "$OUT/rungs"
run ladders 300 "$PYTHON" tools/ladders.py
run convolution-tests 500 "$PYTHON" -m pytest -q tests/dlsys/test_hopper.py \
  tests/dlsys/test_hopper_last.py tests/dlsys/test_channels_last.py tests/dlsys/test_convolution.py \
  tests/dlsys/test_convolution_methods.py
run hopper-tests 400 "$PYTHON" -m pytest -q -n 7 tests/dlsys/test_hopper_on_gpu.py \
  tests/dlsys/test_moments.py
run convolutions 600 "$PYTHON" tools/convolution_methods.py
run net-steps 400 "$PYTHON" tools/gpu_net_speed.py
run class40 400 "$PYTHON" tools/class_run.py "$OUT/class" --students 40 --kills 0 --device cuda \
  --json handout/class-h200.json ${DATA:+--data "$DATA"}

# train NAME NET DECAY EPOCHS: a run, the same in bfloat16, and in PyTorch, on the same batches.
train() {
  local said=("$2" --data cifar10 ${IMAGES:+--path "$IMAGES"} --tf32 --batch 128 --rate 0.1
    --decay "$3" --epochs "$4" --warm-up 400 --threads 6)
  named "$1" && run "$1" 580 env PYTHONPATH=solution/python "$PYTHON" -m dlsys.train "${said[@]}" \
    --save-every 100000 --output "$OUT/$2" && tail -n 2 "$OUT/$1.log"
  named "$1-bf16" && run "$1-bf16" 580 env PYTHONPATH=solution/python "$PYTHON" -m dlsys.train \
    "${said[@]}" --bf16 --save-every 100000 --output "$OUT/$2-bf16" && tail -n 2 "$OUT/$1-bf16.log"
  named "$1-torch" && run "$1-torch" 580 "$PYTHON" tools/train_in_pytorch.py "${said[@]}" &&
    tail -n 2 "$OUT/$1-torch.log"
}
train train20 resnet20 0.0001 120
train train18 resnet18 0.0005 120
for log in bench speed; do
  [ -f "$OUT/$log.log" ] && wanted "$log" && tail -n 30 "$OUT/$log.log"
done
wanted grade-reference && tail -n 12 "$OUT/grade-reference.log"
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo "all steps passed"
