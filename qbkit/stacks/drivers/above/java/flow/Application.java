package flow;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.locks.LockSupport;

/**
 * What a sender has to send, and when: qbkit/spec/app.py. It writes objects.csv, a row when an object
 * is released, or when an on-time ends.
 */
class Application {
    private static final int CHUNK_BYTES = 16384; // written at once, as with TCP (tcp/app.c)
    private static final long NEVER_NS = Long.MAX_VALUE;

    /** One stream of a sender. */
    interface Stream {
        /** Sends so many zeroes; returns when it has room for more. */
        void write(int size) throws IOException;

        /** Sends its end; returns when the receiver has answered. */
        void finish() throws IOException;
    }

    /** What opens streams. */
    interface Connection {
        Stream open() throws IOException;
    }

    private record Released(long atNs, long bytes) {}

    private final String[] words = System.getenv("QBKIT_APP").split(" ");
    private final Queue<Released> objects = new ArrayDeque<>(); // times are after the start
    private final Rows rows = new Rows("objects.csv");
    private long onNs, offNs, thinkNs, sizeBytes, seed;
    private long startNs, offAtNs; // of the flow, or of the present or next on-time, or response
    private long leftBytes, sentInOnBytes, nextNs;
    private boolean asked, isOn;

    static boolean isGiven() {
        return System.getenv("QBKIT_APP") != null;
    }

    Application() {
        switch (words[0]) {
            case "onoff" -> {
                onNs = number(1);
                offNs = number(2);
                seed = number(3);
            }
            case "requests" -> {
                sizeBytes = number(1);
                thinkNs = number(2);
                seed = number(3);
            }
            default -> {
                for (int i = 1; i < words.length; i++) {
                    String[] pair = words[i].split(":");
                    objects.add(new Released(Long.parseLong(pair[0]), Long.parseLong(pair[1])));
                }
            }
        }
    }

    private long number(int word) {
        return Long.parseLong(words[word]);
    }

    /** Sends what it has, when it has it, until the connection ends. */
    void feed(Connection connection) throws IOException {
        var stream = connection.open();
        startNs = Table.nowNs();
        while (true) {
            long bytes = dueBytes();
            if (bytes > 0) {
                int size = (int) Math.min(bytes, CHUNK_BYTES);
                stream.write(size);
                written(size);
            } else if (asked) {
                stream.finish();
                answered();
                stream = connection.open();
            } else {
                LockSupport.parkNanos(nextNs - Table.nowNs());
            }
        }
    }

    /** How many bytes it wants to write now; if none, it waits for an answer, or until nextNs. */
    private long dueBytes() {
        long nowNs = Table.nowNs();
        if (words[0].equals("onoff")) {
            return dueOn(nowNs) ? Long.MAX_VALUE : 0;
        }
        if (leftBytes > 0 || asked) {
            return leftBytes;
        }
        if (words[0].equals("requests")) {
            nextNs = startNs;
            asked = nowNs >= startNs;
            return asked ? release(nowNs, sizeBytes) : 0;
        }
        nextNs = objects.isEmpty() ? NEVER_NS : startNs + objects.peek().atNs;
        return nowNs >= nextNs ? release(nextNs, objects.remove().bytes) : 0;
    }

    private boolean dueOn(long nowNs) {
        if (isOn && nowNs >= offAtNs) {
            rows.add(startNs, sentInOnBytes);
            startNs = offAtNs + drawn(offNs);
            isOn = false;
            sentInOnBytes = 0;
        }
        if (!isOn && nowNs >= startNs) {
            startNs = nowNs;
            offAtNs = nowNs + drawn(onNs);
            isOn = true;
        }
        nextNs = startNs;
        return isOn;
    }

    private long release(long atNs, long bytes) {
        rows.add(atNs, bytes);
        leftBytes = bytes;
        return bytes;
    }

    private void written(int size) {
        if (isOn) {
            sentInOnBytes += size;
        } else {
            leftBytes -= size;
        }
    }

    private void answered() {
        asked = false;
        startNs = Table.nowNs() + drawn(thinkNs);
    }

    /** A time of this mean, exponential if there is a seed: xorshift64*, as in c/above.c. */
    private long drawn(long meanNs) {
        if (seed == 0) {
            return meanNs;
        }
        seed ^= seed >>> 12;
        seed ^= seed << 25;
        seed ^= seed >>> 27;
        double part = (seed * 2685821657736338717L >>> 11) * 0x1p-53;
        return (long) (-Math.log(1 - part) * meanNs);
    }
}
