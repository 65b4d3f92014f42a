// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel in the address space of its processes.
 *
 * Otherwise each system call of a guest program costs two context switches of
 * the host: to the kernel's process and back. Here the kernel's image, memory
 * and mappings are the same, and shared, in all host processes of the guest
 * ("carriers": one for each address space, and the first one). So the signal
 * that a system call raises enters the kernel where it is, and only to return
 * to a program of another address space one carrier hands over to another. From
 * where a program calls often, it enters the kernel by a jump: see call_sites.c.
 *
 * The kernel remains one thread: all carriers but the running one wait in
 * carrier_switch(), without a stack. Only for x86-64, for time-travel=inf-cpu,
 * where no signal of the host interrupts a program, and for processors whose
 * programs may set the base of FS. And not for very many programs: each of them
 * would have to find the kernel's memory page by page.
 */
#include <stddef.h>
#include <stdbool.h>
#include <stdlib.h>
#include <signal.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ucontext.h>
#include <asm/prctl.h>
#include <asm/unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <as-layout.h>
#include <kern_util.h>
#include <mem_user.h>
#include <os.h>
#include <skas.h>
#include <sysdep/stub.h>
#include <sysdep/mcontext.h>
#include <timetravel.h>
#include "../internal.h"

extern char _text[], _etext[];

#define KMAPS		256

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

int using_carriers;

static struct mm_id *running;		/* NULL: the first process */
static int first_go;
static unsigned long first_kmaps;

/* What the kernel mapped for itself: other carriers do so as they go on */
static struct kmap {
	unsigned long virt, len;
	unsigned long long offset;
	int fd, prot;			/* prot < 0: unmapped */
} kmaps[KMAPS];
static unsigned long kmaps_count;

/*
 * All carriers but the first one take their signals on one stack, as only one
 * runs. What came with the last signal is there until the next one.
 */
static char signal_stack[4 * UM_KERN_PAGE_SIZE] __attribute__((aligned(4096)));
static siginfo_t *last_info;
static mcontext_t *last_context;
static unsigned long last_fs, last_gs;

/* Used by the assembly below */
unsigned long carrier_kernel_sp, carrier_switch_sp, carrier_user_sp, carrier_kernel_fs;
unsigned long carrier_xmask, carrier_gp_end;
void *carrier_fp;

void carrier_map_kernel(void);		/* tlb.c */
void collapse_pages(char *start, size_t length);	/* huge_pages.c */
void carrier_switch(int *to, int *from);
void carrier_wait(int *go);
int carrier_enter_user(unsigned long *gp, unsigned long fs_base);
void carrier_leave_user(void);
void carrier_called(void), carrier_called_end(void);

#define PUSH_SAVED "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15;"
#define POP_SAVED "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx;"
#define FP_AND_MASK \
	"mov carrier_fp(%rip), %rdi; mov carrier_xmask(%rip), %eax; mov 4 + carrier_xmask(%rip), %edx;"

asm(".pushsection .text\n"
    /* Let another carrier go on with this stack, and wait for our turn. */
    "carrier_switch:" PUSH_SAVED
    "	mov %rsp, carrier_switch_sp(%rip)\n"
    "	mov %rsi, %r12\n"
    "	movl $1, (%rdi)\n"
    "	mov $202, %eax; mov $1, %esi; mov $1, %edx; syscall\n"	/* FUTEX_WAKE */
    "	jmp 2f\n"
    "carrier_wait:\n"
    "	mov %rdi, %r12\n"
    "	jmp 2f\n"
    "1:	mov $202, %eax; mov %r12, %rdi; xor %esi, %esi; xor %edx, %edx\n"
    "	xor %r10d, %r10d; syscall\n"				/* FUTEX_WAIT */
    "2:	cmpl $0, (%r12)\n"
    "	je 1b\n"
    "	movl $0, (%r12)\n"
    "	mov carrier_switch_sp(%rip), %rsp\n"
    POP_SAVED
    "	ret\n"
    /*
     * Registers in the order of struct user_regs_struct, as IRETQ wants them. It is
     * slow, and not needed behind a system call, where RCX says where to go on.
     */
    "carrier_enter_user:" PUSH_SAVED
    "	mov %rsp, carrier_kernel_sp(%rip)\n"
    "	lea 23 * 8(%rdi), %rax; mov %rax, carrier_gp_end(%rip)\n"
    "	wrfsbase %rsi\n"
    "	mov %rdi, %rsp\n"
    FP_AND_MASK
    "	xrstor64 (%rdi)\n"
    "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; pop %r11; pop %r10\n"
    "	pop %r9; pop %r8; pop %rax; pop %rcx; pop %rdx; pop %rsi; pop %rdi\n"
    "	add $8, %rsp\n"
    "	cmp %rcx, (%rsp)\n"
    "	jne 1f\n"
    "	testb $1, 17(%rsp)\n"					/* single steps */
    "	jne 1f\n"
    "	add $16, %rsp\n"
    "	popfq; pop %rsp\n"
    "	jmp *%rcx\n"
    "1:	iretq\n"
    /* A system call without a signal: RCX is where to go on. See call_sites.c. */
    ".globl carrier_called\n"
    "carrier_called:\n"
    "	mov %rsp, carrier_user_sp(%rip)\n"
    "	mov carrier_gp_end(%rip), %rsp\n"
    "	rdgsbase %r11; push %r11; rdfsbase %r11; push %r11\n"
    "	push $0x2b; push carrier_user_sp(%rip); pushfq; pop %r11; push %r11; push $0x33\n"
    "	push %rcx; push %rax; push %rdi; push %rsi; push %rdx; push %rcx; push %rax\n"
    "	push %r8; push %r9; push %r10; push %r11; push %rbx; push %rbp\n"
    "	push %r12; push %r13; push %r14; push %r15\n"
    "	cld\n"
    "	mov carrier_kernel_fs(%rip), %rax; wrfsbase %rax\n"
    FP_AND_MASK
    "	xsave64 (%rdi)\n"
    "	mov $1, %eax\n"
    "	jmp 1f\n"
    "carrier_called_end:\n"
    "carrier_leave_user:\n"
    "	xor %eax, %eax\n"
    "1:	mov carrier_kernel_sp(%rip), %rsp\n"
    POP_SAVED
    "	ret\n"
    ".popsection");

static struct stub_data *data_of(struct mm_id *mm)
{
	return (void *)mm->stack;
}

/* Nothing may be written between the two system calls, not even to the stack */
static unsigned long copy_and_map(int fd, unsigned long from, unsigned long to, unsigned long end)
{
	register unsigned long size = to - from;
	register unsigned long r8 asm("r8") = fd, r9 asm("r9") = 0, r10 asm("r10") = 0;
	unsigned long result = __NR_pwrite64;

	asm volatile("syscall\n"
		     "	cmp %%rdx, %%rax\n"
		     "	jne 1f\n"
		     "	mov %[mmap], %%eax; mov %%rsi, %%rdi; mov %[size], %%rsi\n"
		     "	mov $7, %%edx; mov $0x11, %%r10d; syscall\n"	/* shared, fixed */
		     "1:"
		     : "+a" (result), "+r" (r8), "+r" (r9), "+r" (r10)
		     : "D" ((unsigned long)fd), "S" (from), "d" (end - from),
		       [size] "r" (size), [mmap] "i" (__NR_mmap)
		     : "rcx", "r11", "memory", "cc");
	return result;
}

/*
 * The kernel's image and what the libc allocated, up to the program break, become
 * the start of the file that is the guest's memory, in huge pages if possible: a
 * new carrier then has them after a few page faults.
 */
void carrier_share_image(int fd, unsigned long from, unsigned long to)
{
	unsigned long at, end = ((unsigned long)sbrk(0) + UM_KERN_PAGE_SIZE - 1) &
				~(UM_KERN_PAGE_SIZE - 1UL);

	for (at = from; at < end; at += UM_KERN_PAGE_SIZE)	/* holes between segments */
		mmap((void *)at, UM_KERN_PAGE_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (copy_and_map(fd, from, to, end) != from) {
		os_warn("the kernel's image cannot be shared\n");
		exit(1);
	}
	collapse_pages((char *)from, to - from);
}

/* In place of weak functions of the libc: see uml.lds.S */
void carrier_nothing(void);
void carrier_nothing(void)
{
}

/* The signals of programs, and of the kernel's own faults */
static void carrier_signal(int sig, siginfo_t *info, void *p)
{
	ucontext_t *uc = p;
	unsigned long ip = uc->uc_mcontext.gregs[REG_RIP];

	if (sig == SIGTRAP && ip >= (unsigned long)carrier_called &&
	    ip < (unsigned long)carrier_called_end) {	/* a single step into the kernel */
		uc->uc_mcontext.gregs[REG_EFL] &= ~0x100UL;
		return;
	}
	if (ip >= (unsigned long)_text && ip < (unsigned long)_etext) {
		hard_handler(sig, info, p);
		return;
	}
	asm volatile("rdfsbase %0; rdgsbase %1; wrfsbase %2"
		     : "=&r" (last_fs), "=&r" (last_gs) : "r" (carrier_kernel_fs) : "memory");
	last_info = info;
	last_context = &uc->uc_mcontext;
	carrier_leave_user();
}

/* Only the first process ends others: while it waits, no child of it may end */
static void carrier_ended(int sig, siginfo_t *info, void *p)
{
	static const char words[] = "a process of the guest was ended from outside\n";

	if (!running) {
		hard_handler(sig, info, p);
		return;
	}
	stub_syscall3(__NR_write, 2, (unsigned long)words, sizeof(words) - 1);
	stub_syscall1(__NR_exit_group, 1);
}

void carrier_init(void)
{
	static const int program_signals[] = { SIGSYS, SIGSEGV, SIGTRAP, SIGILL, SIGFPE, SIGBUS };
	struct sigaction action = {
		.sa_sigaction = carrier_signal,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};
	struct sched_param priority = { };
	int i;

	if (using_carriers || time_travel_mode != TT_MODE_INFCPU ||
	    !(getauxval(AT_HWCAP2) & 2 /* FSGSBASE */) || getenv("QBKIT_MANY_PROGRAMS"))
		return;
	using_carriers = 1;
	asm volatile("rdfsbase %0" : "=r" (carrier_kernel_fs));
	carrier_xmask = carrier_xfeatures();
	for (i = 0; i < ARRAY_SIZE(program_signals); i++)
		sigaction(program_signals[i], &action, NULL);
	/* Whom a carrier wakes begins as it sleeps: one switch of the host, not two */
	syscall(__NR_sched_setscheduler, 0, SCHED_BATCH, &priority);
	action.sa_sigaction = carrier_ended;
	action.sa_flags |= SA_RESTART;
	sigaction(SIGCHLD, &action, NULL);
}

/*
 * The first thing a carrier does. The kernel goes on meanwhile, in the same
 * memory: so no libc here, which would set errno.
 */
static int carrier_main(void *arg)
{
	struct mm_id *mm = arg;
	struct stub_data *data = data_of(mm);
	stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned long)_text >> 32, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned long)_text, 0, 1),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned long)_etext, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(filter), .filter = filter };

	stub_syscall2(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
	stub_syscall2(__NR_prctl, PR_SET_NAME, (unsigned long)"uml-userspace");
	if (stub_syscall2(__NR_sigaltstack, (unsigned long)&stack, 0) ||
	    stub_syscall2(__NR_munmap, 0, uml_physmem) ||
	    stub_syscall2(__NR_munmap, end_vm, STUB_END - end_vm) ||
	    stub_syscall5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    stub_syscall3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, (unsigned long)&prog))
		stub_syscall1(__NR_exit_group, 21);
	carrier_wait((int *)&data->futex);
	return 0;
}

static void map_for_kernel(const struct kmap *map)
{
	if (map->prot < 0)
		munmap((void *)map->virt, map->len);
	else
		mmap64((void *)map->virt, map->len, map->prot, MAP_SHARED | MAP_FIXED,
		       map->fd, map->offset);
}

static unsigned long *seen_by(struct mm_id *mm)
{
	return mm ? &mm->kmaps_seen : &first_kmaps;
}

/* The running carrier has mapped this itself */
void carrier_kernel_mapped(unsigned long virt, unsigned long len, int prot, int fd,
			   unsigned long long offset)
{
	struct kmap map = { virt, len, offset, fd, prot };

	kmaps[kmaps_count++ % KMAPS] = map;
	*seen_by(running) = kmaps_count;
}

static void map_what_others_did(unsigned long *seen)
{
	if (kmaps_count - *seen > KMAPS) {
		munmap((void *)start_vm, end_vm - start_vm);
		carrier_map_kernel();
		*seen = kmaps_count;
	}
	for (; *seen < kmaps_count; (*seen)++)
		map_for_kernel(&kmaps[*seen % KMAPS]);
}

static int *go_of(struct mm_id *mm)
{
	return mm ? (int *)&data_of(mm)->futex : &first_go;
}

/* Go on in the host process of an address space, or in the first one (NULL) */
void carrier_hop(struct mm_id *to)
{
	struct mm_id *from = running;

	if (to == from)
		return;
	if (to && to->pid < 0)
		panic("a process of the guest was ended from outside");
	running = to;
	carrier_switch(go_of(to), go_of(from));
	map_what_others_did(seen_by(to));
}

int carrier_start(struct mm_id *mm)
{
	struct stub_data *data = data_of(mm);
	int pid;

	carrier_hop(NULL);
	data->futex = 0;
	mm->kmaps_seen = kmaps_count;
	pid = clone(carrier_main, data->sigstack + sizeof(data->sigstack),
		    CLONE_FILES | CLONE_FS | SIGCHLD, mm);
	if (pid < 0)
		return -errno;
	mm->pid = pid;
	return 0;
}

void carrier_end(struct mm_id *mm)
{
	carrier_hop(NULL);
	os_kill_process(mm->pid, 1);
}

/* Whether this is the first process, and another one is the kernel now */
int carrier_first_waits(void)
{
	return running != NULL;
}

/* Map and unmap what has been queued for the running carrier, as in stub.c */
static void flush(struct mm_id *mm, struct stub_data *data)
{
	int i;

	for (i = 0; i < mm->syscall_data_len; i++) {
		struct stub_syscall *sc = &data->syscall_data[i];
		unsigned long result, wanted = 0;

		if (sc->syscall == STUB_SYSCALL_MMAP) {
			wanted = sc->mem.addr;
			result = stub_syscall6(STUB_MMAP_NR, sc->mem.addr, sc->mem.length,
					       sc->mem.prot, MAP_SHARED | MAP_FIXED,
					       sc->mem.fd, sc->mem.offset);
		} else {
			result = unmap_program(mm, sc->mem.addr, sc->mem.addr + sc->mem.length);
		}
		if (result != wanted) {
			data->err = result;
			data->syscall_data_len = i;
			return;
		}
	}
	data->err = 0;
}

void carrier_flush(struct mm_id *mm)
{
	struct mm_id *from = running;

	carrier_hop(mm);
	flush(mm, data_of(mm));
	carrier_hop(from);
}

/* Run a program until its next system call or signal, which is returned and described by "info" */
int carrier_run(struct mm_id *mm, struct uml_pt_regs *regs, int single_stepping,
		siginfo_t *info)
{
	unsigned long *gp = regs->gp;

	carrier_hop(mm);
	carrier_fp = carrier_fp_state(regs);
	asm volatile("wrgsbase %0" : : "r" (gp[HOST_GS_BASE]));
	gp[HOST_EFLAGS] &= ~0x100UL;
	if (single_stepping)
		gp[HOST_EFLAGS] |= 0x100;
	if (carrier_enter_user(gp, gp[HOST_FS_BASE])) {
		info->si_signo = SIGSYS;
		info->si_syscall = gp[HOST_ORIG_AX];
		return SIGSYS;
	}

	get_regs_from_mc(regs, last_context);
	gp[HOST_FS_BASE] = last_fs;
	gp[HOST_GS_BASE] = last_gs;
	carrier_save_fp(regs, last_context);
	*info = *last_info;
	if (info->si_signo == SIGSYS)
		avoid_signal(mm, gp[HOST_IP], info->si_syscall);
	if (info->si_signo == SIGSEGV)
		GET_FAULTINFO_FROM_MC(regs->faultinfo, last_context);
	return info->si_signo;
}
