/* The application of a TCP flow: when it has data to send, and when they have arrived.
 *
 * Compiled together with tcp_flow.c, whose write() and recv() it replaces (-Dwrite=app_write
 * -Drecv=app_recv). QBKIT_APP names the application, QBKIT_APP_OUT the folder of its tables:
 *
 *   objects NS:BYTES NS:BYTES ...   each at its time after the start of the flow
 *   onoff ON_NS OFF_NS SEED         as much as it can while it is on; means, if SEED is not 0
 *   requests BYTES THINK_NS SEED    the next object so long after the last one was acknowledged
 *
 * The sender writes objects.csv, a row when an object is released, or when an on-time ends. The
 * receiver writes arrived.csv, a row of each read.
 */
#undef write
#undef recv
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sockios.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16384, UNSENT_BYTES = 65536, POLL_NS = 1000000 };

static const char *next_word;
static enum { OBJECTS, ONOFF, REQUESTS } kind;
static uint64_t start_ns, left, on_ns, off_ns, off_at_ns, sent_in_on, object_bytes, think_ns, seed;
static FILE *rows;
static int started, first = 1;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* 0, or -1 where a signal ended the sleep. */
static int sleep_until(uint64_t when_ns)
{
    struct timespec at = {.tv_sec = (time_t)(when_ns / 1000000000u),
                          .tv_nsec = (long)(when_ns % 1000000000u)};
    return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) ? -1 : 0;
}

/* A time of this mean, exponential if there is a seed: xorshift64*. */
static uint64_t drawn(uint64_t mean_ns)
{
    if (!seed) return mean_ns;
    seed ^= seed >> 12, seed ^= seed << 25, seed ^= seed >> 27;
    double part = (double)((seed * 2685821657736338717u) >> 11) / 9007199254740992.0;
    return (uint64_t)(-log(1 - part) * (double)mean_ns);
}

static FILE *table(const char *name, const char *header)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("QBKIT_APP_OUT"), name);
    FILE *file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
        exit(1);
    }
    fputs(header, file);
    setvbuf(file, NULL, _IOLBF, 0);
    return file;
}

static void begin(int connection)
{
    char name[16] = "";
    const char *text = getenv("QBKIT_APP");
    int unsent = UNSENT_BYTES, no_delay = 1, at = 0;
    uint64_t a = 0, b = 0, c = 0;
    sscanf(text, "%15s%n", name, &at);
    next_word = text + at;
    kind = !strcmp(name, "onoff") ? ONOFF : !strcmp(name, "requests") ? REQUESTS : OBJECTS;
    if (kind != OBJECTS) sscanf(next_word, "%lu %lu %lu", &a, &b, &c);
    if (kind == ONOFF) on_ns = a, off_ns = b, seed = c;
    if (kind == REQUESTS) object_bytes = a, think_ns = b, seed = c;
    rows = table("objects.csv", "time_ns,bytes\n");
    setsockopt(connection, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
    start_ns = now_ns();
    started = 1;
}

static int next_listed(void)
{
    uint64_t at_ns, bytes;
    int length;
    if (sscanf(next_word, " %lu:%lu%n", &at_ns, &bytes, &length) < 2) return pause();
    if (sleep_until(start_ns + at_ns)) return -1;
    next_word += length;
    fprintf(rows, "%lu,%lu\n", start_ns + at_ns, bytes);
    left = bytes;
    return 0;
}

static int next_request(int connection)
{
    int unacked = 0;
    while (!first && !ioctl(connection, SIOCOUTQ, &unacked) && unacked)
        if (sleep_until(now_ns() + POLL_NS)) return -1;
    if (!first && sleep_until(now_ns() + drawn(think_ns))) return -1;
    first = 0;
    fprintf(rows, "%lu,%lu\n", now_ns(), object_bytes);
    left = object_bytes;
    return 0;
}

static int next_on(void)
{
    if (!first) {
        fprintf(rows, "%lu,%lu\n", start_ns, sent_in_on);
        if (sleep_until(off_at_ns + drawn(off_ns))) return -1;
    }
    first = 0;
    sent_in_on = 0;
    start_ns = now_ns();
    off_at_ns = start_ns + drawn(on_ns);
    left = UINT64_MAX;
    return 0;
}

ssize_t app_write(int connection, const void *data, size_t most)
{
    if (!started) begin(connection);
    if (kind == ONOFF && left && off_at_ns && now_ns() >= off_at_ns) left = 0;
    if (!left) {
        int failed = kind == OBJECTS ? next_listed() : kind == ONOFF ? next_on()
                                                     : next_request(connection);
        if (failed) {
            errno = EINTR;
            return -1;
        }
    }
    if (most > CHUNK_BYTES) most = CHUNK_BYTES;
    if (most > left) most = left;
    ssize_t sent = write(connection, data, most);
    if (sent > 0) left -= (uint64_t)sent, sent_in_on += (uint64_t)sent;
    return sent;
}

ssize_t app_recv(int connection, void *data, size_t most, int flags)
{
    static uint64_t total;
    int wake = 1;
    if (!started) {
        setsockopt(connection, SOL_SOCKET, SO_RCVLOWAT, &wake, sizeof wake);
        rows = table("arrived.csv", "time_ns,bytes\n");
        started = 1;
    }
    ssize_t got = recv(connection, data, most, flags);
    if (got > 0) fprintf(rows, "%lu,%lu\n", now_ns(), total += (uint64_t)got);
    return got;
}
