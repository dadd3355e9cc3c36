"""A program of mpi4py for the tests: each rank sends 1000 bytes around a ring, three times; rank 1 may fail then."""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
data = bytearray(1000)
for _ in range(3):
    world.Sendrecv(data, (rank + 1) % size, recvbuf=bytearray(1000), source=(rank - 1) % size)
    world.Barrier()
if rank == 0:
    print("exchanged", flush=True)
MPI.Finalize()
if "fail" in sys.argv and rank == 1:
    sys.exit(3)
