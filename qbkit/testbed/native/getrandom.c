/* Preloaded into the kernel process: all randomness of the guest comes from QBKIT_SEED.
 *
 * User Mode Linux seeds its random pool, its start-up entropy and every later request from the
 * host's getrandom(). A splitmix64 stream in its place makes two runs identical.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
    static uint64_t state;
    static int seeded;
    (void)flags;
    if (!seeded) {
        const char *seed = getenv("QBKIT_SEED");
        state = seed ? strtoull(seed, NULL, 10) : 1;
        seeded = 1;
    }
    for (size_t i = 0; i < length; i++) {
        uint64_t z = state += 0x9E3779B97F4A7C15ULL;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        ((unsigned char *)buffer)[i] = (unsigned char)(z ^ (z >> 31));
    }
    return (ssize_t)length;
}
