// SPDX-License-Identifier: GPL-2.0
/*
 * System calls without a signal.
 *
 * The signal that a system call raises costs 2 microseconds, and a jump into the kernel
 * (carrier_called() in carrier.c) a tenth of it. So where a program often makes a call,
 * the instruction before SYSCALL becomes a jump, as in gVisor's "systrap":
 *
 *	mov $nr, %eax		b8 nr nr nr nr		jmp *slot	ff 24 25 xx xx 0f 05
 *	syscall			0f 05
 *
 * What is jumped to does what has been overwritten, with RCX as SYSCALL leaves it.
 * The table of slots is at SLOTS, so that the last two bytes of the jump still are a
 * SYSCALL: who jumps there, or repeats the call, gets the signal as before.
 *
 * The guest's kernel knows nothing of this, so all it does stays as it was. The table,
 * and a copy of each page of code with a jump, are memory of the carrier alone. When the
 * kernel maps such a page again, as for a write to it, its jumps are gone.
 *
 * Only one thread of the guest runs at a time, and none stops within the bytes that
 * are replaced: they lie in one page, and no instruction but the first may fault.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <asm/unistd.h>
#include <as-layout.h>
#include <os.h>
#include <skas.h>
#include <sysdep/stub.h>
#include "../internal.h"

#define SLOTS		0x050f0000UL
#define SLOTS_END	0x05100000UL
#define OFTEN		16	/* calls from one place */
#define PLACES		256
#define BEFORE		7	/* the longest that is overwritten before SYSCALL */

/* Where a program goes on instead */
struct slot {
	uint64_t to;		/* the address of what follows */
	uint8_t code[32];
};

void carrier_called(void);
bool carrier_may_replace(unsigned long code, unsigned long from, unsigned long to); /* tlb.c */

/* Places with many signals lately */
static struct place {
	struct mm_id *mm;
	unsigned long ip;
	int calls;
} places[PLACES];

static bool is_frequent(struct mm_id *mm, unsigned long ip)
{
	struct place *place = &places[(ip ^ ip >> 8) % PLACES];

	if (place->mm != mm || place->ip != ip)
		*place = (struct place) { mm, ip };
	return ++place->calls % OFTEN == 0;
}

/* How many whole bytes of instructions before SYSCALL may be done elsewhere, or 0 */
static int replaceable(const uint8_t *syscall, uint32_t nr)
{
	static const uint8_t mov_eax = 0xb8, mov_rax[] = { 0x48, 0xc7, 0xc0 };
	static const uint8_t from_stack[] = { 0x4c, 0x8b, 0x4c, 0x24 };	/* mov n(%rsp), %r9 */
	/* mov %rcx, %rsi; mov %rbx, %rdi: Go */
	static const uint8_t registers[] = { 0x48, 0x89, 0xce, 0x48, 0x89, 0xdf };

	if (!memcmp(syscall - 7, mov_rax, 3) && !memcmp(syscall - 4, &nr, 4))
		return 7;
	if (!memcmp(syscall - 6, registers, 6))
		return 6;
	if (!memcmp(syscall - 5, from_stack, 4))
		return 5;
	if (syscall[-5] == mov_eax && !memcmp(syscall - 4, &nr, 4) &&
	    (syscall[-6] & 0xf0) != 0x40)	/* a prefix: another register */
		return 5;
	return 0;
}

static bool map_here(unsigned long from, unsigned long to)
{
	return mmap((void *)from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)from;
}

static uint8_t *put(uint8_t *to, const void *bytes, int size)
{
	return (uint8_t *)memcpy(to, bytes, size) + size;
}

static void fill(struct slot *slot, const uint8_t *replaced, int size, unsigned long ip)
{
	void (*entry)(void) = carrier_called;
	uint8_t *code = put(slot->code, replaced, size);

	slot->to = (unsigned long)slot->code;
	code = put(put(code, "\x48\xb9", 2), &ip, 8);		/* movabs $ip, %rcx */
	code = put(put(code, "\x49\xbb", 2), &entry, 8);	/* movabs $carrier_called, %r11 */
	put(code, "\x41\xff\xe3", 3);				/* jmp *%r11 */
}

/* The running program has made a system call by a signal: perhaps it needs none next time */
void avoid_signal(struct mm_id *mm, unsigned long ip, unsigned int nr)
{
	static uint8_t page[UM_KERN_PAGE_SIZE];
	uint8_t *syscall = (uint8_t *)ip - 2;
	unsigned long start = (ip - 1) & ~(UM_KERN_PAGE_SIZE - 1UL);
	struct slot *slot = (struct slot *)SLOTS + mm->call_sites;
	int size;

	if (!is_frequent(mm, ip) || (unsigned long)syscall < start + BEFORE ||
	    memcmp(syscall, "\x0f\x05", 2) || (unsigned long)(slot + 1) > SLOTS_END)
		return;
	size = replaceable(syscall, nr);
	if (!size || !carrier_may_replace(start, SLOTS, mm->call_sites ? SLOTS : SLOTS_END))
		return;
	if (!mm->call_sites && !map_here(SLOTS, SLOTS_END))
		return;
	mm->call_sites++;

	fill(slot, syscall - size, size, ip);
	memcpy(page, (void *)start, sizeof(page));
	if (!map_here(start, start + sizeof(page)))
		panic("cannot map a page of a program's code");
	memcpy((void *)start, page, sizeof(page));
	memset(syscall - size, 0x90, size);
	put(put(syscall - 5, "\xff\x24\x25", 3), &slot, 2);	/* jmp *slot */
	mprotect((void *)start, sizeof(page), PROT_READ | PROT_EXEC);
}

static bool is_within(unsigned long addr, unsigned long len, unsigned long from, unsigned long to)
{
	return addr < to && addr + len > from;
}

/* Whether a range that a program wants holds the kernel, its memory, its vmalloc area or a table */
bool carrier_overlaps(unsigned long addr, unsigned long len);
bool carrier_overlaps(unsigned long addr, unsigned long len)
{
	return using_carriers &&
	       (is_within(addr, len, uml_physmem, end_vm) ||
		(current_mm_id()->call_sites && is_within(addr, len, SLOTS, SLOTS_END)));
}

/* A range whose page tables are gone may hold them */
unsigned long unmap_program(struct mm_id *mm, unsigned long from, unsigned long to)
{
	const unsigned long ours[][2] = {
		{ SLOTS, mm->call_sites ? SLOTS_END : SLOTS }, { uml_physmem, end_vm }, { to, to },
	};
	unsigned long result = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(ours) && !result; i++) {
		unsigned long end = ours[i][0] < to ? ours[i][0] : to;

		if (from < end)
			result = stub_syscall2(__NR_munmap, from, end - from);
		if (from < ours[i][1])
			from = ours[i][1];
	}
	return result;
}
