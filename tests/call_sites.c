/* Run in a guest: system calls from places that become jumps after some of them. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 100, REGISTERS = 14, VECTORS = 16 };

struct state {
    uint64_t general[REGISTERS]; /* all but RAX and RSP */
    uint8_t vectors[VECTORS][32];
    uint64_t result, flags;
};

/* Loads a state, makes the call of its place, and keeps the state behind it. */
void call_getpid(struct state *), call_go(struct state *), call_stack(struct state *);
extern uint8_t place_getpid[], place_go[], place_stack[], place_read[], syscall_getpid[];
long read_there(int fd, void *to, size_t size), call_number(long number);

#define EACH_VECTOR(X)                                                                            \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "vmovdqu 112 + 32 * " #n "(%rdi), %ymm" #n "\n"
#define SAVE(n) "vmovdqu %ymm" #n ", 112 + 32 * " #n "(%rdi)\n"
#define CALL(name, instructions)                                                                  \
    ".globl call_" name ", place_" name ", syscall_" name "\n"                                    \
    "call_" name ": push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi\n" \
    EACH_VECTOR(LOAD)                                                                             \
    "mov (%rdi), %rbx; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rsi\n"               \
    "mov 40(%rdi), %rbp; mov 48(%rdi), %r8; mov 56(%rdi), %r9; mov 64(%rdi), %r10\n"              \
    "mov 72(%rdi), %r11; mov 80(%rdi), %r12; mov 88(%rdi), %r13; mov 96(%rdi), %r14\n"            \
    "mov 104(%rdi), %r15; mov 32(%rdi), %rdi; mov $110, %eax; cmp %eax, %eax; stc; std\n"         \
    "place_" name ": " instructions "\n"                                                          \
    "syscall_" name ": syscall\n"                                                                 \
    "xchg %rdi, (%rsp); mov %rbx, (%rdi); mov %rcx, 8(%rdi); mov %rdx, 16(%rdi)\n"                \
    "mov %rsi, 24(%rdi); pop %rsi; mov %rsi, 32(%rdi); mov %rbp, 40(%rdi); mov %r8, 48(%rdi)\n"   \
    "mov %r9, 56(%rdi); mov %r10, 64(%rdi); mov %r11, 72(%rdi); mov %r12, 80(%rdi)\n"             \
    "mov %r13, 88(%rdi); mov %r14, 96(%rdi); mov %r15, 104(%rdi); mov %rax, 624(%rdi)\n"          \
    "pushfq; pop %rax; mov %rax, 632(%rdi); cld\n"                                                \
    EACH_VECTOR(SAVE)                                                                             \
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"

asm(".text\n"
    CALL("getpid", "mov $39, %eax")
    CALL("go", "mov %rcx, %rsi; mov %rbx, %rdi")
    CALL("stack", "mov 8(%rsp), %r9")
    "read_there:\n"
    "place_read: mov $0, %eax; syscall; ret\n"
    "call_number: mov %rdi, %rax; jmp syscall_number\n"
    "place_number: mov $39, %eax\n"
    "syscall_number: syscall; ret\n"
    "call_getpid_often: jmp place_number\n");
long call_getpid_often(void);
extern uint8_t place_number[];

static void report(const char *what, int right) { printf("%s %s\n", what, right ? "ok" : "WRONG"); }

static int is_jump(const uint8_t *place) /* perhaps behind instructions that do nothing */
{
    while (*place == 0x90)
        place++;
    return !memcmp(place, "\xff\x24\x25", 3) && place[5] == 0x0f && place[6] == 0x05;
}

/* Whether all but what SYSCALL and the instructions before it write is as before, always */
static int survives(void (*call)(struct state *), long result, uint64_t changed)
{
    struct state before, after;
    for (int n = 0; n < CALLS; n++) {
        for (unsigned i = 0; i < sizeof(before); i++)
            ((uint8_t *)&before)[i] = 31 * i + n;
        after = before;
        call(&after);
        for (int i = 0; i < REGISTERS; i++)
            if (!(changed >> i & 1) && before.general[i] != after.general[i])
                return 0;
        if (memcmp(before.vectors, after.vectors, sizeof(before.vectors)) ||
            (long)after.result != result || after.general[9] != after.flags ||
            (after.flags & 0x4d5) != 0x445) /* backwards; carry, zero, even parity */
            return 0;
    }
    return 1;
}

static int pipe_of_handler[2];

static void write_a_byte(int number)
{
    (void)number;
    (void)!write(pipe_of_handler[1], "x", 1);
}

/* A call that a signal interrupts begins again, where the place is a jump */
static int repeats(void)
{
    struct sigaction action = {.sa_handler = write_a_byte, .sa_flags = SA_RESTART};
    struct itimerval soon = {.it_value.tv_usec = 1000};
    char byte = 0;
    if (pipe(pipe_of_handler))
        return 0;
    for (int n = 0; n < CALLS; n++) {
        write_a_byte(0);
        read_there(pipe_of_handler[0], &byte, 1);
    }
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    byte = 0;
    return read_there(pipe_of_handler[0], &byte, 1) == 1 && byte == 'x';
}

/* Where the table is, nothing else can be while it is needed */
static int place_is_kept(void *table)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *hinted = mmap(table, 4096, PROT_READ, flags, -1, 0);
    return hinted != MAP_FAILED && hinted != table &&
           mmap(table, 4096, PROT_READ, flags | MAP_FIXED, -1, 0) == MAP_FAILED;
}

/* What a program writes to its code counts, and the jump is gone; it comes back later */
static int may_be_written(int taken)
{
    uint8_t *page = (uint8_t *)((uintptr_t)place_read & ~4095UL);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
        return 0;
    place_number[1] = SYS_getppid;
    if (is_jump(place_number) || call_getpid_often() != getppid())
        return 0;
    place_number[1] = SYS_getpid;
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
    for (int n = 0; n < CALLS; n++)
        if (call_getpid_often() != getpid())
            return 0;
    return is_jump(place_number) == !taken;
}

int main(int argc, char **argv)
{
    const int rcx_r11 = 1 << 1 | 1 << 9, rsi_rdi = 1 << 3 | 1 << 4, r9 = 1 << 7;
    void *table = (void *)0x050f0000; /* SLOTS of call_sites.c */
    int taken = argc > 1, status = -1;

    (void)argv;
    if (taken)
        mmap(table, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    report("number", survives(call_getpid, getpid(), rcx_r11));
    report("go", survives(call_go, getppid(), rcx_r11 | rsi_rdi));
    report("stack", survives(call_stack, getppid(), rcx_r11 | r9));
    report("repeated", repeats());
    for (int n = 0; n < CALLS; n++)
        call_getpid_often();
    report("elsewhere", call_number(SYS_getppid) == getppid() && call_getpid_often() == getpid());
    report("replaced", is_jump(place_getpid) == !taken && is_jump(place_go) == !taken &&
                           is_jump(place_stack) == !taken && is_jump(place_read) == !taken &&
                           is_jump(place_number) == !taken);
    if (!fork())
        _exit(call_getpid_often() == getpid() && survives(call_getpid, getpid(), rcx_r11) ? 0 : 1);
    wait(&status);
    report("fork", status == 0);
    report("kept", place_is_kept(table) == !taken);
    report("written", may_be_written(taken));
    printf("end\n");
    return 0;
}
