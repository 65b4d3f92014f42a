/* Run in a guest: maps memory where the guest's kernel is, in each program's own address space. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, CALLS = 100000 };

int main(void)
{
    char *kernel = (char *)0x500000001000; /* START of patch 0010, and a page */
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *mapped = mmap(kernel, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);

    printf("hint %s\n", mapped != MAP_FAILED && mapped != kernel ? "elsewhere" : "WRONG");
    strcpy(mapped, "written");
    mapped = mmap(kernel, PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0);
    printf("fixed %s\n", mapped == MAP_FAILED && errno == ENOMEM ? "refused" : "WRONG");
    munmap(kernel, PAGE);
    for (int call = 0; call < CALLS; call++)
        syscall(SYS_getppid);
    printf("end\n");
    return 0;
}
