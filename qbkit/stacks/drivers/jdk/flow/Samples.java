package flow;

import java.net.http.HttpClient;
import java.util.Map;

/**
 * The rows of sender.csv. The JDK reports nothing of a connection, so they are read from the fields
 * of its controller and its RTT estimator.
 */
class Samples {
    private static final String HEADER =
            "time_ns,cwnd_bytes,ssthresh_bytes,bytes_in_flight,srtt_ms,latest_rtt_ms,min_rtt_ms,state";

    private final Table table;
    private Fields controller, rtt;

    Samples(String folder) {
        table = new Table(folder, "sender.csv", HEADER, 0);
    }

    /** Adds a row, once there is a connection with a measured RTT. */
    synchronized void take(HttpClient client) {
        if (controller == null && !found(client)) {
            return;
        }
        if (rtt.number("rttSampleCount") == 0) {
            return;
        }
        long cwnd = controller.number("congestionWindow");
        long threshold = controller.number("ssThresh");
        boolean isReduced = threshold < Long.MAX_VALUE;
        table.row(
                Table.nowNs(),
                cwnd,
                isReduced ? threshold : "",
                controller.number("bytesInFlight"),
                milliseconds("smoothedRttMicros"),
                milliseconds("latestRttMicros"),
                milliseconds("minRttMicros"),
                cwnd < threshold ? "slow_start" : "congestion_avoidance");
    }

    /** Whether the client's one connection is in its pool by now. */
    private boolean found(HttpClient client) {
        var pool = new Fields(client).inner("impl").inner("client3").inner("connections");
        var connections = ((Map<?, ?>) pool.value("unadvertised")).values().iterator();
        if (!connections.hasNext()) {
            return false;
        }
        var connection = new Fields(connections.next()).inner("quicConnection");
        controller = connection.inner("congestionController");
        rtt = connection.inner("rttEstimator");
        return true;
    }

    private double milliseconds(String field) {
        return rtt.number(field) / 1e3;
    }

    synchronized void write() {
        table.write();
    }
}
