/* What the drivers in C share: the command line, the two tables, how a connection
 * ends, a UDP socket.
 *
 * The contract is in qbkit/stacks/base.py, the columns in qbkit/traces/run/telemetry.py. All times are
 * CLOCK_REALTIME in nanoseconds.
 */
#ifndef FLOW_H
#define FLOW_H

#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEADER_BYTES = 8 /* a perf stream begins with how many bytes the client wants back: none */ };

/* --- arguments.c --- */

struct flow {
    bool sends;
    struct sockaddr_in address;
    const char *address_text, *controller, *cert, *key, *out;
    uint64_t duration_ns, size_bytes; /* one of them is 0 */
    uint64_t window_bytes;            /* flow control never limits a sender */
};

extern struct flow flow;
extern volatile sig_atomic_t stopping; /* SIGTERM or SIGINT came; they only come while `udp_wait` waits */

/* Read the command line into `flow`; `options` are the known ones, ended by NULL. */
void read_arguments(int argc, char **argv, const char *stack, const char *const *options);
/* The value of an option, or NULL. */
const char *option(const char *name);
/* Whether an option is true; `usual` without it. */
bool option_is(const char *name, bool usual);
/* One sentence on stderr, exit status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail_to_connect(void);
uint64_t now_ns(void);
/* When a connection must stand that is begun now. */
uint64_t connect_limit_ns(void);

/* --- tables.c --- */

/* What a stack reports of itself; NAN and NULL for what it does not. */
struct sample {
    double cwnd_bytes, bytes_in_flight, ssthresh_bytes, srtt_ms, latest_rtt_ms, min_rtt_ms,
        pacing_rate_mbps, delivery_rate_mbps, lost_packets, spurious_losses;
    const char *state; /* one of STATES in telemetry.py */
};
#define EMPTY_SAMPLE \
    ((struct sample){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NULL})

void open_samples(void);
/* Whether 10 ms have passed since the last row. */
bool sample_due(void);
void write_sample(const struct sample *sample);
void open_counter(void);
/* So many more bytes of the stream came; its header does not count. */
void count_bytes(size_t bytes);
/* Write all rows; fails when that is not possible. */
void close_table(void);

/* --- ends.c --- */

/* How a connection ended before its time. */
struct end {
    const char *by;   /* "sender", "receiver", "timeout", "reset" or "unknown" */
    const char *kind; /* "transport" or "application"; NULL without a code */
    uint64_t code;
    const char *reason; /* may be NULL */
    size_t reason_length;
};

/* One end closed the connection: the other end, or this one. */
struct end closed_by(bool peer, bool application, uint64_t code);
/* Write the first report of this end. A receiver whose sender is done has none. */
void report_end(const struct end *end);
/* Report the end, write the table, exit with status 3. */
_Noreturn void leave(const struct end *end);

/* --- udp.c --- */

struct datagram {
    uint8_t *bytes;
    size_t size;
    struct sockaddr_in peer;
    uint8_t ecn; /* the two bits of the IP header */
};
typedef void take_datagram(struct datagram *datagram);

enum { DATAGRAM_BYTES = 2048 };

extern struct sockaddr_in udp_local;

/* Bind to the flow's address, or to the local one from which packets to it go. Every packet carries
 * these two ECN bits. */
void udp_open(uint8_t ecn);
/* Block until a datagram is there (true), or the time has come or a signal (false). */
bool udp_wait(uint64_t until_ns);
/* Hand every datagram that is there to `take`, in order. */
void udp_receive(take_datagram *take);
/* DATAGRAM_BYTES of room for the next datagram to `udp_queue`. */
uint8_t *udp_room(void);
void udp_queue(size_t size, const struct sockaddr_in *peer);
/* Send what is queued; block while the socket is full. */
void udp_flush(void);

#endif
