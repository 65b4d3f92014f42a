package flow;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;

/** Rows of a table, kept in memory until the end: each write costs the guest microseconds. */
class Table {
    private final Path path;
    private final long everyNs;
    private final StringBuilder rows;
    private long nextNs;

    Table(String folder, String name, String header, long everyNs) {
        path = Path.of(folder, name);
        this.everyNs = everyNs;
        rows = new StringBuilder(1 << 20).append(header).append('\n');
    }

    static long nowNs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000 + now.getNano();
    }

    boolean due(long nowNs) {
        return nowNs >= nextNs;
    }

    void row(long nowNs, Object... cells) {
        rows.append(nowNs);
        for (Object cell : cells) {
            rows.append(',').append(cell);
        }
        rows.append('\n');
        nextNs = nowNs + everyNs;
    }

    void write() {
        try {
            Files.writeString(path, rows);
        } catch (IOException error) {
            throw Flow.fail("cannot write %s: %s", path, error);
        }
    }
}
