/* Does a program find its registers as they were, behind system calls, signals and single steps?
 *
 * Prints a line for each check, "… ok" or "… WRONG".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int handled;

static void check(const char *what, int right) { printf("%s %s\n", what, right ? "ok" : "WRONG"); }

/* Fills what a call must keep, calls getpid, and stores all of it again. */
static void general_registers(void)
{
    uint64_t out[14], flags, pid;
    asm volatile(
        "push %%rbp; push %%rbx; mov %[out], %%rax; push %%rax;"
        "mov $1, %%ebx; mov $2, %%ebp; mov $3, %%r8d; mov $4, %%r9d; mov $5, %%r10d; mov $6, %%r12d;"
        "mov $7, %%r13d; mov $8, %%r14d; mov $9, %%r15d; mov $10, %%edi; mov $11, %%esi;"
        "mov $12, %%edx; std; stc; mov $39, %%eax; syscall;"
        "pushf; cld; mov 8(%%rsp), %%rcx; mov %%rbx, (%%rcx); mov %%rbp, 8(%%rcx); mov %%r8, 16(%%rcx);"
        "mov %%r9, 24(%%rcx); mov %%r10, 32(%%rcx); mov %%r12, 40(%%rcx); mov %%r13, 48(%%rcx);"
        "mov %%r14, 56(%%rcx); mov %%r15, 64(%%rcx); mov %%rdi, 72(%%rcx); mov %%rsi, 80(%%rcx);"
        "mov %%rdx, 88(%%rcx); mov %%rax, 96(%%rcx); pop %%rax; mov %%rax, 104(%%rcx);"
        "pop %%rax; pop %%rbx; pop %%rbp"
        :
        : [out] "r"(out)
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
          "memory", "cc");
    int right = 1;
    for (int i = 0; i < 12; i++) right &= out[i] == (uint64_t)i + 1;
    pid = out[12], flags = out[13];
    check("general registers", right && pid == (uint64_t)getpid());
    check("direction and carry flags", (flags & 0x401) == 0x401);
}

/* Some vector registers around a system call, as wide as the processor has them. */
static void vector_registers(void)
{
    unsigned char in[32][64], out[32][64];
    int wide = __builtin_cpu_supports("avx512f"), half = __builtin_cpu_supports("avx2");
    size_t width = wide ? 64 : half ? 32 : 16;
    for (size_t i = 0; i < sizeof in; i++) ((unsigned char *)in)[i] = (unsigned char)(i * 7 + i / 64);
#define SOME(M, OP, REG) M(OP, REG, 0) M(OP, REG, 1) M(OP, REG, 5) M(OP, REG, 8) M(OP, REG, 15)
#define SOME_xmm(M, OP) SOME(M, OP, xmm)
#define SOME_ymm(M, OP) SOME(M, OP, ymm)
#define SOME_zmm(M, OP) SOME(M, OP, zmm) M(OP, zmm, 16) M(OP, zmm, 31)
#define LOAD(OP, REG, n) #OP " " #n "*64(%0), %%" #REG #n ";"
#define STORE(OP, REG, n) #OP " %%" #REG #n ", " #n "*64(%1);"
#define AROUND(OP, REG)                                                                     \
    asm volatile(SOME_##REG(LOAD, OP) "mov $39, %%eax; syscall;" SOME_##REG(STORE, OP)      \
                 : : "r"(in), "r"(out) : "rax", "rcx", "r11", "memory")
    memset(out, 0, sizeof out);
    if (wide)
        AROUND(vmovdqu64, zmm);
    else if (half)
        AROUND(vmovdqu, ymm);
    else
        AROUND(movdqu, xmm);
    int right = 1, count = wide ? 7 : 5, which[] = {0, 1, 5, 8, 15, 16, 31};
    for (int i = 0; i < count; i++) right &= !memcmp(in[which[i]], out[which[i]], width);
    check("vector registers", right);
}

static void x87_and_mxcsr(void)
{
    double number = 1.5, back;
    unsigned rounding = 0x7f80, now;
    asm volatile("ldmxcsr %3; fldl %2; mov $39, %%eax; syscall; fstpl %0; stmxcsr %1"
                 : "=m"(back), "=m"(now) : "m"(number), "m"(rounding) : "rax", "rcx", "r11");
    check("x87 and MXCSR", back == number && (now & ~0x3f) == rounding);
    asm volatile("ldmxcsr %0" : : "m"((unsigned){0x1f80}));
}

static void spoil(int sig)
{
    asm volatile("pxor %%xmm7, %%xmm7; fldz; fstp %%st(0)" : : : "xmm7");
    handled++;
    if (sig == SIGUSR1) raise(SIGUSR2); /* nested, on the same alternative stack */
    getpid();
}

static void signals(void)
{
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    struct sigaction act = {.sa_handler = spoil, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &act, NULL), sigaction(SIGUSR2, &act, NULL), sigaction(SIGALRM, &act, NULL);
    uint64_t in = 0x1234567890abcdef, out;
    asm volatile("movq %1, %%xmm7; mov $39, %%eax; syscall; mov %%eax, %%edi; mov $10, %%esi;"
                 "mov $62, %%eax; syscall; movq %%xmm7, %0" /* getpid, kill(self, SIGUSR1) */
                 : "=r"(out) : "r"(in) : "rax", "rcx", "rdi", "rsi", "r11", "xmm7", "memory");
    check("registers behind nested handlers", out == in && handled == 2);

    int pipe_fd[2];
    char byte = 0;
    if (pipe(pipe_fd)) return;
    struct itimerval soon = {.it_value = {0, 20000}};
    if (!fork()) {
        nanosleep(&(struct timespec){0, 50000000}, NULL);
        _exit(write(pipe_fd[1], "x", 1) != 1);
    }
    setitimer(ITIMER_REAL, &soon, NULL);
    long got = read(pipe_fd[0], &byte, 1);
    check("a read that a signal restarts", got == 1 && byte == 'x' && handled == 3);
    act.sa_flags = 0;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    got = nanosleep(&(struct timespec){1, 0}, NULL);
    check("a sleep that a signal ends", got == -1 && errno == EINTR && handled == 4);
    wait(NULL);
}

static void bad_image(int sig, siginfo_t *info, void *context)
{
    unsigned char *fp = (unsigned char *)((ucontext_t *)context)->uc_mcontext.fpregs;
    (void)sig, (void)info;
    memset(fp + (handled == 100 ? 24 : 512), 0xff, 4); /* MXCSR, or the header's features */
}

/* A floating point image that no processor takes may end the program that makes it, nothing else. */
static void images_that_fault(void)
{
    for (handled = 100; handled < 102; handled++) {
        int status;
        pid_t child = fork();
        if (!child) {
            struct sigaction act = {.sa_sigaction = bad_image, .sa_flags = SA_SIGINFO};
            sigaction(SIGUSR1, &act, NULL);
            raise(SIGUSR1);
            getpid();
            _exit(0);
        }
        waitpid(child, &status, 0);
        check(handled == 100 ? "a bad MXCSR" : "a bad image",
              status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
    }
}

static void single_steps(void)
{
    int status, steps = 0;
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        for (int i = 0; i < 60; i++) syscall(SYS_getpid);
        _exit(7);
    }
    waitpid(child, &status, 0);
    while (steps < 1000 && !ptrace(PTRACE_SINGLESTEP, child, 0, 0)) {
        waitpid(child, &status, 0);
        if (!WIFSTOPPED(status)) break;
        steps++;
    }
    int stepped = WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
    check("single steps", stepped && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    general_registers();
    vector_registers();
    x87_and_mxcsr();
    signals();
    images_that_fault();
    single_steps();
    puts("end");
    return 0;
}
