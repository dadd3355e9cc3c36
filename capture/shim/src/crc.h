/* CRC-32C by the processor's own instruction. */
#ifndef COMMQ_CRC_H
#define COMMQ_CRC_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Reports whether this processor computes CRC-32C. Otherwise the functions below must not be called. */
int cq_crc32c_there(void);
/* The CRC of bytes, a multiple of 4. */
uint32_t cq_crc32c(const void *p, size_t bytes);
/* The CRCs of n slots of 64 bytes: of the first n / 3, of the next n / 3, and of the others. */
void cq_crc32c_slots(const void *p, uint64_t n, uint32_t crc[3]);

#pragma GCC visibility pop

#endif
