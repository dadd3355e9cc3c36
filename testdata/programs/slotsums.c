/* Reads slots of 64 bytes, and prints their checksums by capture/shim/src/crc.c: of none of them, the first, the first
 * two and so on, a line each. */
#include "crc.c"

#include <stdio.h>

static unsigned char slots[1000 * 64];

int main(void)
{
	uint64_t most = fread(slots, 64, sizeof slots / 64, stdin);
	if (!cq_crc32c_there())
		return 1;
	for (uint64_t n = 0; n <= most; n++) {
		uint32_t crc[3];
		cq_crc32c_slots(slots, n, crc);
		printf("%u %u %u\n", crc[0], crc[1], crc[2]);
	}
	return 0;
}
