/* What is above a TCP flow (../above/c/above.h): its application, and how fast its receiver reads.
 *
 * Compiled together with tcp_flow.c, whose write(), recv() and listen() it replaces
 * (-Dwrite=app_write ...).
 */
#undef write
#undef recv
#undef listen
#define _GNU_SOURCE
#include "../above/c/above.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16384, UNSENT_BYTES = 65536, POLL_NS = 1000000, SEGMENT_BYTES = 1448, SEGMENT_COST_BYTES = 2304 };

/* 0, or -1 where a signal ended the sleep. */
static int sleep_until(uint64_t when_ns)
{
    struct timespec at = {.tv_sec = (time_t)(when_ns / 1000000000u),
                          .tv_nsec = (long)(when_ns % 1000000000u)};
    if (when_ns == NEVER_NS) return pause();
    return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) ? -1 : 0;
}

static int poll_again(void)
{
    struct timespec wait = {.tv_nsec = POLL_NS};
    return nanosleep(&wait, NULL);
}

static void keep_little_unsent(int connection)
{
    static bool done;
    int unsent = UNSENT_BYTES, no_delay = 1;
    if (done) return;
    setsockopt(connection, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
    done = true;
}

/* Wait until there is something to write; no bytes where a signal came. */
static uint64_t next_bytes(int connection)
{
    for (;;) {
        struct due due = app_due();
        int unacked = 0;
        if (due.bytes) return due.bytes;
        if (!due.wants_answer) {
            if (sleep_until(due.at_ns)) return 0;
        } else if (!ioctl(connection, SIOCOUTQ, &unacked) && unacked) {
            if (poll_again()) return 0;
        } else {
            app_answered();
        }
    }
}

ssize_t app_write(int connection, const void *data, size_t most)
{
    if (!app_given()) return write(connection, data, most);
    keep_little_unsent(connection);
    uint64_t bytes = next_bytes(connection);
    if (!bytes) {
        errno = EINTR;
        return -1;
    }
    if (most > CHUNK_BYTES) most = CHUNK_BYTES;
    ssize_t sent = write(connection, data, bytes < most ? bytes : most);
    if (sent > 0) app_written((uint64_t)sent);
    return sent;
}

/* Give the listener, and so its connection, the buffer whose window is the one to offer. The kernel
 * doubles what it is given, and counts a full segment with its descriptor. (TCP_WINDOW_CLAMP would
 * be exact, but the kernel sets it anew once it knows the size of segments.) */
int app_listen(int listener, int backlog)
{
    const char *text = getenv("QBKIT_WINDOW_BYTES");
    int buffer = text ? (int)(atof(text) * SEGMENT_COST_BYTES / SEGMENT_BYTES / 2) : 0;
    if (buffer && setsockopt(listener, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer)) {
        fprintf(stderr, "the kernel offers no window of %s bytes: %s\n", text, strerror(errno));
        exit(1);
    }
    return listen(listener, backlog);
}

ssize_t app_recv(int connection, void *data, size_t most, int flags)
{
    static int wake;
    if (!wake++) setsockopt(connection, SOL_SOCKET, SO_RCVLOWAT, &wake, sizeof wake);
    if (getenv("QBKIT_READ_MBPS") && most > CHUNK_BYTES) most = CHUNK_BYTES;
    ssize_t got = recv(connection, data, most, flags);
    if (got <= 0) return got;
    reader_took((uint64_t)got);
    if (getenv("QBKIT_READ_MBPS")) sleep_until(reader_ready_ns());
    return got;
}
