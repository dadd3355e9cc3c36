"""An MPI program in Python that 5-capture.ipynb records: rank 2 computes twice as long as the others."""

import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def compute(seconds):
    """Keeps a core busy."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


edge = bytearray(8192)
total = bytearray(8)
for step in range(40):
    compute(0.002 if rank == 2 else 0.001)
    world.Sendrecv(edge, (rank + 1) % size, recvbuf=bytearray(8192), source=(rank - 1) % size)
    if step % 10 == 9:
        world.Allreduce(MPI.IN_PLACE, [total, MPI.DOUBLE])
