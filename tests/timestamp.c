/* Reads the time stamp counter in both ways, around a sleep and in a busy wait. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

int main(void)
{
	struct timespec now, sleep = {0, 50000000};
	unsigned processor = 7;
	uint64_t first = __rdtsc(), begin = __rdtscp(&processor), end;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("behind the clock by %ld ns\n", (long)(now.tv_sec * 1000000000L + now.tv_nsec - begin));
	printf("between two reads %ld ns, on processor %u\n", (long)(begin - first), processor);
	nanosleep(&sleep, NULL);
	end = __rdtsc();
	printf("over a sleep of 50 ms: %ld\n", (long)(end - begin));
	while (__rdtsc() - end < 3000000)
		;
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("in a wait of 3 ms: %ld\n", (long)(now.tv_sec * 1000000000L + now.tv_nsec - end));
	return 0;
}
