/* Preloaded into the kernel process: it ends with the program that starts it, and keeps to one
 * processor.
 *
 * Python could do both between fork and exec, but then it copies its page tables for every run
 * (7 ms), and a fork while another thread imports leaves that thread's locks taken.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((constructor)) static void start(void)
{
    const char *parent = getenv("QBKIT_PARENT"), *processor = getenv("QBKIT_PROCESSOR");
    cpu_set_t one;

    if (!parent || !processor)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != atoi(parent)) /* it has ended already */
        _exit(1);
    CPU_ZERO(&one);
    CPU_SET(atoi(processor), &one);
    /* The kernel has a function of that name, which a kernel without libraries would call. */
    syscall(SYS_sched_setaffinity, 0, sizeof one, &one);
}
