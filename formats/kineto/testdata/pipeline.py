"""Trains a small model on the CPU with data, pipeline and tensor parallel groups, and writes what PyTorch tells of each process.

    torchrun --nproc-per-node 8 pipeline.py FOLDER [PP [TP [STEPS]]]

The traces of 2 (PP 2, TP 1), 4 and 8 processes (PP 2, TP 2) beside this file were made with it (PyTorch 2.15,
TORCH_FR_BUFFER_SIZE=2000), renamed in host and trace name, and compressed. DP is what is left: processes / PP / TP.
Process ((dp PP) + pp) TP + tp holds a shard of stage pp of replica dp. On each process a step does:
  a broadcast of the number of the step, 1 long, over all;
  for each of MICRO micro batches, forward: a receive of activations, BATCH x WIDTH floats, from stage pp - 1, an all-reduce
    of as many over mesh_tp, a send of as many to stage pp + 1;
  for each micro batch, backward: the same with gradients, from stage pp + 1 to stage pp - 1;
  an all-reduce of the loss, 1 float, over mesh_pp;
  an all-reduce of the gradients of each of two layers, WIDTH x WIDTH / TP floats, over mesh_dp;
  an all-gather of the first layer, of which each process updated WIDTH x WIDTH / TP / DP floats, over mesh_dp.
The first stage receives no activations and sends no gradients; the last one sends no activations and receives no gradients.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace_json
from torch.distributed.device_mesh import init_device_mesh
from torch.profiler import ProfilerActivity, profile, schedule

BATCH, WIDTH, MICRO = 8, 120, 2
PP, TP, STEPS = (int(word) for word in sys.argv[2:] + ["2", "2", "2"][len(sys.argv) - 2:])

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
DP = world // PP // TP
mesh = init_device_mesh("cpu", (DP, PP, TP), mesh_dim_names=("dp", "pp", "tp"))
dp, pp, tp = (mesh.get_group(name) for name in ("dp", "pp", "tp"))
stage = mesh.get_local_rank("pp")
torch.manual_seed(rank)
first = torch.randn(WIDTH, WIDTH // TP, requires_grad=True)
second = torch.randn(WIDTH // TP, WIDTH, requires_grad=True)


def exchange(operation, tensor, other):
    """Sends to or receives from another stage, as torch.distributed.pipelining does."""
    peer = dist.get_global_rank(pp, other)
    for work in dist.batch_isend_irecv([dist.P2POp(operation, tensor, peer, group=pp)]):
        work.wait()


def forward():
    x = torch.randn(BATCH, WIDTH)
    if stage > 0:
        exchange(dist.irecv, x, stage - 1)
    x.requires_grad_()
    y = torch.relu(x @ first) @ second
    out = y.detach().clone()
    dist.all_reduce(out, group=tp)
    if stage < PP - 1:
        exchange(dist.isend, out, stage + 1)
    return x, y, out


def backward(x, y, out):
    gradient = out
    if stage < PP - 1:
        exchange(dist.irecv, gradient, stage + 1)
    y.backward(gradient)
    dist.all_reduce(x.grad, group=tp)
    if stage > 0:
        exchange(dist.isend, x.grad, stage - 1)


def step(number):
    dist.broadcast(torch.tensor([number]), src=0)
    batches = [forward() for _ in range(MICRO)]
    for batch in batches:
        backward(*batch)
    dist.all_reduce(torch.ones(1), group=pp)
    works = [dist.all_reduce(p.grad, group=dp, async_op=True) for p in (second, first)]
    for work in works:
        work.wait()
    with torch.no_grad():
        for p in (first, second):
            p -= 1e-4 * p.grad
            p.grad = None
        shard = first.detach().flatten().tensor_split(DP)[dist.get_rank(dp)].clone()
        dist.all_gather_into_tensor(first.detach().view(-1), shard, group=dp)


with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=0, warmup=1, active=STEPS),
             on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/rank-{rank}.json")) as prof:
    for number in range(STEPS + 1):
        step(number)
        prof.step()
with open(f"{folder}/fr-{rank}.json", "wb") as dump:
    dump.write(_dump_fr_trace_json())
dist.destroy_process_group()
