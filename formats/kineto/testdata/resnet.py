"""Trains ResNet-50 on the CPU with DistributedDataParallel, and writes what PyTorch tells of each process.

    torchrun --nproc-per-node 2 resnet.py FOLDER

The traces in resnet.2 were made with it (PyTorch 2.15, torchvision 0.29, TORCH_FR_BUFFER_SIZE=2000), renamed in host
and trace name, and compressed. To keep them small, three things were removed: what is no complete event, which commq
does not read; arguments of operators that do not communicate, which it does not either; and operators inside another
one, which add nothing to the time that this one computes. The whole traces give the same rows, value by value.

Each of the steps 0 to 3 does, on each process:
  a broadcast of the running means and variances of the 53 batch normalisations, 53,120 floats;
  a broadcast of the number of batches that each has seen, 53 longs;
  an all-reduce for each bucket of gradients, 25,557,032 floats in all: one bucket in step 0, five in the others.
After step 0 DistributedDataParallel makes the buckets anew, in the order in which the gradients came, of 25 MiB and
more, the first of 1 MiB and more. For that the first process broadcasts 162 ints, the bucket of each of the 161
parameters and the number of buckets, and 5 ints, the number of parameters in each bucket.
"""
import os
import sys

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace_json
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule
from torchvision.models import resnet50

BATCH, SIDE, STEPS = 2, 64, 4

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(resnet50())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


def step():
    images, labels = torch.randn(BATCH, 3, SIDE, SIDE), torch.randint(1000, (BATCH,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()


with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
             schedule=schedule(wait=0, warmup=0, active=STEPS, repeat=1),
             on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/rank-{rank}.json")) as prof:
    for _ in range(STEPS):
        step()
        prof.step()
with open(f"{folder}/fr-{rank}.json", "wb") as dump:
    dump.write(_dump_fr_trace_json())
dist.destroy_process_group()
