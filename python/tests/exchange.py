"""A program of mpi4py for the tests: each rank sends 1000 bytes around a ring, three times.

With the word wait rank 0 begins when the file exists that is named next; with fail rank 1 fails in the end.
"""

import os
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
data = bytearray(1000)
while rank == 0 and "wait" in sys.argv and not os.path.exists(sys.argv[-1]):
    time.sleep(0.02)
for _ in range(3):
    world.Sendrecv(data, (rank + 1) % size, recvbuf=bytearray(1000), source=(rank - 1) % size)
    world.Barrier()
if rank == 0:
    print("exchanged", flush=True)
MPI.Finalize()
if "fail" in sys.argv and rank == 1:
    sys.exit(3)
