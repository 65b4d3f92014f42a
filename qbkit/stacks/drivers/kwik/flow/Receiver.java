package flow;

import java.io.FileInputStream;
import java.io.IOException;
import java.net.DatagramSocket;
import java.security.GeneralSecurityException;
import tech.kwik.core.QuicConnection;
import tech.kwik.core.QuicStream;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.server.ApplicationProtocolConnection;
import tech.kwik.core.server.ServerConnectionConfig;
import tech.kwik.core.server.ServerConnector;

/** Counts what comes until SIGTERM, and writes receiver.csv: the bytes so far, about each 100 ms. */
class Receiver {
    private static final long WINDOW_BYTES = 128 << 20, EVERY_NS = 100_000_000;
    private static final int BUFFER_BYTES = 64 << 10, STREAMS = 100, IDLE_S = 60, ID_BYTES = 8;

    private final Arguments arguments;
    private final Table table;
    private long totalBytes;

    Receiver(Arguments arguments) {
        this.arguments = arguments;
        table = new Table(arguments.out, "receiver.csv", "time_ns,bytes", EVERY_NS);
    }

    void run() throws Exception {
        var connector = connector(socket());
        connector.registerApplicationProtocol(Flow.PROTOCOL, (name, connection) -> {
            connection.setConnectionListener(event -> report(new End(event, "receiver")));
            return counter();
        });
        Flow.onSignal(this::finish);
        connector.start();
        System.out.println("ready");
    }

    private DatagramSocket socket() {
        try {
            return Flow.widen(new DatagramSocket(arguments.socketAddress()));
        } catch (IOException error) {
            throw Flow.fail("cannot listen on %s: %s", arguments.address, error.getMessage());
        }
    }

    @SuppressWarnings("deprecation") // the other way takes a key store, not two files
    private ServerConnector connector(DatagramSocket socket) {
        try (var cert = new FileInputStream(arguments.cert); var key = new FileInputStream(arguments.key)) {
            return ServerConnector.builder()
                    .withSocket(socket)
                    .withCertificate(cert, key)
                    .withSupportedVersion(QuicConnection.QuicVersion.V1)
                    .withConfiguration(limits())
                    .withLogger(new NullLogger())
                    .build();
        } catch (IOException | GeneralSecurityException error) {
            throw Flow.fail("cannot use the certificate %s: %s", arguments.cert, error.getMessage());
        }
    }

    private static ServerConnectionConfig limits() {
        return ServerConnectionConfig.builder()
                .maxIdleTimeoutInSeconds(IDLE_S)
                .maxConnectionBufferSize(WINDOW_BYTES)
                .maxBidirectionalStreamBufferSize(WINDOW_BYTES)
                .maxUnidirectionalStreamBufferSize(WINDOW_BYTES)
                .maxOpenPeerInitiatedBidirectionalStreams(STREAMS)
                .maxOpenPeerInitiatedUnidirectionalStreams(STREAMS)
                .connectionIdLength(ID_BYTES)
                .build();
    }

    private ApplicationProtocolConnection counter() {
        return new ApplicationProtocolConnection() {
            @Override
            public void acceptPeerInitiatedStream(QuicStream stream) {
                new Thread(() -> count(stream)).start();
            }
        };
    }

    /** Reads a perf stream to its end and answers with an empty one. */
    private void count(QuicStream stream) {
        var buffer = new byte[BUFFER_BYTES];
        int header = Flow.HEADER_BYTES;
        try {
            for (int n; (n = stream.getInputStream().read(buffer)) >= 0; ) {
                int skipped = Math.min(n, header);
                header -= skipped;
                add(n - skipped);
            }
            stream.getOutputStream().close();
        } catch (IOException closed) {
            // The sender has closed the connection at the end of its time.
        }
    }

    private void report(End end) {
        if (!end.isDone()) {
            end.write(arguments.out);
        }
    }

    private synchronized void add(int bytes) {
        totalBytes += bytes;
        long now = Table.nowNs();
        if (table.due(now)) {
            table.row(now, totalBytes);
        }
    }

    private synchronized void finish() {
        table.row(Table.nowNs(), totalBytes);
        table.write();
    }
}
