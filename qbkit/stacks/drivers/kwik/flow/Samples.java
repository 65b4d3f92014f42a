package flow;

import java.time.Instant;
import tech.kwik.core.cc.NewRenoCongestionController;
import tech.kwik.core.log.NullQLog;
import tech.kwik.core.packet.QuicPacket;

/**
 * The rows of sender.csv: what kwik reports to its qlog with each ACK, a row each 10 ms and at each
 * reduction of the window. Its round-trip times are whole milliseconds.
 */
class Samples extends NullQLog {
    private static final String HEADER =
            "time_ns,cwnd_bytes,bytes_in_flight,srtt_ms,latest_rtt_ms,lost_packets,state";
    private static final long EVERY_NS = 10_000_000;

    private final Table table;
    private NewRenoCongestionController controller;
    private long windowBytes, lostPackets;
    private int smoothedMs, latestMs;

    Samples(String folder) {
        table = new Table(folder, "sender.csv", HEADER, EVERY_NS);
    }

    synchronized void follow(NewRenoCongestionController chosen) {
        controller = chosen;
    }

    @Override
    public synchronized void emitRecoveryMetrics(
            long cwnd, long inFlight, int smoothed, int variation, int latest) {
        smoothedMs = smoothed;
        latestMs = latest;
        report(cwnd, inFlight, table.due(Table.nowNs()));
    }

    /** Reported with each packet sent, and after losses. */
    @Override
    public synchronized void emitCongestionControlMetrics(long cwnd, long inFlight) {
        report(cwnd, inFlight, false);
    }

    @Override
    public synchronized void emitPacketLostEvent(QuicPacket packet, Instant when) {
        lostPackets++;
    }

    private void report(long cwnd, long inFlight, boolean due) {
        boolean reduced = cwnd < windowBytes;
        windowBytes = cwnd;
        if (due || reduced) {
            table.row(Table.nowNs(), cwnd, inFlight, smoothedMs, latestMs, lostPackets, state());
        }
    }

    private String state() {
        return switch (controller.getMode()) {
            case SlowStart -> "slow_start";
            case CongestionAvoidance -> "congestion_avoidance";
        };
    }

    synchronized void write() {
        table.write();
    }
}
