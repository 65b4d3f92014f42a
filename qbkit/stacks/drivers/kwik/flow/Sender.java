package flow;

import java.io.IOException;
import java.net.DatagramSocket;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import tech.kwik.core.ConnectionTerminatedEvent;
import tech.kwik.core.QuicClientConnection;
import tech.kwik.core.QuicStream;
import tech.kwik.core.impl.Controllers;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.log.QLog;

/** Uploads for a time or so many bytes, and writes sender.csv. */
class Sender {
    private static final Duration CONNECT_LIMIT = Duration.ofSeconds(10);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(1);
    private static final int CHUNK_BYTES = 16 << 10; // kwik's buffer of a stream holds 50 KiB

    private final long startedNs = System.nanoTime();
    private final Arguments arguments;
    private final Samples samples;
    private final CompletableFuture<String> ended = new CompletableFuture<>();
    private final CompletableFuture<End> lost = new CompletableFuture<>();
    private volatile QuicClientConnection connection; // of a signal too

    Sender(Arguments arguments) {
        this.arguments = arguments;
        samples = new Samples(arguments.out);
    }

    void run() throws Exception {
        if (!arguments.controller.equals("newreno")) {
            throw Flow.fail("kwik has no controller %s; it has newreno", arguments.controller);
        }
        Flow.onSignal(this::finish);
        connection = connection();
        samples.follow(Controllers.of(connection));
        connect();
        connection.setConnectionListener(this::disconnected);
        String problem = flow();
        if (!problem.isEmpty()) {
            leaveIfLost();
        }
        Flow.end(this::finish, problem);
    }

    private void disconnected(ConnectionTerminatedEvent event) {
        lost.complete(new End(event, "sender"));
        ended.complete("the connection ended");
    }

    /** Ends the program if the connection has ended, which kwik may report a little later. */
    private void leaveIfLost() throws Exception {
        try {
            lost.get(CLOSE_LIMIT.toMillis(), TimeUnit.MILLISECONDS).write(arguments.out);
        } catch (TimeoutException stands) {
            return;
        }
        Flow.lost(this::finish);
    }

    private QuicClientConnection connection() throws IOException {
        var address = arguments.socketAddress();
        return QuicClientConnection.newBuilder()
                .host(address.getHostString())
                .port(address.getPort())
                .applicationProtocol(Flow.PROTOCOL)
                .connectTimeout(CONNECT_LIMIT)
                .noServerCertificateCheck()
                .socketFactory(peer -> Flow.widen(new DatagramSocket()))
                .logger(new NullLogger() {
                    @Override
                    public QLog getQLog() {
                        return samples;
                    }
                })
                .build();
    }

    private void connect() {
        try {
            connection.connect();
        } catch (IOException error) {
            String why = error.getMessage().startsWith("Connection timed out")
                    ? " within " + CONNECT_LIMIT.toSeconds() + " s"
                    : ": " + error.getMessage();
            throw Flow.fail("cannot connect to %s%s", arguments.address, why);
        }
    }

    /** Uploads until its end or the end of its time; returns what went wrong. */
    private String flow() throws Exception {
        var upload = new Thread(() -> ended.complete(upload()));
        upload.setDaemon(true);
        upload.start();
        if (arguments.sizeBytes > 0) {
            return ended.get();
        }
        long leftNs = (long) (arguments.durationS * 1e9) - (System.nanoTime() - startedNs);
        try {
            return ended.get(leftNs, TimeUnit.NANOSECONDS);
        } catch (TimeoutException over) {
            return "";
        }
    }

    private String upload() {
        try {
            QuicStream stream = connection.createStream(true);
            send(stream);
            stream.getOutputStream().close();
            stream.getInputStream().readAllBytes(); // ends when all has arrived
            return "";
        } catch (IOException error) {
            return "cannot send: " + error.getMessage();
        }
    }

    /** Writes the header and so many bytes, or (size 0) writes without end. */
    private void send(QuicStream stream) throws IOException {
        var chunk = new byte[CHUNK_BYTES];
        stream.getOutputStream().write(chunk, 0, Flow.HEADER_BYTES);
        long left = arguments.sizeBytes > 0 ? arguments.sizeBytes : Long.MAX_VALUE;
        while (left > 0) {
            int size = (int) Math.min(left, CHUNK_BYTES);
            stream.getOutputStream().write(chunk, 0, size);
            left -= size;
        }
    }

    private void finish() {
        if (connection != null && connection.isConnected()) {
            connection.closeAndWait(CLOSE_LIMIT);
        }
        samples.write();
    }
}
