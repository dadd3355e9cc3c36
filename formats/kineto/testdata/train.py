"""Trains a small model on the CPU with data and tensor parallel groups, and writes what PyTorch tells of each process.

    torchrun --nproc-per-node 4 train.py FOLDER

The traces of 2 and 4 processes beside this file were made with it (PyTorch 2.15, TORCH_FR_BUFFER_SIZE=2000), renamed in host and
trace name, and compressed. Groups: tensor parallel of 2 processes each (mesh_tp), data parallel across them (mesh_dp). Each step does, on each process:
  a broadcast of the number of the step, 1 long, over all;
  an all-reduce of activations, BATCH x WIDTH floats, over mesh_tp (forward);
  an all-reduce of the gradients of each of two layers, WIDTH x WIDTH / TP floats, over mesh_dp (backward).
"""
import os
import sys

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace_json
from torch.distributed.device_mesh import init_device_mesh
from torch.profiler import ProfilerActivity, profile, schedule

BATCH, WIDTH, STEPS, TP = 32, 64, 3, 2

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (world // TP, TP), mesh_dim_names=("dp", "tp"))
dp, tp = mesh.get_group("dp"), mesh.get_group("tp")
torch.manual_seed(rank)
first = torch.randn(WIDTH, WIDTH // TP, requires_grad=True)
second = torch.randn(WIDTH // TP, WIDTH, requires_grad=True)


def step(number):
    dist.broadcast(torch.tensor([number]), src=0)
    y = torch.relu(torch.randn(BATCH, WIDTH) @ first) @ second
    out = y.detach().clone()
    dist.all_reduce(out, group=tp)
    y.backward(out)
    works = [dist.all_reduce(p.grad, group=dp, async_op=True) for p in (second, first)]
    for work in works:
        work.wait()
    for p in (first, second):
        p.data -= 1e-4 * p.grad
        p.grad = None


with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=0, warmup=1, active=STEPS),
             on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/rank-{rank}.json")) as prof:
    for number in range(STEPS + 1):
        step(number)
        prof.step()
with open(f"{folder}/fr-{rank}.json", "wb") as dump:
    dump.write(_dump_fr_trace_json())
dist.destroy_process_group()
