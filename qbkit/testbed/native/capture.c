/* Captures both sides of a bottleneck into two nanosecond pcap files.
 *
 *   capture BLOCKS BEFORE BEHIND ROUTER...     ROUTER = PATH:senders:IF,IF,... or PATH:receivers:IF,IF,...
 *                                                or PATH:FILE:IF
 *
 * PATH is the network namespace of a router, IF its ports towards hosts. What senders' ports
 * receive has not seen the queue: BEFORE. What receivers' ports send has passed it: BEHIND. What
 * receivers' ports receive are acknowledgements: BEFORE. Where random loss or a second queue stands
 * between the two, the port behind a queue gives what it receives to a FILE (a path with a slash) of
 * its own. One memory-mapped ring of so many BLOCKS a router, read a
 * block at a time, keeps the capture cheap: a system call costs the guest 8 µs, a packet does not.
 * Prints "ready" when it captures; on SIGTERM drains the rings, prints "drops N", and exits.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SNAPLEN = 128, BLOCK_BYTES = 1 << 18, RETIRE_MS = 500, MAX_PORTS = 250 };

struct ring {
    int socket;
    uint8_t *blocks;
    unsigned next, count;
    FILE *received, *sent; /* where its frames go, by direction */
};

static volatile sig_atomic_t stopping;

static void on_term(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

static void fail(const char *what)
{
    fprintf(stderr, "capture: %s: %s\n", what, strerror(errno));
    exit(1);
}

static FILE *open_pcap(const char *path)
{
    struct { uint32_t magic; uint16_t major, minor; uint32_t zone, figures, snaplen, link; } header =
        {0xa1b23c4d, 2, 4, 0, 0, SNAPLEN, 1};
    FILE *file = fopen(path, "we");
    if (!file) fail(path);
    /* Without a buffer of its own, glibc ignores the size and writes 4 KiB at a time. */
    if (setvbuf(file, malloc(1 << 20), _IOFBF, 1 << 20)) fail("buffer");
    fwrite(&header, sizeof header, 1, file);
    return file;
}

/* Accepts IPv4 and IPv6 frames of the ports given, cut to SNAPLEN, and nothing else. */
static void attach_filter(int sock, const unsigned *ports, unsigned count)
{
    struct sock_filter code[MAX_PORTS + 8];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PROTOCOL);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 2, 0);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_IFINDEX);
    for (unsigned i = 0; i < count; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ports[i], count - i, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SNAPLEN);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    if (setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program)) fail("filter");
}

static struct ring open_ring(int receive_only, const unsigned *ports, unsigned count, unsigned blocks)
{
    struct ring ring = {.socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), .count = blocks};
    int version = TPACKET_V3, one = 1;
    struct tpacket_req3 request = {
        .tp_block_size = BLOCK_BYTES, .tp_block_nr = blocks, .tp_frame_size = 2048,
        .tp_frame_nr = BLOCK_BYTES / 2048 * blocks, .tp_retire_blk_tov = RETIRE_MS};
    struct sockaddr_ll all = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

    if (ring.socket < 0) fail("packet socket");
    attach_filter(ring.socket, ports, count);
    if (receive_only && setsockopt(ring.socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one))
        fail("ignore outgoing");
    if (setsockopt(ring.socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(ring.socket, SOL_PACKET, PACKET_RX_RING, &request, sizeof request))
        fail("packet ring");
    ring.blocks = mmap(NULL, (size_t)BLOCK_BYTES * blocks, PROT_READ | PROT_WRITE, MAP_SHARED,
                       ring.socket, 0);
    if (ring.blocks == MAP_FAILED) fail("map ring");
    if (bind(ring.socket, (struct sockaddr *)&all, sizeof all)) fail("bind");
    return ring;
}

/* "PATH:senders:IF,IF" -> a ring in that namespace, and the files of its frames. */
static struct ring open_router(char *text, unsigned blocks, FILE *before, FILE *behind)
{
    char *rest = text;
    const char *path = strsep(&rest, ":"), *side = strsep(&rest, ":"), *name;
    unsigned ports[MAX_PORTS], count = 0;

    int ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET)) fail(path);
    close(ns);
    while (count < MAX_PORTS && (name = strsep(&rest, ",")))
        if (!(ports[count++] = if_nametoindex(name))) fail(name);
    struct ring ring = open_ring(!side || strcmp(side, "receivers"), ports, count, blocks);
    ring.received = side && strchr(side, '/') ? open_pcap(side) : before;
    ring.sent = behind;
    return ring;
}

static void write_block(const uint8_t *block, const struct ring *ring)
{
    const struct tpacket_hdr_v1 *head = &((const struct tpacket_block_desc *)block)->hdr.bh1;
    const uint8_t *at = block + head->offset_to_first_pkt;
    for (unsigned i = 0; i < head->num_pkts; i++) {
        const struct tpacket3_hdr *packet = (const void *)at;
        const struct sockaddr_ll *from = (const void *)(at + TPACKET_ALIGN(sizeof *packet));
        uint32_t record[4] = {packet->tp_sec, packet->tp_nsec, packet->tp_snaplen, packet->tp_len};
        FILE *file = from->sll_pkttype == PACKET_OUTGOING ? ring->sent : ring->received;
        fwrite(record, sizeof record, 1, file);
        fwrite(at + packet->tp_mac, packet->tp_snaplen, 1, file);
        at += packet->tp_next_offset;
    }
}

static void drain(struct ring *ring)
{
    for (;;) {
        uint8_t *block = ring->blocks + (size_t)ring->next * BLOCK_BYTES;
        volatile uint32_t *status = &((struct tpacket_block_desc *)block)->hdr.bh1.block_status;
        if (!(*status & TP_STATUS_USER)) return;
        __sync_synchronize();
        write_block(block, ring);
        __sync_synchronize();
        *status = TP_STATUS_KERNEL;
        ring->next = (ring->next + 1) % ring->count;
    }
}

/* Empties all rings. What was written goes to the host at once: unwritten pages would fill the
 * guest's memory, and many of them make a writer sleep while its ring runs over. */
static void drain_all(struct ring *rings, int count)
{
    for (int i = 0; i < count; i++) {
        drain(&rings[i]);
        posix_fadvise(fileno(rings[i].received), 0, 0, POSIX_FADV_DONTNEED);
        posix_fadvise(fileno(rings[i].sent), 0, 0, POSIX_FADV_DONTNEED);
    }
}

int main(int argc, char **argv)
{
    int count = argc - 4;
    unsigned blocks = argc > 1 ? (unsigned)atoi(argv[1]) : 0, drops = 0;
    if (count < 1 || !blocks) {
        fprintf(stderr, "usage: capture BLOCKS BEFORE BEHIND PATH:senders|receivers|FILE:IF,IF...\n");
        return 2;
    }
    signal(SIGTERM, on_term);
    FILE *before = open_pcap(argv[2]), *behind = open_pcap(argv[3]);
    struct ring *rings = calloc((size_t)count, sizeof *rings);
    struct pollfd *waits = calloc((size_t)count, sizeof *waits);
    for (int i = 0; i < count; i++) {
        rings[i] = open_router(argv[4 + i], blocks, before, behind);
        waits[i] = (struct pollfd){.fd = rings[i].socket, .events = POLLIN};
    }
    puts("ready");
    fflush(stdout);
    while (!stopping) {
        poll(waits, (nfds_t)count, 1000);
        drain_all(rings, count);
    }
    usleep(2 * RETIRE_MS * 1000); /* until the kernel hands over the last, half-filled blocks */
    drain_all(rings, count);
    for (int i = 0; i < count; i++) {
        struct tpacket_stats_v3 stats = {0};
        socklen_t length = sizeof stats;
        getsockopt(rings[i].socket, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
        drops += stats.tp_drops;
        if (rings[i].received != before && fclose(rings[i].received)) fail("write the captures");
    }
    if (fclose(before) || fclose(behind)) fail("write the captures");
    printf("drops %u\n", drops);
    return 0;
}
