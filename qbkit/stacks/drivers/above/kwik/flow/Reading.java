package flow;

import java.util.concurrent.locks.LockSupport;

/**
 * What a receiver's application does with what comes: it reads no faster than QBKIT_READ_MBPS says,
 * and writes arrived.csv, a row of each read.
 */
class Reading {
    private static final long LATE_NS = 10_000_000; // so late a timer may be: it makes up for it

    private final Rows arrived = System.getenv("QBKIT_APP_OUT") == null ? null : new Rows("arrived.csv");
    private final String readMbps = System.getenv("QBKIT_READ_MBPS");
    private final double nsPerByte = readMbps == null ? 0 : 8e3 / Double.parseDouble(readMbps);
    private long totalBytes, sinceNs, sinceBytes;

    /**
     * Notes that so many bytes were read; it returns when the application reads again. Time in which
     * there was nothing to read is not made up for.
     */
    synchronized void took(int bytes) {
        long nowNs = Table.nowNs();
        totalBytes += bytes;
        if (arrived != null) {
            arrived.add(nowNs, totalBytes);
        }
        if (nowNs > readyNs() + LATE_NS) {
            sinceNs = nowNs;
            sinceBytes = 0;
        }
        sinceBytes += bytes;
        for (long untilNs = readyNs(); nowNs < untilNs; nowNs = Table.nowNs()) {
            LockSupport.parkNanos(untilNs - nowNs);
        }
    }

    private long readyNs() {
        return sinceNs + (long) (sinceBytes * nsPerByte);
    }
}
