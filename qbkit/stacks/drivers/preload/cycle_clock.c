/* Gives Abseil's cycle clock the guest's clock, to be preloaded into Envoy. Its memory allocator
 * reads the clock several times for each packet. RDTSC traps in the guest and then returns
 * CLOCK_MONOTONIC in nanoseconds, which the vDSO returns without a trap.
 *
 * Abseil has a place for another clock, CycleClockSource::Register, but Envoy does not export it.
 * QBKIT_CYCLE_CLOCK is the address of CycleClock::Now in Envoy, which leads to that place. In any
 * other program nothing happens.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int64_t clock_source(void);

/* CycleClock::Now: load the place (its address is relative to the next instruction), the source
 * from it, and if there is one, call it. */
static const unsigned char LOAD_ADDRESS[] = {0x48, 0x8d, 0x05},
                           LOAD_SOURCE[] = {0x48, 0x8b, 0x00, 0x48, 0x85, 0xc0, 0x74};
enum { NEXT = sizeof LOAD_ADDRESS + sizeof(int32_t), CODE_BYTES = NEXT + sizeof LOAD_SOURCE };

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void set_source(const unsigned char *code)
{
    int32_t offset;
    if (memcmp(code, LOAD_ADDRESS, sizeof LOAD_ADDRESS) ||
        memcmp(code + NEXT, LOAD_SOURCE, sizeof LOAD_SOURCE))
        return;
    memcpy(&offset, code + sizeof LOAD_ADDRESS, sizeof offset);
    clock_source **place = (clock_source **)(uintptr_t)(code + NEXT + offset);
    *place = now;
}

/* Called for the program itself, which comes first; 1 ends the loop. */
static int find_code(struct dl_phdr_info *program, size_t size, void *address)
{
    uintptr_t wanted = *(uintptr_t *)address;
    (void)size;
    for (int i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &program->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && wanted >= part->p_vaddr &&
            wanted + CODE_BYTES <= part->p_vaddr + part->p_memsz)
            set_source((const unsigned char *)(program->dlpi_addr + wanted));
    }
    return 1;
}

__attribute__((constructor)) static void start(void)
{
    const char *text = getenv("QBKIT_CYCLE_CLOCK");
    uintptr_t address = text ? strtoul(text, NULL, 16) : 0;
    if (address) dl_iterate_phdr(find_code, &address);
}
