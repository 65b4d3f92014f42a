package flow;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A table of times and bytes, of which each row is written at once: a driver may end by a signal. */
class Rows {
    private final Path path;
    private final OutputStream file;

    Rows(String name) {
        path = Path.of(System.getenv("QBKIT_APP_OUT"), name);
        try {
            file = Files.newOutputStream(path);
        } catch (IOException error) {
            throw Flow.fail("cannot write %s: %s", path, error);
        }
        write("time_ns,bytes\n");
    }

    void add(long timeNs, long bytes) {
        write(timeNs + "," + bytes + "\n");
    }

    private void write(String text) {
        try {
            file.write(text.getBytes(StandardCharsets.US_ASCII));
        } catch (IOException error) {
            throw Flow.fail("cannot write %s: %s", path, error);
        }
    }
}
