/* One TCP flow: plain blocking sockets, and tcp_info sampled beside them.
 *
 *   tcp_flow recv --listen IP:PORT --option controller=CC --out DIR
 *   tcp_flow send --connect IP:PORT --controller CC (--duration-s X | --bytes N) --out DIR
 *
 * Both ends run the controller: one that needs ECN, as DCTCP does, negotiates it in the handshake.
 * Both take --option initial_window_packets=N, pacing=true|false and hystart=true|false.
 *
 * A system call costs the guest 8 µs: the sender blocks in writes of 1 MiB, the receiver is woken
 * for 256 KiB at a time (SO_RCVLOWAT) and lets the kernel discard them (MSG_TRUNC).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    WRITE_BYTES = 1 << 20,
    WAKE_BYTES = 1 << 18,
    CONNECT_MS = 10000,
    SAMPLE_NS = 10 * 1000 * 1000,
    ROW_NS = 100 * 1000 * 1000,
    TCP_SAMPLES = 0x5142,
    MANY = 100,
    LOST_CONNECTION = 3, /* exit status */
};

static const char *address, *controller, *out = ".", *initial_window, *pacing, *hystart;
static double duration_s;
static uint64_t size_bytes;
static volatile sig_atomic_t stopping;
static int sock, lost;

static void fail(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vfprintf(stderr, format, words);
    fputc('\n', stderr);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

static FILE *open_out(const char *name, const char *header)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", out, name);
    FILE *file = fopen(path, "we");
    if (!file) fail("cannot write %s: %s", path, strerror(errno));
    setvbuf(file, NULL, _IOFBF, 1 << 20);
    fputs(header, file);
    return file;
}

static struct sockaddr_in parse_address(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    char *text = strdup(address), *port = strrchr(text, ':');
    if (port) *port++ = 0;
    if (!port || !inet_aton(text, &at.sin_addr)) fail("%s is not IP:PORT", address);
    at.sin_port = htons((uint16_t)atoi(port));
    return at;
}

/* --- the controller of either end --- */

static void set_controller(void)
{
    if (setsockopt(sock, IPPROTO_TCP, TCP_CONGESTION, controller, strlen(controller)))
        fail("the kernel has no congestion controller %s", controller);
}

static void check_controller(int connection)
{
    char used[17] = ""; /* names have 15 letters at most */
    socklen_t length = sizeof used - 1;
    if (getsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, used, &length) ||
        strcmp(used, controller))
        fail("the kernel runs %s instead of %s", used, controller);
}

/* --- receiving --- */

static void count_bytes(int connection, FILE *rows)
{
    static char buffer[WRITE_BYTES];
    uint64_t total = 0, next_ns = 0;
    ssize_t got;
    while (!stopping && (got = recv(connection, buffer, sizeof buffer, MSG_TRUNC)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        total += (uint64_t)got;
        uint64_t now = now_ns();
        if (now < next_ns) continue;
        fprintf(rows, "%lu,%lu\n", now, total);
        next_ns = now + ROW_NS;
    }
    fprintf(rows, "%lu,%lu\n", now_ns(), total);
}

static int receive(void)
{
    struct sockaddr_in at = parse_address();
    int one = 1, wake = WAKE_BYTES;
    FILE *rows = open_out("receiver.csv", "time_ns,bytes\n");
    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    set_controller();
    if (bind(sock, (struct sockaddr *)&at, sizeof at) || listen(sock, 1))
        fail("cannot listen on %s: %s", address, strerror(errno));
    puts("ready");
    fflush(stdout);
    int connection = accept(sock, NULL, NULL);
    if (connection >= 0) {
        check_controller(connection);
        setsockopt(connection, SOL_SOCKET, SO_RCVLOWAT, &wake, sizeof wake);
        count_bytes(connection, rows);
        close(connection);
    }
    if (fclose(rows)) fail("cannot write receiver.csv: %s", strerror(errno));
    while (!stopping) pause();
    return 0;
}

/* --- knobs of the sender --- */

/* Linux takes the initial window from the route. */
static void set_initial_window(void)
{
    char command[128];
    int packets = atoi(initial_window);
    if (packets < 1) fail("initial_window_packets cannot be %s; 1 or more", initial_window);
    snprintf(command, sizeof command, "ip route change $(ip route show default) initcwnd %d",
             packets);
    if (system(command)) fail("cannot set the initial window of the route");
}

/* Linux paces a flow that has a maximum rate: by 2 cwnd/srtt in slow start, then by 1.2. */
static void set_pacing(void)
{
    uint64_t far_above_any_link = 125000000000u;
    if (!strcmp(pacing, "false")) {
        if (!strncmp(controller, "bbr", 3)) fail("bbr always paces; leave the option pacing away");
        return;
    }
    if (setsockopt(sock, SOL_SOCKET, SO_MAX_PACING_RATE, &far_above_any_link,
                   sizeof far_above_any_link))
        fail("cannot switch pacing on: %s", strerror(errno));
}

/* One setting of the kernel: in the guest it holds for this run, elsewhere for the machine. */
static void set_hystart(void)
{
    char vendor[4096] = "";
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file) vendor[fread(vendor, 1, sizeof vendor - 1, file)] = 0, fclose(file);
    if (!strstr(vendor, "User Mode Linux"))
        fail("hystart is a setting of the whole kernel; only engine virtual can change it");
    file = fopen("/sys/module/tcp_cubic/parameters/hystart", "we");
    if (!file || fputs(!strcmp(hystart, "true") ? "1" : "0", file) < 0 || fclose(file))
        fail("cannot set hystart: %s", strerror(errno));
}

static void set_knobs(void)
{
    if (initial_window) set_initial_window();
    if (pacing) set_pacing();
    if (hystart) set_hystart();
}

static void read_option(const char *option)
{
    static const struct { const char *name, **value; } known[] = {
        {"controller=", &controller},
        {"initial_window_packets=", &initial_window},
        {"pacing=", &pacing},
        {"hystart=", &hystart},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(option, known[i].name, strlen(known[i].name))) {
            *known[i].value = option + strlen(known[i].name);
            return;
        }
    fail("tcp has no option %s; it has hystart, initial_window_packets, pacing", option);
}

/* --- sending --- */

static const char *state_of(const struct tcp_info *i)
{
    enum { CA_CWR = 2 }; /* Open and Disorder are below it, Recovery and Loss above */
    if (i->tcpi_ca_state >= CA_CWR) return "recovery";
    return i->tcpi_snd_cwnd < i->tcpi_snd_ssthresh ? "slow_start" : "congestion_avoidance";
}

static void write_sample(FILE *rows, uint64_t time_ns, const struct tcp_info *i)
{
    uint64_t mss = i->tcpi_snd_mss;
    int64_t flight = (int64_t)i->tcpi_unacked - i->tcpi_sacked - i->tcpi_lost + i->tcpi_retrans;
    fprintf(rows, "%lu,%lu,%ld,", time_ns, i->tcpi_snd_cwnd * mss, flight * (int64_t)mss);
    if (i->tcpi_snd_ssthresh < 0x7fffffff) fprintf(rows, "%lu", i->tcpi_snd_ssthresh * mss);
    fprintf(rows, ",%.3f,%.3f,", i->tcpi_rtt / 1e3, i->tcpi_min_rtt / 1e3);
    if (i->tcpi_pacing_rate != UINT64_MAX) fprintf(rows, "%.6f", i->tcpi_pacing_rate * 8 / 1e6);
    fprintf(rows, ",%.6f,%u,%u,%s\n", i->tcpi_delivery_rate * 8 / 1e6, i->tcpi_total_retrans,
            i->tcpi_dsack_dups, state_of(i));
}

static int read_info(struct tcp_info *info)
{
    socklen_t length = sizeof *info;
    memset(info, 0, sizeof *info);
    return getsockopt(sock, IPPROTO_TCP, TCP_INFO, info, &length);
}

/* The guest's kernel takes many samples in one system call (0009-tcp-samples.patch). Returns 0 where
 * the kernel has no such call, and 1 when there will be no more samples.
 */
static int sampled_by_kernel(FILE *rows)
{
    static struct {
        uint64_t every_ns;
        const volatile sig_atomic_t *ends;
        uint32_t most, taken, info_bytes, unused;
        struct {
            uint64_t time_ns;
            struct tcp_info info;
        } rows[MANY];
    } samples = {.every_ns = SAMPLE_NS, .ends = &stopping, .most = MANY,
                 .info_bytes = sizeof(struct tcp_info)};
    socklen_t length = sizeof samples;
    do {
        if (getsockopt(sock, IPPROTO_TCP, TCP_SAMPLES, &samples, &length)) return 0;
        for (uint32_t i = 0; i < samples.taken; i++)
            write_sample(rows, samples.rows[i].time_ns, &samples.rows[i].info);
    } while (samples.taken == MANY);
    return 1;
}

static void *sample(void *rows)
{
    struct timespec pause_for = {.tv_nsec = SAMPLE_NS};
    struct tcp_info info;
    if (sampled_by_kernel(rows)) return NULL;
    while (!stopping && !read_info(&info) && info.tcpi_snd_mss) {
        write_sample(rows, now_ns(), &info);
        nanosleep(&pause_for, NULL);
    }
    return NULL;
}

static void write_limits(void)
{
    struct tcp_info info;
    FILE *file = open_out("limits.json", "");
    read_info(&info);
    fprintf(file, "{\"rwnd_limited_s\": %.6f, \"sndbuf_limited_s\": %.6f}\n",
            info.tcpi_rwnd_limited / 1e6, info.tcpi_sndbuf_limited / 1e6);
    fclose(file);
}

static void connect_or_fail(void)
{
    struct sockaddr_in at = parse_address();
    struct timeval limit = {.tv_sec = CONNECT_MS / 1000}, none = {0};
    set_controller();
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(sock, (struct sockaddr *)&at, sizeof at)) {
        if (errno == EINPROGRESS || errno == EAGAIN || errno == ETIMEDOUT)
            fail("cannot connect to %s within %d s", address, CONNECT_MS / 1000);
        if (stopping) fail("cannot connect to %s before the flow ends", address);
        fail("cannot connect to %s: %s", address, strerror(errno));
    }
    check_controller(sock);
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
}

/* A timer interrupts the blocking write when the time is over. */
static void arm_timer(void)
{
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)duration_s}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    when.it_value.tv_nsec = (long)((duration_s - (double)(time_t)duration_s) * 1e9);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL))
        fail("cannot set a timer: %s", strerror(errno));
}

/* How the connection ended before its time (docs/howto/own-stack.md). */
static void report_end(int error)
{
    FILE *file = open_out("sender-end.json", "");
    fprintf(file, "{\"time_ns\":%lu,\"by\":\"%s\",\"code\":%d,\"name\":\"%s\",\"reason\":\"%s\"}\n",
            now_ns(), error == ETIMEDOUT ? "timeout" : "reset", error, strerrorname_np(error),
            strerror(error));
    if (fclose(file)) fail("cannot write sender-end.json: %s", strerror(errno));
    lost = 1;
}

static void write_until_stopped(void)
{
    static char buffer[WRITE_BYTES];
    uint64_t left = size_bytes ? size_bytes : UINT64_MAX;
    while (!stopping && left) {
        ssize_t sent = write(sock, buffer, left < sizeof buffer ? left : sizeof buffer);
        if (sent < 0 && errno != EINTR) return report_end(errno);
        if (sent > 0) left -= (uint64_t)sent;
    }
}

/* After a time: abort, so that the full send buffer does not go on. After bytes: wait for FIN. */
static void end_connection(void)
{
    struct linger abort_now = {.l_onoff = 1};
    char byte;
    if (size_bytes && !stopping && !lost) {
        shutdown(sock, SHUT_WR);
        while (!stopping && read(sock, &byte, 1) < 0)
            if (errno != EINTR) return report_end(errno);
    } else {
        setsockopt(sock, SOL_SOCKET, SO_LINGER, &abort_now, sizeof abort_now);
    }
}

static int send_flow(void)
{
    pthread_t sampler;
    sigset_t signals;
    FILE *rows = open_out("sender.csv",
                          "time_ns,cwnd_bytes,bytes_in_flight,ssthresh_bytes,srtt_ms,min_rtt_ms,"
                          "pacing_rate_mbps,delivery_rate_mbps,retransmits,spurious_losses,state\n");
    if (!size_bytes) arm_timer();
    set_knobs();
    connect_or_fail();
    /* Signals must interrupt the writing thread, not the sampling one. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGALRM);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (pthread_create(&sampler, NULL, sample, rows)) fail("cannot start the sampler");
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    write_until_stopped();
    int complete = size_bytes && !stopping && !lost;
    if (complete) end_connection();
    stopping = 1;
    pthread_join(sampler, NULL);
    write_limits();
    if (!complete) end_connection();
    close(sock);
    if (fclose(rows)) fail("cannot write sender.csv: %s", strerror(errno));
    return lost ? LOST_CONNECTION : 0;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: calls are interrupted */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--listen") || !strcmp(name, "--connect")) address = value;
        else if (!strcmp(name, "--controller")) controller = value;
        else if (!strcmp(name, "--duration-s")) duration_s = atof(value);
        else if (!strcmp(name, "--bytes")) size_bytes = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--out")) out = value;
        else if (!strcmp(name, "--option")) read_option(value);
        else if (strcmp(name, "--cert") && strcmp(name, "--key")) fail("unknown option %s", name);
    }
    sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (argc > 1 && address && controller && !strcmp(argv[1], "recv")) return receive();
    if (argc > 1 && address && controller && (size_bytes || duration_s > 0) &&
        !strcmp(argv[1], "send"))
        return send_flow();
    fprintf(stderr, "usage: tcp_flow recv --listen IP:PORT --option controller=CC --out DIR\n"
                    "       tcp_flow send --connect IP:PORT --controller CC "
                    "(--duration-s X | --bytes N) --out DIR\n");
    return 2;
}
