/* First program of the guest: lays out the file system, runs the agent, powers off.
 *
 * The guest's root is a tiny folder of ours, so that the kernel's command line never changes;
 * the host's root is mounted read-only below it and becomes the root of everything that runs.
 * Paths of the run itself are reached as /proc/self/cwd of the kernel process: the guest sees
 * neither where they lie nor what else is there.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ROOT
#define ROOT "/"
#endif

struct target { const char *source, *path, *type; unsigned long flags; const char *data; };

static const struct target TARGETS[] = {
    {"none", "/host", "hostfs", MS_RDONLY, ROOT},
    {"proc", "/host/proc", "proc", 0, NULL},
    {"sysfs", "/host/sys", "sysfs", 0, NULL},
    {"tmpfs", "/host/run", "tmpfs", 0, NULL},
    {"tmpfs", "/host/tmp", "tmpfs", 0, NULL},
    {"devtmpfs", "/host/dev", "devtmpfs", 0, NULL},
    {"devpts", "/host/dev/pts", "devpts", 0, NULL},
    {"tmpfs", "/host/dev/shm", "tmpfs", 0, NULL},
    {"none", "/host/run/qb/run", "hostfs", 0, "/proc/self/cwd/run"},
    {"none", "/host/run/qb/agent", "hostfs", MS_RDONLY, "/proc/self/cwd/agent"},
};

static const char *const FOLDERS[] = {
    "/host/dev/pts", "/host/dev/shm", "/host/run/qb", "/host/run/qb/run", "/host/run/qb/agent",
};

/* Where the root is one of ours, the machine's is beside it: the flows' programs run there. */
static void lay_out_machine(void)
{
#ifdef MACHINE
    static const char *const SHARED[] = {"proc", "sys", "dev", "run", "tmp"};
    char from[64], to[64];

    if (mount("none", MACHINE, "hostfs", MS_RDONLY, "/"))
        printf("QBKIT init cannot mount %s: %s\n", MACHINE, strerror(errno));
    for (size_t i = 0; i < sizeof SHARED / sizeof *SHARED; i++) {
        snprintf(from, sizeof from, "/host/%s", SHARED[i]);
        snprintf(to, sizeof to, "%s/%s", MACHINE, SHARED[i]);
        /* What the agent mounts later in /run must be there, too. */
        if (mount(NULL, from, NULL, MS_SHARED, NULL) || mount(from, to, NULL, MS_BIND | MS_REC, NULL))
            printf("QBKIT init cannot bind %s: %s\n", to, strerror(errno));
    }
#endif
}

static void lay_out(void)
{
    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        const struct target *t = &TARGETS[i];
        for (size_t f = 0; f < sizeof FOLDERS / sizeof *FOLDERS; f++)
            if (!strncmp(t->path, FOLDERS[f], strlen(FOLDERS[f])))
                mkdir(FOLDERS[f], 0755);
        if (mount(t->source, t->path, t->type, t->flags, t->data))
            printf("QBKIT init cannot mount %s: %s\n", t->path, strerror(errno));
    }
    lay_out_machine();
    /* As switch_root does: whoever joins a mount namespace later must find this root too. */
    if (chdir("/host") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
        printf("QBKIT init cannot enter the host's root: %s\n", strerror(errno));
}

int main(void)
{
    char *const argv[] = {"/usr/bin/python3", "-I", "-S", "-B", "/run/qb/agent/agent.pyc",
                          "/run/qb/run", NULL};
    char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/run", "LANG=C.UTF-8", NULL};

    setvbuf(stdout, NULL, _IOLBF, 0);
    lay_out();
    pid_t agent = fork();
    if (!agent) {
        setsid();
        execve(argv[0], argv, env);
        printf("QBKIT init cannot start %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    for (pid_t ended = 0; ended != agent && !(ended < 0 && errno == ECHILD);)
        ended = wait(NULL);
    sync();
    reboot(RB_POWER_OFF);
    return 1;
}
