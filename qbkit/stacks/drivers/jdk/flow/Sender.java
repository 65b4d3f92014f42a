package flow;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpOption;
import java.net.http.HttpOption.Http3DiscoveryMode;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Uploads for a time or so many bytes, and writes sender.csv. */
class Sender {
    private static final List<String> CONTROLLERS = List.of("cubic", "reno");
    private static final Duration CONNECT_LIMIT = Duration.ofSeconds(10);
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(1);
    private static final long SAMPLE_EVERY_NS = 10_000_000;

    private final long startedNs = System.nanoTime();
    private final Arguments arguments;
    private final Samples samples;
    private volatile HttpClient client; // of a signal too

    Sender(Arguments arguments) {
        this.arguments = arguments;
        samples = new Samples(arguments.out);
    }

    void run() {
        if (!CONTROLLERS.contains(arguments.controller)) {
            String all = String.join(", ", CONTROLLERS);
            throw Flow.fail("jdk has no controller %s; it has %s", arguments.controller, all);
        }
        System.setProperty("jdk.internal.httpclient.quic.congestionController", arguments.controller);
        // The certificate is for a name, which no name server knows.
        System.setProperty("jdk.internal.httpclient.disableHostnameVerification", "true");
        // Java itself would exit with 143 on SIGTERM.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Flow.end(this::finish, "")));
        client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_3)
                .connectTimeout(CONNECT_LIMIT)
                .sslContext(Trust.in(Path.of(arguments.authority)))
                .build();
        Flow.end(this::finish, outcome(client.sendAsync(request(), BodyHandlers.discarding())));
    }

    private HttpRequest request() {
        long sizeBytes = arguments.sizeBytes > 0 ? arguments.sizeBytes : Long.MAX_VALUE;
        return HttpRequest.newBuilder(URI.create("https://" + arguments.address + "/"))
                .setOption(HttpOption.H3_DISCOVERY, Http3DiscoveryMode.HTTP_3_URI_ONLY)
                .POST(BodyPublishers.ofInputStream(() -> new Zeroes(sizeBytes)))
                .build();
    }

    /** Samples the connection until the upload or its time ends; returns what went wrong. */
    private String outcome(CompletableFuture<HttpResponse<Void>> answer) {
        long endNs = arguments.sizeBytes > 0 ? Long.MAX_VALUE : startedNs + (long) (arguments.durationS * 1e9);
        while (true) {
            long leftNs = endNs - System.nanoTime();
            try {
                long waitNs = Math.min(leftNs, SAMPLE_EVERY_NS);
                int status = answer.get(waitNs, TimeUnit.NANOSECONDS).statusCode();
                return status == 200 ? "" : "the receiver answered with status " + status;
            } catch (TimeoutException over) {
                if (leftNs <= SAMPLE_EVERY_NS) {
                    return "";
                }
                samples.take(client);
            } catch (ExecutionException error) {
                return problem(error.getCause());
            } catch (InterruptedException error) {
                throw new IllegalStateException("nobody interrupts this thread", error);
            }
        }
    }

    private String problem(Throwable cause) {
        String to = "cannot connect to " + arguments.address;
        return switch (cause) {
            case HttpConnectTimeoutException late -> to + " within " + CONNECT_LIMIT.toSeconds() + " s";
            case ConnectException refused -> to + ": " + refused.getMessage();
            default -> throw lost(cause.getMessage());
        };
    }

    /** Ends the program; who ended the connection is in the words of the client only. */
    private RuntimeException lost(String reason) {
        String words = String.valueOf(reason);
        String by = words.contains("peer") ? "receiver" : words.contains("idle") ? "timeout" : "unknown";
        String json = words.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ");
        String report = "{\"time_ns\":%d,\"by\":\"%s\",\"reason\":\"%s\"}\n";
        String text = report.formatted(Table.nowNs(), by, json);
        Path path = Path.of(arguments.out, "sender-end.json");
        Flow.lost(() -> {
            finish();
            try {
                Files.writeString(path, text);
            } catch (IOException error) {
                throw Flow.fail("cannot write %s: %s", path, error);
            }
        });
        return new IllegalStateException("unreachable");
    }

    private void finish() {
        if (client != null) {
            client.shutdownNow();
            try {
                client.awaitTermination(CLOSE_LIMIT);
            } catch (InterruptedException error) {
                throw new IllegalStateException("nobody interrupts this thread", error);
            }
        }
        samples.write();
    }
}
