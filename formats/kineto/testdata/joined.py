"""Communicates on the CPU between two processes, and writes what PyTorch's profiler and execution traces tell of each.

    torchrun --nproc-per-node 2 joined.py FOLDER

The traces in joined.2 were made with it (PyTorch 2.15), renamed in host and trace name, and compressed.
The profiler records no shapes: sizes, roots, splits and other sides stand in the execution traces only.
Each process does:
  a broadcast of 7 floats, from process 1;
  an all-reduce of 5 x 3 floats;
  a reduction of 9 doubles, to process 1;
  an uneven exchange of floats: process 0 gives 3 and 3, process 1 gives 1 and 5;
  an all-gather of 3 floats of each process;
  a message of 11 floats from process 0 to process 1;
  a barrier.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
gives, gets = ([3, 3], [3, 1]) if rank == 0 else ([1, 5], [3, 5])
observer = ExecutionTraceObserver().register_callback(f"{folder}/et-{rank}.json")
with profile(activities=[ProfilerActivity.CPU], execution_trace_observer=observer) as prof:
    dist.broadcast(torch.ones(7), src=1)
    dist.all_reduce(torch.ones(5, 3))
    dist.reduce(torch.ones(9, dtype=torch.float64), dst=1)
    dist.all_to_all_single(torch.ones(sum(gets)), torch.ones(sum(gives)), gets, gives)
    dist.all_gather([torch.ones(3), torch.ones(3)], torch.ones(3))
    if rank == 0:
        dist.send(torch.ones(11), 1)
    else:
        dist.recv(torch.ones(11), 0)
    dist.barrier()
prof.export_chrome_trace(f"{folder}/rank-{rank}.json")
dist.destroy_process_group()
