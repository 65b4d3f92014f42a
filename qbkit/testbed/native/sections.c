/* Preloaded into ip or tc: runs its main() once for each section of the standard input.
 *
 *   section PATH NAME     the network namespace of the lines that follow, and what to call it
 *   ...                   lines as the program's own -batch reads them
 *
 * Loading a program costs the guest 10 ms, the messages that configure a node a tenth of that, so
 * one process configures all nodes. What ip and tc keep from one section to the next is the index
 * of an interface by its name; names therefore must differ between namespaces. When a section
 * fails, its NAME is the last line on stderr.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int main_function(int, char **, char **);

static const char MARK[] = "section ";
static main_function *program;

static void enter(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || setns(file, CLONE_NEWNET)) {
        perror(path);
        exit(1);
    }
    close(file);
}

static int run_lines(const char *name, char *text, size_t length, char **env)
{
    if (!length) return 0;
    stdin = fmemopen(text, length, "r");
    if (!stdin) {
        perror("fmemopen");
        exit(1);
    }
    return program(3, (char *[]){(char *)name, "-batch", "-", NULL}, env);
}

/* The first place from a line's beginning on where a section begins; the end without any. */
static char *next_section(char *at, char *end)
{
    while (at < end && strncmp(at, MARK, strlen(MARK))) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : end;
    }
    return at;
}

static int run_sections(int argc, char **argv, char **env)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length = getdelim(&text, &room, 0, stdin);
    char *end = length > 0 ? text + length : text;

    (void)argc;
    for (char *at = next_section(text, end); at < end;) {
        char *words = strsep(&at, "\n") + strlen(MARK), *path = strsep(&words, " ");
        char *next = next_section(at, end);
        enter(path);
        int status = run_lines(argv[0], at, (size_t)(next - at), env);
        if (status) {
            fprintf(stderr, "%s\n", words);
            return status;
        }
        at = next;
    }
    return 0;
}

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack)
{
    __typeof__(&__libc_start_main) real = dlsym(RTLD_NEXT, "__libc_start_main");
    program = main;
    return real(run_sections, argc, argv, init, fini, rtld_fini, stack);
}
