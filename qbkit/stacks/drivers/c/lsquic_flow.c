/* One QUIC flow by lsquic and the IETF perf protocol. lsquic's times are CLOCK_MONOTONIC. */
#include "flow.h"

#include "lsquic.h"

#include <openssl/ssl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALPN "perf"
#define SERVER_NAME "test.example"
#define FOREVER_NS (UINT64_C(3600) * 1000000000)
enum { IDLE_S = 60, MICROSECOND_NS = 1000, SECOND_US = 1000000 };

static const char *const OPTIONS[] = {"pmtud", "clock_granularity_us", NULL};

static lsquic_engine_t *engine;
static lsquic_conn_t *connection; /* the sender's; NULL before it stands and after its end */
static SSL_CTX *tls; /* the receiver's */
static bool connected, answered, lost;
static struct end end; /* how the connection ended */
static char reason[256];
static uint64_t left_bytes;

/* --- both ends --- */

static void take(struct datagram *d)
{
    lsquic_engine_packet_in(engine, d->bytes, d->size, (struct sockaddr *)&udp_local,
                            (struct sockaddr *)&d->peer, NULL, d->ecn);
}

static int send_packets(void *context, const struct lsquic_out_spec *specs, unsigned count)
{
    (void)context;
    for (const struct lsquic_out_spec *s = specs; s < specs + count; s++) {
        size_t size = 0;
        for (size_t i = 0; i < s->iovlen; size += s->iov[i++].iov_len)
            memcpy(udp_room() + size, s->iov[i].iov_base, s->iov[i].iov_len);
        udp_queue(size, (const struct sockaddr_in *)s->dest_sa);
    }
    udp_flush();
    return (int)count;
}

/* Let lsquic do what is due, then wait until it has to act, a datagram comes, or the time has come. */
static void work(uint64_t until_ns)
{
    int due_us;
    lsquic_engine_process_conns(engine);
    if (lsquic_engine_earliest_adv_tick(engine, &due_us)) {
        uint64_t due_ns = now_ns() + (due_us > 0 ? (uint64_t)due_us * MICROSECOND_NS : 0);
        if (due_ns < until_ns) until_ns = due_ns;
    }
    if (udp_wait(until_ns)) udp_receive(take);
}

/* The resolution of the clock for lsquic's pacer. */
static unsigned clock_granularity_us(unsigned usual)
{
    char *end;
    const char *text = option("clock_granularity_us");
    if (!text) return usual;
    unsigned long value = strtoul(text, &end, 10);
    if (*text == '-' || *end || value < 1 || value > SECOND_US)
        fail("clock_granularity_us cannot be %s; it is a whole number from 1 to %d", text, SECOND_US);
    return (unsigned)value;
}

static void set_options(struct lsquic_engine_settings *s)
{
    unsigned window = (unsigned)flow.window_bytes;
    s->es_init_max_data = s->es_init_max_stream_data_bidi_remote = window;
    s->es_max_cfcw = s->es_max_sfcw = window;
    s->es_versions = 1 << LSQVER_I001;
    s->es_idle_timeout = IDLE_S;
    s->es_noprogress_timeout = 0;
    s->es_dplpmtud = option_is("pmtud", s->es_dplpmtud);
    s->es_clock_granularity = clock_granularity_us(s->es_clock_granularity);
}

static void start(unsigned role, struct lsquic_engine_settings *settings,
                  struct lsquic_engine_api *api)
{
    char problem[256];
    if (lsquic_engine_check_settings(settings, role, problem, sizeof problem))
        fail("lsquic refuses a setting: %s", problem);
    api->ea_settings = settings;
    api->ea_packets_out = send_packets;
    api->ea_alpn = ALPN;
    int part = role == LSENG_SERVER ? LSQUIC_GLOBAL_SERVER : LSQUIC_GLOBAL_CLIENT;
    if (lsquic_global_init(part) || !(engine = lsquic_engine_new(role, api)))
        fail("lsquic cannot be started");
}

static lsquic_conn_ctx_t *on_connection(void *context, lsquic_conn_t *new)
{
    (void)context, (void)new;
    return NULL;
}

/* lsquic calls both, wanted or not. */
static void on_close(lsquic_stream_t *stream, lsquic_stream_ctx_t *context)
{
    (void)stream, (void)context;
}

/* A peer's close, which comes before `on_end`. */
static void on_closed_by_peer(lsquic_conn_t *at, int is_application, uint64_t code,
                              const char *words, int length)
{
    (void)at;
    snprintf(reason, sizeof reason, "%.*s", length, words);
    end = closed_by(true, is_application == 1, code);
}

static void on_end(lsquic_conn_t *at)
{
    if (!end.by) {
        int status = lsquic_conn_status(at, reason, sizeof reason);
        end.by = status == LSCONN_ST_TIMED_OUT ? "timeout"
                 : status == LSCONN_ST_RESET   ? "reset"
                 : status == LSCONN_ST_ERROR   ? flow.sends ? "sender" : "receiver"
                                               : "unknown";
    }
    end.reason = reason;
    end.reason_length = sizeof reason;
    if (!flow.sends) report_end(&end);
    lost = at == connection;
    if (lost) connection = NULL;
}

/* --- receiving --- */

static int choose_alpn(SSL *ssl, const uint8_t **out, uint8_t *size, const uint8_t *offered,
                       unsigned offered_size, void *context)
{
    static const uint8_t ours[] = "\4" ALPN;
    (void)ssl, (void)context;
    return SSL_select_next_proto((uint8_t **)out, size, ours, sizeof ours - 1, offered,
                                 offered_size) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void load_certificate(void)
{
    tls = SSL_CTX_new(TLS_method());
    SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
    SSL_CTX_set_alpn_select_cb(tls, choose_alpn, NULL);
    if (SSL_CTX_use_certificate_chain_file(tls, flow.cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls, flow.key, SSL_FILETYPE_PEM) != 1)
        fail("lsquic cannot use the certificate %s", flow.cert);
}

static SSL_CTX *by_name(void *context, const struct sockaddr *local, const char *name)
{
    (void)context, (void)local, (void)name;
    return tls;
}

static SSL_CTX *by_address(void *context, const struct sockaddr *local)
{
    (void)context, (void)local;
    return tls;
}

static lsquic_stream_ctx_t *on_upload(void *context, lsquic_stream_t *stream)
{
    (void)context;
    if (stream) lsquic_stream_wantread(stream, 1);
    return NULL;
}

static size_t count(void *context, const unsigned char *bytes, size_t size, int last)
{
    (void)context, (void)bytes, (void)last;
    count_bytes(size);
    return size;
}

static void on_data(lsquic_stream_t *stream, lsquic_stream_ctx_t *context)
{
    (void)context;
    if (lsquic_stream_readf(stream, count, NULL) == 0)
        lsquic_stream_close(stream); /* the empty answer */
}

static void receive(void)
{
    static const struct lsquic_stream_if events = {.on_new_conn = on_connection,
                                                   .on_conn_closed = on_end,
                                                   .on_conncloseframe_received = on_closed_by_peer,
                                                   .on_new_stream = on_upload,
                                                   .on_read = on_data,
                                                   .on_close = on_close};
    struct lsquic_engine_settings settings;
    struct lsquic_engine_api api = {
        .ea_stream_if = &events, .ea_lookup_cert = by_name, .ea_get_ssl_ctx = by_address};
    lsquic_engine_init_settings(&settings, LSENG_SERVER);
    set_options(&settings);
    load_certificate();
    start(LSENG_SERVER, &settings, &api);
    open_counter();
    udp_open(0);
    puts("ready");
    fflush(stdout);
    while (!stopping) work(now_ns() + FOREVER_NS);
    close_table();
}

/* --- sending --- */

static void on_handshake(lsquic_conn_t *at, enum lsquic_hsk_status status)
{
    connected = status == LSQ_HSK_OK || status == LSQ_HSK_RESUMED_OK;
    if (connected) lsquic_conn_make_stream(at);
}

static lsquic_stream_ctx_t *on_stream(void *context, lsquic_stream_t *stream)
{
    (void)context;
    if (stream) lsquic_stream_wantwrite(stream, 1);
    return NULL;
}

static size_t provide(void *context, void *bytes, size_t size)
{
    (void)context;
    if (size > left_bytes) size = left_bytes;
    memset(bytes, 0, size);
    left_bytes -= size;
    return size;
}

static size_t left(void *context)
{
    (void)context;
    return left_bytes;
}

static void on_room(lsquic_stream_t *stream, lsquic_stream_ctx_t *context)
{
    struct lsquic_reader zeroes = {.lsqr_read = provide, .lsqr_size = left};
    (void)context;
    lsquic_stream_writef(stream, &zeroes);
    if (left_bytes) return;
    lsquic_stream_shutdown(stream, 1);
    lsquic_stream_wantread(stream, 1);
}

static void on_answer(lsquic_stream_t *stream, lsquic_stream_ctx_t *context)
{
    char bytes[16];
    (void)context;
    if (lsquic_stream_read(stream, bytes, sizeof bytes)) return;
    answered = true;
    lsquic_stream_shutdown(stream, 0);
}

static unsigned algorithm(void)
{
    static const char *const names[] = {NULL, "cubic", "bbr", "adaptive"}; /* es_cc_algo */
    for (unsigned i = 1; i < sizeof names / sizeof *names; i++)
        if (!strcmp(flow.controller, names[i])) return i;
    fail("lsquic has no controller %s", flow.controller);
}

static void sample(void)
{
    struct sample s = EMPTY_SAMPLE;
    struct lsquic_conn_info info;
    if (lsquic_conn_get_info(connection, &info)) return;
    s.cwnd_bytes = info.lci_cwnd;
    if (info.lci_rtt) s.srtt_ms = info.lci_rtt / 1e3;
    if (info.lci_rtt_min) s.min_rtt_ms = info.lci_rtt_min / 1e3;
    if (!strcmp(flow.controller, "bbr")) /* CUBIC's would be the one in recovery */
        s.pacing_rate_mbps = (double)info.lci_pacing_rate * 8e-6;
    s.delivery_rate_mbps = (double)info.lci_bw_estimate * 1e-6; /* bit/s, as it is computed */
    s.lost_packets = (double)info.lci_pkts_lost;
    write_sample(&s);
}

static void begin(void)
{
    static const struct lsquic_stream_if events = {.on_new_conn = on_connection,
                                                   .on_conn_closed = on_end,
                                                   .on_conncloseframe_received = on_closed_by_peer,
                                                   .on_hsk_done = on_handshake,
                                                   .on_new_stream = on_stream,
                                                   .on_write = on_room,
                                                   .on_read = on_answer,
                                                   .on_close = on_close};
    struct lsquic_engine_settings settings;
    struct lsquic_engine_api api = {.ea_stream_if = &events};
    lsquic_engine_init_settings(&settings, 0);
    set_options(&settings);
    settings.es_cc_algo = algorithm();
    settings.es_enable_bw_sampler = 1;
    start(0, &settings, &api);
    udp_open(0);
    connection = lsquic_engine_connect(engine, LSQVER_I001, (struct sockaddr *)&udp_local,
                                       (struct sockaddr *)&flow.address, NULL, NULL, SERVER_NAME,
                                       0, NULL, 0, NULL, 0);
    if (!connection) fail("lsquic cannot begin a connection to %s", flow.address_text);
}

static void send_flow(void)
{
    uint64_t end_ns = flow.duration_ns ? now_ns() + flow.duration_ns : UINT64_MAX;
    uint64_t limit_ns = connect_limit_ns();
    left_bytes = flow.size_bytes ? flow.size_bytes + HEADER_BYTES : UINT64_MAX >> 1;
    open_samples();
    begin();
    while (!stopping && !answered && !(connected && now_ns() >= end_ns)) {
        work(connected ? end_ns : limit_ns);
        if (!connected && (lost || now_ns() >= limit_ns)) fail_to_connect();
        if (lost) leave(&end);
        if (connected && sample_due()) sample();
    }
    lsquic_conn_abort(connection);
    lsquic_engine_process_conns(engine);
    close_table();
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, "lsquic", OPTIONS);
    if (flow.sends) send_flow();
    else receive();
    return 0;
}
