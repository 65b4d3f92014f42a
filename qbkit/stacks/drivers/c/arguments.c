#include "flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
enum { MOST_OPTIONS = 32, CONNECT_S = 10 };
#define USUAL_WINDOW_BYTES (UINT64_C(128) << 20)

struct flow flow = {.out = ".", .window_bytes = USUAL_WINDOW_BYTES};
volatile sig_atomic_t stopping;
static const char *given[MOST_OPTIONS]; /* name=value */
static int given_count;

void fail(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vfprintf(stderr, format, words);
    fputc('\n', stderr);
    exit(1);
}

void fail_to_connect(void)
{
    fail("cannot connect to %s within %d s", flow.address_text, CONNECT_S);
}

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

uint64_t connect_limit_ns(void)
{
    return now_ns() + CONNECT_S * SECOND_NS;
}

static uint64_t number(const char *name, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-')
        fail("%s cannot be %s: a whole number is needed", name, text);
    return value;
}

const char *option(const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < given_count; i++)
        if (!strncmp(given[i], name, length) && given[i][length] == '=')
            return given[i] + length + 1;
    return NULL;
}

bool option_is(const char *name, bool usual)
{
    const char *text = option(name);
    if (!text) return usual;
    if (strcmp(text, "true") && strcmp(text, "false"))
        fail("the option %s cannot be %s; it is true or false", name, text);
    return *text == 't';
}

static void add_option(const char *word, const char *stack, const char *const *known)
{
    const char *end = strchr(word, '=');
    for (; end && *known; known++)
        if (strlen(*known) == (size_t)(end - word) && !strncmp(word, *known, (size_t)(end - word))) {
            if (given_count == MOST_OPTIONS) fail("%s takes %d options", stack, MOST_OPTIONS);
            given[given_count++] = word;
            return;
        }
    fail("%s has no option %s", stack, word);
}

static struct sockaddr_in parse_address(const char *text)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    char *copy = strdup(text), *port = strrchr(copy, ':');
    if (port) *port++ = 0;
    if (!port || !inet_aton(copy, &at.sin_addr)) fail("%s is not IP:PORT", text);
    at.sin_port = htons((uint16_t)number("the port", port));
    free(copy);
    return at;
}

static void on_signal(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

/* Signals come only while `udp_wait` waits, so that none comes just before it. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t signals;
    sigemptyset(&signals);
    for (const int *s = (const int[]){SIGTERM, SIGINT, 0}; *s; s++) {
        sigaction(*s, &action, NULL);
        sigaddset(&signals, *s);
    }
    sigprocmask(SIG_BLOCK, &signals, NULL);
}

static void read_word(const char *name, const char *value)
{
    if (!strcmp(name, "--listen") || !strcmp(name, "--connect")) flow.address_text = value;
    else if (!strcmp(name, "--controller")) flow.controller = value;
    else if (!strcmp(name, "--duration-s")) flow.duration_ns = (uint64_t)(atof(value) * SECOND_NS);
    else if (!strcmp(name, "--bytes")) flow.size_bytes = number(name, value);
    else if (!strcmp(name, "--cert")) flow.cert = value;
    else if (!strcmp(name, "--key")) flow.key = value;
    else if (!strcmp(name, "--out")) flow.out = value;
    else fail("there is no argument %s", name);
}

static void require_all(const char *stack)
{
    if (!flow.address_text) fail("%s needs an address", stack);
    if (flow.sends && !flow.controller) fail("%s needs --controller", stack);
    if (flow.sends && !flow.duration_ns == !flow.size_bytes)
        fail("%s needs either --duration-s or --bytes, above 0", stack);
    if (!flow.sends && !(flow.cert && flow.key)) fail("%s needs --cert and --key", stack);
}

void read_arguments(int argc, char **argv, const char *stack, const char *const *options)
{
    const char *window = getenv("QBKIT_WINDOW_BYTES");
    flow.sends = argc > 1 && !strcmp(argv[1], "send");
    if (argc < 2 || argc % 2 || (!flow.sends && strcmp(argv[1], "recv")))
        fail("usage: %s recv|send, see qbkit/stacks/base.py", stack);
    for (int i = 2; i < argc; i += 2) {
        if (!strcmp(argv[i], "--option")) add_option(argv[i + 1], stack, options);
        else read_word(argv[i], argv[i + 1]);
    }
    require_all(stack);
    flow.address = parse_address(flow.address_text);
    if (window) flow.window_bytes = number("QBKIT_WINDOW_BYTES", window);
    catch_signals();
}
