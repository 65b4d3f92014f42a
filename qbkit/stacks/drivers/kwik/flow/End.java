package flow;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import tech.kwik.core.ConnectionTerminatedEvent;

/** How a connection ended before its time; see docs/howto/own-stack.md. */
class End {
    private final String role, by, code;
    private final String reason;
    private final long timeNs = Table.nowNs();

    End(ConnectionTerminatedEvent event, String role) {
        this.role = role;
        String peer = role.equals("sender") ? "receiver" : "sender";
        by = switch (event.closeReason()) {
            case IdleTimeout, ConnectionLost -> "timeout";
            case StatelessReset -> "reset";
            case ImmediateClose -> event.closedByPeer() ? peer : role;
        };
        code = event.hasTransportError() ? code("transport", event.transportErrorCode())
                : event.hasApplicationError() ? code("application", event.applicationErrorCode())
                : "";
        reason = event.hasError() ? event.errorDescription() : "";
    }

    private static String code(String kind, long code) {
        return "\"kind\":\"%s\",\"code\":%d,".formatted(kind, code);
    }

    /** Whether the sender closed its connection because its upload is over. */
    boolean isDone() {
        return role.equals("receiver") && by.equals("sender") && code.isEmpty();
    }

    void write(String folder) {
        Path path = Path.of(folder, role + "-end.json");
        String words = reason.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ");
        String report = "{\"time_ns\":%d,\"by\":\"%s\",%s\"reason\":\"%s\"}\n";
        try {
            Files.writeString(path, report.formatted(timeNs, by, code, words));
        } catch (IOException error) {
            throw Flow.fail("cannot write %s: %s", path, error);
        }
    }
}
