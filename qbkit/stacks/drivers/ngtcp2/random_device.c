/* std::random_device on getrandom(2), to be preloaded.
 *
 * libstdc++ takes RDSEED or RDRAND where the processor has them. They give other numbers in every
 * run; the guest's getrandom is seeded. The names are those of libstdc++'s ABI; the first argument
 * of all three is `this`, and `init` would go on with the name of a source.
 */
#include <stdlib.h>
#include <sys/random.h>

void _ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(void *self)
{
    (void)self;
}

void _ZNSt13random_device7_M_finiEv(void *self)
{
    (void)self;
}

unsigned _ZNSt13random_device9_M_getvalEv(void *self)
{
    unsigned value;

    (void)self;
    if (getrandom(&value, sizeof value, 0) != sizeof value)
        abort();
    return value;
}
