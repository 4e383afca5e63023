"""Back ends: the same graph on all cores of a CPU, or on a GPU.

    Executor([y], ctx=ndarray.cpu(0)).run({x: values})

Start at program.py. An op is lowered to instructions (lowering.py, instructions.py) on parts of
memory (view.py); a back end writes the kernel of each as source (cpu.py, gpu.py); what no run
before has compiled is compiled, once (kernels.py).

memory.py plans the memory fast. planning.py plans it with care, for dlsys.step: which orders are
right (dependences.py) and which is best (schedule.py), what lives when (lives.py), where it lies
(placing.py), and what is computed again where memory is short (rematerialise.py).

fusion.py makes one kernel of instructions on the same elements or rows (spaces.py, fused.py). For a
GPU, gemm.py adds what follows a product to it, and regroup.py joins reductions over the same axes
with what they read and what is made of them, as of a batch norm.

A convolution that leaves the choice of its method gets on a GPU what choosing.py measured: that of
implicit.py, which writes no columns, of hopper.py, by wgmma, of cudnn.py, or im2col or plain loops.
measured.py keeps it on disk. Where products may be rounded, hopper_last.py reads and writes images
with their channels last, and lays the weights of all convolutions at once; by moments.py a batch
norm behind one has mean and variance from its tiles.

On a GPU, capture.py records a program's launches as a CUDA graph, on the streams that streams.py
gives them, and uploads.py brings numpy arrays there meanwhile; checks.py has indices checked first.
All call host.py.
"""
