/* One QUIC flow by OpenSSL and the IETF perf protocol.
 *
 * OpenSSL reads and writes the socket itself, through its datagram BIO. Its window and RTTs are not
 * part of its API, so they come from its internal headers.
 */
#include "flow.h"

#include <openssl/err.h>
#include <openssl/quic.h>
#include <openssl/ssl.h>

#include "internal/quic_channel.h"
#include "internal/quic_ssl.h"
#include "quic_channel_local.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define FOREVER_NS (UINT64_C(3600) * 1000000000)
enum { CHUNK_BYTES = 1 << 16, SOCKET_BYTES = 32 << 20,
       BUFFER_BYTES = 6 << 20 /* what the library keeps of a stream: MAX_WRITE_BUF_SIZE */ };

static const char *const OPTIONS[] = {"qlog", NULL};
static const unsigned char ALPN[] = "\4perf";

static SSL_CTX *context;
static SSL *connection, *stream;
static int sock;
static uint8_t chunk[CHUNK_BYTES];

/* --- both ends --- */

static _Noreturn void fail_with_reason(const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    fail("OpenSSL cannot %s: %s", what, reason ? reason : "no reason given");
}

static BIO *open_socket(void)
{
    int room = SOCKET_BYTES;
    struct sockaddr_in any = {.sin_family = AF_INET}, *local = flow.sends ? &any : &flow.address;
    sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(sock, (struct sockaddr *)local, sizeof *local))
        fail("cannot use the address of %s: %s", flow.address_text, strerror(errno));
    setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    return BIO_new_dgram(sock, BIO_NOCLOSE);
}

/* Wait until OpenSSL has to act, a datagram comes, or the time has come; then let it act. */
static void work(SSL *on, uint64_t until_ns)
{
    struct timeval due;
    int forever = 1;
    uint64_t now = now_ns(), left_ns = until_ns > now ? until_ns - now : 0;
    if (SSL_get_event_timeout(on, &due, &forever) && !forever) {
        uint64_t due_ns = (uint64_t)due.tv_sec * 1000000000 + (uint64_t)due.tv_usec * 1000;
        left_ns = due_ns < left_ns ? due_ns : left_ns;
    }
    struct timespec left = {(time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000)};
    struct pollfd watched = {.fd = sock, .events = POLLIN};
    sigset_t none;
    sigemptyset(&none);
    if (SSL_net_write_desired(on)) watched.events |= POLLOUT;
    ppoll(&watched, 1, &left, &none);
    SSL_handle_events(on);
}

static void use(SSL *found)
{
    connection = found;
    SSL_set_default_stream_mode(connection, SSL_DEFAULT_STREAM_MODE_NONE);
}

static void create(const SSL_METHOD *method)
{
    if (option_is("qlog", false)) {
        setenv("QLOGDIR", flow.out, 1);
        setenv("OSSL_QFILTER", "*", 1);
    }
    if (!(context = SSL_CTX_new(method))) fail_with_reason("start");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

/* Whether the connection has ended, and how. */
static bool ended(struct end *end)
{
    SSL_CONN_CLOSE_INFO why;
    if (!SSL_get_conn_close_info(connection, &why, sizeof why)) return false;
    bool local = why.flags & SSL_CONN_CLOSE_FLAG_LOCAL;
    *end = closed_by(!local, !(why.flags & SSL_CONN_CLOSE_FLAG_TRANSPORT), why.error_code);
    if (why.error_code == OSSL_QUIC_LOCAL_ERR_IDLE_TIMEOUT) *end = (struct end){.by = "timeout"};
    end->reason = why.reason;
    end->reason_length = why.reason_len;
    return true;
}

/* --- receiving --- */

static int choose_alpn(SSL *at, const unsigned char **chosen, unsigned char *chosen_length,
                       const unsigned char *offered, unsigned offered_length, void *argument)
{
    (void)at, (void)argument;
    int found = SSL_select_next_proto((unsigned char **)chosen, chosen_length, ALPN,
                                      sizeof ALPN - 1, offered, offered_length);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Count what has come, and answer the end of the stream with an empty one. */
static void read_stream(void)
{
    size_t got;
    while (SSL_read_ex(stream, chunk, sizeof chunk, &got)) count_bytes(got);
    if (SSL_get_stream_read_state(stream) == SSL_STREAM_STATE_FINISHED)
        SSL_stream_conclude(stream, 0);
    ERR_clear_error();
}

static void accept_flow(SSL *listener)
{
    SSL *new =
        connection ? NULL : SSL_accept_connection(listener, SSL_ACCEPT_CONNECTION_NO_BLOCK);
    if (new) {
        use(new);
        SSL_set_incoming_stream_policy(connection, SSL_INCOMING_STREAM_POLICY_ACCEPT, 0);
    }
    if (connection && !stream) stream = SSL_accept_stream(connection, SSL_ACCEPT_STREAM_NO_BLOCK);
    ERR_clear_error();
}

static void receive(void)
{
    struct end end;
    create(OSSL_QUIC_server_method());
    if (SSL_CTX_use_certificate_chain_file(context, flow.cert) <= 0 ||
        SSL_CTX_use_PrivateKey_file(context, flow.key, SSL_FILETYPE_PEM) <= 0)
        fail_with_reason("use the certificate");
    SSL_CTX_set_alpn_select_cb(context, choose_alpn, NULL);
    /* As other servers do: no extra round trip that proves the client's address. */
    SSL *listener = SSL_new_listener(context, SSL_LISTENER_FLAG_NO_VALIDATE);
    BIO *bio = open_socket();
    SSL_set_bio(listener, bio, bio);
    SSL_set_blocking_mode(listener, 0);
    if (!SSL_listen(listener)) fail_with_reason("listen");
    open_counter();
    puts("ready");
    fflush(stdout);
    while (!stopping) {
        work(listener, now_ns() + FOREVER_NS);
        accept_flow(listener);
        if (stream) read_stream();
        if (connection && ended(&end)) report_end(&end);
    }
    close_table();
}

/* --- sending --- */

static uint64_t cwnd_bytes, in_flight_bytes;
static uint32_t state;

/* Let the congestion controller keep its figures where we read them. */
static void watch_controller(void)
{
    QUIC_CHANNEL *channel = ossl_quic_conn_get_channel(connection);
    OSSL_PARAM figures[] = {
        OSSL_PARAM_construct_uint64(OSSL_CC_OPTION_CUR_CWND_SIZE, &cwnd_bytes),
        OSSL_PARAM_construct_uint64(OSSL_CC_OPTION_CUR_BYTES_IN_FLIGHT, &in_flight_bytes),
        OSSL_PARAM_construct_uint32(OSSL_CC_OPTION_CUR_STATE, &state),
        OSSL_PARAM_construct_end(),
    };
    if (!channel->cc_method->bind_diagnostics(channel->cc_data, figures))
        fail_with_reason("report its congestion window");
}

static void sample(void)
{
    struct sample s = EMPTY_SAMPLE;
    OSSL_RTT_INFO rtt;
    ossl_statm_get_rtt_info(
        ossl_quic_channel_get_statm(ossl_quic_conn_get_channel(connection)), &rtt);
    s.cwnd_bytes = (double)cwnd_bytes;
    s.bytes_in_flight = (double)in_flight_bytes;
    s.srtt_ms = (double)ossl_time2us(rtt.smoothed_rtt) / 1e3;
    s.latest_rtt_ms = (double)ossl_time2us(rtt.latest_rtt) / 1e3;
    s.min_rtt_ms = (double)ossl_time2us(rtt.min_rtt) / 1e3;
    s.state = state == 'S' ? "slow_start" : state == 'R' ? "recovery" : "congestion_avoidance";
    write_sample(&s);
}

static void begin(void)
{
    BIO_ADDR *peer = BIO_ADDR_new();
    BIO *bio = open_socket();
    BIO_ADDR_rawmake(peer, AF_INET, &flow.address.sin_addr, sizeof flow.address.sin_addr,
                     flow.address.sin_port);
    use(SSL_new(context));
    SSL_set_bio(connection, bio, bio);
    SSL_set_blocking_mode(connection, 0);
    SSL_set_tlsext_host_name(connection, "qbkit");
    SSL_set_alpn_protos(connection, ALPN, sizeof ALPN - 1);
    if (!SSL_set1_initial_peer_addr(connection, peer)) fail_with_reason("begin a connection");
    BIO_ADDR_free(peer);
}

/* Whether the connection stands; one that is refused, or late, is a failure. */
static bool connected(uint64_t limit_ns)
{
    int done = SSL_connect(connection), why = SSL_get_error(connection, done);
    bool waits = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    if (done != 1 && (!waits || now_ns() >= limit_ns)) fail_to_connect();
    ERR_clear_error();
    return done == 1;
}

/* Fill the library's buffer; returns what is left. A fast path empties it meanwhile, so there is a
 * limit. */
static uint64_t write_stream(uint64_t left_bytes)
{
    size_t written = 1;
    for (size_t filled = 0; left_bytes && written && filled < BUFFER_BYTES; filled += written) {
        size_t size = left_bytes < CHUNK_BYTES ? left_bytes : CHUNK_BYTES;
        bool last = size == left_bytes;
        if (!SSL_write_ex2(stream, chunk, size, last ? SSL_WRITE_FLAG_CONCLUDE : 0, &written))
            written = 0;
        left_bytes -= written;
    }
    ERR_clear_error();
    return left_bytes;
}

static bool answered(void)
{
    size_t got;
    while (SSL_read_ex(stream, chunk, sizeof chunk, &got)) continue;
    ERR_clear_error();
    return SSL_get_stream_read_state(stream) == SSL_STREAM_STATE_FINISHED;
}

static void upload(uint64_t end_ns)
{
    uint64_t left_bytes = flow.size_bytes ? flow.size_bytes + HEADER_BYTES : UINT64_MAX;
    struct end end;
    if (!(stream = SSL_new_stream(connection, 0))) fail_with_reason("open a stream");
    while (!stopping && now_ns() < end_ns) {
        left_bytes = write_stream(left_bytes);
        if (sample_due()) sample();
        if (!left_bytes && answered()) return;
        work(connection, end_ns);
        if (ended(&end)) leave(&end);
    }
}

static void send_flow(void)
{
    uint64_t end_ns = flow.duration_ns ? now_ns() + flow.duration_ns : UINT64_MAX;
    uint64_t limit_ns = connect_limit_ns();
    if (strcmp(flow.controller, "newreno")) fail("openssl has no controller %s", flow.controller);
    create(OSSL_QUIC_client_method());
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    open_samples();
    begin();
    while (!stopping && !connected(limit_ns)) work(connection, limit_ns);
    if (!stopping) {
        watch_controller();
        upload(end_ns);
    }
    SSL_shutdown_ex(connection, SSL_SHUTDOWN_FLAG_RAPID | SSL_SHUTDOWN_FLAG_NO_STREAM_FLUSH, NULL,
                    0);
    close_table();
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, "openssl", OPTIONS);
    if (flow.sends) send_flow();
    else receive();
    SSL_free(stream);
    SSL_free(connection); /* ends the qlog */
    return 0;
}
