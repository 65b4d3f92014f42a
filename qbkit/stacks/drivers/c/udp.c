#include "flow.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, CONTROL_BYTES = 64, SOCKET_BYTES = 32 << 20, ECN_BITS = 3 };

/* Datagrams in a row of buffers, as sendmmsg and recvmmsg want them. */
struct batch {
    struct mmsghdr headers[BATCH];
    struct iovec parts[BATCH];
    struct sockaddr_in peers[BATCH];
    uint8_t bytes[BATCH][DATAGRAM_BYTES];
    char control[BATCH][CONTROL_BYTES] __attribute__((aligned(8)));
};

struct sockaddr_in udp_local;
static struct batch incoming, outgoing;
static unsigned queued;
static int sock;

static void set(int level, int name, int value)
{
    setsockopt(sock, level, name, &value, sizeof value); /* without more room it works too */
}

/* The local address from which packets to the peer go. */
static struct sockaddr_in local_address(void)
{
    struct sockaddr_in at;
    socklen_t length = sizeof at;
    int asked = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (connect(asked, (struct sockaddr *)&flow.address, sizeof flow.address) ||
        getsockname(asked, (struct sockaddr *)&at, &length))
        fail("cannot reach %s: %s", flow.address_text, strerror(errno));
    close(asked);
    at.sin_port = 0;
    return at;
}

void udp_open(uint8_t ecn)
{
    socklen_t length = sizeof udp_local;
    udp_local = flow.sends ? local_address() : flow.address;
    sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(sock, (struct sockaddr *)&udp_local, sizeof udp_local) ||
        getsockname(sock, (struct sockaddr *)&udp_local, &length))
        fail("cannot use the address of %s: %s", flow.address_text, strerror(errno));
    set(SOL_SOCKET, SO_RCVBUF, SOCKET_BYTES);
    set(SOL_SOCKET, SO_SNDBUF, SOCKET_BYTES);
    set(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set(IPPROTO_IP, IP_RECVTOS, 1);
    set(IPPROTO_IP, IP_TOS, ecn);
}

bool udp_wait(uint64_t until_ns)
{
    uint64_t now = now_ns(), left_ns = until_ns > now ? until_ns - now : 0;
    struct timespec left = {(time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000)};
    struct pollfd watched = {.fd = sock, .events = POLLIN};
    sigset_t none;
    sigemptyset(&none);
    return ppoll(&watched, 1, &left, &none) == 1;
}

static void point(struct batch *batch, unsigned i, size_t size)
{
    batch->parts[i] = (struct iovec){batch->bytes[i], size};
    batch->headers[i].msg_hdr = (struct msghdr){.msg_name = &batch->peers[i],
                                                .msg_namelen = sizeof batch->peers[i],
                                                .msg_iov = &batch->parts[i],
                                                .msg_iovlen = 1};
}

static uint8_t ecn_of(struct msghdr *header)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) return *CMSG_DATA(c) & ECN_BITS;
    return 0;
}

static int receive_batch(take_datagram *take)
{
    for (unsigned i = 0; i < BATCH; i++) {
        point(&incoming, i, DATAGRAM_BYTES);
        incoming.headers[i].msg_hdr.msg_control = incoming.control[i];
        incoming.headers[i].msg_hdr.msg_controllen = CONTROL_BYTES;
    }
    int got = recvmmsg(sock, incoming.headers, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < got; i++) {
        struct mmsghdr *header = &incoming.headers[i];
        take(&(struct datagram){incoming.bytes[i], header->msg_len, incoming.peers[i],
                                ecn_of(&header->msg_hdr)});
    }
    return got;
}

/* A batch that is not full has emptied the socket. */
void udp_receive(take_datagram *take)
{
    while (receive_batch(take) == BATCH) continue;
}

uint8_t *udp_room(void)
{
    return outgoing.bytes[queued];
}

void udp_queue(size_t size, const struct sockaddr_in *peer)
{
    outgoing.peers[queued] = *peer;
    point(&outgoing, queued++, size);
    if (queued == BATCH) udp_flush();
}

void udp_flush(void)
{
    for (unsigned first = 0; first < queued;) {
        int sent = sendmmsg(sock, outgoing.headers + first, queued - first, 0);
        if (sent > 0) first += (unsigned)sent;
        else if (errno != EINTR) first++; /* what cannot be sent is lost, as on any network */
    }
    queued = 0;
}
