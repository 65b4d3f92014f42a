/* Prints what CPUID shows of the sources of randomness and of the vector units. */
#include <cpuid.h>
#include <stdio.h>

int main(void)
{
	unsigned a, b, c, d, features;

	__cpuid(1, a, b, features, d);
	__cpuid_count(7, 0, a, b, c, d);
	printf("rdrand %u rdseed %u avx %u avx2 %u avx512f %u\n", features >> 30 & 1, b >> 18 & 1,
	       features >> 28 & 1, b >> 5 & 1, b >> 16 & 1);
	return 0;
}
