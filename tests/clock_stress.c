/* Mixes clock reads by the vDSO and by system calls, sleeps, yields and busy waits in many threads:
 * the clock must never go backwards, and both ways of reading it must agree. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 3, THREADS = 3, ROUNDS = 3000 };

static volatile long long *last;
static int backwards;

static long long nanoseconds(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

static long long by_vdso(int clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return nanoseconds(t);
}

static long long by_call(int clock)
{
    struct timespec t;
    syscall(SYS_clock_gettime, clock, &t);
    return nanoseconds(t);
}

/* What anyone saw before this read began must not be later than what it says. (The system call may
 * be preempted on its way out, so *last may be later by then.) */
static void check(long long (*read)(int))
{
    long long seen = *last, now = read(CLOCK_MONOTONIC);
    backwards += now < seen;
    if (now > *last) *last = now;
}

static void *mix(void *seed)
{
    unsigned r = (unsigned)(long)seed * 7 + 1;
    for (int i = 0; i < ROUNDS; i++) {
        r = r * 1103515245 + 12345;
        unsigned kind = (r >> 16) % 6;
        struct timespec nap = {0, (r >> 8) % 200000};
        if (kind < 3) check(by_vdso);
        else if (kind == 3) check(by_call);
        else if (kind == 4) nanosleep(&nap, NULL);
        else sched_yield();
    }
    return NULL;
}

static void run_threads(long process)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, mix, (void *)(i + 10 * process));
    for (long i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    exit(backwards > 0);
}

int main(void)
{
    const int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME};
    int failed = 0, status;
    last = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        long long a = by_vdso(clocks[i]), b = by_call(clocks[i]), c = by_vdso(clocks[i]);
        printf("clock %d: %lld %lld\n", clocks[i], b - a, c - b);
    }
    fflush(stdout);
    *last = by_vdso(CLOCK_MONOTONIC);
    for (long p = 0; p < PROCESSES; p++)
        if (!fork()) run_threads(p);
    while (wait(&status) > 0) failed += status != 0;
    printf("processes that saw the clock go backwards: %d\n", failed);
    long long start = by_vdso(CLOCK_MONOTONIC);
    while (by_vdso(CLOCK_MONOTONIC) - start < 50000000) continue;
    printf("busy wait of 50 ms: %lld\n", by_vdso(CLOCK_MONOTONIC) - start);
    volatile int *flag = (volatile int *)(last + 8);
    if (!fork()) {
        usleep(3000);
        *flag = 1;
        _exit(0);
    }
    start = by_vdso(CLOCK_MONOTONIC);
    while (!*flag) by_vdso(CLOCK_MONOTONIC);
    printf("busy wait for a process of 3 ms: %lld\n", by_vdso(CLOCK_MONOTONIC) - start);
    return failed;
}
