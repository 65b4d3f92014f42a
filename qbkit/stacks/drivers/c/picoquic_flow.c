/* One QUIC flow by picoquic and the IETF perf protocol.
 *
 * Packets are prepared, marked and received as in picoquic's own socket loop (sockloop.c): ECN marks
 * are those that the controller names, ECT(1) for Prague and C4, ECT(0) for the others.
 */
#include "flow.h"

#include "picoquic.h"
#include "picoquic_internal.h"
#include "picoquic_qlog.h"

#include <stdio.h>
#include <string.h>

#define ALPN "perf"
#define HOUR_US INT64_C(3600000000)
enum { IDLE_MS = 60000, STREAM = 0, MOST_CONNECTIONS = 4, MOST_STATES = 9 };

static const char *const OPTIONS[] = {"ack_frequency", "ecn", "pmtud", "qlog", NULL};

/* A controller's states in its own order, in the words of telemetry.py. C4's other states have none. */
static const struct {
    const char *controller, *states[MOST_STATES];
} STATES[] = {
    {"newreno", {"slow_start", "congestion_avoidance"}},
    {"cubic", {"slow_start", "recovery", "congestion_avoidance"}},
    {"dcubic", {"slow_start", "recovery", "congestion_avoidance"}},
    {"fast", {"slow_start", "congestion_avoidance", "recovery"}},
    {"prague", {"slow_start", "congestion_avoidance"}},
    {"bbr",
     {"startup", "drain", "probe_bw", "probe_bw", "probe_bw", "probe_bw", "probe_rtt", "startup",
      "startup"}},
    {"bbr1", {"startup", "drain", "probe_bw", "probe_rtt", "startup"}},
    {"c4", {"startup", "recovery"}},
};

static picoquic_quic_t *quic;
static picoquic_cnx_t *connection; /* the sender's */
static const char *const *states;
static bool connected, answered, lost;
static uint64_t left_bytes;

/* --- both ends --- */

/* picoquic's own clock, which is not that of now_ns. */
static uint64_t now_us(void)
{
    return picoquic_current_time();
}

static void take(struct datagram *d)
{
    picoquic_incoming_packet(quic, d->bytes, d->size, (struct sockaddr *)&d->peer,
                             (struct sockaddr *)&udp_local, 0, d->ecn, now_us());
}

/* Send all that the controller and its pacer allow now. */
static void transmit(void)
{
    struct sockaddr_storage peer, local;
    picoquic_connection_id_t log_id;
    picoquic_cnx_t *last;
    size_t size;
    int interface;
    uint64_t now = now_us();
    while (!picoquic_prepare_next_packet(quic, now, udp_room(), PICOQUIC_MAX_PACKET_SIZE, &size,
                                         &peer, &local, &interface, &log_id, &last) &&
           size)
        udp_queue(size, (struct sockaddr_in *)&peer);
    udp_flush();
}

/* Wait until picoquic has to act, a datagram comes, or the time has come; then act. */
static void work(uint64_t until_ns)
{
    uint64_t due_ns = now_ns() + 1000 * (uint64_t)picoquic_get_next_wake_delay(quic, now_us(), HOUR_US);
    if (udp_wait(due_ns < until_ns ? due_ns : until_ns)) udp_receive(take);
    transmit();
}

static void create(picoquic_stream_data_cb_fn on_event)
{
    quic = picoquic_create(MOST_CONNECTIONS, flow.cert, flow.key, NULL, ALPN, on_event, NULL, NULL,
                           NULL, NULL, now_us(), NULL, NULL, NULL, 0);
    if (!quic) fail("picoquic cannot be started with the certificate %s", flow.cert);
    picoquic_set_null_verifier(quic);
    picoquic_set_default_idle_timeout(quic, IDLE_MS);
    static const picoquic_tp_enum windows[] = {picoquic_tp_initial_max_data,
                                               picoquic_tp_initial_max_stream_data_bidi_remote};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        picoquic_set_default_tp_value(quic, windows[i], flow.window_bytes);
    if (!option_is("ack_frequency", true))
        picoquic_set_default_tp_value(quic, picoquic_tp_min_ack_delay, 0);
    if (!option_is("pmtud", true))
        picoquic_set_default_pmtud_policy(quic, picoquic_pmtud_blocked);
    if (option_is("qlog", false) && picoquic_set_qlog(quic, flow.out))
        fail("picoquic cannot write a qlog to %s", flow.out);
}

static uint8_t ecn_mark(void)
{
    return option_is("ecn", true) ? quic->default_congestion_alg->ecn_mark : 0;
}

/* How a connection ended. picoquic's own numbers are its local errors. */
static struct end end_of(picoquic_cnx_t *of)
{
    uint64_t local, remote, local_application, remote_application;
    picoquic_get_close_reasons(of, &local, &remote, &local_application, &remote_application);
    if (local == PICOQUIC_ERROR_STATELESS_RESET) return (struct end){.by = "reset"};
    if (local == PICOQUIC_ERROR_IDLE_TIMEOUT || local == PICOQUIC_ERROR_REPEAT_TIMEOUT)
        return (struct end){.by = "timeout"};
    struct end end = remote_application ? closed_by(true, true, remote_application)
                     : remote           ? closed_by(true, false, remote)
                     : local            ? closed_by(false, false, local)
                                        : closed_by(true, true, 0);
    end.reason = remote || remote_application ? of->remote_error_reason : of->local_error_reason;
    if (!end.reason && local >= PICOQUIC_ERROR_CLASS) end.reason = picoquic_error_name(local);
    end.reason_length = end.reason ? strlen(end.reason) : 0;
    return end;
}

/* --- receiving --- */

static int on_upload(picoquic_cnx_t *from, uint64_t stream, uint8_t *bytes, size_t size,
                     picoquic_call_back_event_t event, void *context, void *stream_context)
{
    (void)bytes, (void)context, (void)stream_context;
    if (event == picoquic_callback_stream_data || event == picoquic_callback_stream_fin)
        count_bytes(size);
    if (event == picoquic_callback_close || event == picoquic_callback_application_close ||
        event == picoquic_callback_stateless_reset) {
        struct end end = end_of(from);
        report_end(&end);
    }
    if (event == picoquic_callback_stream_fin)
        return picoquic_add_to_stream(from, stream, NULL, 0, 1); /* the empty answer */
    return 0;
}

static void receive(void)
{
    create(on_upload);
    open_counter();
    udp_open(ecn_mark());
    puts("ready");
    fflush(stdout);
    while (!stopping) work(UINT64_MAX);
    close_table();
}

/* --- sending --- */

static int provide(void *context, size_t room)
{
    size_t size = left_bytes < room ? left_bytes : room;
    bool last = size == left_bytes;
    uint8_t *bytes = picoquic_provide_stream_data_buffer(context, size, last, !last);
    if (!bytes) return -1;
    memset(bytes, 0, size);
    left_bytes -= size;
    return 0;
}

static int on_event(picoquic_cnx_t *at, uint64_t stream, uint8_t *bytes, size_t size,
                    picoquic_call_back_event_t event, void *context, void *stream_context)
{
    (void)stream, (void)context, (void)stream_context;
    switch (event) {
    case picoquic_callback_ready:
        connected = true;
        return picoquic_mark_active_stream(at, STREAM, 1, NULL);
    case picoquic_callback_prepare_to_send: return provide(bytes, size);
    case picoquic_callback_stream_fin: answered = true; return 0;
    case picoquic_callback_close:
    case picoquic_callback_application_close:
    case picoquic_callback_stateless_reset: lost = true; return 0;
    default: return 0;
    }
}

static void choose_controller(void)
{
    picoquic_register_all_congestion_control_algorithms();
    const picoquic_congestion_algorithm_t *found = picoquic_get_congestion_algorithm(flow.controller);
    if (!found) fail("picoquic has no controller %s", flow.controller);
    picoquic_set_default_congestion_algorithm(quic, found);
    for (size_t i = 0; i < sizeof STATES / sizeof *STATES; i++)
        if (!strcmp(STATES[i].controller, flow.controller)) states = STATES[i].states;
}

static void begin(void)
{
    connection = picoquic_create_client_cnx(quic, (struct sockaddr *)&flow.address, now_us(), 0,
                                            "qbkit", ALPN, on_event, NULL);
    if (!connection) fail("picoquic cannot begin a connection to %s", flow.address_text);
    transmit();
}

/* What the controller shows of itself: its state, and for NewReno and Prague the threshold. */
static void observe(struct sample *s)
{
    picoquic_path_t *path = connection->path[0];
    uint64_t state, parameter;
    if (!path->congestion_alg_state) return;
    connection->congestion_alg->alg_observe(path, &state, &parameter);
    state &= 0xff; /* BBR's further bits are flags */
    if (states && state < MOST_STATES) s->state = states[state];
    bool has_threshold = !strcmp(flow.controller, "newreno") || !strcmp(flow.controller, "prague");
    if (has_threshold && parameter) s->ssthresh_bytes = (double)parameter;
}

static void sample(void)
{
    struct sample s = EMPTY_SAMPLE;
    picoquic_path_quality_t quality;
    picoquic_get_default_path_quality(connection, &quality);
    s.cwnd_bytes = (double)quality.cwin;
    s.bytes_in_flight = (double)quality.bytes_in_transit;
    s.srtt_ms = (double)quality.rtt / 1e3;
    s.latest_rtt_ms = (double)quality.rtt_sample / 1e3;
    s.min_rtt_ms = (double)quality.rtt_min / 1e3;
    s.pacing_rate_mbps = (double)quality.pacing_rate * 8e-6;
    s.delivery_rate_mbps = (double)connection->path[0]->bandwidth_estimate * 8e-6;
    s.lost_packets = (double)quality.lost;
    s.spurious_losses = (double)quality.spurious_losses;
    observe(&s);
    write_sample(&s);
}

static void require_connection(uint64_t limit_ns)
{
    if (!connected && (lost || now_ns() >= limit_ns)) fail_to_connect();
    if (!lost) return;
    struct end end = end_of(connection);
    transmit();
    leave(&end);
}

static void send_flow(void)
{
    uint64_t end_ns = flow.duration_ns ? now_ns() + flow.duration_ns : UINT64_MAX;
    uint64_t limit_ns = connect_limit_ns();
    left_bytes = flow.size_bytes ? flow.size_bytes + HEADER_BYTES : UINT64_MAX;
    create(on_event);
    choose_controller();
    udp_open(ecn_mark());
    open_samples();
    begin();
    while (!stopping && !answered && !(connected && now_ns() >= end_ns)) {
        work(connected ? end_ns : limit_ns);
        require_connection(limit_ns);
        if (connected && sample_due()) sample();
    }
    picoquic_close(connection, 0);
    transmit();
    close_table();
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, "picoquic", OPTIONS);
    if (flow.sends) send_flow();
    else receive();
    picoquic_free(quic); /* ends the qlog */
    return 0;
}
