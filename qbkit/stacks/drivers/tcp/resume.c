/* A second TCP connection (qbkit/spec/resume.py), by TCP Fast Open (RFC 7413) where its data may come
 * in the SYN: the driver and app.c see both connections as one.
 *
 * It takes the place of connect(), listen(), recv() and close() in tcp_flow.c (-Dconnect=resume_connect
 * ...); CONNECT is the call below it.
 */
#undef connect
#undef listen
#undef recv
#undef close
#define _GNU_SOURCE
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20, NAME_BYTES = 16, WAITING = 16 };

int CONNECT(int sock, const struct sockaddr *at, socklen_t length);
int app_listen(int listener, int backlog);
ssize_t app_recv(int connection, void *data, size_t most, int flags);

static int listening = -1, second = -1, early;
static uint64_t first_bytes, pause_ns, began_ns;

static void fail(const char *what)
{
    fprintf(stderr, "cannot %s the first connection: %s\n", what, strerror(errno));
    exit(1);
}

static void read_words(void)
{
    const char *text = getenv("QBKIT_RESUME");
    char kind[8] = "";
    if (!text || sscanf(text, "%7s %lu %lu", kind, &first_bytes, &pause_ns) < 3)
        fail("read QBKIT_RESUME for");
    early = !strcmp(kind, "0rtt");
}

static void fast_open(int sock, int option, int value)
{
    if (early && setsockopt(sock, IPPROTO_TCP, option, &value, sizeof value))
        fail("ask for TCP Fast Open in");
}

/* --- the client --- */

/* A socket with the controller of another. */
static int socket_like(int other)
{
    char controller[NAME_BYTES + 1] = "";
    int domain = AF_INET;
    socklen_t length = sizeof domain, name_length = NAME_BYTES;
    getsockopt(other, SOL_SOCKET, SO_DOMAIN, &domain, &length);
    getsockopt(other, IPPROTO_TCP, TCP_CONGESTION, controller, &name_length);
    int made = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, controller, strlen(controller)))
        fail("choose the controller of");
    return made;
}

/* The flow is over before its second connection begins. */
static void end_flow(int number)
{
    (void)number;
    _exit(0);
}

static void on_each_signal(const struct sigaction *action, struct sigaction *before)
{
    static const int ends[] = {SIGALRM, SIGTERM, SIGINT};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaction(ends[i], action, before);
}

static void transfer_first(int like, const struct sockaddr *at, socklen_t length)
{
    static char buffer[CHUNK_BYTES];
    struct linger abort_now = {.l_onoff = 1}, as_usual = {0}; /* a full send buffer does not go on */
    int sock = socket_like(like);
    setsockopt(sock, SOL_SOCKET, SO_LINGER, &abort_now, sizeof abort_now);
    fast_open(sock, TCP_FASTOPEN_CONNECT, 1); /* asks for a cookie */
    if (CONNECT(sock, at, length)) fail("make");
    for (uint64_t left = first_bytes; left;) {
        ssize_t sent = write(sock, buffer, left < sizeof buffer ? left : sizeof buffer);
        if (sent < 0) fail("send over");
        left -= (uint64_t)sent;
    }
    shutdown(sock, SHUT_WR);
    if (read(sock, buffer, 1) < 0) fail("end");
    setsockopt(sock, SOL_SOCKET, SO_LINGER, &as_usual, sizeof as_usual);
    close(sock);
}

int resume_connect(int sock, const struct sockaddr *at, socklen_t length)
{
    struct sigaction over = {.sa_handler = end_flow}, usual;
    read_words();
    on_each_signal(&over, &usual);
    transfer_first(sock, at, length);
    struct timespec pause_for = {(time_t)(pause_ns / 1000000000u), (long)(pause_ns % 1000000000u)}, now;
    nanosleep(&pause_for, NULL);
    on_each_signal(&usual, NULL);
    fast_open(sock, TCP_FASTOPEN_CONNECT, 1);
    clock_gettime(CLOCK_REALTIME, &now);
    began_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    second = sock;
    return CONNECT(sock, at, length);
}

/* At the second connection's end: whether its SYN's data were acknowledged by the SYN-ACK. */
int resume_close(int sock)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    char path[4096];
    if (sock != second || getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &length) || !info.tcpi_segs_in)
        return close(sock);
    int accepted = !!(info.tcpi_options & TCPI_OPT_SYN_DATA);
    snprintf(path, sizeof path, "%s/resumed.csv", getenv("QBKIT_APP_OUT"));
    FILE *file = fopen(path, "we");
    if (!file) fail("write resumed.csv after");
    fprintf(file, "time_ns,session,early\n%lu,%d,%d\n", began_ns, accepted, accepted);
    fclose(file);
    return close(sock);
}

/* --- the server --- */

int resume_listen(int listener, int backlog)
{
    read_words();
    fast_open(listener, TCP_FASTOPEN, WAITING);
    listening = listener;
    return app_listen(listener, backlog);
}

/* At the end of the first connection, the second one takes its place. */
ssize_t resume_recv(int connection, void *data, size_t most, int flags)
{
    ssize_t got = app_recv(connection, data, most, flags);
    if (got || listening < 0) return got;
    shutdown(connection, SHUT_WR);
    int next = accept(listening, NULL, NULL);
    listening = -1;
    if (next < 0) return 0;
    dup2(next, connection);
    close(next);
    return app_recv(connection, data, most, flags);
}
