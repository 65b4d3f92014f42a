/* System calls that an event loop makes in vain, to be preloaded. A call costs the guest microseconds.
 *
 * 1. A recvmmsg that fills fewer messages than it could has emptied the socket. Programs ask once
 *    more and learn EAGAIN; here they learn it without the call. What arrives in between still wakes
 *    the next epoll_wait, edge-triggered or not.
 * 2. A socket that is watched for room to write (EPOLLOUT, edge-triggered) wakes the program after
 *    every datagram it sends. It is watched for that until it has room, and again once a send has
 *    found none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SOCKETS = 1024, WATCHED = 16 };

/* By descriptor: whether it has ever answered EAGAIN, as only non-blocking ones do, and whether the
 * last batch emptied it. */
static unsigned char nonblocking[SOCKETS], emptied[SOCKETS];

/* Datagram sockets that are watched for room to write, as the program asked for it. */
static struct watch {
    int poller, socket, for_room;
    struct epoll_event event;
} watches[WATCHED];
static int watch_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_known(int fd)
{
    return fd >= 0 && fd < SOCKETS;
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags,
             struct timespec *timeout)
{
    if (is_known(fd) && emptied[fd]) {
        emptied[fd] = 0;
        errno = EAGAIN;
        return -1;
    }
    int got = (int)syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);
    if (!is_known(fd)) return got;
    if (got < 0 && errno == EAGAIN) nonblocking[fd] = 1;
    emptied[fd] = nonblocking[fd] && got > 0 && (unsigned int)got < count;
    return got;
}

static int is_datagram_socket(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_DGRAM;
}

static struct watch *watch_of(int poller, int fd)
{
    for (int i = 0; i < watch_count; i++)
        if (watches[i].socket == fd && (poller < 0 || watches[i].poller == poller))
            return &watches[i];
    return NULL;
}

static long control(int poller, int operation, int fd, struct epoll_event *event)
{
    return syscall(SYS_epoll_ctl, poller, operation, fd, event);
}

int epoll_ctl(int poller, int operation, int fd, struct epoll_event *event)
{
    int saved = errno, wanted = event && operation != EPOLL_CTL_DEL &&
        (event->events & EPOLLOUT) && (event->events & EPOLLET) &&
        !(event->events & EPOLLONESHOT) && is_datagram_socket(fd);
    errno = saved;
    pthread_mutex_lock(&lock);
    struct watch *watch = watch_of(poller, fd);
    if (watch && !wanted) *watch = watches[--watch_count];
    if (!watch && wanted && watch_count < WATCHED) watch = &watches[watch_count++];
    if (watch && wanted) *watch = (struct watch){poller, fd, 1, *event};
    pthread_mutex_unlock(&lock);
    return (int)control(poller, operation, fd, event);
}

/* Watches a socket for room to write or no longer. */
static void watch_for_room(struct watch *watch, int for_room)
{
    struct epoll_event event = watch->event;
    int saved = errno;
    if (!for_room) event.events &= ~(uint32_t)EPOLLOUT;
    control(watch->poller, EPOLL_CTL_MOD, watch->socket, &event);
    watch->for_room = for_room;
    errno = saved;
}

/* Found by what the program gave with it, a pointer or the descriptor: some wait by a duplicate of
 * the poller's descriptor. */
static void stop_watching(uint64_t data)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < watch_count; i++)
        if (watches[i].for_room && watches[i].event.data.u64 == data)
            watch_for_room(&watches[i], 0);
    pthread_mutex_unlock(&lock);
}

static int waited(const struct epoll_event *events, int count)
{
    memset(emptied, 0, sizeof emptied);
    for (int i = 0; i < count; i++)
        if (events[i].events & EPOLLOUT) stop_watching(events[i].data.u64);
    return count;
}

int epoll_wait(int poller, struct epoll_event *events, int most, int timeout_ms)
{
    return waited(events, (int)syscall(SYS_epoll_wait, poller, events, most, timeout_ms));
}

int epoll_pwait(int poller, struct epoll_event *events, int most, int timeout_ms,
                const sigset_t *mask)
{
    long got = syscall(SYS_epoll_pwait, poller, events, most, timeout_ms, mask, _NSIG / 8);
    return waited(events, (int)got);
}

static void check_room(int fd, long sent)
{
    if (sent >= 0 || errno != EAGAIN) return;
    pthread_mutex_lock(&lock);
    struct watch *watch = watch_of(-1, fd);
    if (watch) watch_for_room(watch, 1);
    pthread_mutex_unlock(&lock);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    long sent = syscall(SYS_sendmsg, fd, message, flags);
    check_room(fd, sent);
    return sent;
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
    long sent = syscall(SYS_sendmmsg, fd, messages, count, flags);
    check_room(fd, sent);
    return (int)sent;
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
               socklen_t length)
{
    long sent = syscall(SYS_sendto, fd, data, size, flags, to, length);
    check_room(fd, sent);
    return sent;
}

int close(int fd)
{
    if (is_known(fd)) emptied[fd] = nonblocking[fd] = 0;
    pthread_mutex_lock(&lock);
    for (struct watch *watch; (watch = watch_of(-1, fd));) *watch = watches[--watch_count];
    pthread_mutex_unlock(&lock);
    return (int)syscall(SYS_close, fd);
}
