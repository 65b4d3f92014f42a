/* Runs a program in the machine's root, which lies beside the guest's own (testbed/guest_root.py). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char here[PATH_MAX];

    if (argc < 2 || !getcwd(here, sizeof here) || chroot(MACHINE) || chdir(here)) {
        fprintf(stderr, "cannot enter the machine's root: %s\n", strerror(errno));
        return 126;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "cannot start %s: %s\n", argv[1], strerror(errno));
    return 127;
}
